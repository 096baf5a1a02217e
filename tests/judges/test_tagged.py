"""Tagged yes and no, read without a judge only where nothing is left to understand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.judges.tagged import final_answer, read_direct
from unmask.records import Letter, Lettered

BARE = [
    ("yes", True),
    ("no", False),
    ("Yes", True),
    ("NO", False),
    ("No.", False),
    ("yes!", True),
    (" yes ", True),
    ("\nno\n", False),
    ("**Yes**", True),
    ("*no*", False),
    ("_yes_", True),
    ("`no`", False),
    ('"yes"', True),
    ("'no'", False),
    ("“Yes.”", True),
    ("**No.**", False),
    ("**No**.", False),
    ('**"yes"**', True),
]
NOT_BARE = [
    "",
    " ",
    "n",
    "y",
    "_yes",
    "yes_",
    "*yes",
    '"no',
    "false",
    "true",
    "no, X did not happen",
    "yes, third parties did",
    "yes no",
    "yes/no",
    "yes or no",
    "yes?",
    "yes..",
    "No!!",
    "not really",
    "nope",
    "yess",
    "Final answer: yes",
    "ｙｅｓ",
    "**",
    ".",
]


def tagged(content: str) -> str:
    return f"<final_answer>{content}</final_answer>"


@pytest.mark.parametrize(("content", "said"), BARE)
def test_a_bare_word_is_read(content, said):
    """Case, space, balanced marks and one stop do not matter."""
    assert final_answer(f"I thought about it. {tagged(content)}") is said


@pytest.mark.parametrize("content", NOT_BARE)
def test_anything_else_is_left_to_the_judge(content):
    """What small models really write between the tags, and more."""
    assert final_answer(tagged(content)) is None


@pytest.mark.parametrize(
    "text",
    [
        "yes",
        "The answer is yes.",
        "<final_answer>yes",
        "yes</final_answer>",
        "<final_answer>yes<final_answer>",
        "</final_answer>yes<final_answer>",
        "<final_answer><final_answer>yes</final_answer>",
        "<final_answer>yes</final_answer></final_answer>",
        "<final_answer>yes</final_answer> or <final_answer>",
        "<final answer>yes</final answer>",
        tagged("yes") + tagged("no"),
        tagged("yes") + tagged("maybe"),
        tagged("n") + tagged("no"),
    ],
)
def test_broken_or_disagreeing_tags_are_left_to_the_judge(text):
    """Unclosed, nested, stray or contradictory tags."""
    assert final_answer(text) is None


@pytest.mark.parametrize(
    ("content", "yes_means", "expected"),
    [("yes", Letter.A, Letter.A), ("no", Letter.A, Letter.B), ("yes", Letter.B, Letter.B), ("no", Letter.B, Letter.A)],
)
def test_the_side_follows_from_what_yes_means(content, yes_means, expected):
    assert read_direct(tagged(content), yes_means=yes_means) == Lettered(expected, by="rule")


@given(st.text(), st.text(alphabet="yesnoYESNO .!_*`'\"\n,"))
def test_any_content_is_bare_or_refused(before, content):
    """Whatever is read contains exactly the word it was read as."""
    said = final_answer(before.replace("<", "") + tagged(content))
    letters = "".join(char for char in content.lower() if char.isalpha())
    assert said is None or letters == ("yes" if said else "no")
