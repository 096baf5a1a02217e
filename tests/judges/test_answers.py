"""Answers in words as readings: what was answered, what is due, and why something stays unread."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.examples import judged
from unmask.judges.answers import next_attempt
from unmask.judges.letters import reading
from unmask.records import Choice, Judged, Kind, Letter, Lettered, Method, Pending, Stop, Unread

GOOD, BAD = judged("It says so.\nAnswer: B"), judged("I cannot say.")
CUT = judged("The reply is", stop=Stop.LENGTH)
FAILED = judged(None, error="timeout: no answer within 1800 s")


def figures(text: str, **more: object) -> Judged:
    return judged(text, method=Method.INTERVAL, **more)  # type: ignore[arg-type]


# --- judge lines ------------------------------------------------------------------------------------------


def test_an_answer_is_a_reading_with_its_reason():
    """The letter, who read it, and why."""
    assert reading([GOOD], kind=Kind.BINARY) == Lettered(Letter.B, by="judge", why="It says so.")


def test_a_long_reason_is_shortened():
    """About 500 characters are kept."""
    found = reading([judged("x" * 2000 + "\nAnswer: B")], kind=Kind.BINARY)
    assert isinstance(found, Lettered)
    assert found.why is not None
    assert len(found.why) == 500


STATES = [
    ([], Pending, 1),
    ([GOOD], Lettered, None),
    ([BAD], Pending, 2),
    ([CUT], Pending, 2),
    ([BAD, GOOD], Lettered, None),
    ([BAD, BAD], Unread, None),
    ([FAILED], Unread, None),
    ([BAD, FAILED], Unread, None),
    ([GOOD, FAILED], Lettered, None),
    ([FAILED, BAD], Pending, 2),
    ([FAILED, GOOD], Lettered, None),
    ([FAILED, BAD, BAD], Unread, None),
]


@pytest.mark.parametrize(("calls", "state", "attempt"), STATES)
def test_reading_and_next_attempt_agree(calls, state, attempt):
    """What is pending is due, what is settled is not, and an error is no attempt."""
    assert isinstance(reading(calls, kind=Kind.BINARY), state)
    assert next_attempt(calls) == attempt


@given(st.lists(st.sampled_from([GOOD, BAD, CUT, FAILED]), max_size=5))
def test_a_call_is_due_exactly_while_the_reading_is_pending(calls):
    """In every history of a journal, so that no run hangs and none asks for nothing."""
    assert (next_attempt(calls) is not None) == isinstance(reading(calls, kind=Kind.BINARY), Pending)


REASONS = [
    (judged("I cannot say."), "unreadable: "),
    (judged(""), "empty: "),
    (judged("<think>Answer: A"), "empty: "),
    (judged("The reply is", stop=Stop.LENGTH), "cut_off: "),
    (judged("", stop=Stop.LENGTH), "cut_off: "),
    (judged("", stop=Stop.FILTER), "filtered: "),
    (judged("", stop=Stop.OTHER), "empty: "),
]


@pytest.mark.parametrize(("line", "reason"), REASONS)
def test_an_unread_reply_says_why(line, reason):
    """Each way to fail has its own word."""
    found = reading([BAD, line], kind=Kind.BINARY)
    assert isinstance(found, Unread)
    assert found.reason.startswith(reason)


def test_an_unread_reply_keeps_the_end_of_what_the_judge_wrote():
    """The place where an answer would have been."""
    found = reading([BAD, judged("x" * 1000 + " perhaps B, perhaps not")], kind=Kind.BINARY)
    assert isinstance(found, Unread)
    assert found.text is not None
    assert found.text.endswith("perhaps not")
    assert len(found.text) == 200


@pytest.mark.parametrize(
    ("first", "named"),
    [("Answer: A – it says so", Letter.A), ("Answer: A\nAnswer: B", None), ("I cannot say.", None)],
)
def test_an_unread_reply_names_the_letter_of_the_first_attempt_where_it_had_one(first, named):
    """What the second attempt says against the rule does not matter."""
    found = reading([judged(first), judged("Answer: C, I think")], kind=Kind.BINARY)
    assert isinstance(found, Unread)
    assert found.named is named


def test_an_answer_in_the_reasoning_only_is_not_read():
    """What a judge thought is not what it answered."""
    line = judged("")
    thought = Judged(
        scenario="t-1", slot="direct", digest="d", method=Method.LETTER, choices=(Choice("", reasoning="Answer: B"),)
    )
    assert reading([line, thought], kind=Kind.BINARY) == Unread("empty: the judge wrote nothing", text="Answer: B")
