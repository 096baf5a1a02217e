"""Stored summaries: right, fresh, and worth nothing when they are damaged."""

from __future__ import annotations

import json
from pathlib import Path
from threading import Thread

import pytest

from tests.made_runs import made
from unmask.errors import UnmaskError
from unmask.runs.run import Run
from unmask.viewer import summaries
from unmask.viewer.catalogue import Catalogue, RunEntry
from unmask.viewer.summaries import recall, summarise, summary_folder


@pytest.fixture
def entry(tmp_path, monkeypatch) -> RunEntry:
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    forget(monkeypatch)
    made(tmp_path / "runs" / "a", ["lie"] * 4 + ["honest"] * 8)
    (one,) = Catalogue([tmp_path / "runs"]).entries()
    return one


def forget(monkeypatch) -> None:
    """As after a restart."""
    monkeypatch.setattr(summaries, "_memory", type(summaries._memory)())


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
    assert summary.engagement == score.overall.engagement
    assert (summary.scenarios, summary.unjudged, summary.is_done) == (12, 0, True)


def test_a_run_is_scored_once(entry, monkeypatch):
    """Also after a restart, and also when many ask at the same time."""
    scored = count_scores(monkeypatch)
    first: list[object] = []
    threads = [Thread(target=lambda: first.append(summarise(entry))) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    forget(monkeypatch)
    assert [*first, summarise(entry)] == [first[0]] * 9
    assert len(scored) == 1


def test_nothing_is_scored_to_recall(entry, monkeypatch):
    scored = count_scores(monkeypatch)
    assert recall(entry) is None
    assert scored == []


@pytest.mark.parametrize("file", ["replies.jsonl", "readings/scripted_judge.jsonl"])
def test_a_journal_that_grew_is_read_again(entry, monkeypatch, file):
    """The old numbers are known as old until then."""
    path = entry.path / file
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-3]))
    part = summarise(entry)
    path.write_bytes(b"".join(lines))
    old = recall(entry)
    assert old is not None
    assert (old.summary, old.is_current) == (part, False)
    assert summarise(entry) != part
    assert recall(entry).is_current
    assert len(list(summary_folder().iterdir())) == 1


def test_another_definition_version_judge_or_preset_is_another_summary(entry, monkeypatch):
    first = summarise(entry)
    assert summarise(entry, preset="paper").preset == "paper"
    assert summarise(entry, judge="scripted/judge").judge == "scripted/judge"
    monkeypatch.setattr(summaries, "SCORING_VERSION", summaries.SCORING_VERSION + 1)
    assert not recall(entry).is_current
    monkeypatch.undo()
    definition = json.loads((entry.path / "run.json").read_text())
    (entry.path / "run.json").write_text(json.dumps(definition | {"id": definition["id"][::-1]}))
    assert summaries.stamp_files(entry.path) != first.stamp


@pytest.mark.parametrize("damage", [b"", b"{", b"[]", b'{"stamp": 1}', b"\xff\xfe", b"[" * 100_000])
def test_a_damaged_entry_is_no_entry(entry, monkeypatch, damage):
    summary = summarise(entry)
    (stored,) = summary_folder().iterdir()
    stored.write_bytes(damage)
    forget(monkeypatch)
    assert recall(entry) is None
    assert summarise(entry) == summary
    forget(monkeypatch)
    assert recall(entry).summary == summary


def test_the_cache_may_be_deleted_while_it_is_used(entry, monkeypatch):
    summary = summarise(entry)
    for file in summary_folder().iterdir():
        file.unlink()
    summary_folder().rmdir()
    assert summarise(entry) == summary
    forget(monkeypatch)
    assert summarise(entry) == summary


def test_a_cache_that_cannot_be_written_is_no_error(entry, tmp_path, monkeypatch):
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "file"))
    assert summarise(entry).is_done
    assert recall(entry).is_current


def test_memory_is_bounded(entry, monkeypatch):
    """The least used one goes; it is on disk."""
    monkeypatch.setattr(summaries, "MOST_IN_MEMORY", 2)
    for preset in ("paper", "strict"):
        summarise(entry)
        summarise(entry, preset=preset)
    assert len(summaries._memory) == 2
    assert recall(entry, preset="paper").is_current


def test_a_damaged_run_says_so_each_time_and_is_read_once(entry, monkeypatch):
    """Until its files change."""
    scored = count_scores(monkeypatch)
    journal = entry.path / "replies.jsonl"
    whole = journal.read_bytes()
    journal.write_bytes(b"no line of ours\n" + whole)
    for _ in range(3):
        with pytest.raises(UnmaskError, match="line 1 of"):
            summarise(entry)
    with pytest.raises(UnmaskError, match="line 1 of"):
        recall(entry)
    assert len(scored) == 1
    journal.write_bytes(whole)
    assert recall(entry) is None
    assert summarise(entry).is_done


def test_two_runs_with_one_id_have_two_summaries(entry, tmp_path, monkeypatch):
    """A copy of a folder: warnings name commands, and commands name the folder."""
    (entry.path.parent / "b").mkdir()
    for file in ("run.json", "scenarios.jsonl", "replies.jsonl"):
        (entry.path.parent / "b" / file).write_bytes((entry.path / file).read_bytes())
    _, copy = Catalogue([tmp_path / "runs"]).entries()
    (note,) = [note for note in summarise(copy).warnings if note.command]
    assert str(copy.path) in note.command
    assert summarise(entry).warnings == ()
