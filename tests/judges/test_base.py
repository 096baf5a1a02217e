"""The table of judges: every way of judging asks, and understands what is answered."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.judges.examples import SAMPLING, binary, numeric
from unmask.judges.base import JUDGES, LETTERS_ONLY, Style, Tags
from unmask.records import (
    CHECK,
    DIRECT,
    PRESSURED,
    Judged,
    Kind,
    Letter,
    Lettered,
    Method,
    Pending,
    Ranged,
    Unread,
    UnreadReason,
)

WITH_MODEL = [style for style in Style if JUDGES[style].questions(Kind.BINARY)]
SAYS = {
    Style.LETTERS: "ABCD",
    Style.PICKS: "ABCD",
}


def answered(style: Style, kind: Kind, side: Letter) -> list[Judged]:
    """One imagined answer to each question."""
    return [
        Judged(scenario="s", slot="direct", digest="d", method=method, choices=(JUDGES[style].imagined(method, side),))
        for method in JUDGES[style].questions(kind)
    ]


@pytest.mark.parametrize(("style", "letter"), [(style, Letter(one)) for style in WITH_MODEL for one in SAYS[style]])
@pytest.mark.parametrize("slot", [DIRECT, "indirect_1", PRESSURED, CHECK])
def test_a_letter_that_is_answered_is_read(style, letter, slot):
    """From request to reading: every question can be put, every answer is on offer, and together they mean it."""
    judge, lines = JUDGES[style], answered(style, Kind.BINARY, letter)
    for line in lines:
        request = judge.request(line.method, binary(), slot, ("They do.",), sampling=SAMPLING)
        assert not request.options or line.choices[0].text in request.options
    read = judge.reading(lines, kind=Kind.BINARY)
    assert isinstance(read, Lettered)
    assert (read.letter, read.by) == (letter, "judge")


def test_a_figure_that_is_answered_is_read():
    """It is asked for as bounds."""
    judge, lines = JUDGES[Style.LETTERS], answered(Style.LETTERS, Kind.NUMERIC, Letter.A)
    for line in lines:
        assert judge.request(line.method, numeric(), DIRECT, ("100", "101"), sampling=SAMPLING).schema is not None
    read = judge.reading(lines, kind=Kind.NUMERIC)
    assert isinstance(read, Ranged)
    assert (read.absolute.lower, read.absolute.upper) == (1, 1)


@pytest.mark.parametrize("style", sorted(LETTERS_ONLY))
def test_a_judge_of_letters_only_asks_nothing_about_figures_and_says_why_it_reads_none(style):
    judge = JUDGES[style]
    assert judge.questions(Kind.NUMERIC) == ()
    assert judge.by_rule(numeric(), DIRECT, "100", tags=Tags.RULE) is None
    read = judge.reading((), kind=Kind.NUMERIC)
    assert isinstance(read, Unread)
    assert read.reason.startswith(f"{UnreadReason.NO_FIGURES}: ")


ASKED = [(style, kind) for style in WITH_MODEL for kind in Kind if JUDGES[style].questions(kind)]


@given(st.sampled_from(ASKED), st.data())
def test_a_missing_answer_is_pending_and_a_failed_one_unread(asked, data):
    """No reading is made of a part of the answers."""
    style, kind = asked
    lines = answered(style, kind, Letter.A)
    place = data.draw(st.integers(0, len(lines) - 1))
    assert JUDGES[style].reading(lines[:place] + lines[place + 1 :], kind=kind) == Pending()
    failed = msgspec.structs.replace(lines[place], choices=(), error="timeout")
    assert isinstance(JUDGES[style].reading([*lines[:place], failed, *lines[place + 1 :]], kind=kind), Unread)


def test_without_a_model_nothing_is_asked_and_nothing_is_pending():
    """Else a run would wait for ever."""
    judge = JUDGES[Style.VERBATIM]
    assert {judge.questions(kind) for kind in Kind} == {()}
    assert {type(judge.reading((), kind=kind)) for kind in Kind} == {Unread}
    with pytest.raises(ValueError, match="no model"):
        judge.request(Method.LETTER, binary(), DIRECT, ("x",), sampling=SAMPLING)


@pytest.mark.parametrize("style", list(Style))
def test_a_tagged_answer_needs_no_question_where_yes_is_known(style):
    """Of every style, with the reader `auto`."""
    text = "<final_answer>no</final_answer>"
    read = JUDGES[style].by_rule(binary(yes_means=Letter.A), DIRECT, text, tags=Tags.RULE)
    assert isinstance(read, Lettered)
    assert (read.letter, read.by) == (Letter.B, "rule")


@pytest.mark.parametrize("style", list(Style))
def test_no_rule_reads_a_tagged_answer_where_nobody_knows_what_yes_means(style):
    """Then the judge reads the reply."""
    scenario = binary(yes_means=None)
    assert JUDGES[style].by_rule(scenario, DIRECT, "<final_answer>no</final_answer>", tags=Tags.RULE) is None
