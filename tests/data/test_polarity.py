"""The side file that remembers what each judge said about which side *yes* means."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.data.made import row, scenario, write_csv
from unmask.data import polarity
from unmask.data.form import write_jsonl
from unmask.data.load import from_scenarios, load
from unmask.data.polarity import Polarity
from unmask.records import Letter

SAID = (Letter.A, Letter.A)
SIDES = st.sampled_from([Letter.A, Letter.B, Letter.C])


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache folder of the test's own."""
    folder = tmp_path / "cache"
    monkeypatch.setenv("XDG_CACHE_HOME", str(folder))
    return folder


@pytest.fixture
def home(tmp_path: Path) -> str:
    write_csv(tmp_path / "data", [row(task_id="a"), row(task_id="b", belief_elicit_1="Is it off?")])
    found = load(tmp_path / "data").home
    assert found is not None
    return found


def answer(key: str = "k", answers: tuple[Letter, Letter] = SAID, *, judge: str = "j", prompt: str = "p") -> Polarity:
    return Polarity(judge=judge, prompt=prompt, key=key, answers=answers, run="r", scenario="a")


def known(home: str | None, *, judge: str = "j", prompt: str = "p") -> dict[str, tuple[Letter, Letter]]:
    found = polarity.load_answers(home, judge=judge, prompt=prompt)
    return {key: line.answers for key, line in found.items()}


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(
    lines=st.lists(
        st.builds(
            answer,
            st.sampled_from(["k", "l"]),
            st.tuples(SIDES, SIDES),
            judge=st.sampled_from(["j", "judge two", "ü"]),
            prompt=st.sampled_from(["p", "q"]),
        ),
        max_size=12,
    )
)
def test_a_judge_finds_what_it_said_last_to_these_words_and_nothing_else(lines: list[Polarity], home: str):
    """Whatever other judges said, and it itself to other words."""
    Path(home, polarity.SIDE_FILE).unlink(missing_ok=True)
    for line in lines:
        polarity.store_answer(home, line)
    for judge in ("j", "judge two", "ü", "nobody"):
        for prompt in ("p", "q"):
            mine = {line.key: line.answers for line in lines if (line.judge, line.prompt) == (judge, prompt)}
            assert known(home, judge=judge, prompt=prompt) == mine


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60)
@given(before=st.binary(max_size=60), after=st.binary(max_size=60))
def test_strange_bytes_cost_only_themselves(before: bytes, after: bytes, home: str):
    """Whatever stands in the file, known answers are still found."""
    file = Path(home, polarity.SIDE_FILE)
    file.write_bytes(before)
    polarity.store_answer(home, answer())
    with file.open("ab") as handle:
        handle.write(after)
    polarity.store_answer(home, answer("l"))
    assert {"k": SAID, "l": SAID}.items() <= known(home).items()


def test_lines_of_earlier_versions_are_passed_over(home: str):
    """They do not say in which orders, in which words and by which model the question was answered."""
    old = b'{"key":"k","letter":"A","judge":"j","scenario":"a"}\n'
    Path(home, polarity.SIDE_FILE).write_bytes(old)
    assert known(home) == {}
    polarity.store_answer(home, answer("l"))
    assert known(home) == {"l": SAID}
    assert Path(home, polarity.SIDE_FILE).read_bytes().startswith(old)


def test_a_letter_that_is_no_answer_is_passed_over(home: str):
    """There is no D in this question."""
    line = msgspec.json.encode(answer(answers=(Letter.D, Letter.D)))
    Path(home, polarity.SIDE_FILE).write_bytes(line + b"\n")
    assert known(home) == {}


def test_a_torn_last_line_costs_only_itself(home: str):
    """After a kill in mid-write, earlier and later answers are all there."""
    polarity.store_answer(home, answer())
    with Path(home, polarity.SIDE_FILE).open("ab") as file:
        file.write(b'{"key":"abc","let')
    polarity.store_answer(home, answer("l"))
    assert set(known(home)) == {"k", "l"}


def test_nesting_beyond_reason_is_passed_over(home: str):
    Path(home, polarity.SIDE_FILE).write_bytes(b"[" * 99999)
    polarity.store_answer(home, answer())
    assert known(home) == {"k": SAID}


def test_a_single_file_has_its_side_file_next_to_it(tmp_path: Path):
    """set.jsonl → set.jsonl.polarity.jsonl."""
    path = tmp_path / "set.jsonl"
    write_jsonl([scenario()], path=path)
    home = load(path).home
    polarity.store_answer(home, answer())
    assert (tmp_path / "set.jsonl.polarity.jsonl").exists()
    assert known(home) == {"k": SAID}


def test_data_without_a_home_uses_the_cache(cache: Path):
    """Bundled, hub and in-memory data."""
    home = from_scenarios([scenario()]).home
    polarity.store_answer(home, answer())
    assert (cache / "unmask" / "polarity.jsonl").exists()
    assert known(home) == {"k": SAID}


def test_a_place_that_cannot_be_written_falls_back_to_the_cache(home: str, cache: Path):
    """Shared read-only data. (A folder in the file's place, since the tests may run as root.)"""
    Path(home, polarity.SIDE_FILE).mkdir()
    polarity.store_answer(home, answer())
    assert (cache / "unmask" / "polarity.jsonl").exists()
    assert known(home) == {"k": SAID}


def test_the_side_file_wins_over_the_cache(home: str):
    """What lies with the data was meant for it; the cache may be older."""
    polarity.store_answer(home, answer(answers=(Letter.B, Letter.B)))
    polarity.store_answer(None, answer())
    assert known(home) == {"k": (Letter.B, Letter.B)}


def test_nowhere_to_write_is_no_error(cache: Path):
    """The journal has the answer; the side file only saves later calls."""
    cache.write_text("a file where the folder should be")
    polarity.store_answer(None, answer())
    assert known(None) == {}


def test_appenders_at_the_same_time_lose_nothing(home: str):
    """Four processes, a hundred answers each: every line is whole."""
    code = (
        "import sys; from unmask.data.polarity import Polarity, store_answer\n"
        "from unmask.records import Letter\n"
        "for n in range(100):\n"
        "    key = f'{sys.argv[2]} {n}'\n"
        "    line = Polarity(judge='j', prompt='p', key=key, answers=(Letter.A, Letter.A), run='r', scenario='s')\n"
        "    store_answer(sys.argv[1], line)"
    )
    command = [sys.executable, "-c", code, home]
    writers = [subprocess.Popen([*command, str(place)], env=dict(os.environ)) for place in range(4)]
    assert [writer.wait(60) for writer in writers] == [0, 0, 0, 0]
    assert len(known(home)) == 400
