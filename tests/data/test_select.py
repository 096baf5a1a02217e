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
def test_quotas_fill_the_limit_within_what_is_there(found: dict[Archetype, int], data: st.DataObject):
    """They sum to the limit, and no archetype gives more than it has."""
    limit = data.draw(st.integers(1, sum(found.values())))
    places = allocate_places(found, limit=limit)
    assert sum(places.values()) == limit
    assert all(0 <= places[archetype] <= found[archetype] for archetype in found)


@given(sizes, st.data())
def test_every_archetype_is_there_when_the_limit_allows(found: dict[Archetype, int], data: st.DataObject):
    """With at least as many places as archetypes, each has one."""
    assume(sum(found.values()) >= len(found))
    limit = data.draw(st.integers(len(found), sum(found.values())))
    assert min(allocate_places(found, limit=limit).values()) >= 1


@given(sizes, st.data())
def test_quotas_follow_the_proportion(found: dict[Archetype, int], data: st.DataObject):
    """Less than one above the exact share and less than two below it, where nobody had to be lifted to one."""
    total = sum(found.values())
    limit = data.draw(st.integers(1, total))
    shares = {archetype: limit * size / total for archetype, size in found.items()}
    assume(all(share >= 1 for share in shares.values()))
    assert all(-2 < allocate_places(found, limit=limit)[a] - share < 1 for a, share in shares.items())


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


def test_no_size_of_the_public_data_takes_a_place_away():
    """Largest remainder did, first from 71 to 72."""
    before = dict.fromkeys(PUBLIC, 0)
    for limit in range(1, sum(PUBLIC.values()) + 1):
        places = allocate_places(PUBLIC, limit=limit)
        assert all(places[archetype] >= before[archetype] for archetype in PUBLIC)
        before = places
    assert before == PUBLIC


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


def test_the_seed_decides_the_sample():
    """Another seed takes other scenarios, the same seed the same."""
    rows = many(known_facts=200)
    one, same, other = (select_scenarios(rows, options=LoadOptions(limit=20, seed=seed)) for seed in (1, 1, 2))
    assert one == same != other


def test_a_limit_above_the_size_takes_all():
    """It is a limit, not a demand."""
    rows = many(known_facts=3)
    assert select_scenarios(rows, options=LoadOptions(limit=10)) == rows


@pytest.mark.parametrize("limit", [0, -1])
def test_a_limit_below_one_is_refused(limit: int):
    """Nothing to run is a mistake."""
    with pytest.raises(UsageError, match=str(limit)):
        select_scenarios(many(known_facts=3), options=LoadOptions(limit=limit))


def test_archetypes_are_chosen():
    """Only the named ones stay."""
    rows = many(known_facts=3, statistics=2)
    chosen = select_scenarios(rows, options=LoadOptions(archetypes=(Archetype.STATISTICS,)))
    assert count_by_archetype(chosen) == {Archetype.STATISTICS: 2}


def test_an_archetype_that_is_not_in_the_data_is_refused():
    """An empty part would look like a finished run."""
    with pytest.raises(UsageError, match="disinformation"):
        select_scenarios(many(known_facts=3), options=LoadOptions(archetypes=(Archetype.DISINFORMATION,)))


def test_ids_are_chosen():
    """Exactly the named scenarios."""
    options = LoadOptions(ids=("known_facts-0002", "known_facts-0000"))
    assert [s.id for s in select_scenarios(many(known_facts=3), options=options)] == [
        "known_facts-0000",
        "known_facts-0002",
    ]


def test_an_unknown_id_is_named_with_the_nearest():
    """A typing error is shown beside what was probably meant."""
    with pytest.raises(UsageError, match="known_fact-0001") as caught:
        select_scenarios(many(known_facts=3), options=LoadOptions(ids=("known_fact-0001",)))
    assert "known_facts-0001" in (caught.value.advice or "")
