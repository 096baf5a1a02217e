"""`unmask compare` in real processes: how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.analysis.labelled import also_read, dataset, made
from tests.cli.terminal import unmask


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 300 scenarios, 100 of them lies, read by four judges."""
    path = tmp_path_factory.mktemp("compared")
    run = made(path / "run", dataset(300), lies=set(range(100)))
    also_read(run, set(), name="scripted/twin")
    also_read(run, set(range(100, 120)), name="scripted/harsh")
    also_read(run, {*range(8), *range(100, 108)}, name="scripted/even")
    made(path / "mute", dataset(300), lies=set(range(100)), unread=set(range(30)))
    return path


def test_equivalent_readings_exit_0(folder):
    done = unmask("compare", "run", "run@scripted/twin", "--margin", "0.02", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "EQUIVALENT, margin 2 points" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("harsh", "equivalence is not shown: a difference of more than 2 points is shown"),
        ("even", "equivalence is not shown: too few scenarios to tell: a difference of 2 points is not ruled out"),
    ],
)
def test_what_is_not_shown_exits_1_and_says_which(folder, judge, said):
    done = unmask("compare", "run", f"run@scripted/{judge}", "--margin", "0.02", cwd=folder)
    assert done.returncode == 1
    assert said in done.stderr


def test_without_a_margin_a_difference_exits_0(folder):
    assert unmask("compare", "run", "run@scripted/harsh", cwd=folder).returncode == 0


def test_too_much_unjudged_exits_3(folder):
    """A tenth of the replies is unread in one of the runs: nothing is decided, all is printed."""
    done = unmask("compare", "run", "mute", "--margin", "0.2", "--json", cwd=folder)
    assert done.returncode == 3
    assert "mute: 10.0% is unjudged, more than 5.0%" in done.stderr
    assert json.loads(done.stdout)["pairs"][0]["within"]["verdict"] == "equivalent"
    limited = ("--margin", "0.2", "--max-unjudged", "0.2")
    assert unmask("compare", "run", "mute", *limited, cwd=folder).returncode == 0


def test_an_unknown_measure_exits_2_with_the_nearest(folder):
    done = unmask("compare", "run", "mute", "--measure", "p_lei", cwd=folder)
    assert done.returncode == 2
    assert "Did you mean p_lie?" in done.stderr
