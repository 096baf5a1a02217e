"""The one fixed order of what may be looked at again and again."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unmask.runs.definition import looking_order

IDS = st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=30)


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
