"""The judge of small models: what it asks, and how four answers become one letter."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.chosen import FERRY, GLASS, REPLIES, Read, read_by
from tests.judges.examples import binary
from unmask.judges import choose, letters
from unmask.judges.base import Style
from unmask.judges.letters import list_used_texts
from unmask.models.local.embedded import open_embedded
from unmask.models.local.pull import pull
from unmask.records import Archetype, Choice, Judged, Kind, Letter, Lettered, Message, Method, Pending, Sampling, Unread

COLD = Sampling(temperature=0.0)
METHODS = tuple(choose.ORDERS)
SHARES = st.lists(st.floats(0.001, 1), min_size=3, max_size=3)


def asked(method: Method = METHODS[0], text: str = "It is sand.", scenario=GLASS):
    return choose.request(method, scenario, "pressured", (text,), sampling=COLD)


def judged(method: Method, shares: dict[Letter, float] | None, *, error: str | None = None) -> Judged:
    numbers = None
    if shares is not None:
        numbers = {number: shares[line] for number, line in zip(choose.OPTIONS, choose.ORDERS[method], strict=True)}
    choices = () if error else (Choice(text="1", probabilities=numbers),)
    return Judged(scenario="x", slot="pressured", digest="d", method=method, choices=choices, error=error)


def four(a: float, b: float, neither: float) -> list[Judged]:
    return [judged(method, {Letter.A: a, Letter.B: b, Letter.C: neither}) for method in METHODS]


def letter(calls: list[Judged], neither: float = 0.0) -> Letter:
    found = choose.reading(calls, kind=Kind.BINARY, neither=neither)
    assert isinstance(found, Lettered)
    assert found.by == "judge"
    return found.letter


# --- asking -----------------------------------------------------------------------------------------------


def test_only_a_number_may_be_answered():
    assert asked().options == ("1", "2", "3")


@pytest.mark.parametrize("method", METHODS)
def test_the_lines_stand_in_the_order_of_the_method(method):
    """Numbered as they will be answered."""
    last = asked(method, scenario=FERRY).messages[-1].content
    texts = {Letter.A: FERRY.statements[0], Letter.B: FERRY.statements[1], Letter.C: letters.text_of("choose_neither")}
    for number, line in zip(choose.OPTIONS, choose.ORDERS[method], strict=True):
        assert f"\n{number}) {texts[line]}\n" in last


def test_both_sides_stand_in_every_place_equally_often():
    """A lean to a place favours neither side."""
    places = {side: sorted(order.index(side) for order in choose.ORDERS.values()) for side in (Letter.A, Letter.B)}
    assert places[Letter.A] == places[Letter.B]


def test_the_questions_begin_alike_up_to_the_lines():
    """What they have in common is worked through once."""
    begins = {asked(method).messages[-1].content.partition("\n1) ")[0] for method in METHODS}
    assert len(begins) == 1


@given(st.text(max_size=300))
def test_no_text_can_close_its_own_fence(text):
    """Whatever a reply contains, its end is marked by a line that occurs once."""
    last = asked(text=text).messages[-1].content
    code = letters.fence_code((choose.prepare_reply(GLASS, "pressured", text),))
    assert last.count(f"[END {code}]") == 1


def test_a_very_long_reply_keeps_its_beginning_and_its_end():
    last = asked(text="START " + "word " * 10_000 + " FINISH").messages[-1].content
    assert "START" in last
    assert "FINISH" in last
    assert len(last) < 6_000


def test_of_a_continuation_only_what_it_adds_is_shown():
    """Text copied from the draft does not count."""
    draft = "Continue: Cats bark at night and wake the street."
    turns = (Message("system", "You write."), Message("user", draft))
    scenario = binary(Archetype.CONTINUATIONS, conversation=turns)
    shown = choose.prepare_reply(scenario, "pressured", "Cats bark at night and wake the street. Nobody sleeps then.")
    assert shown == "Nobody sleeps then."


def test_the_same_question_is_the_same_request():
    """A pure function: a resumed run must recognise what it asked."""
    assert asked() == asked()


def test_the_wording_is_named_by_the_prompts_hash():
    """The texts lie where the hash of a run's prompts is taken."""
    assert {"choose", "choose_ask", "choose_neither"} <= set(list_used_texts(Style.CHOOSE))


# --- reading ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "neither", "found"),
    [(0.8, 0.1, 0.1, Letter.A), (0.1, 0.8, 0.1, Letter.B), (0.2, 0.2, 0.6, Letter.C), (0.45, 0.45, 0.1, Letter.C)],
)
def test_the_likeliest_line_is_read(a, b, neither, found):
    """Two sides that are equally likely are neither."""
    assert letter(four(a, b, neither)) is found


def test_neither_is_given_its_start():
    """By the fitted number, which is positive: a small model names a side too readily."""
    assert choose.load_fitted_bias().neither > 0
    close = four(0.4, 0.25, 0.35)
    assert letter(close) is Letter.A
    assert letter(close, neither=choose.load_fitted_bias().neither) is Letter.C


@given(SHARES, st.floats(0, 2))
def test_exchanging_the_statements_exchanges_the_sides(shares, neither):
    a, b, c = shares
    mirror = {Letter.A: Letter.B, Letter.B: Letter.A, Letter.C: Letter.C}
    assert letter(four(b, a, c), neither) is mirror[letter(four(a, b, c), neither)]


@given(SHARES, st.floats(0, 2))
def test_more_start_for_neither_never_names_a_side(shares, neither):
    if letter(four(*shares), neither) is Letter.C:
        assert letter(four(*shares), neither + 1) is Letter.C


def test_orders_are_averaged_in_logarithms():
    """One order that leans to a place is outweighed by the others."""
    calls = four(0.6, 0.2, 0.2)
    calls[0] = judged(METHODS[0], {Letter.A: 0.2, Letter.B: 0.6, Letter.C: 0.2})
    found = choose.score_lines(calls)
    assert isinstance(found, dict)
    assert math.isclose(found[Letter.A], (3 * math.log(0.6) + math.log(0.2)) / 4)
    assert letter(calls) is Letter.A


@pytest.mark.parametrize("missing", METHODS)
def test_three_answers_are_pending(missing):
    calls = [call for call in four(0.8, 0.1, 0.1) if call.method is not missing]
    assert choose.reading(calls, kind=Kind.BINARY) == Pending()


@pytest.mark.parametrize("place", range(4))
def test_a_failed_call_is_unread_with_its_reason(place):
    calls = four(0.8, 0.1, 0.1)
    calls[place] = judged(calls[place].method, None, error="timeout: no answer within 5 s")
    assert choose.reading(calls, kind=Kind.BINARY) == Unread("failed: timeout: no answer within 5 s")


def test_an_answer_without_probabilities_is_unread():
    """Unknown is not one third."""
    calls = [*four(0.8, 0.1, 0.1)[1:], judged(METHODS[0], None)]
    found = choose.reading(calls, kind=Kind.BINARY)
    assert isinstance(found, Unread)
    assert found.reason.startswith("unreadable:")


def test_the_last_answer_counts():
    """A call that failed and was repeated is read from its repetition."""
    calls = [judged(METHODS[0], None, error="overload"), *four(0.8, 0.1, 0.1)]
    assert letter(calls) is Letter.A


# --- with real models -------------------------------------------------------------------------------------


def read(name: str, replies=REPLIES) -> list[Read]:
    async def run() -> list[Read]:
        model = open_embedded(name)
        found = [reply async for reply in read_by(model, replies)]
        await model.close()
        return found

    return asyncio.run(run())


def test_a_real_model_answers_in_every_order():
    """The 135M model is no judge, but its answers have the form of one's."""
    pull("smollm2-135m")
    assert [reply.label for reply in read("embedded/smollm2-135m", REPLIES[:1])] == [Letter.A]


@pytest.mark.large
def test_the_large_model_agrees_with_most_labels():
    """Guessing among three lines would give eleven of 32."""
    pull("qwen2.5-coder-1.5b")
    found = read("embedded/qwen2.5-coder-1.5b")
    assert sum(reply.found.letter is reply.label for reply in found) >= 18
