"""What sets runs apart that took *yes* for different sides."""

from __future__ import annotations

from itertools import combinations

from hypothesis import given
from hypothesis import strategies as st

from unmask.records import Letter
from unmask.runs.polarity import JudgeSides, describe_disputes, describe_polarity

SIDES = st.dictionaries(st.sampled_from("pqrs"), st.sampled_from([Letter.A, Letter.B, Letter.C]), max_size=4)
JUDGE = st.builds(JudgeSides, SIDES, SIDES)


def in_dispute(one: JudgeSides, other: JudgeSides) -> bool:
    mine, theirs = one.all_sides, other.all_sides
    return any(mine[question] is not theirs[question] for question in mine.keys() & theirs.keys())


@given(st.lists(JUDGE, min_size=2, max_size=2))
def test_two_runs_differ_exactly_where_they_contradict_each_other(runs: list[JudgeSides]):
    """A question that only one of them needed is no difference, whoever said it."""
    first, second = describe_disputes([[run] for run in runs])
    assert (first != second) is in_dispute(*runs)
    assert (first is None) is (second is None) is (not in_dispute(*runs))


@given(st.lists(JUDGE, min_size=1, max_size=5))
def test_runs_that_contradict_each_other_differ_among_many(runs: list[JudgeSides]):
    texts = describe_disputes([[run] for run in runs])
    for (one, text), (other, its_text) in combinations(zip(runs, texts, strict=True), 2):
        assert not in_dispute(one, other) or text != its_text
    if not any(in_dispute(one, other) for one, other in combinations(runs, 2)):
        assert set(texts) == {None}


@given(JUDGE, JUDGE)
def test_each_judge_of_a_panel_counts(one: JudgeSides, other: JudgeSides):
    """A panel differs from one whose second member took another side."""
    first, second = describe_disputes([[one, one], [one, other]])
    assert (first != second) is in_dispute(one, other)


@given(SIDES, SIDES)
def test_a_run_has_a_digest_where_a_judge_said_something(data: dict[str, Letter], said: dict[str, Letter]):
    """The same for the same answers in any order, and none where the data says everything."""
    digest = describe_polarity([JudgeSides(data, said)])
    assert (digest is None) is (not said)
    assert digest == describe_polarity([JudgeSides({}, dict(reversed(said.items())))])
