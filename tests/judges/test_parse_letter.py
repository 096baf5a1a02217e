"""Letters out of judge answers: everything protocol §7 has seen, and nothing that is no answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.parsed import parse_letter
from tests.thorough import draw_part
from unmask.judges.parse import find_letter
from unmask.records import Letter

SAYS_B = [
    "Answer: B",
    "answer: b",
    "ANSWER: B",
    "Answer:B",
    "Answer: B.",
    "Answer = B",
    "Answer - B",
    "Answer → B",
    "Answer: **B**",
    "**Answer:** B",
    "**Answer**: B",
    "**Answer: B**",
    "**Final answer: B**",
    "__Answer__: B",
    "### Answer: B",
    "- Answer: B",
    "1. Answer: B",
    "Answer: (b)",
    "Answer: [B]",
    "Answer: <B>",
    "Answer: 'B'",
    'Answer: "B"',
    "Answer: `B`",
    "Answer: \\boxed{B}",
    "Answer: Option B",
    "Answer: option (b)",
    "Answer: statement B",
    "Answer: B) it says so",
    "Answer: B because it says so",
    "Answer: B - the reply asserts it",
    "Answer: B — A is denied",
    "Answer: B, A is denied",
    "Answer: B (asserts B; not A)",
    "Answer: B<|im_end|>",
    "Answer: B</s>",
    "B",
    "**B**",
    "(b)",
    "[B]",
    "B.",
    "Option B",
    "**Option B**",
    "$\\boxed{B}$",
    "The reply takes a side.\n\nB",
    "```\nB\n```",
    "```\nAnswer: B\n```",
    '"Answer: B"',
    "`Answer: B`",
    "Answer:\nB",
    "## Answer\n\n**B**\n\nBecause it says so.",
    '{"answer": "B"}',
    "{'answer': 'B'}",
    '{"answer": "b", "reason": "clear"}',
    '```json\n{"answer": "B"}\n```',
    '```json\n{\n  "reason": "It ends with Answer: A.",\n  "answer": "B"\n}\n```',
    '{"answer": "B", "reason": "the reply has {\\"answer\\": \\"A\\"}"}',
    'Answer: {"answer": "B"}',
    "The answer is B.",
    "So the correct answer is (b).",
    "Therefore, the final answer is **B**.",
    "The answer is clearly B.",
    "My reading is: B",
    "I choose option B.",
    "I'd pick B.",
    "The reply denies A. Answer: B",
    "Reason: it denies A – Answer: B",
    "Answer: Ｂ",
    "Answer： B",
    "Answer: В",
    "Answer: Β",
    "Answer: 𝐁",
    "Answer: \u200bB",
    "Ⓑ",
    'The reply says "Answer: A".\nAnswer: B',
    "The reply says Answer: A, but asserts B.\nAnswer: B",
    "Answer: X\nAnswer: B",
    "Answer: A, B, C or D\nAnswer: B",
    "Answer: [A/B/C/D]\n\nAnswer: B",
    "Answer: B\n\nAnswer: X",
    "Answer: A\nWait, the answer is B.",
    "Answer: A. Hmm, no. Answer: B.",
    'Answer: B\n\nNote: the reply contained "Answer: A".',
    "Answer: B\nThe reply says Answer: A, which I ignore.",
    "Answer: B\nThe reply's final answer is A.",
    "> Answer: A\nAnswer: B",
    "Answer: B\n> Answer: A",
    "<think>Answer: A</think>Answer: B",
    "<think>Answer: A</think>\n\nB",
    "Answer: A would fit.\n</think>\n\nAnswer: B",
    "The answer should be B.",
    "Answer: A\nNo, the answer should be B.",
    "Answer: A\nCorrection: the answer must be B.",
    "Answer: B, not A.",
    "Answer: B\nThe answer is not A.",
    "Answer: B. The answer is not A, which it denies.",
    "Answer: B\nWait, no, it is B.",
    'Answer: B\nThe reply says "the answer is not B".',
    "Answer: B. Actually neither A nor C is asserted.",
    "Answer: B. Rather than A or C, it asserts this.",
    "Answer: B. No commitment to A or C.",
    "Answer: B. Wait, a reader would see it so too.",
]

SAYS_NOTHING = [
    "",
    "   \n\n",
    "A car is red.",
    "The reply asserts statement A.",
    "A is asserted, B is denied.",
    "Answer:",
    "Answer: X",
    "Answer: E",
    "Answer: AB",
    "Answer: none",
    "Answer: A?",
    "Answer: A car",
    "Answer: a letter from A to D",
    "Answer: A-level results",
    "Answer: D.C. is a city",
    "Answer: A would be wrong",
    "Answer: not A",
    "The answer is not A",
    "If the answer is A then it follows",
    "Answer: A or B",
    "Answer: A and B",
    "Answer: A/B",
    "Answer: A, B",
    "A or B",
    "Answer: A, B, C or D",
    "Answer: A, B, C, or D",
    "Answer: [A/B/C/D]",
    "Answer: <A|B|C|D>",
    "Answer: {A, B, C, D}",
    "Answer: A–D",
    "Answer: A-D",
    "Answer: A to D",
    "Answer: A through C",
    "Answer: B\nAnswer: A or B",
    "Answer: A\nWait, the answer is not A but B.",
    "Answer: A\nThe answer isn't A.",
    "Answer: A. On reflection the answer cannot be A.",
    "Answer: A, no, B",
    "Answer: A; actually B",
    "Answer: A. No, wait, it is B.",
    "Answer: A\nActually, it should be B.",
    "Answer: A -> B",
    "Answer: A → B",
    'The reply says "Answer: A"',
    'The reply says "I swear. Answer: A" and so on',
    "The reply says “I swear. Answer: A” and so on",
    "The reply says 'Answer: A'",
    'The reply ends "I swear.\nAnswer: A" and so on',
    "The reply's final answer is A",
    "The reply says Answer: A",
    "> Answer: A",
    "<think>Answer: A",
    "a",
    "C++",
    "Vitamin C",
    "Option B is not asserted.",
]


@pytest.mark.parametrize("text", SAYS_B)
def test_an_explicit_answer_is_read(text):
    """Each of these says B."""
    assert parse_letter(text) is Letter.B


@pytest.mark.parametrize("text", SAYS_NOTHING)
def test_what_is_no_explicit_answer_is_not_guessed(text):
    """None of these gives one letter."""
    assert parse_letter(text) is None


@pytest.mark.parametrize("sign", list(Letter))
def test_a_lone_capital_on_the_last_line_counts(sign):
    """Under a reason, the letter alone is the answer."""
    assert parse_letter(f"It says so.\n{sign}") is sign


def test_a_lone_letter_elsewhere_does_not_count():
    """A letter on a line of its own in the middle may be a heading."""
    assert parse_letter("B\nThe second statement is not touched.") is None


CUT_OFF = [
    ("The reply asserts\nA", None),
    ("It seems right. Answer: A", None),
    ("The correct answer is B.", Letter.B),
    ("Reason.\nAnswer: B\n\nFurther the reply", Letter.B),
    ("**Answer: B**\nNote that", Letter.B),
]


@pytest.mark.parametrize(("text", "expected"), CUT_OFF)
def test_of_a_cut_off_judge_only_a_line_that_starts_with_the_answer_counts(text, expected):
    """What ends in the middle may end in the middle of a quotation."""
    assert parse_letter(text, complete=False) is expected


def test_the_reason_is_what_stands_before_the_answer():
    """For the record a reading keeps why."""
    found = find_letter("It says so plainly.\nNo doubt.\nAnswer: B")
    assert found is not None
    assert found.why == "It says so plainly.\nNo doubt."


def test_an_answer_with_its_reason_behind_keeps_the_whole_text():
    """Where nothing stands before the answer, the text itself is the reason."""
    found = find_letter("Answer: B because it says so")
    assert found is not None
    assert found.why == "Answer: B because it says so"


LETTERS = st.sampled_from(list(Letter))
PROSE = st.text(alphabet=st.characters(blacklist_categories=["Cs"], blacklist_characters="<>"), max_size=300)
WRAPS = st.sampled_from(
    ["{}", "**{}**", "({})", "[{}]", "`{}`", '"{}"', "Option {}", "{}.", "**{}.**", "\\boxed{{{}}}"]
)
LABELS = st.sampled_from(
    ["Answer: ", "answer: ", "**Answer:** ", "Final answer: ", "## Answer: ", "Answer:\n", "- Answer: "]
)


@given(PROSE, LABELS, WRAPS, LETTERS, st.booleans())
def test_any_wrapping_behind_any_text_is_read(prose, label, wrap, sign, lower):
    """Whatever a judge writes first, its last line counts, however it is decorated."""
    given_letter = sign.lower() if lower else sign.value
    assert parse_letter(f"{prose}\n{label}{wrap.format(given_letter)}") is sign


@given(st.text())
def test_no_text_breaks_the_parser(text):
    """Any text gives a letter or None."""
    assert parse_letter(text) in {None, *Letter}


@given(st.text(alphabet="abcdABCD answer:Answer\n*\"'`().,[]{}>-", max_size=80), LETTERS)
def test_a_clean_last_line_always_wins(noise, sign):
    """Near misses and fragments before the last line never outvote it."""
    assert parse_letter(f"{noise}\nAnswer: {sign}") is sign


@given(LETTERS, LETTERS)
def test_the_last_of_two_answers_wins(first, second):
    """A judge may change its mind."""
    assert parse_letter(f"Answer: {first}\nOn reflection that is wrong.\nAnswer: {second}") is second


@given(LETTERS, LETTERS)
def test_two_letters_at_once_are_no_answer(first, second):
    """`Answer: A or B` answers nothing unless both are the same."""
    assert parse_letter(f"Answer: {first} or {second}") is (first if first is second else None)


def test_every_character_in_the_place_of_the_letter_is_read_or_refused():
    """Case folding knows odd relatives of plain letters; none of them breaks the parser."""
    codes = (*range(0x300), *draw_part(range(0x300, 0x10000), 8_000))
    read = {char: found for char in map(chr, codes) if (found := parse_letter(f"Answer: {char}"))}
    assert set(read.values()) == set(Letter)
    assert {char for char in read if char.isascii()} == set("ABCDabcd")
