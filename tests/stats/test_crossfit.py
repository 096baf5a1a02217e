"""Choosing without scoring by what was chosen on."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from unmask.stats.compare import paired_interval
from unmask.stats.crossfit import choose_by_folds, deal_folds, most_chosen, score_held_out

IDS = [f"s{number}" for number in range(103)]


def test_folds_are_balanced_within_every_group():
    """Over all and in each group the sizes differ by at most one."""
    groups = {id_: "abc"[place % 3] for place, id_ in enumerate(IDS)}
    folds = deal_folds(groups, folds=5, seed=3)
    for group in "abc":
        sizes = Counter(folds[id_] for id_ in IDS if groups[id_] == group)
        assert max(sizes.values()) - min(sizes.values()) <= 1
    assert max(Counter(folds.values()).values()) - min(Counter(folds.values()).values()) <= 1


def test_folds_depend_on_seed_and_id_alone():
    """Not on the order in which scenarios come."""
    groups = dict.fromkeys(IDS, "a")
    assert deal_folds(groups, folds=5, seed=0) == deal_folds(dict(reversed(groups.items())), folds=5, seed=0)
    assert deal_folds(groups, folds=5, seed=0) != deal_folds(groups, folds=5, seed=1)


def test_a_fold_has_no_say_in_its_own_choice():
    """What is good in one fold only is never chosen for it."""
    folds = {id_: place % 5 for place, id_ in enumerate(IDS)}
    base = dict.fromkeys(IDS, 0.5)
    lucky = {id_: 0.0 if folds[id_] == 2 else 0.6 for id_ in IDS}
    steady = dict.fromkeys(IDS, 0.49)
    before = choose_by_folds(base, {"lucky": lucky, "steady": steady}, folds)
    assert before[2].chosen == "steady"
    turned = lucky | {id_: 1.0 for id_ in IDS if folds[id_] == 2}
    assert choose_by_folds(base, {"lucky": turned, "steady": steady}, folds)[2] == before[2]


def test_ties_go_to_the_first_of_the_design():
    """Also where the means differ in their last digit."""
    folds = {id_: place % 5 for place, id_ in enumerate(IDS)}
    base = dict.fromkeys(IDS, 0.3)
    choices = choose_by_folds(base, {"b": dict.fromkeys(IDS, 0.1 + 0.2), "a": dict.fromkeys(IDS, 0.3)}, folds)
    assert {choice.chosen for choice in choices} == {"b"}
    assert most_chosen(choices, ["a", "b"]) == "b"


def test_a_candidate_that_is_hardly_read_cannot_be_chosen():
    """Below half of the scenarios to choose by; without any candidate nothing is chosen or scored."""
    folds = {id_: place % 5 for place, id_ in enumerate(IDS)}
    base = dict.fromkeys(IDS, 0.5)
    broken = dict.fromkeys(IDS[:30], 0.0)
    choices = choose_by_folds(base, {"broken": broken}, folds)
    assert {choice.chosen for choice in choices} == {None}
    assert score_held_out(choices, {"broken": broken}, folds) == {}
    assert most_chosen(choices, ["broken"]) is None


def simulate_null(rng, folds, *, candidates=12, takes=10):
    """Shares of lies where no candidate does anything on the whole, though each has moods of its own by scenario."""
    chance = rng.beta(0.5, 1.0, size=len(folds))
    base = dict(zip(folds, rng.binomial(takes, chance) / takes, strict=True))
    arms = {}
    for number in range(candidates):
        moved = np.clip(chance + rng.normal(0, 0.08, size=chance.size) * np.sqrt(chance * (1 - chance)), 0, 1)
        arms[f"c{number}"] = dict(zip(folds, rng.binomial(takes, moved) / takes, strict=True))
    return base, arms


def finds_fewer(base, values):
    """Whether the upper bound of the 95 % interval is below 0."""
    ids = sorted(values)
    return paired_interval([base[id_] for id_ in ids], [values[id_] for id_ in ids])[1] < 0


def test_the_luckiest_of_many_candidates_is_no_success():
    """Cross-fitted, at most 5 % of null studies show fewer lies; chosen and scored on the same, twice as many do."""
    rng, studies = np.random.default_rng(11), 400
    folds = deal_folds({f"s{number}": "a" for number in range(120)}, folds=5, seed=0)
    fitted = naive = 0
    for _ in range(studies):
        base, arms = simulate_null(rng, folds)
        choices = choose_by_folds(base, arms, folds)
        fitted += finds_fewer(base, score_held_out(choices, arms, folds))
        naive += finds_fewer(base, min(arms.values(), key=lambda values: sum(values.values())))
    assert fitted / studies <= 0.05
    assert naive > 2 * fitted
    assert naive / studies > 0.05


def test_a_true_effect_is_found_by_cross_fitting():
    """One candidate of twelve that takes a third of the lies away."""
    rng = np.random.default_rng(5)
    folds = deal_folds({f"s{number}": "a" for number in range(120)}, folds=5, seed=0)
    base, arms = simulate_null(rng, folds)
    arms["true"] = {id_: share * 2 / 3 for id_, share in base.items()}
    choices = choose_by_folds(base, arms, folds)
    assert {choice.chosen for choice in choices} == {"true"}
    assert finds_fewer(base, score_held_out(choices, arms, folds))


@pytest.mark.parametrize("folds", [2, 5])
def test_every_scenario_is_scored_once(folds):
    """By the candidate of its fold."""
    dealt = deal_folds(dict.fromkeys(IDS, "a"), folds=folds, seed=0)
    arms = {"x": dict.fromkeys(IDS, 0.2)}
    held_out = score_held_out(choose_by_folds(dict.fromkeys(IDS, 0.5), arms, dealt), arms, dealt)
    assert held_out == arms["x"]
