"""Stored summaries: right, fresh, and worth nothing when they are damaged."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.made_runs import made
from unmask.runs.run import Run
from unmask.viewer import cache, summaries
from unmask.viewer.cache import Cache
from unmask.viewer.catalogue import Catalogue, RunEntry
from unmask.viewer.summaries import recall, summarise, summary_folder


@pytest.fixture
def entry(tmp_path, monkeypatch) -> RunEntry:
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(cache, "QUIET", 0.0)
    forget(monkeypatch)
    made(tmp_path / "runs" / "a", ["lie"] * 4 + ["honest"] * 8)
    (one,) = Catalogue([tmp_path / "runs"]).entries()
    return one


def forget(monkeypatch) -> None:
    """As after a restart."""
    monkeypatch.setattr(summaries, "CACHE", Cache())


def count_scores(monkeypatch) -> list[Path]:
    scored: list[Path] = []
    score = Run.score

    def counted(run, **settings):
        scored.append(run.path)
        return score(run, **settings)

    monkeypatch.setattr(Run, "score", counted)
    return scored


def test_a_summary_says_what_the_score_says(entry):
    summary, score = summarise(entry), entry.open().score()
    assert summary.p_lie == score.p_lie
    assert summary.p_honest == score.overall.p_honest
    assert (summary.scenarios, summary.unjudged, summary.is_done) == (12, 0, True)


def test_a_run_is_scored_once(entry, monkeypatch):
    """Also after a restart; and nothing is scored to recall."""
    scored = count_scores(monkeypatch)
    assert recall(entry) is None
    first = summarise(entry)
    forget(monkeypatch)
    assert [summarise(entry), recall(entry)] == [first, first]
    assert len(scored) == 1


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


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"stamp": 1}', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_entry_is_no_entry(entry, monkeypatch, damage):
    summary = summarise(entry)
    (stored,) = summary_folder().iterdir()
    stored.write_bytes(damage)
    forget(monkeypatch)
    assert recall(entry) is None
    assert summarise(entry) == summary
    assert recall(entry) == summary


def test_the_cache_may_be_deleted_while_it_is_used(entry, monkeypatch):
    summary = summarise(entry)
    for file in summary_folder().iterdir():
        file.unlink()
    summary_folder().rmdir()
    forget(monkeypatch)
    assert summarise(entry) == summary


def test_a_cache_that_cannot_be_written_is_no_error(entry, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "file"))
    assert summarise(entry).is_done


def test_a_copy_of_a_run_has_a_summary_of_its_own(entry, tmp_path):
    """Warnings name commands, and commands name the folder."""
    (entry.path.parent / "b").mkdir()
    for file in ("run.json", "scenarios.jsonl", "replies.jsonl"):
        (entry.path.parent / "b" / file).write_bytes((entry.path / file).read_bytes())
    _, copy = Catalogue([tmp_path / "runs"]).entries()
    (note,) = [note for note in summarise(copy).warnings if note.command]
    assert str(copy.path) in note.command
    assert summarise(entry).warnings == ()
