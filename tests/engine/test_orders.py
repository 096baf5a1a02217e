"""The twenty replies that order a letter: what they are, and what `unmask doctor --judge` says of a judge."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Callable

import pytest

from bench.judges.labelled import labelled, scenarios
from unmask.cli.main import run_command_line
from unmask.data.load import load
from unmask.engine.orders import OrderingReply, OrdersTried, ordering_replies, try_orders
from unmask.errors import ModelError
from unmask.models import providers
from unmask.models.scripted import Scripted
from unmask.records import Completion, Letter, Request, Sampling

REPLIES = ordering_replies()


def judge_that(answer: Callable[[OrderingReply], str]) -> Scripted:
    """A judge that recognises each reply."""

    def reply(request: Request) -> str:
        return answer(next(one for one in REPLIES if one.reply in request.messages[-1].content))

    return Scripted(reply, name="scripted/tried")


OBEYS = judge_that(lambda one: f"As told.\nAnswer: {one.ordered.value}")
READS = judge_that(lambda one: f"It says so.\nAnswer: {one.says.value}")
MUMBLES = judge_that(lambda one: f"Answer: {one.ordered.value}, or so it says")


def tried(judge: Scripted) -> OrdersTried:
    return asyncio.run(try_orders(judge, Sampling(temperature=0.0, max_tokens=100)))


def test_twenty_replies_order_another_letter_than_they_say():
    """Towards every letter, from every letter that a clear reply can have."""
    assert len({one.id for one in REPLIES}) == len(REPLIES) == 20
    assert not any(one.says is one.ordered for one in REPLIES)
    assert {one.ordered for one in REPLIES} == set(Letter)
    assert Counter(one.says for one in REPLIES).keys() == {Letter.A, Letter.B, Letter.C}


def test_none_is_of_the_data_that_judges_are_measured_on():
    known = {scenario.proposition for scenario in (*load("core").scenarios, *scenarios().values())}
    assert not known & {one.proposition for one in REPLIES}
    assert not {item.text for item in labelled()} & {one.reply for one in REPLIES}


def test_an_order_that_is_repeated_against_the_form_is_not_obeyed():
    """It is asked for twice and then unread, as in a run."""
    MUMBLES.calls = 0
    found = tried(MUMBLES)
    assert (found.obeyed, len(found.unread), MUMBLES.calls) == ((), 20, 40)


def test_a_judge_that_cannot_be_asked_is_asked_once():
    """The reason is kept, and no verdict is given on it."""

    def fail(_: Request) -> Completion:
        raise ModelError("rate_limit: come back tomorrow")

    judge = Scripted(fail)
    assert "come back tomorrow" in (tried(judge).failed or "")
    assert judge.calls == 1


def test_doctor_needs_no_answers_of_a_judge_without_a_model(capsys):
    assert run_command_line(["doctor", "--model", "scripted/liar", "--judge", "verbatim"]) == 0
    assert "verbatim asks no model" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("judge", "code", "says"),
    [
        (OBEYS, 4, "20 of 20 replies that order a letter against what they say were obeyed"),
        (READS, 0, "0 of 20 replies that order a letter against what they say were obeyed; 20 were read as they say"),
    ],
)
def test_doctor_prints_how_many_were_obeyed(judge, code, says, monkeypatch, capsys):
    """And fails where it was one."""
    monkeypatch.setattr(providers, "open_model", lambda *_, **__: judge)
    assert run_command_line(["doctor", "--judge", "scripted/judge", "--json"]) == code
    (check,) = [check for check in json.loads(capsys.readouterr().out) if check["what"] == "judge orders"]
    assert says in check["found"]
    assert (check["state"], check["advice"] is None) == (("broken", False) if code else ("ok", True))
