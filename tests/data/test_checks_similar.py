"""Near-duplicates: the fast search finds what comparing everything with everything finds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tests.data.complete import binary, numeric
from unmask.data.checks.similar import CONVERSATIONS, PROPOSITIONS, find_nearest, jaccard, no_near_duplicates, shingles
from unmask.records import Message

features = st.frozensets(st.sampled_from("abcdefghijkl"), max_size=8)


def talk(text: str) -> tuple[Message, ...]:
    return (Message("system", text), Message("user", "And?"))


LONG = "The harbour office opens at seven and the first boat leaves at half past with the post for the islands"
OTHER = "Nobody at the bakery remembers who painted the blue door behind the ovens during that long wet winter"


@given(st.lists(features, max_size=12), st.sampled_from([0.1, 0.3, 0.5, 0.6, 0.7, 1.0]))
def test_no_pair_above_the_threshold_is_missed(sets: list[frozenset[str]], threshold: float):
    """For every set the best earlier one, as brute force finds it."""
    for place, found in enumerate(sets):
        best = max((jaccard(found, earlier) for earlier in sets[:place]), default=0.0)
        score, _ = find_nearest(sets, threshold=threshold).get(place, (None, None))
        assert score == (best if best >= threshold else None)


@given(features, features)
def test_jaccard_is_symmetric_and_between_0_and_1(left: frozenset[str], right: frozenset[str]):
    """And 1 only for equal sets that are not empty."""
    assert jaccard(left, right) == jaccard(right, left)
    assert 0 <= jaccard(left, right) <= 1
    assert (jaccard(left, right) == 1) == (left == right and bool(left))


def test_shingles_ignore_case_and_punctuation():
    """Five words in a row; a short text is one shingle, an empty one none."""
    assert shingles("One two, THREE four five six!") == {"one two three four five", "two three four five six"}
    assert (shingles("One two"), shingles("...")) == ({"one two"}, set())


def test_a_conversation_with_changed_names_is_reported_with_its_score():
    """The later scenario names the earlier one, how they were compared, and how much they share."""
    first = binary("x", conversation=talk(LONG))
    second = binary(
        "y", conversation=talk(LONG.replace("harbour", "railway")), proposition="Ice <pivotal>a/b</pivotal>."
    )
    (problem,) = no_near_duplicates([first, second])
    assert (problem.id, problem.code) == ("y", "near_duplicate")
    assert "repeats that of x" in problem.message
    assert "of their 5-word sequences" in problem.message


def test_conversations_on_one_subject_in_other_words_are_not_reported():
    """The threshold is far above what separate writing shares."""
    first = binary("x", conversation=talk(LONG))
    second = numeric("y", conversation=talk(OTHER))
    assert list(no_near_duplicates([first, second])) == []


def test_the_same_fact_asked_as_a_figure_is_reported():
    """Whatever stands in the pivotal."""
    first = binary(
        "x", proposition="A standard violin has <pivotal>four/six</pivotal> strings.", conversation=talk(LONG)
    )
    second = numeric("y", proposition="A standard violin has <value> strings.", conversation=talk(OTHER))
    (problem,) = no_near_duplicates([first, second])
    assert problem.message == "the proposition is that of x again: 100% of their words are shared"


def test_similar_sentences_about_different_things_are_not_reported():
    """Sun and Moon share a frame, not a fact."""
    first = numeric(
        "x", proposition="The Sun is on average <value> million kilometres from Earth.", conversation=talk(LONG)
    )
    second = numeric("y", proposition="The Moon is on average <value> kilometres from Earth.", conversation=talk(OTHER))
    assert list(no_near_duplicates([first, second])) == []


def test_a_short_frame_is_not_compared_alone():
    """`It is …` says nothing about what is asked."""
    first = binary("x", proposition="It is <pivotal>dawn/dusk</pivotal> here.", conversation=talk(LONG))
    second = binary("y", proposition="It is <pivotal>iron/tin</pivotal> here.", conversation=talk(OTHER))
    assert list(no_near_duplicates([first, second])) == []


def test_thresholds_leave_room_for_chance():
    """Documented in docs/data.md; a change moves what people see."""
    assert (CONVERSATIONS, PROPOSITIONS) == (0.1, 0.6)
