"""The side file that remembers which side *yes* means."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.data.made import row, scenario, write_csv
from unmask.data import polarity
from unmask.data.dataset import Dataset
from unmask.data.jsonl import write_jsonl
from unmask.data.load import from_scenarios, load
from unmask.records import Letter


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


def folder_data(tmp_path: Path) -> Dataset:
    write_csv(tmp_path / "data", [row(task_id="a"), row(task_id="b", belief_elicit_1="Is it off?")])
    return load(tmp_path / "data")


def remember(dataset: Dataset, letter: Letter | None, *, place: int = 0) -> None:
    polarity.store_answer(dataset, scenario=dataset.scenarios[place], letter=letter, judge="openai/gpt-4o")


@pytest.mark.parametrize("letter", [Letter.A, Letter.B, Letter.C])
def test_an_answer_is_there_for_the_next_load(tmp_path: Path, letter: Letter):
    """Stored beside the data, read by every later run."""
    dataset = folder_data(tmp_path)
    remember(dataset, letter)
    assert polarity.load_answers(load(tmp_path / "data")) == {polarity.question_key(dataset.scenarios[0]): letter}


def test_no_letter_is_stored_as_cannot_tell(tmp_path: Path):
    """The judge said that it cannot tell; it is not asked again."""
    dataset = folder_data(tmp_path)
    remember(dataset, None)
    assert list(polarity.load_answers(dataset).values()) == [Letter.C]


def test_the_same_question_in_another_scenario_is_known():
    """The key is question and proposition, not the id."""
    assert polarity.question_key(scenario("x")) == polarity.question_key(scenario("y"))


@pytest.mark.parametrize("change", [{"direct": "Is it off?"}, {"proposition": "It <pivotal>was/is</pivotal> on."}])
def test_another_question_or_proposition_is_not_known(change: dict[str, str]):
    """An edited question is asked about afresh."""
    assert polarity.question_key(scenario()) != polarity.question_key(scenario(**change))


def test_the_latest_answer_wins(tmp_path: Path):
    """A correction is one more line."""
    dataset = folder_data(tmp_path)
    remember(dataset, Letter.A)
    remember(dataset, Letter.B)
    assert list(polarity.load_answers(dataset).values()) == [Letter.B]


def test_a_torn_last_line_costs_only_itself(tmp_path: Path):
    """After a kill in mid-write, earlier and later answers are all there."""
    dataset = folder_data(tmp_path)
    remember(dataset, Letter.A)
    with (tmp_path / "data" / "unmask-polarity.jsonl").open("ab") as file:
        file.write(b'{"key":"abc","let')
    remember(dataset, Letter.B, place=1)
    assert sorted(polarity.load_answers(dataset).values()) == [Letter.A, Letter.B]


def test_strange_lines_are_passed_over(tmp_path: Path):
    """Whatever stands in the file, known answers are still found."""
    dataset = folder_data(tmp_path)
    key = polarity.question_key(dataset.scenarios[1])
    denial = f'{{"key":"{key}","letter":"D","judge":"x","scenario":"b"}}'.encode()
    lines = [b"\xff\xfe", b"[[[[", denial, b"[" * 99999]
    (tmp_path / "data" / "unmask-polarity.jsonl").write_bytes(b"\n".join(lines))
    remember(dataset, Letter.A)
    assert list(polarity.load_answers(dataset).values()) == [Letter.A]


def test_a_single_file_has_its_side_file_next_to_it(tmp_path: Path):
    """set.jsonl → set.jsonl.polarity.jsonl."""
    path = tmp_path / "set.jsonl"
    write_jsonl([scenario()], path=path)
    remember(load(path), Letter.A)
    assert (tmp_path / "set.jsonl.polarity.jsonl").exists()
    assert list(polarity.load_answers(load(path)).values()) == [Letter.A]


def test_data_without_a_home_uses_the_cache(cache: Path):
    """Bundled, hub and in-memory data."""
    dataset = from_scenarios([scenario()])
    remember(dataset, Letter.B)
    assert (cache / "unmask" / "polarity.jsonl").exists()
    assert list(polarity.load_answers(dataset).values()) == [Letter.B]


def test_a_place_that_cannot_be_written_falls_back_to_the_cache(tmp_path: Path, cache: Path):
    """Shared read-only data. (A folder in the file's place, since the tests may run as root.)"""
    dataset = folder_data(tmp_path)
    (tmp_path / "data" / "unmask-polarity.jsonl").mkdir()
    remember(dataset, Letter.B)
    assert (cache / "unmask" / "polarity.jsonl").exists()
    assert list(polarity.load_answers(dataset).values()) == [Letter.B]


def test_the_side_file_wins_over_the_cache(tmp_path: Path):
    """What lies with the data was meant for it; the cache may be older."""
    dataset = folder_data(tmp_path)
    remember(from_scenarios(dataset.scenarios), Letter.A)
    remember(dataset, Letter.B)
    assert list(polarity.load_answers(dataset).values()) == [Letter.B]


def test_nowhere_to_write_is_no_error(tmp_path: Path, cache: Path):
    """The journal has the answer; the side file only saves a later call."""
    cache.write_text("a file where the folder should be")
    dataset = from_scenarios([scenario()])
    remember(dataset, Letter.B)
    assert polarity.load_answers(dataset) == {}


def test_appenders_at_the_same_time_lose_nothing(tmp_path: Path):
    """Four processes, a hundred answers each: every line is whole."""
    rows = [row(task_id=str(n), belief_elicit_1=f"Question {n}?") for n in range(400)]
    write_csv(tmp_path / "data", rows)
    code = (
        "import sys; from unmask.data import polarity; from unmask.data.load import load\n"
        "from unmask.records import Letter\n"
        "data = load(sys.argv[1])\n"
        "for s in data.scenarios[int(sys.argv[2])::4]:\n"
        "    polarity.store_answer(data, scenario=s, letter=Letter.A, judge='j')"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "data")]
    writers = [subprocess.Popen([*command, str(place)], env=dict(os.environ)) for place in range(4)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    assert len(polarity.load_answers(load(tmp_path / "data"))) == 400
