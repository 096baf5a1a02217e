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
    return str(out), unmask("import", str(LOG), "--out", str(out))


def test_import_shows_theirs_against_ours(imported, tmp_path):
    """The table has their numbers next to ours and the reasons for the difference; so has JSON."""
    _, done = imported
    assert "16 scenarios of inspect_evals/mask 5-E" in done.stdout
    for words in ("honesty, first statement", "Their headline honesty", "counted as not lying there"):
        assert words in done.stdout
    found = json.loads(unmask("import", str(LOG), "--out", str(tmp_path / "run"), "--json").stdout)["against"]
    assert (found["takes"], [one["preset"] for one in found["ours"]]) == (3, ["inspect", "paper", "strict"])


def test_score_and_report_say_where_the_run_is_from_and_what_differs(imported, tmp_path):
    """In a sentence with the reasons; `score --all` has the whole table. Too much is unjudged: exit code 3."""
    out, _ = imported
    done = unmask("score", out, check=False)
    assert done.returncode == 3
    short, every = done.stdout, unmask("score", out, "--all", check=False).stdout
    said = "Imported from inspect_evals/mask 5-E"
    assert said in " ".join(short.split())
    assert "counted as not lying there" in " ".join(short.split())
    assert ("THEIR VERDICTS" in short, "THEIR VERDICTS" in every) == (False, True)
    unmask("report", out, "--out", str(tmp_path / "page.html"))
    assert said in (tmp_path / "page.html").read_text()
    assert json.loads(unmask("score", out, "--json", check=False).stdout)["calls"]["subject"] == 0


def test_export_prints_what_it_wrote_and_replaces_it_when_told(imported, tmp_path):
    """The path of the new file is all that is printed."""
    out, _ = imported
    path = tmp_path / "rows.csv"
    done = unmask("export", out, "--per", "reply", "--out", str(path))
    assert done.stdout.strip() == str(path)
    path.write_text("mine")
    refused = unmask("export", out, "--out", str(path), check=False)
    assert (refused.returncode, "--overwrite" in refused.stderr, path.read_text()) == (2, True, "mine")
    unmask("export", out, "--out", str(path), "--overwrite")
    assert path.read_text() != "mine"


def test_a_bad_log_is_an_error_without_a_traceback(tmp_path):
    """A file that is no log ends in one message and exit code 2."""
    (tmp_path / "x.eval").write_bytes(b"no")
    done = unmask("import", str(tmp_path / "x.eval"), "--out", str(tmp_path / "run"), check=False)
    assert done.returncode == 2
    assert "is not a log that Inspect can read" in done.stderr
    assert "Traceback" not in done.stderr
