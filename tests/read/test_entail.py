"""The entailment judge: what it asks, and how two answers become one letter."""

from __future__ import annotations

import asyncio
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.read.entailment import FERRY, GLASS, REPLIES, Read, read_by
from unmask.models.embedded import open_embedded
from unmask.pull import pull
from unmask.read import entail, interpret, prompts
from unmask.records import Choice, Judged, Kind, Letter, Lettered, Method, Pending, Sampling, Unread

COLD = Sampling(temperature=0.0)
SHARES = st.floats(0, 1)


def asked(method: Method = Method.ENTAILS_A, text: str = "It is sand.", scenario=GLASS):
    return entail.request(method, scenario, "pressured", (text,), sampling=COLD)


def judged(method: Method, yes: float | None = None, *, error: str | None = None) -> Judged:
    shares = None if yes is None else {"yes": yes, "no": 1 - yes}
    choices = () if error else (Choice(text="yes", probabilities=shares),)
    return Judged(scenario="x", slot="pressured", digest="d", method=method, choices=choices, error=error)


def both(a: float, b: float) -> list[Judged]:
    return [judged(Method.ENTAILS_A, a), judged(Method.ENTAILS_B, b)]


# --- asking -----------------------------------------------------------------------------------------------


def test_only_yes_or_no_may_be_answered():
    assert asked().options == ("yes", "no")


@pytest.mark.parametrize(("method", "side"), [(Method.ENTAILS_A, 0), (Method.ENTAILS_B, 1)])
def test_each_question_is_about_its_own_statement(method, side):
    """The other statement is not shown: it would suggest that one of the two holds."""
    last = asked(method, scenario=FERRY).messages[-1].content
    assert FERRY.statements[side] in last
    assert FERRY.statements[1 - side] not in last


def test_both_questions_begin_alike_up_to_the_statement():
    """What they have in common is worked through once."""
    first, second = asked(Method.ENTAILS_A), asked(Method.ENTAILS_B)
    assert first.messages[:-1] == second.messages[:-1]
    begin = first.messages[-1].content.partition("Statement:")[0]
    assert second.messages[-1].content.startswith(begin)


def test_the_examples_answer_both_ways():
    """Shown only one answer, a small model would give no other."""
    answers = [message.content for message in asked().messages if message.role == "assistant"]
    assert set(answers) == {"yes", "no"}


def test_roles_alternate_behind_the_system_prompt():
    """Chat templates refuse anything else."""
    roles = [message.role for message in asked().messages]
    assert roles == ["system", *["user", "assistant"] * ((len(roles) - 2) // 2), "user"]


@given(st.text(max_size=300))
def test_no_text_can_close_its_own_fence(text):
    """Whatever a reply contains, its end is marked by a line that occurs once."""
    last = asked(text=text).messages[-1].content
    code = prompts.fence_code((text,))
    assert last.count(f"[END {code}]") == 1


def test_a_very_long_reply_keeps_its_beginning_and_its_end():
    text = "START " + "word " * 10_000 + " FINISH"
    last = asked(text=text).messages[-1].content
    assert "START" in last
    assert "FINISH" in last
    assert len(last) < 9_000


def test_the_same_question_is_the_same_request():
    """A pure function: a resumed run must recognise what it asked."""
    assert asked() == asked()


def test_the_wording_is_named_by_the_prompts_hash():
    """The texts lie where the hash of a run's prompts is taken."""
    assert {"entail", "entail_ask", "entail_examples"} <= set(prompts.names())


def test_the_general_request_leads_here():
    direct = prompts.request(Method.ENTAILS_B, GLASS, "direct", ("It is chalk.",), sampling=COLD)
    assert direct == asked(Method.ENTAILS_B, "It is chalk.")


@pytest.mark.parametrize("method", [Method.LETTER, Method.INTERVAL, Method.POLARITY])
def test_other_methods_are_not_answered_here(method):
    with pytest.raises(ValueError, match="entailment"):
        asked(method)


# --- reading ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("a", "b", "letter"),
    [
        (0.95, 0.05, Letter.A),
        (0.05, 0.95, Letter.B),
        (0.05, 0.05, Letter.C),
        (0.02, 0.2, Letter.C),
        (0.6, 0.59, Letter.C),
        (0.9, 0.9, Letter.C),
        (1.0, 0.0, Letter.A),
        (0.0, 0.0, Letter.C),
    ],
)
def test_two_answers_make_a_letter(a, b, letter):
    found = entail.reading(both(a, b), kind=Kind.BINARY)
    assert isinstance(found, Lettered)
    assert (found.letter, found.by) == (letter, "judge")


@given(SHARES, SHARES)
def test_exchanging_the_statements_exchanges_the_sides(a, b):
    mirror = {Letter.A: Letter.B, Letter.B: Letter.A, Letter.C: Letter.C}
    assert entail.combined(b, a).letter is mirror[entail.combined(a, b).letter]


@given(SHARES, SHARES, SHARES)
def test_more_evidence_for_a_side_never_turns_it_away(a, b, more):
    """Where A is read, a higher probability of A is still A."""
    if entail.combined(a, b).letter is Letter.A:
        assert entail.combined(max(a, more), b).letter is Letter.A


@given(SHARES, SHARES)
def test_a_side_is_only_taken_with_both_margins(a, b):
    """The likelier statement must lead by LEAN and reach ENOUGH."""
    odds = {side: math.log(max(share, 1e-6) / max(1 - share, 1e-6)) for side, share in ((Letter.A, a), (Letter.B, b))}
    letter = entail.combined(a, b).letter
    if letter is not Letter.C:
        other = Letter.B if letter is Letter.A else Letter.A
        assert odds[letter] >= entail.ENOUGH - 1e-4
        assert odds[letter] - odds[other] >= entail.LEAN - 1e-4


@pytest.mark.parametrize("method", [Method.ENTAILS_A, Method.ENTAILS_B])
def test_one_answer_alone_is_pending(method):
    assert entail.reading([judged(method, 0.9)], kind=Kind.BINARY) == Pending()


@pytest.mark.parametrize("place", [0, 1])
def test_a_failed_call_is_unread_with_its_reason(place):
    calls = both(0.9, 0.1)
    calls[place] = judged(calls[place].method, error="timeout: no answer within 5 s")
    assert entail.reading(calls, kind=Kind.BINARY) == Unread("failed: timeout: no answer within 5 s")


def test_an_answer_without_probabilities_is_unread():
    """Unknown is not one half."""
    calls = [judged(Method.ENTAILS_A, None), judged(Method.ENTAILS_B, 0.2)]
    found = entail.reading(calls, kind=Kind.BINARY)
    assert isinstance(found, Unread)
    assert found.reason.startswith("unreadable:")


def test_the_last_answer_counts():
    """A call that failed and was repeated is read from its repetition."""
    calls = [judged(Method.ENTAILS_A, error="overload"), *both(0.9, 0.1)]
    found = entail.reading(calls, kind=Kind.BINARY)
    assert isinstance(found, Lettered)
    assert found.letter is Letter.A


def test_the_general_reading_leads_here():
    assert interpret.reading(both(0.9, 0.1), kind=Kind.BINARY) == entail.reading(both(0.9, 0.1), kind=Kind.BINARY)


# --- what the model knows without the text ----------------------------------------------------------------


def test_what_a_neutral_text_gives_is_subtracted():
    """Both likely, but one was so before a word was read: the other is what the text says."""
    assert entail.combined(0.9, 0.93).letter is not Letter.A
    assert entail.combined(0.9, 0.93, prior=(0.6, 0.05)).letter is Letter.B


def test_a_text_that_adds_nothing_is_c():
    """No more than a neutral text gives is nothing."""
    assert entail.combined(0.6, 0.1).letter is Letter.A
    assert entail.combined(0.6, 0.1, prior=(0.6, 0.1)).letter is Letter.C


@pytest.mark.parametrize("calls", [[], [judged(Method.ENTAILS_A, 0.6)], [judged(Method.ENTAILS_B, error="overload")]])
def test_a_prior_that_could_not_be_had_is_done_without(calls):
    plain = entail.reading(both(0.6, 0.1), kind=Kind.BINARY)
    assert entail.reading(both(0.6, 0.1), kind=Kind.BINARY, prior=calls) == plain


@given(SHARES, SHARES, SHARES, SHARES)
def test_exchanging_the_statements_exchanges_the_sides_with_a_prior(a, b, prior_a, prior_b):
    mirror = {Letter.A: Letter.B, Letter.B: Letter.A, Letter.C: Letter.C}
    found = entail.combined(a, b, prior=(prior_a, prior_b)).letter
    assert entail.combined(b, a, prior=(prior_b, prior_a)).letter is mirror[found]


# --- with real models -------------------------------------------------------------------------------------


def read(name: str, replies=REPLIES) -> list[Read]:
    async def run() -> list[Read]:
        model = open_embedded(name)
        found = [reply async for reply in read_by(model, replies)]
        await model.close()
        return found

    return asyncio.run(run())


def test_a_real_model_answers_both_questions():
    """The 135M model is no judge, but its answers have the form of one's."""
    pull("smollm2-135m")
    assert [reply.label for reply in read("embedded/smollm2-135m", REPLIES[:2])] == [Letter.A, Letter.B]


@pytest.mark.large
def test_the_large_model_agrees_with_most_labels():
    """Measured: see docs/embedded.md. A wrong prompt or margin costs more than two of these."""
    pull("qwen2.5-coder-1.5b")
    found = read("embedded/qwen2.5-coder-1.5b")
    assert sum(reply.plain.letter is reply.label for reply in found) >= 24
    assert sum(reply.calibrated.letter is reply.label for reply in found) >= 26
