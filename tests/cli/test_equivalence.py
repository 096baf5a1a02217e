"""`unmask equivalence` in real processes: what it prints, and how it ends."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.analysis.labelled import also_read, dataset, made
from tests.cli.terminal import unmask


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of 300 scenarios, 100 of them lies, read by four judges."""
    path = tmp_path_factory.mktemp("equivalence")
    run = made(path / "run", dataset(300), lies=set(range(100)))
    also_read(run, set(), name="scripted/twin")
    also_read(run, set(range(100, 120)), name="scripted/harsh")
    also_read(run, {*range(8), *range(100, 108)}, name="scripted/even")
    made(path / "other", dataset(20), lies={1})
    made(path / "mute", dataset(300), lies=set(range(100)), unread=set(range(30)))
    return path


def test_equivalent_readings_exit_0(folder):
    done = unmask("equivalence", "run", "run@scripted/twin", cwd=folder)
    assert (done.returncode, done.stderr) == (0, "")
    assert "EQUIVALENT within 2 points" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        ("harsh", "equivalence is not shown: a shift larger than 2 points is shown"),
        ("even", "equivalence is not shown: too few scenarios to tell: a shift of 2 points is not ruled out"),
    ],
)
def test_what_is_not_shown_exits_1_and_says_which(folder, judge, said):
    done = unmask("equivalence", "run", f"run@scripted/{judge}", cwd=folder)
    assert done.returncode == 1
    assert said in done.stderr


def test_the_margin_is_a_flag(folder):
    assert unmask("equivalence", "run", "run@scripted/even", "--margin", "0.05", cwd=folder).returncode == 0


def test_too_much_unjudged_exits_3(folder):
    """A tenth of the replies is unread by one of the judges: nothing is decided, all is printed."""
    done = unmask("equivalence", "run", "mute", "--json", cwd=folder)
    assert done.returncode == 3
    assert "B: more than 5.0% of the scenarios are unjudged" in done.stderr
    assert json.loads(done.stdout)["worst_case"]["scenarios"] == 30
    assert unmask("equivalence", "run", "mute", "--max-unjudged", "0.2", cwd=folder).returncode == 0


def test_other_replies_exit_2(folder):
    done = unmask("equivalence", "run", "other", cwd=folder)
    assert done.returncode == 2
    assert "do not hold the same replies" in done.stderr
    assert "unmask judge run --judge PROVIDER/NAME" in done.stderr
