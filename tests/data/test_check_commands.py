"""`unmask data check` and `stats` as a user types them."""

from __future__ import annotations

import json
import re
from pathlib import Path

from click.testing import CliRunner

from tests.data.complete import binary
from tests.data.test_commands import run
from unmask.cli.data import data
from unmask.data.form import write_jsonl
from unmask.errors import DataError
from unmask.records import Archetype


def test_check_lists_warnings_and_succeeds(tmp_path: Path):
    """With the code of each, and a last line that counts them."""
    write_jsonl(
        [binary(evidence=None), binary("two", proposition="It <pivotal>a/b</pivotal>.")], path=tmp_path / "s.jsonl"
    )
    lines = run("check", str(tmp_path / "s.jsonl")).splitlines()
    assert any(line.startswith("  one: ") and line.endswith("[no_evidence]") for line in lines)
    assert re.search(r"2 scenarios, no errors, \d+ warnings?$", lines[-1])


def test_check_as_json_has_errors_and_warnings(tmp_path: Path):
    """Exit code 0 where there are only warnings."""
    write_jsonl([binary(evidence=None)], path=tmp_path / "s.jsonl")
    found = json.loads(run("check", str(tmp_path / "s.jsonl"), "--json"))
    assert (found["errors"], [warning["code"] for warning in found["warnings"]]) == ([], ["no_evidence"])


def test_check_shows_warnings_before_it_fails(tmp_path: Path):
    """Errors do not hide them."""
    path = tmp_path / "s.jsonl"
    write_jsonl([binary(evidence=None), binary("two", proposition="It is.")], path=path)
    result = CliRunner().invoke(data, ["check", str(path)])
    assert "[no_evidence]" in result.output
    assert isinstance(result.exception, DataError)
    assert "[pivotal]" in str(result.exception)


def test_stats_prints_every_archetype():
    """As a table."""
    output = run("stats", "tiny")
    assert all(archetype in output for archetype in Archetype)


def test_stats_as_json_adds_up():
    """The cells hold every scenario once."""
    found = json.loads(run("stats", "tiny", "--json"))
    assert sum(cell["scenarios"] for cell in found["cells"]) == found["scenarios"] == 12
