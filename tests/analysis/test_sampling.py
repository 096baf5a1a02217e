"""What people are asked to read: the judge's lies and the others in turn, and what each label then counts for."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.analysis.labelled import also_read, dataset, made
from unmask.analysis.label_session import label
from unmask.analysis.sampling import choose_scenarios, join_strata, weigh_labelled
from unmask.errors import UsageError
from unmask.stats.corrected import Labelled, correct_rate

SCENARIOS = [f"s{place:03}" for place in range(300)]


def ids(items):
    return list(dict.fromkeys(item.scenario.id for item in items))


@pytest.mark.parametrize(
    ("lies", "expected"), [(30, (30, 120)), (400, (75, 75)), (880, (130, 20)), (0, (0, 150)), (900, (150, 0))]
)
def test_half_are_lies_of_the_judge_as_far_as_there_are_so_many(lies, expected):
    chosen = choose_scenarios({f"{place}": place < lies for place in range(900)}, size=150, seed=0)
    own = sum(int(name) < lies for name in chosen)
    assert (own, len(chosen) - own) == expected


@settings(deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=60), st.integers(1, 70), st.integers(0, 9))
def test_a_later_stop_and_a_grown_run_leave_what_was_chosen_in_order(verdicts, size, seed):
    """More are added to those that were read before. In a run that grew, each stratum goes on in the same order."""
    lies = {f"s{place}": lie for place, lie in enumerate(verdicts)}
    first = choose_scenarios(lies, size=size, seed=seed)
    assert len(first) == min(size, len(lies))
    assert set(first) <= set(choose_scenarios(lies, size=size + 5, seed=seed))
    grown = lies | {f"new{place}": place % 2 == 0 for place in range(20)}
    later = set(choose_scenarios(grown, size=2 * len(grown), seed=seed))
    assert later == grown.keys()


def test_the_order_does_not_tell_what_the_judge_says():
    """The verdicts of neighbours are as often alike as not."""
    lies = {name: place < 150 for place, name in enumerate(SCENARIOS)}
    alike = []
    for seed in range(40):
        chosen = choose_scenarios(lies, size=100, seed=seed)
        alike += [lies[one] == lies[other] for one, other in pairwise(chosen)]
    assert np.mean(alike) == pytest.approx(0.495, abs=0.03)


def test_a_stratum_without_a_label_is_counted_with_what_the_judge_reads_alike():
    """Four lies that the first judge does not see are counted with the two labelled ones that it does."""
    strata = dict.fromkeys("ab", ("lie", True)) | dict.fromkeys("cdef", ("lie", False)) | {"g": ("no lie", False)}
    assert weigh_labelled(strata, "abg") == {"a": 3.0, "b": 3.0, "g": 1.0}


@pytest.mark.parametrize(
    ("lie", "first", "second"), [(0.3, (0.12, 0.1), (0.05, 0.05)), (0.1, (0.12, 0.1), (0.03, 0.1))]
)
def test_labels_stay_good_when_the_run_grows_and_another_judge_reads_it(lie, first, second):
    """150 labels chosen by one judge on 500 scenarios. Then there are 1,000, and another judge is corrected."""
    rng = np.random.default_rng(5)
    values, held = [], []
    for seed in range(200):
        true = rng.random(1000) < lie
        a, b = (true ^ (rng.random(1000) < np.where(true, missed, false)) for false, missed in (first, second))
        chosen = choose_scenarios({str(place): bool(a[place]) for place in range(500)}, size=150, seed=seed)
        strata = {str(place): ("lie" if b[place] else "no lie", bool(a[place])) for place in range(1000)}
        joined, read = join_strata(strata, chosen), set(chosen)
        found = correct_rate(
            [
                Labelled(float(b[int(name)]), float(true[int(name)]) if name in read else None, joined[name])
                for name in strata
            ]
        )
        values.append(found.value)
        held.append(found.low <= lie <= found.high)
    assert abs(np.mean(values) - lie) < 4 * np.std(values) / np.sqrt(len(values))
    assert np.mean(held) > 0.92


def test_what_only_another_judge_reads_can_be_labelled(tmp_path):
    run = made(tmp_path / "run", dataset(20), lies={1}, unread=set(range(10, 20)))
    assert len(ids(label(run))) == 10
    assert len(ids(label(also_read(run, set(), name="scripted/second")))) == 20


def test_probes_come_before_the_statement_of_their_scenario(tmp_path):
    """The numeric belief is one item of all its takes."""
    run = made(tmp_path / "run", dataset(6, numeric={0, 1}), lies={1})
    items = label(run, size=6, probes=True)
    belief = next(item for item in items if item.slot == "direct")
    assert belief.scenario.id in {"s000", "s001"}
    assert len(belief.texts) == 3
    assert sum(item.slot == "pressured" for item in items) == 6


def test_a_run_without_beliefs_has_nothing_to_label(tmp_path):
    run = made(tmp_path / "run", dataset(4), lies=set(), beliefless={0, 1, 2, 3})
    with pytest.raises(UsageError, match="no reply that a label could change"):
        label(run)


def test_a_size_of_none_is_refused(tmp_path):
    run = made(tmp_path / "run", dataset(4), lies=set())
    with pytest.raises(UsageError, match="--size 0 is too small"):
        label(run, size=0)
