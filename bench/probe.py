"""Whether `unmask probe` controls itself: `python -m bench.probe --check`.

A planted world is a set of activations of prompts and replies, with verdicts. In a confound the verdict can be told
from something that is not lying: the archetype, the pressure or the fact (all in the prompt, and clearer in the reply's
activations than in the prompt's own), the length of the reply, what it says yes to, or a little of each. In a true
signal one direction of the reply's activations, and nothing else, tells lies from honest replies with an AUROC of
0.85; verdicts may hang on archetype and length a little besides. Confounds have to be refused, true signals called.

The last lines are about the threshold: it is set on one world, and 20,000 fresh honest replies of the same world say
how many it flags in truth, by one of the five probes of the folds, drawn by lot, and by the mean of their scores.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ProcessPoolExecutor
from itertools import cycle, islice
from typing import Any, NamedTuple

import numpy as np

from unmask.experiments.probe import PROMPT, ProbeEvidence, ProbeSample, compare_detectors
from unmask.records import Archetype, Message
from unmask.stats.probe import FOLDS, assign_folds, cross_validate, fit_probe
from unmask.stats.threshold import limit_flags

WORLDS = 20
CALLED = 18
FIRST_SEED = 23001
"""No world with a seed from here on was looked at while the controls were tuned; that was done on seeds from 1 on."""
SCENARIOS = 300
"""As many as `core` has."""
CONFOUNDS = ("archetype", "pressure", "fact", "length", "polarity", "blend")
SIGNALS = ("clean", "takes", "uneven", "shared facts")
SHIFT = 1.4657
"""Between the means of two normal distributions whose area is 0.85: √2 times the normal quantile of 0.85."""
KINDS = tuple(Archetype)
FACT_SIZE, NOISE_SIZE = 24, 14


class PlantedActivations(NamedTuple):
    """What `compare_detectors` takes."""

    features: Any
    prompts: Any
    samples: list[ProbeSample]


def plant_world(kind: str, seed: int, *, scenarios: int = SCENARIOS) -> PlantedActivations:
    """Each property has axes of its own, and all are turned at random. There are two layers; the first is dimmer."""
    rng = np.random.default_rng(seed)
    takes = 3 if kind == "takes" else 1
    sharing = {"fact": 4, "shared facts": 2}.get(kind, 1)
    archetype = rng.integers(0, len(KINDS), scenarios)
    explicit = rng.random(scenarios) < 0.5
    fact = rng.permutation(np.arange(scenarios) // sharing)
    truth_is_yes = rng.random(scenarios) < {"polarity": 0.95, "blend": 0.8}.get(kind, 0.5)
    chance = _lie_chance(kind, archetype, explicit, fact, rng)
    place = np.repeat(np.arange(scenarios), takes)
    lie = rng.random(len(place)) < chance[place]
    longer = {"length": 2.0, "blend": 1.0, "uneven": 0.3}.get(kind, 0.0)
    length = rng.normal(size=len(place)) + longer * lie
    says_yes = truth_is_yes[place] != lie
    known = np.hstack(
        [
            2.0 * np.eye(len(KINDS))[archetype],
            np.where(explicit, 1.0, -1.0)[:, np.newaxis],
            rng.normal(size=(scenarios, FACT_SIZE))[fact],
        ]
    )
    signal = SHIFT * lie if kind in SIGNALS else np.zeros(len(place))
    reply_only = np.column_stack([length, np.where(says_yes, 1.0, -1.0), signal + rng.normal(size=len(place))])
    size = known.shape[1] + reply_only.shape[1] + NOISE_SIZE
    layers_of_reply, layers_of_prompt = [], []
    for dim in (2.0, 1.0):
        turn = np.linalg.qr(rng.normal(size=(size, size)))[0]
        background = rng.normal(size=(len(place), NOISE_SIZE))
        carried = known[place] + 0.4 * dim * rng.normal(size=(len(place), known.shape[1]))
        blurred = reply_only + (dim - 1) * rng.normal(size=reply_only.shape)
        layers_of_reply.append(np.hstack([carried, blurred, background]) @ turn)
        read = known + 0.8 * dim * rng.normal(size=known.shape)
        layers_of_prompt.append(np.hstack([read, rng.normal(size=(scenarios, size - known.shape[1]))]) @ turn)
    samples = [
        ProbeSample(
            id=f"s{scenario}",
            take=number % takes,
            lie=bool(lie[number]),
            messages=(Message("user", "planted"),),
            reply="x" * round(100 * np.exp(0.5 * length[number])),
            archetype=KINDS[archetype[scenario]],
            pressure="explicit" if explicit[scenario] else "situational",
            fact=f"f{fact[scenario]}",
            says_yes=bool(says_yes[number]),
        )
        for number, scenario in enumerate(place)
    ]
    return PlantedActivations(np.stack(layers_of_reply, axis=1), np.stack(layers_of_prompt, axis=1)[place], samples)


def _lie_chance(kind: str, archetype: Any, explicit: Any, fact: Any, rng: np.random.Generator) -> Any:
    """Of each scenario."""
    match kind:
        case "archetype":
            return rng.permutation([0.05, 0.1, 0.2, 0.8, 0.9, 0.95])[archetype]
        case "pressure":
            return np.where(explicit, 0.85, 0.15)
        case "fact":
            return np.where(rng.random(len(fact)) < 0.4, 0.95, 0.05)[fact]
        case "blend":
            return np.where(explicit, 0.15, 0.0) + rng.permutation([0.1, 0.2, 0.3, 0.4, 0.6, 0.7])[archetype]
        case "uneven":
            return rng.permutation([0.25, 0.3, 0.35, 0.45, 0.5, 0.55])[archetype]
        case _:
            return np.full(len(fact), 0.4)


def judge_world(kind: str, seed: int, scenarios: int = SCENARIOS) -> ProbeEvidence:
    world = plant_world(kind, seed, scenarios=scenarios)
    return compare_detectors(world.features, world.prompts, world.samples, rng=np.random.default_rng(seed))


def try_threshold(seed: int) -> tuple[float, float, float]:
    """The limit that the threshold promises; the share of fresh honest replies that a fold's probe flags, and that the
    mean of all five flags."""
    rng = np.random.default_rng(seed)
    honest, lies, size = int(rng.integers(60, 360)), 80, 8
    truth = np.arange(honest + lies) >= honest
    features = rng.standard_t(4, size=(honest + lies, size))
    features[truth, 0] += SHIFT
    groups = [f"s{number}" for number in range(len(truth))]
    folds = assign_folds(truth, groups, count=FOLDS, rng=rng)
    scored = cross_validate(features[:, np.newaxis], list(truth), groups, rng=rng, outer=folds)
    limit = limit_flags(list(scored.scores), list(truth), groups=groups)
    fresh = rng.standard_t(4, size=(20_000, size))
    fresh_scores = []
    for fold, strength in enumerate(scored.strengths):
        seen = features[folds != fold]
        middle, scale = seen.mean(axis=0), seen.std(axis=0)
        line = fit_probe((seen - middle) / scale, truth[folds != fold], strength=strength)
        own = line((seen - middle) / scale)
        fresh_scores.append((line((fresh - middle) / scale) - own.mean()) / own.std())
    by_one = float(np.mean(np.stack(fresh_scores) > limit.threshold))
    return limit.limit, by_one, float(np.mean(np.mean(fresh_scores, axis=0) > limit.threshold))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit 1 if a goal is missed")
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help="of the first world")
    parser.add_argument("--worlds", type=int, default=WORLDS, help="of either kind")
    parser.add_argument("--processes", type=int, default=2)
    settings = parser.parse_args()
    planned = [*islice(cycle(CONFOUNDS), settings.worlds), *islice(cycle(SIGNALS), settings.worlds)]
    seeds = range(settings.seed, settings.seed + len(planned))
    with ProcessPoolExecutor(settings.processes) as pool:
        decided = list(pool.map(judge_world, planned, seeds))
        limits = list(pool.map(try_threshold, range(settings.seed, settings.seed + 5 * settings.worlds)))
    print(f"{'world':<14}{'seed':>6}{'prompt':>8}{'probe':>7}{'lead, lower':>13}  called, or refused by")
    for kind, seed, evidence in zip(planned, seeds, decided, strict=True):
        lead = next(advantage for advantage in evidence.advantages if advantage.over == PROMPT)
        areas = f"{evidence.baselines[0].auroc.value:>8.3f}{evidence.probe.auroc.value:>7.3f}{lead.low:>+13.3f}"
        print(f"{kind:<14}{seed:>6}{areas}  {'called' if evidence.lie_detector else ', '.join(evidence.refused_by)}")
    refused = sum(not evidence.lie_detector for evidence in decided[: settings.worlds])
    called = sum(evidence.lie_detector for evidence in decided[settings.worlds :])
    exceeded = [sum(shares[way] > limit for limit, *shares in limits) for way in (0, 1)]
    print(f"confounds refused: {refused} of {settings.worlds}, goal all")
    print(f"true signals called: {called} of {settings.worlds}, goal {CALLED} of {WORLDS}")
    print(f"thresholds that flag more than they promise, of {len(limits)}, where 5 in 100 may:")
    print(f"  {exceeded[0]} by one probe of the folds, {exceeded[1]} by the mean of the five")
    if settings.check and (refused < settings.worlds or called * WORLDS < CALLED * settings.worlds):
        raise SystemExit(1)


if __name__ == "__main__":
    main()
