"""Grown run folders: they are what they say, and reading them scenario by scenario changes nothing."""

from __future__ import annotations

from collections import Counter

import msgspec
import pytest

from bench.scale.grown import Grown, Shape, grow
from unmask.errors import JournalError
from unmask.folder import OneByOne, load_seen
from unmask.journal import Index
from unmask.opened import open_run
from unmask.records import Asked, Lettered, Ranged, Unread


@pytest.fixture(scope="module")
def grown(tmp_path_factory) -> Grown:
    return grow(tmp_path_factory.mktemp("grown") / "run", Shape(3_000))


def test_a_grown_run_scores_as_planted(grown):
    """Every verdict of the score is the one that the oracle of the planted scenarios expects."""
    assert open_run(grown.run).score().overall.counts == grown.counts


def test_a_grown_run_is_about_as_long_as_asked(grown):
    """Within the replies of the last scenarios."""
    assert abs(grown.replies - 3_000) < 150
    assert grown.replies == sum(len(line.takes) for line in open_run(grown.run).folder.asked())


def test_two_grown_runs_share_their_scenarios(grown, tmp_path):
    """Another seed answers the same questions in another way, so that the two can be compared."""
    other = grow(tmp_path / "other", Shape(3_000, seed=2), data=grown.data)
    assert open_run(other.run).scenarios == open_run(grown.run).scenarios
    assert other.counts != grown.counts


def test_a_grown_run_has_nothing_left_to_ask(grown):
    """No scenario is undecided."""
    assert open_run(grown.run).score().complete_with is None


def test_one_by_one_sees_what_the_whole_journal_holds(grown):
    """The lines of a scenario, found by their places, are those of a journal read from end to end."""
    run = open_run(grown.run)
    judge = run.judge_file()
    whole = load_seen(run.folder, judge, run.scenarios)
    with OneByOne(run.folder, [scenario.id for scenario in run.scenarios], [judge]) as journal:
        for number, seen in enumerate(whole):
            found = journal.seen(number, judge)
            assert (found.replies, found.judged) == (seen.replies, seen.judged)


def test_bare_rows_lack_only_words(grown):
    """Verdicts, letters, figures and reasons are those of the full rows."""
    run = open_run(grown.run)

    def without_words(reading):
        match reading:
            case Lettered() | Ranged():
                return msgspec.structs.replace(reading, why=None)
            case Unread(reason):
                return Unread(reason)
        return reading

    def bare(row):
        readings = {slot: tuple(map(without_words, found)) for slot, found in row.readings.items()}
        return msgspec.structs.replace(row, readings=readings)

    assert run.bare_rows() == [bare(row) for row in run.rows()]


def index(path, names="ab", heard=None):
    def place(line):
        if heard is not None:
            heard.append(line.scenario)
        return names.index(line.scenario)

    return Index(path, Asked, scenarios=len(names), place=place)


def line(name, take=0) -> bytes:
    return msgspec.json.encode(Asked(scenario=name, slot="direct", takes=(take,), error="x")) + b"\n"


@pytest.mark.parametrize("torn", [b'{"scenario":"a","sl', b'{"scenario":"a"}\n', b"\xff\n", b"7"])
def test_an_index_leaves_a_torn_last_line_out(tmp_path, torn):
    """As reading from end to end does; nobody is told of it."""
    path, heard = tmp_path / "replies.jsonl", []
    path.write_bytes(line("a") + line("b") + line("a", 1) + torn)
    found = index(path, heard=heard)
    assert [one.takes for one in found.of(0)] == [(0,), (1,)]
    assert Counter(heard) == {"a": 2, "b": 1}


def test_an_index_takes_a_whole_last_line_without_its_end(tmp_path):
    """A kill between the line and its end has torn nothing."""
    path = tmp_path / "replies.jsonl"
    path.write_bytes(line("a") + line("b").rstrip())
    assert len([*index(path).of(1)]) == 1


@pytest.mark.parametrize("bad", [b"{\n", b'{"scenario":"a"}\n'])
def test_an_index_names_a_damaged_line(tmp_path, bad):
    """By its number, whether it is no JSON or no such record."""
    path = tmp_path / "replies.jsonl"
    path.write_bytes(line("b") + bad + line("b"))
    with pytest.raises(JournalError, match="line 2 of"):
        [*index(path).of(0)]


def test_an_index_of_no_file_is_empty(tmp_path):
    """A run that has not begun."""
    assert [*index(tmp_path / "none").of(0)] == []
