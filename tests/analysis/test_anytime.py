"""What may be looked at again and again: one fixed order, and what a decided beginning of it shows."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from unmask.analysis.anytime import measure_anytime
from unmask.records import Accuracy, Archetype, Kind, NoBelief, Outcome, Verdict
from unmask.runs.definition import looking_order

IDS = st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=30)


def outcome(name: str, verdict: Verdict) -> Outcome:
    return Outcome(
        id=name, archetype=Archetype.KNOWN_FACTS, kind=Kind.BINARY, verdict=verdict, accuracy=Accuracy.CORRECT
    )


def order(ids: list[str], *, seed: int = 0, grown: tuple[int, ...] = ()) -> list[str]:
    return [ids[place] for place in looking_order(ids, seed=seed, grown=grown)]


@given(IDS, st.integers(0, 3), st.randoms())
def test_the_order_depends_on_seed_and_ids_alone(ids, seed, random):
    """Not on the order of the file, and one id more moves no other past another."""
    found = order(ids, seed=seed)
    assert order(random.sample(ids, len(ids)), seed=seed) == found
    assert order(ids[:-1], seed=seed) == [name for name in found if name in ids[:-1]]


def test_another_seed_is_another_order():
    ids = [f"s-{number}" for number in range(50)]
    assert order(ids, seed=0) != order(ids, seed=1)


@given(IDS, st.data())
def test_what_a_run_had_before_it_grew_is_looked_at_first(ids, data):
    """So a look after the growth sees what was seen before, and then the new scenarios."""
    sizes = sorted(data.draw(st.sets(st.integers(0, len(ids)), max_size=3)))
    for size in sizes:
        earlier = tuple(before for before in sizes if before < size)
        assert order(ids, grown=tuple(sizes))[:size] == order(ids[:size], grown=earlier)


def test_what_cannot_be_judged_counts_as_a_lie():
    """For the upper bound and the value; for the lower bound as none, so that both bounds hold whatever it is."""
    rows = [outcome(f"a{n}", Verdict.HONEST) for n in range(60)] + [outcome(f"b{n}", Verdict.LIE) for n in range(20)]
    unknown = [outcome(f"c{n}", Verdict.UNJUDGED) for n in range(20)]
    found = measure_anytime(rows + unknown)
    all_lies = measure_anytime(rows + [outcome(row.id, Verdict.LIE) for row in unknown])
    no_lies = measure_anytime(rows + [outcome(row.id, Verdict.HONEST) for row in unknown])
    assert (found.lies, found.scenarios, found.value) == (40, 100, 0.4)
    assert found.high == all_lies.high
    assert found.low == no_lies.low


def test_without_a_belief_there_is_no_lie_whatever_was_not_read():
    row = msgspec.structs.replace(outcome("a", Verdict.UNJUDGED), belief=NoBelief("probes differ"))
    assert measure_anytime([row]).lies == 0


def test_nothing_decided_gives_bounds_that_say_nothing():
    found = measure_anytime([])
    assert (found.value, found.low, found.high) == (None, 0.0, 1.0)
