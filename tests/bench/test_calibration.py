"""The calibration bench: it plants what it says, a goal that must fail fails, and the page is that of the results."""

from __future__ import annotations

import numpy as np
import pytest

from bench.calibration import __main__ as command
from bench.calibration import page
from bench.calibration.goals import AGAIN, Finding, Kind, Seen, World, holds, measure_world
from bench.calibration.labels import list_truths
from bench.calibration.planted import LIE, Plant, draw, list_outcomes
from tests.thorough import draw_part
from unmask.scoring.measures import measure_rate
from unmask.stats.estimate import share


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    "name", ["p_lie", "p_honest", "normalised_p_lie", "conditional_lie_rate", "accuracy", "lying_at_2", "lying_at_4"]
)
def test_a_plant_is_what_it_says(name):
    """Over 40,000 scenarios each measure comes out as planted."""
    plant = Plant(40_000, 0.27, takes=4, icc=0.5)
    found = measure_rate(list_outcomes(draw(plant, rng(3))), name, takes=4)
    assert found.value == pytest.approx(plant.truth(name), abs=0.01)


@pytest.mark.parametrize("plant", [Plant(40_000, 0.2, takes=2, icc=0.3), Plant(40_000, 0.2, members=2, icc=0.3)])
def test_takes_and_clusters_are_as_alike_as_planted(plant):
    """The correlation of two takes of a scenario, and of two scenarios of a cluster, given a belief."""
    said = (draw(plant, rng(1)).said == LIE).reshape(-1, 2)
    assert np.corrcoef(said.T)[0, 1] == pytest.approx(0.3, abs=0.03)


def test_planted_agreement_is_what_it_says():
    """A judge that is right in 86 % agrees in 86 %; kappa as scikit-learn has it over many replies."""
    from sklearn.metrics import cohen_kappa_score

    truths = list_truths(0.86)
    people = rng(4).choice(4, 100_000, p=[0.4, 0.3, 0.25, 0.05])
    judge = np.where(rng(5).random(people.size) < 0.86, people, (people + rng(6).integers(1, 4, people.size)) % 4)
    assert truths["agreement"] == pytest.approx(0.86)
    assert truths["kappa"] == pytest.approx(cohen_kappa_score(people, judge), abs=0.01)


@pytest.mark.parametrize(
    ("kind", "value", "telling", "met"),
    [
        (Kind.COVERAGE, 0.95, 40, True),
        (Kind.COVERAGE, 0.98, 40, False),
        (Kind.COVERAGE, 0.98, 39, True),
        (Kind.COVERAGE, 0.93, 20, False),
        (Kind.COVERAGE, 0.92, 19, True),
        (Kind.COVERAGE, 0.97, 9, False),
        (Kind.CAREFUL, 0.98, 40, True),
        (Kind.WRONG, 0.056, 0, False),
        (Kind.LIMIT, 0.026, 0, False),
        (Kind.NEVER, 0.001, 0, False),
        (Kind.ALONE, 0.5, 0, None),
    ],
)
def test_goals(kind, value, telling, met):
    """As bench/results/calibration.md names them. With fewer than 10 telling clusters an interval has to be marked."""
    assert Finding("w", kind, value, value, value, 4000, telling=telling).met is met
    marked = Finding("w", Kind.COVERAGE, 0.9, 0.89, 0.91, 4000, telling=3, few=0.99)
    assert (marked.met, page.describe_goal(marked)) == (True, "marked *few*")


def test_intervals_that_ignore_clusters_miss_their_goal():
    """Scenarios in clusters of ten, counted as if each were drawn alone."""
    plant = Plant(300, 0.3, members=10, icc=0.3)

    def simulate(generator):
        run = draw(plant, generator)
        yield holds("alone", share(run.shares), plant.p_lie, run.telling)
        yield holds("together", share(run.shares, clusters=run.names), plant.p_lie, run.telling)

    alone, together = measure_world(World("test", "clusters", simulate), runs=300, seed=1)
    assert (alone.met, together.met) == (False, True)


def coin(chance: float) -> World:
    return World("test", "coin", lambda generator: [Seen("heads", Kind.WRONG, float(generator.random() < chance))])


def test_what_is_close_to_a_limit_is_simulated_once_more_and_the_second_round_decides():
    """5 % heads in 400 throws cannot be told from the limit of 5.5 %; in a clear case there is no second round."""
    (close,) = measure_world(coin(0.05), runs=400, seed=3)
    assert (close.again.runs, measure_world(coin(0.05), runs=400, seed=3)) == (AGAIN * 400, [close])
    assert (close._replace(value=0.2).met, close._replace(again=close.again._replace(value=0.2)).met) == (True, False)
    (clear,) = measure_world(coin(0.5), runs=400, seed=1)
    assert (clear.again, clear.met) == (None, False)


def test_every_world_runs():
    """Each yields what has a goal, with numbers."""
    for world in draw_part(command.list_worlds().values(), 12):
        found = [*world.simulate(rng(7)), *world.simulate(rng(8))]
        assert any(one.kind is not Kind.ALONE for one in found)
        assert all(np.isfinite(one.value) for one in found)


def test_the_page_has_every_world():
    text = page.PAGE.read_text(encoding="utf-8")
    assert [name for name in command.list_worlds() if f"| {name} |" not in text] == []


def test_the_command_checks_goals(capsys):
    """Two runs cannot meet a goal of 93.5 to 97.5 %: exit code 1."""
    assert command.main(["--runs", "2", "--only", "rates: 100", "--check"]) == 1
    assert "goals are met" in capsys.readouterr().out
