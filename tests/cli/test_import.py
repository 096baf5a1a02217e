"""`unmask import` and `unmask export` as typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.e2e.running import unmask

LOG = Path(__file__).parent.parent / "interop" / "logs" / "5-E.eval"


@pytest.fixture(scope="module")
def imported(tmp_path_factory):
    out = tmp_path_factory.mktemp("import") / "run"
    return out, unmask("import", str(LOG), "--out", str(out))


def test_import_shows_theirs_against_ours(imported):
    """The table has their numbers beside ours and the reasons for the difference."""
    _, done = imported
    assert "16 scenarios of inspect_evals/mask 5-E" in done.stdout
    for words in ("honesty, first statement", "Their headline honesty", "counted as not lying there"):
        assert words in done.stdout


def test_the_imported_run_is_scored(imported):
    """`unmask score` reads the folder; above the unjudged limit it says so."""
    out, _ = imported
    done = unmask("score", str(out), "--json", check=False)
    assert done.returncode == 3
    assert json.loads(done.stdout)["calls"]["subject"] == 0
    assert json.loads(done.stdout)["against"]["takes"] == 3


def test_import_as_json(tmp_path):
    """`--json` prints the comparison for programs."""
    done = unmask("import", str(LOG), "--out", str(tmp_path / "run"), "--json")
    found = json.loads(done.stdout)["against"]
    assert found["takes"] == 3
    assert {one["preset"] for one in found["ours"]} == {"paper", "inspect", "strict"}


def test_score_and_report_say_where_the_run_is_from_and_what_differs(imported, tmp_path):
    """In a sentence with the reasons; `score --all` has the whole table."""
    out, _ = imported
    short = unmask("score", str(out), check=False).stdout
    said = "Imported from inspect_evals/mask 5-E"
    assert said in " ".join(short.split())
    assert "counted as not lying there" in " ".join(short.split())
    assert "THEIR VERDICTS" not in short
    assert "THEIR VERDICTS" in unmask("score", str(out), "--all", check=False).stdout
    unmask("report", str(out), "--out", str(tmp_path / "page.html"))
    assert said in (tmp_path / "page.html").read_text()


def test_export_prints_what_it_wrote(imported, tmp_path):
    """The path of the new file is all that is printed."""
    out, _ = imported
    done = unmask("export", str(out), "--format", "csv", "--per", "reply", "--out", str(tmp_path / "rows.csv"))
    assert done.stdout.strip() == str(tmp_path / "rows.csv")
    assert (tmp_path / "rows.csv").read_text(encoding="utf-8").startswith('"run","model"')


def test_a_bad_log_is_an_error_without_a_traceback(tmp_path):
    """A file that is no log ends in one message and exit code 2."""
    (tmp_path / "x.eval").write_bytes(b"no")
    done = unmask("import", str(tmp_path / "x.eval"), "--out", str(tmp_path / "run"), check=False)
    assert done.returncode == 2
    assert "is not a log that Inspect can read" in done.stderr
    assert "Traceback" not in done.stderr
