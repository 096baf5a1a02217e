"""The sentences that a report of several runs begins with."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.made_runs import made
from unmask.analysis.board import board
from unmask.render.describe.several import order_by_step, state_several


def _board(folder: Path, lies: dict[str, int], **settings):
    return board(
        [
            made(folder / name, ["lie"] * count + ["honest"] * (30 - count), model=name, **settings)
            for name, count in lies.items()
        ]
    )


def test_the_lowest_and_the_highest_run_come_first_and_whether_that_can_be_chance(tmp_path):
    """By model, with intervals."""
    sentences = state_several(_board(tmp_path, {"bold": 27, "shy": 3}))
    assert sentences == [
        "P(lie) is lowest for scripted/shy, 10 % (3 to 26 %),"
        " and highest for scripted/bold, 90 % (74 to 97 %), of 2 runs.",
        "That difference is larger than chance.",
    ]


def test_runs_that_are_alike_are_not_told_apart(tmp_path):
    assert state_several(_board(tmp_path, {"a": 15, "b": 14}))[1] == "That difference could be chance."


def test_checkpoints_are_followed_from_the_first_to_the_last(tmp_path):
    """Where the ends are not the extremes."""
    sentences = state_several(_board(tmp_path, {"step-900": 15, "step-1000": 29, "step-1100": 2}))
    assert sentences[1] == "That difference is larger than chance; of all 3 pairs 3 can be told apart."
    assert sentences[2] == "From scripted/step-900 to scripted/step-1100 it goes from 50 % to 7 %."


def test_a_run_that_is_not_ranked_is_named(tmp_path):
    runs = [made(tmp_path / "a", ["lie"] * 9, model="a"), made(tmp_path / "b", ["lie"] * 9, model="b", takes=2)]
    assert state_several(board(runs))[-1] == "scripted/b is not ranked; the board says why."


@pytest.mark.parametrize(
    ("names", "ordered"),
    [
        (["step-1000", "step-900", "step-20"], ["step-20", "step-900", "step-1000"]),
        (["qwen-7b", "llama-8b", "gemma-2b"], []),
        (["step-1", "step-2"], []),
        (
            ["m/step-2-merged", "m/step-1-merged", "m/step-10-merged"],
            ["m/step-1-merged", "m/step-2-merged", "m/step-10-merged"],
        ),
    ],
)
def test_names_have_steps_where_only_a_number_differs(names, ordered):
    assert order_by_step(names) == ordered
