"""The store that remembers what each judge said about which side *yes* means."""

from __future__ import annotations

import os
import subprocess
import sys
from itertools import product
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from unmask.data import polarity
from unmask.data.polarity import Polarity
from unmask.records import Letter

SAID = (Letter.A, Letter.A)
SIDES = st.sampled_from([Letter.A, Letter.B, Letter.C])


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store in a cache folder of the test's own."""
    folder = tmp_path / "cache"
    folder.mkdir()
    monkeypatch.setenv("UNMASK_CACHE", str(folder))
    return folder / "polarity.jsonl"


def answer(
    key: str = "k",
    answers: tuple[Letter, Letter] = SAID,
    *,
    judge: str = "j",
    endpoint: str = "http://a",
    prompt: str = "p",
) -> Polarity:
    return Polarity(judge=judge, endpoint=endpoint, prompt=prompt, key=key, answers=answers, run="r", scenario="a")


def known(*, judge: str = "j", endpoint: str = "http://a", prompt: str = "p") -> dict[str, tuple[Letter, Letter]]:
    found = polarity.load_answers(judge=judge, endpoint=endpoint, prompt=prompt)
    return {key: line.answers for key, line in found.items()}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    lines=st.lists(
        st.builds(
            answer,
            st.sampled_from(["k", "l"]),
            st.tuples(SIDES, SIDES),
            judge=st.sampled_from(["j", "judge two", "ü"]),
            endpoint=st.sampled_from(["http://a", "http://a:8000"]),
            prompt=st.sampled_from(["p", "q"]),
        ),
        max_size=12,
    )
)
def test_a_judge_finds_what_it_said_last_at_this_address_to_these_words(lines: list[Polarity], store: Path):
    """Whatever other judges said, a model of the same name elsewhere, and it itself to other words."""
    store.unlink(missing_ok=True)
    for line in lines:
        polarity.store_answer(line)
    for asked in product(("j", "judge two", "ü", "nobody"), ("http://a", "http://a:8000", "http://b"), ("p", "q")):
        mine = {line.key: line.answers for line in lines if (line.judge, line.endpoint, line.prompt) == asked}
        assert known(judge=asked[0], endpoint=asked[1], prompt=asked[2]) == mine


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(before=st.binary(max_size=60), after=st.binary(max_size=60))
def test_strange_bytes_cost_only_themselves(before: bytes, after: bytes, store: Path):
    """Whatever stands in the file, known answers are still found."""
    store.write_bytes(before)
    polarity.store_answer(answer())
    with store.open("ab") as handle:
        handle.write(after)
    polarity.store_answer(answer("l"))
    assert {"k": SAID, "l": SAID}.items() <= known().items()


def test_a_letter_that_is_no_answer_is_passed_over(store: Path):
    """There is no D in this question."""
    line = msgspec.json.encode(answer(answers=(Letter.D, Letter.D)))
    store.write_bytes(line + b"\n")
    assert known() == {}


def test_a_torn_last_line_costs_only_itself(store: Path):
    """After a kill in mid-write, earlier and later answers are all there."""
    polarity.store_answer(answer())
    with store.open("ab") as file:
        file.write(b'{"key":"abc","let')
    polarity.store_answer(answer("l"))
    assert set(known()) == {"k", "l"}


def test_nesting_beyond_reason_is_passed_over(store: Path):
    store.write_bytes(b"[" * 99999)
    polarity.store_answer(answer())
    assert known() == {"k": SAID}


def test_the_store_lies_in_the_chosen_cache_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`UNMASK_CACHE` moves it, as it moves pulled models: trials and real runs of one account need not share it."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "trial"))
    polarity.store_answer(answer())
    assert (tmp_path / "trial" / "polarity.jsonl").is_file()
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "real"))
    assert known() == {}


def test_nowhere_to_write_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The journal has the answer; the store only saves later calls."""
    (tmp_path / "file").write_text("a file where the folder should be")
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "file"))
    polarity.store_answer(answer())
    assert known() == {}


def test_appenders_at_the_same_time_lose_nothing():
    """Four processes, a hundred answers each: every line is whole."""
    code = (
        "import sys; from unmask.data.polarity import Polarity, store_answer\n"
        "from unmask.records import Letter\n"
        "for n in range(100):\n"
        "    key = f'{sys.argv[1]} {n}'\n"
        "    said = (Letter.A, Letter.A)\n"
        "    line = Polarity(judge='j', endpoint='http://a', prompt='p', key=key, answers=said, run='r', scenario='')\n"
        "    store_answer(line)"
    )
    command = [sys.executable, "-c", code]
    writers = [subprocess.Popen([*command, str(place)], env=dict(os.environ)) for place in range(4)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    assert len(known()) == 400
