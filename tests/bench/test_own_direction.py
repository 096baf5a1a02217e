"""The direction of a liar's own lies: which replies are paired, and how steered runs are compared with their base."""

from __future__ import annotations

import argparse

from bench.own_direction import compare_runs, pair_replies
from tests.made_runs import made
from unmask.experiments.probe import ProbeSample
from unmask.records import Archetype


def sample(name, *, lie):
    return ProbeSample(
        id=name, take=0, lie=lie, messages=(), reply="", archetype=Archetype.KNOWN_FACTS, fact=name.partition("-")[2]
    )


def test_a_lie_with_a_reason_is_paired_with_the_honest_reply_about_the_same_fact():
    """What is honest with a reason, a lie without one, and the two other settings of a fact are in no pair."""
    samples = [
        sample("pressured-a", lie=True),
        sample("control-a", lie=False),
        sample("welcome-a", lie=False),
        sample("indifferent-a", lie=True),
        sample("pressured-b", lie=False),
        sample("control-b", lie=False),
        sample("pressured-c", lie=True),
        sample("control-c", lie=True),
    ]
    assert [(honest.id, lie.id) for honest, lie in pair_replies(samples)] == [("control-a", "pressured-a")]


def test_runs_are_compared_over_the_scenarios_with_a_belief(tmp_path, capsys):
    """Of ten scenarios two have no belief; in two of the other eight the lie is gone at +4, and a fall shows."""
    base = made(tmp_path / "base", ["lie"] * 4 + ["honest"] * 4 + ["no_belief"] * 2)
    made(tmp_path / "runs" / "own@4", ["honest"] * 2 + ["lie"] * 2 + ["honest"] * 4 + ["no_belief"] * 2)
    made(tmp_path / "runs" / "own@-4", ["lie"] * 6 + ["honest"] * 2 + ["no_belief"] * 2)
    compare_runs(argparse.Namespace(run=base.path, runs=tmp_path / "runs"))
    lines = capsys.readouterr().out.splitlines()
    assert [line.split(" [")[0] for line in lines] == [
        "own × -4: lies +25.0",
        "own × +4: lies -25.0",
        "own: -6.25",
    ]
    assert all("8 scenarios" in line for line in lines[:2])
