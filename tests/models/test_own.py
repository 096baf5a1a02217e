"""A plain function from messages to a text is a model, and so is an object with one method."""

from __future__ import annotations

import asyncio
import functools
import threading
import time
from pathlib import Path

import pytest

import unmask
from tests.patience import PATIENCE
from unmask.errors import FatalModelError, IncompleteError, TransientModelError, UsageError
from unmask.models.own import as_model
from unmask.models.scripted import Character, _Actor, answer_as_judge
from unmask.records import Choice, Completion, Message, Request, Role, Usage, Verdict

liar = _Actor(Character.LIAR, None)
ASKED = Request((Message(Role.SYSTEM, "Be brief."), Message(Role.USER, "Is it so?")))


def request_of(messages: list[dict[str, str]]) -> Request:
    return Request(tuple(Message(Role(message["role"]), message["content"]) for message in messages))


def lying(messages: list[dict[str, str]]) -> str:
    return liar(request_of(messages))


async def lying_later(messages: list[dict[str, str]]) -> str:
    await asyncio.sleep(0)
    return lying(messages)


def reading(messages: list[dict[str, str]]) -> str:
    answer = answer_as_judge(request_of(messages))
    assert isinstance(answer, str)
    return answer


class OneMethod:
    def complete(self, request: unmask.Request) -> str:
        return liar(request)


class OneMethodLater:
    name = "team/liar"

    async def complete(self, request: unmask.Request) -> unmask.Completion:
        return Completion((Choice(liar(request)),), usage=Usage(input=7, output=3))


class Bot:
    def answer(self, messages: list[dict[str, str]]) -> str:
        return lying(messages)

    __call__ = answer


@pytest.mark.parametrize(
    ("model", "name"),
    [
        (lying, "python/lying"),
        (lying_later, "python/lying_later"),
        (OneMethod(), "python/OneMethod"),
        (OneMethodLater(), "team/liar"),
        (Bot().answer, "python/Bot.answer"),
        (Bot(), "python/Bot"),
        (functools.partial(lying), "python/lying"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_a_user_writes_is_a_model_and_its_name_is_recorded(model: object, name: str, tmp_path: Path):
    run = unmask.run(data="tiny", model=model, judge=reading, out=tmp_path / "run")
    assert {outcome.verdict for outcome in run} == {Verdict.LIE}
    assert run.definition.subject.model == name
    assert run.definition.judges["python_reading"].model == "python/reading"


def test_the_same_call_continues_such_a_run_and_another_function_is_refused(tmp_path: Path):
    calls = []

    def counting(messages: list[dict[str, str]]) -> str:
        calls.append(messages)
        return lying(messages)

    for _ in range(2):
        unmask.run(data="tiny", model=counting, judge=reading, out=tmp_path / "run")
        asked = len(calls)
    assert asked == len(calls) > 0
    with pytest.raises(UsageError, match="model: the run has python/counting, the command says python/lying"):
        unmask.run(data="tiny", model=lying, judge=reading, out=tmp_path / "run")


def test_what_a_function_raises_is_a_failed_request_and_never_honesty(tmp_path: Path):
    """The other scenarios go on, and the next call asks again."""

    def shy(messages: list[dict[str, str]]) -> str:
        if "honey" in str(messages).lower():
            raise KeyError("honey")
        return lying(messages)

    run = unmask.run(data="tiny", model=shy, judge=reading, out=tmp_path / "run")
    (unjudged,) = [outcome for outcome in run if outcome.verdict is Verdict.UNJUDGED]
    assert unjudged.why == "failed: python/shy raised KeyError: 'honey'"
    assert run.score().overall.p_honest.hits == 0
    shy = functools.partial(lying)
    shy.name = "python/shy"  # type: ignore[attr-defined]
    assert {outcome.verdict for outcome in unmask.run(data="tiny", model=shy, judge=reading, out=tmp_path / "run")} == {
        Verdict.LIE
    }


@pytest.mark.parametrize("error", [ValueError("no"), StopIteration(), RuntimeError()])
def test_a_function_that_always_raises_stops_the_run(error: Exception, tmp_path: Path):
    """`next` on an iterator at its end too, which no future can hold."""

    def broken(messages: list[dict[str, str]]) -> str:
        raise error

    with pytest.raises(
        IncompleteError, match=f"in a row failed, the last with: python/broken raised {type(error).__name__}"
    ):
        unmask.run(data="tiny", model=broken, judge=reading, out=tmp_path / "run")


@pytest.mark.parametrize(("answer", "kind"), [(None, "NoneType"), (b"yes", "bytes"), ({"content": "yes"}, "dict")])
def test_what_is_no_text_ends_the_run_with_its_type(answer: object, kind: str, tmp_path: Path):
    with pytest.raises(FatalModelError, match=f"python/wrong returned {kind}, not a text") as caught:
        unmask.run(data="tiny", model=_named(lambda _: answer), judge=reading, out=tmp_path / "run")
    assert caught.value.advice == 'Return a str; "" is an empty reply.'


def _named(function: object) -> object:
    function.__qualname__ = "wrong"  # type: ignore[attr-defined]
    return function


def test_a_model_error_of_a_function_is_left_as_it_is():
    """So a function can ask for another try."""

    def busy(messages: list[dict[str, str]]) -> str:
        raise TransientModelError("busy", throttled=True)

    with pytest.raises(TransientModelError, match="busy"):
        asyncio.run(as_model(busy).complete(ASKED))


def test_a_function_is_called_one_at_a_time_and_an_async_one_several():
    """A function need not be safe to call twice at once; who wants more writes it `async`."""
    inside, most = 0, 0
    lock = threading.Lock()

    def slow(messages: list[dict[str, str]]) -> str:
        nonlocal inside, most
        with lock:
            inside += 1
            most = max(most, inside)
        time.sleep(0.01)
        with lock:
            inside -= 1
        return "Yes."

    gate, waiting = asyncio.Event(), []

    async def patient(messages: list[dict[str, str]]) -> str:
        waiting.append(messages)
        if len(waiting) == 4:
            gate.set()
        await gate.wait()
        return "Yes."

    async def ask(model: unmask.Model) -> None:
        await asyncio.wait_for(asyncio.gather(*(model.complete(ASKED) for _ in range(4))), PATIENCE)

    asyncio.run(ask(as_model(slow)))
    asyncio.run(ask(as_model(patient)))
    assert most == 1


@pytest.mark.parametrize(("wrong", "said"), [(OneMethod, "OneMethod is a class"), (7, "int is not a model")])
def test_what_is_no_model_is_named(wrong: object, said: str, tmp_path: Path):
    with pytest.raises(UsageError, match=said):
        unmask.run(data="tiny", model=wrong, judge=reading, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


def test_the_command_line_says_where_such_a_run_goes_on():
    with pytest.raises(UsageError, match="python/lying is a function of a Python program") as caught:
        unmask.open_model("python/lying")
    assert caught.value.advice == "Call unmask.run or unmask.judge there, with lying itself."


def test_a_function_can_be_subject_and_judge_at_once(tmp_path: Path):
    """It is opened once, so that it is still called one at a time."""

    def both(messages: list[dict[str, str]]) -> str:
        try:
            return lying(messages)
        except unmask.UnmaskError:
            return reading(messages)

    run = unmask.run(data="tiny", model=both, judge=both, out=tmp_path / "run")
    assert run.score().p_lie.hits == 12
