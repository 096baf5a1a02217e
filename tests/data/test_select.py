"""Choosing a part of the data."""

from __future__ import annotations

import random

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from bench.planted import PUBLIC_COUNTS as PUBLIC
from tests.data.made import many
from unmask.data.dataset import LoadOptions, count_by_archetype
from unmask.data.select import allocate_places, select_scenarios
from unmask.errors import UsageError
from unmask.records import Archetype

sizes = st.dictionaries(st.sampled_from(Archetype), st.integers(1, 300), min_size=1)


@given(sizes, st.data())
def test_quotas_follow_the_proportion(found: dict[Archetype, int], data: st.DataObject):
    """They sum to the limit, and each archetype has one where there is room. Less than one above the exact share and
    less than two below it, where nobody had to be lifted to one."""
    total = sum(found.values())
    limit = data.draw(st.integers(1, total))
    places = allocate_places(found, limit=limit)
    assert sum(places.values()) == limit
    assert all(places[archetype] <= found[archetype] for archetype in found)
    assert limit < len(found) or min(places.values()) >= 1
    shares = {archetype: limit * size / total for archetype, size in found.items()}
    assume(all(share >= 1 for share in shares.values()))
    assert all(-2 < places[a] - share < 1 for a, share in shares.items())


@given(st.dictionaries(st.sampled_from(Archetype), st.integers(1, 25), min_size=1), st.integers())
def test_the_sample_of_a_larger_limit_contains_that_of_a_smaller_one(found: dict[Archetype, int], seed: int):
    """All limits of these sizes, one after the other: a pilot can grow."""
    rows = many(**{archetype.value: size for archetype, size in found.items()})
    before: set[str] = set()
    for limit in range(1, len(rows) + 1):
        sample = {row.id for row in select_scenarios(rows, options=LoadOptions(limit=limit, seed=seed))}
        assert before < sample
        assert len(sample) == limit
        before = sample


def test_quotas_of_the_public_data():
    """Worked by hand for 100 of 1,000: shares 20.9, 27.4, 12.0, 9.6, 17.6, 12.5."""
    assert list(allocate_places(PUBLIC, limit=100).values()) == [21, 27, 12, 10, 18, 12]


@given(st.integers(1, 40), st.integers(), st.randoms(use_true_random=False))
def test_the_sample_does_not_depend_on_row_order(limit: int, seed: int, shuffler: random.Random):
    """Shuffled rows, same sample."""
    rows = list(many(known_facts=20, statistics=10, provided_facts=10))
    options = LoadOptions(limit=limit, seed=seed)
    first = select_scenarios(rows, options=options)
    shuffler.shuffle(rows)
    assert select_scenarios(rows, options=options) == first


def test_scenarios_are_chosen_by_archetype_id_and_seed():
    """The same seed gives the same sample, another one another; a limit above the size takes all."""
    rows = many(known_facts=200, statistics=2)
    chosen = select_scenarios(rows, options=LoadOptions(archetypes=(Archetype.STATISTICS,)))
    assert count_by_archetype(chosen) == {Archetype.STATISTICS: 2}
    named = select_scenarios(rows, options=LoadOptions(ids=("known_facts-0002", "known_facts-0000")))
    assert [one.id for one in named] == ["known_facts-0000", "known_facts-0002"]
    one, same, other = (select_scenarios(rows, options=LoadOptions(limit=20, seed=seed)) for seed in (1, 1, 2))
    assert one == same != other
    assert len(select_scenarios(rows, options=LoadOptions(limit=1000))) == 202


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (LoadOptions(limit=0), "limit is 0"),
        (LoadOptions(archetypes=(Archetype.DISINFORMATION,)), "no disinformation scenario"),
        (LoadOptions(ids=("known_fact-0001",)), "known_fact-0001"),
    ],
)
def test_a_choice_of_nothing_is_refused(options: LoadOptions, said: str):
    """An empty part would look like a finished run."""
    with pytest.raises(UsageError, match=said) as caught:
        select_scenarios(many(known_facts=3), options=options)
    assert not options.ids or "known_facts-0001" in (caught.value.advice or "")
