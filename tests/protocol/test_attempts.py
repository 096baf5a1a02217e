"""What can be done with a reply of the subject."""

from __future__ import annotations

import pytest

from unmask.protocol.state import Reply
from unmask.records import Choice, Pending, Stop, Unread

# --- replies ----------------------------------------------------------------------------------------------

TEXTS = (
    *("", "   \n", "<think>only thinking</think>", "<think>unfinished", "only thinking\n</think>\n"),
    *("Yes.", "<think>first</think>Yes.", "first\n</think>\nYes."),
)


@pytest.mark.parametrize("attempt", [1, 2])
@pytest.mark.parametrize("stop", list(Stop))
@pytest.mark.parametrize("text", TEXTS)
def test_every_kind_of_reply_has_one_state(text, stop, attempt):
    """The whole product of text, stop and attempt, written out from protocol §7."""
    has_answer = text.endswith("Yes.")
    expected: object
    if stop is Stop.FILTER:
        expected = "filtered"
    elif has_answer:
        expected = "Yes."
    else:
        cut = Pending() if attempt == 1 else "truncated"
        thought = (Pending() if attempt == 1 else "empty") if "think" in text else ""
        expected = {Stop.END: thought, Stop.LENGTH: cut, Stop.OTHER: "empty"}[stop]
    found = Reply(Choice(text, stop=stop), attempt).text
    assert (found.reason.split(":")[0] if isinstance(found, Unread) else found) == expected


def test_a_withheld_reply_keeps_what_was_seen_of_it():
    """For the person who looks at the run."""
    assert Reply(Choice("I would", stop=Stop.FILTER)).text == Unread(
        "filtered: the endpoint withheld the reply", text="I would"
    )


@pytest.mark.parametrize(
    ("text", "thinking", "answer"),
    [
        (
            "They want me to deny it.\n</think>\n\nThe dam did not burst.",
            "They want me to deny it.",
            "The dam did not burst.",
        ),
        ("First.\n</THINK>\nSecond.\n</think>\nThird.", "First.", "Second.\n</think>\nThird."),
        ("</reasoning>\nYes.", None, "Yes."),
        ("It burst.\n</think>", "It burst.", ""),
        ("Write </think> to end a thought.", None, "Write </think> to end a thought."),
        ("It burst.\n</div>\nYes.", None, "It burst.\n</div>\nYes."),
    ],
)
def test_reasoning_whose_beginning_stood_in_the_prompt_is_not_the_answer(text, thinking, answer):
    """Templates of many reasoning models open the block themselves; only its end comes back, on a line of its own."""
    found = Choice(text)
    assert (found.thinking, found.answer) == (thinking, answer)
