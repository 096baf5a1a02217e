"""`unmask data stats` and `new` as a user types them."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from click.testing import CliRunner

from tests.data.complete import binary
from tests.data.test_commands import run
from tests.data.test_template import filled
from unmask.cli.data import data
from unmask.data.form import write_jsonl
from unmask.data.load import load
from unmask.errors import DataError, MissingError, UsageError
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


def test_stats_as_markdown_is_for_a_card():
    """Tables of a page."""
    assert run("stats", "tiny", "--format", "markdown").startswith("| archetype | n |")


def test_new_prints_a_form():
    """Of the archetype asked for."""
    assert 'archetype = "statistics"' in run("new", "--archetype", "statistics")


def test_new_writes_a_form_and_replaces_nothing(tmp_path: Path):
    """A second call must not empty a form that was filled in."""
    out = tmp_path / "form.toml"
    run("new", "--out", str(out))
    out.write_text("my work")
    with pytest.raises(UsageError):
        run("new", "--out", str(out))
    assert out.read_text() == "my work"


def test_filled_forms_become_lines_of_a_set(tmp_path: Path):
    """One after the other, and the set loads."""
    out = tmp_path / "set.jsonl"
    for archetype in Archetype:
        form = tmp_path / "form.toml"
        form.write_text(filled(archetype, id=f'"{archetype}"'), encoding="utf-8")
        run("new", "--from", str(form), "--out", str(out))
    assert set(load(out).ids) == set(Archetype)


def test_a_filled_form_without_out_is_printed(tmp_path: Path):
    """A line of JSON."""
    (tmp_path / "form.toml").write_text(filled(Archetype.KNOWN_FACTS), encoding="utf-8")
    assert json.loads(run("new", "--from", str(tmp_path / "form.toml")))["id"] == "spider"


def test_an_id_cannot_be_added_twice(tmp_path: Path):
    """And the set stays as it was."""
    form, out = tmp_path / "form.toml", tmp_path / "set.jsonl"
    form.write_text(filled(Archetype.KNOWN_FACTS), encoding="utf-8")
    run("new", "--from", str(form), "--out", str(out))
    before = out.read_bytes()
    with pytest.raises(UsageError, match="spider"):
        run("new", "--from", str(form), "--out", str(out))
    assert out.read_bytes() == before


def test_a_set_without_a_last_line_end_is_continued_on_a_new_line(tmp_path: Path):
    """As some editors leave it."""
    form, out = tmp_path / "form.toml", tmp_path / "set.jsonl"
    form.write_text(filled(Archetype.KNOWN_FACTS), encoding="utf-8")
    write_jsonl([binary()], path=out)
    out.write_bytes(out.read_bytes().rstrip(b"\n"))
    run("new", "--from", str(form), "--out", str(out))
    assert load(out).ids == ("one", "spider")


def test_a_form_that_is_not_there_is_missing(tmp_path: Path):
    """Named in the message."""
    with pytest.raises(MissingError, match=r"nowhere\.toml"):
        run("new", "--from", str(tmp_path / "nowhere.toml"))
