"""The sample for labelling: every scenario can be drawn, and its weight says how likely that was."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from tests.analysis.labelled import also_read, dataset, made
from unmask.analysis.sampling import allocate_sizes, draw_scenarios, load_or_draw_sample, load_sample, sampled_items
from unmask.errors import UsageError
from unmask.records import Archetype

sizes = st.dictionaries(st.sampled_from(["lie", "lie by another judge", "a", "b", "c"]), st.integers(1, 200))


@settings(deadline=None)
@given(sizes, st.integers(1, 300))
def test_allocation_is_complete_and_leaves_no_stratum_out(counts, size):
    """As many as wanted, or all there are; some from each stratum, never more than it has."""
    assume(counts and size >= len(counts))
    found = allocate_sizes(counts, size)
    assert all(1 <= found[name] <= counts[name] for name in counts)
    assert sum(found.values()) == min(size, sum(counts.values())) or all(
        found[name] == min(2, counts[name]) for name in counts
    )


@settings(deadline=None)
@given(sizes, st.integers(1, 300), st.integers(0, 99))
def test_weights_add_up_to_the_scenarios_there_are(counts, size, seed):
    """Within each stratum the drawn stand for all of it."""
    assume(counts and size >= len(counts))
    strata = {name: [f"{name}-{place}" for place in range(count)] for name, count in counts.items()}
    drawn = draw_scenarios(strata, size=size, rng=np.random.default_rng(seed))
    assert len({one.scenario for one in drawn}) == len(drawn)
    for ids in strata.values():
        held = [one.weight for one in drawn if one.scenario in set(ids)]
        assert sum(held) == pytest.approx(len(ids))


@pytest.mark.parametrize(
    ("counts", "expected"),
    [
        ((30, 900), (30, 120)),
        ((400, 500), (75, 75)),
        ((800, 40), (110, 40)),
        ((0, 900), (0, 150)),
    ],
)
def test_half_of_the_sample_are_lies_or_all_of_them(counts, expected):
    """The judge's lies, then the others; what one side lacks the other gets."""
    found = allocate_sizes({name: count for name, count in zip(("lie", "no lie"), counts, strict=True) if count}, 150)
    assert (found.get("lie", 0), found["no lie"]) == expected


def test_lies_of_another_judge_get_half_of_what_is_left():
    """Of 150: 75 for the judge's own, 37 for another's."""
    found = allocate_sizes({"lie": 200, "lie by another judge": 200, "no lie": 600}, 150)
    assert found == {"lie": 75, "lie by another judge": 37, "no lie": 38}


def test_too_small_a_sample_is_refused():
    """A stratum left out could never be corrected for."""
    with pytest.raises(UsageError, match="3 strata"):
        allocate_sizes({"a": 5, "b": 5, "c": 5}, 2)


def test_the_sample_of_a_run_has_the_lies_of_its_judges(tmp_path):
    """Half of it are lies by its judge; of the others, all four that only a second judge calls lies are drawn."""
    kinds = (Archetype.KNOWN_FACTS, Archetype.CONTINUATIONS)
    done = made(tmp_path / "run", dataset(60, archetypes=kinds), lies=set(range(0, 60, 3)), beliefless={58, 59})
    done = also_read(done, {1, 2, 4, 5}, name="scripted/second")
    found = load_or_draw_sample(done, size=24, seed=3)
    assert {name: stratum.scenarios for name, stratum in found.strata.items()} == {
        "lie": 20,
        "lie by another judge": 4,
        "no lie": 34,
    }
    assert [stratum.drawn for stratum in found.strata.values()] == [12, 4, 8]
    weights = {one.scenario: one.weight for one in found.drawn}
    assert [weights[name] for name in ("s001", "s002", "s004", "s005")] == [1.0] * 4


def test_all_lies_of_the_judge_are_drawn_where_they_are_few(tmp_path):
    """Three of sixty: a draw of twenty by size alone would take one."""
    done = made(tmp_path / "run", dataset(60), lies={7, 20, 41})
    found = load_or_draw_sample(done, size=20)
    weights = {one.scenario: one.weight for one in found.drawn}
    assert [weights[name] for name in ("s007", "s020", "s041")] == [1.0, 1.0, 1.0]
    assert found.strata["no lie"].drawn == 17


def test_a_sample_is_drawn_once(tmp_path):
    """The same command gives the same replies in the same order; another wish is refused with what to do."""
    done = made(tmp_path / "run", dataset(20), lies={1})
    first = load_or_draw_sample(done, size=8, seed=1)
    assert load_sample(done) == first == load_or_draw_sample(done)
    assert [item.key for item in sampled_items(done, first)] == [
        item.key for item in sampled_items(done, load_or_draw_sample(done))
    ]
    with pytest.raises(UsageError, match="--size 8, not 9") as caught:
        load_or_draw_sample(done, size=9)
    assert "Leave --size out" in caught.value.advice


def test_probes_are_drawn_with_their_scenario(tmp_path):
    """With probes the numeric belief is one item of all its takes, before the pressured reply it belongs to."""
    done = made(tmp_path / "run", dataset(6, numeric={0, 1}), lies={1})
    items = sampled_items(done, load_or_draw_sample(done, size=6, probes=True))
    belief = next(item for item in items if item.slot == "direct")
    assert belief.scenario.id in {"s000", "s001"}
    assert len(belief.texts) == 3
    assert sum(item.slot == "pressured" for item in items) == 6


def test_a_run_without_replies_has_nothing_to_draw(tmp_path):
    """No belief anywhere: nothing a label could change."""
    done = made(tmp_path / "run", dataset(4), lies=set(), beliefless={0, 1, 2, 3})
    with pytest.raises(UsageError, match="no reply that a label could change"):
        load_or_draw_sample(done)
