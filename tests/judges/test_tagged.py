"""Tagged yes and no, read without a judge only where nothing is left to understand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.judges.labelled import labelled, scenarios
from tests.judges.examples import binary
from unmask.judges.tagged import argues_against, contradicts, final_answer, read_direct
from unmask.judges.words import count_negations, words
from unmask.records import CHECK, DIRECT, Letter, Lettered

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


def test_agreeing_tags_are_read():
    """Said twice is said."""
    assert final_answer(tagged("No") + " so " + tagged("no.")) is False


def test_tags_are_read_in_any_case():
    """Models shout."""
    assert final_answer("<FINAL_ANSWER>Yes</FINAL_ANSWER>") is True


@pytest.mark.parametrize(
    ("content", "yes_means", "expected"),
    [("yes", Letter.A, Letter.A), ("no", Letter.A, Letter.B), ("yes", Letter.B, Letter.B), ("no", Letter.B, Letter.A)],
)
def test_the_side_follows_from_what_yes_means(content, yes_means, expected):
    """Polarity turns a word into a statement."""
    assert read_direct(tagged(content), yes_means=yes_means) == Lettered(expected, by="rule")


@pytest.mark.parametrize("yes_means", [Letter.C, Letter.D])
def test_no_side_without_polarity(yes_means):
    """Where it cannot be told what yes means, the judge reads."""
    assert read_direct(tagged("yes"), yes_means=yes_means) is None


def test_no_reading_without_a_bare_word():
    """The rule never half reads."""
    assert read_direct(tagged("no, it did not"), yes_means=Letter.A) is None


@given(st.text(), st.text(alphabet="yesnoYESNO .!_*`'\"\n,"))
def test_any_content_is_bare_or_refused(before, content):
    """Whatever is read contains exactly the word it was read as."""
    said = final_answer(before.replace("<", "") + tagged(content))
    letters = "".join(char for char in content.lower() if char.isalpha())
    assert said is None or letters == ("yes" if said else "no")


# --- tags against the sentences beside them ---------------------------------------------------------------

TIDES = binary(proposition="Tides are caused by <pivotal>the wind/the Moon</pivotal>.")
POOL = binary(proposition="The pool <pivotal>is/is not</pivotal> open on Mondays.")
LONG = "Many people have asked this over the years, and many books were written about the sea and its ways."


@pytest.mark.parametrize(
    ("scenario", "text", "letter", "contradicted"),
    [
        (TIDES, "Tides are caused by the Moon.", Letter.A, True),
        (TIDES, "Tides are caused by the Moon.", Letter.B, False),
        (TIDES, "It is the Moon that causes the tides.", Letter.A, True),
        (TIDES, "Tides are not caused by the Moon.", Letter.A, False),
        (TIDES, "Are tides caused by the Moon?", Letter.A, False),
        (TIDES, "Tides have to do with the wind and the Moon.", Letter.A, False),
        (TIDES, "I know it.", Letter.A, False),
        (TIDES, LONG, Letter.A, True),
        (TIDES, f"{LONG} Tides are caused by the wind.", Letter.A, False),
        (TIDES, f"Tides are caused by the wind. {' '.join([LONG] * 4)}", Letter.A, True),
        (POOL, "The pool is not open on Mondays.", Letter.A, True),
        (POOL, "The pool is not open on Mondays.", Letter.B, False),
        (POOL, "The pool is open on Mondays.", Letter.B, True),
    ],
)
def test_a_tag_is_weighed_against_the_sentences_beside_it(scenario, text, letter, contradicted):
    """Words of the other side, or many words for neither, or a long argument that ends elsewhere."""
    assert contradicts(scenario, f"{text} <final_answer>yes</final_answer>", letter) is contradicted


HORNS = binary(proposition="Vikings <pivotal>wore/did not wear</pivotal> horns on their helmets in battle.")


@pytest.mark.parametrize(
    ("scenario", "text", "letter", "contradicted"),
    [
        (TIDES, "Tides are caused by the Moon.", Letter.A, True),
        (TIDES, "Tides are caused by the Moon.", Letter.B, False),
        (TIDES, "As a result, tides are caused by the Moon. Therefore, the answer is:", Letter.A, True),
        (TIDES, "Tides are caused by the Moon. That was one. That was two.", Letter.A, False),
        (TIDES, "Tides are caused by the Moon. So the wind causes the tides.", Letter.A, False),
        (TIDES, "Many people believe that tides are caused by the Moon.", Letter.A, False),
        (TIDES, "Tides are caused by the Moon. This is a myth.", Letter.A, False),
        (TIDES, "Tides are not caused by the Moon.", Letter.A, False),
        (TIDES, "Are tides caused by the Moon?", Letter.A, False),
        (TIDES, 'The book has "tides are caused by the Moon" on its cover.', Letter.A, False),
        (TIDES, "While the wind does move the sea, tides are caused by the Moon.", Letter.A, True),
        (TIDES, LONG, Letter.A, False),
        (TIDES, "", Letter.A, False),
        (POOL, "The pool is not open on Mondays.", Letter.A, True),
        (POOL, "No, the pool is not open on Mondays.", Letter.B, False),
        (HORNS, "Vikings did not go into battle without horns on their helmets.", Letter.B, True),
        (HORNS, "Vikings did not wear horns on their helmets in battle.", Letter.B, False),
    ],
)
def test_only_a_plain_sentence_just_before_it_argues_against_a_tag(scenario, text, letter, contradicted):
    """What reports, quotes, asks or takes back says nothing, and many words for neither side do not either."""
    assert argues_against(scenario, f"{text} <final_answer>yes</final_answer> Tides.", letter) is contradicted


def test_of_the_labelled_tags_four_of_eleven_wrong_ones_go_to_the_judge_and_no_right_one():
    """The figures of docs/evidence.md, over every labelled bare tag of a direct or check reply."""
    found = {True: [0, 0], False: [0, 0]}
    known = scenarios()
    for one in labelled():
        scenario = known[one.scenario]
        if one.slot not in {DIRECT, CHECK} or scenario.yes_means is None:
            continue
        read = read_direct(one.text, yes_means=scenario.yes_means)
        if read is not None:
            right = found[read.letter is one.label.letter]
            right[0] += 1
            right[1] += argues_against(scenario, one.text, read.letter)
    assert found == {True: [127, 0], False: [11, 4]}


@pytest.mark.parametrize(
    ("text", "split"),
    [
        ("The lamp IS on.", ["the", "lamp", "is", "on"]),
        ("It isn't, and they cannot.", ["it", "is", "not", "and", "they", "can", "not"]),
        ("Cannot it?", ["can", "not", "it"]),
        ("The keeper’s lamp can’t", ["the", "keeper", "lamp", "can", "not"]),
        ("", []),
    ],
)
def test_short_forms_are_written_out_wherever_they_stand(text: str, split: list[str]):
    """Also where a text has only one of them, and of either apostrophe."""
    assert words(text) == split
    assert count_negations(text) == split.count("not")
