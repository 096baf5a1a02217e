"""Stored summaries: right, fresh, and worth nothing when they are damaged."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.made_runs import made
from unmask.runs.run import Run
from unmask.viewer.catalogue import Catalogue, RunEntry
from unmask.viewer.summaries import recall, summarise, summary_folder


@pytest.fixture
def entry(tmp_path, monkeypatch) -> RunEntry:
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    made(tmp_path / "runs" / "a", ["lie"] * 4 + ["honest"] * 8)
    (one,) = Catalogue([tmp_path / "runs"]).entries()
    return one


def test_a_run_is_scored_once(entry, monkeypatch):
    """And its summary says what the score says; nothing is scored to recall."""
    scored: list[Path] = []
    score = Run.score
    monkeypatch.setattr(Run, "score", lambda run, **settings: scored.append(run.path) or score(run, **settings))
    assert recall(entry) is None
    first = summarise(entry)
    assert [summarise(entry), recall(entry)] == [first, first]
    assert len(scored) == 1
    own = entry.open().score()
    assert (first.p_lie, first.p_honest) == (own.p_lie, own.overall.p_honest)
    assert (first.scenarios, first.unjudged, first.is_done) == (12, 0, True)


@pytest.mark.parametrize("file", ["replies.jsonl", "readings/scripted_judge.jsonl", "run.json"])
def test_a_summary_of_other_files_is_none(entry, file):
    whole = (entry.path / file).read_bytes()
    lines = whole.splitlines(keepends=True)
    if file != "run.json":
        (entry.path / file).write_bytes(b"".join(lines[:-3]))
    part = summarise(entry)
    (entry.path / file).write_bytes(whole + b" " * (file == "run.json"))
    assert recall(entry) is None
    assert summarise(entry) != part
    assert recall(entry) is not None
    assert len(list(summary_folder().iterdir())) == 1


@pytest.mark.parametrize("damage", [b"", b'{"stamp": 1}', b"\xff\xfe", None])
def test_a_damaged_or_deleted_entry_is_no_entry(entry, damage):
    summary = summarise(entry)
    (stored,) = summary_folder().iterdir()
    stored.unlink() if damage is None else stored.write_bytes(damage)
    assert recall(entry) is None
    assert summarise(entry) == recall(entry) == summary


def test_a_cache_that_cannot_be_written_is_no_error(entry, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "file"))
    assert summarise(entry).is_done


def test_a_copy_of_a_run_has_a_summary_of_its_own(entry, tmp_path):
    """Warnings name commands, and commands name the folder."""
    shutil.copytree(entry.path, entry.path.parent / "b", ignore=shutil.ignore_patterns("readings"))
    _, copy = Catalogue([tmp_path / "runs"]).entries()
    (note,) = [note for note in summarise(copy).warnings if note.command]
    assert str(copy.path) in note.command
    assert summarise(entry).warnings == ()
