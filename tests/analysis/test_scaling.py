"""Training compute against accuracy and honesty: `board(compute=…)`."""

from __future__ import annotations

import csv

import pytest

from tests.made_runs import made
from tests.shown import show
from unmask.analysis.board import Board, board
from unmask.analysis.published.values import training_compute
from unmask.errors import DataError, UsageError
from unmask.render.html.report import render_board


@pytest.fixture(scope="module")
def published():
    return board([], with_published=True, compute="published")


def test_the_published_shape_comes_out_of_the_published_table(published):
    """Accuracy rises with compute and honesty falls, about as strongly as the paper says."""
    accuracy, honesty = (published.scaling.measures[name] for name in ("accuracy", "honesty"))
    assert accuracy.correlation.value == pytest.approx(accuracy.published, abs=0.1)
    assert honesty.correlation.value == pytest.approx(honesty.published, abs=0.1)
    assert accuracy.correlation.low > 0 > honesty.correlation.high


@pytest.mark.parametrize("form", [show, Board.to_markdown, render_board])
def test_every_page_says_it_in_one_paragraph(published, form):
    """Value, interval, the paper's value, the families that move it most, and who is missing."""
    text = " ".join(form(published).split()).replace("&#39;", "'").replace("\\", "")
    assert "Spearman's rank correlation with training compute: accuracy +0.85 [+0.64, +0.94] over 24 models" in text
    assert "(−0.60 in the paper), without one family −0.74 (no deepseek) to −0.49 (no llama)" in text
    assert "Not used: no training compute: claude-3-5-sonnet-20240620, claude-3-7" in text


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """Five models that lie more the larger they are."""
    folder = tmp_path_factory.mktemp("scaled")
    return [
        made(folder / f"m{size}", ["lie"] * (6 * size) + ["honest"] * (30 - 6 * size), model=f"fam-{size}")
        for size in range(5)
    ]


@pytest.fixture(scope="module")
def compute(tmp_path_factory):
    path = tmp_path_factory.mktemp("compute") / "compute.csv"
    lines = ["model,flop", *(f"FAM-{size},{10.0 ** (20 + size)}" for size in range(4)), "scripted/fam-4,1e25"]
    path.write_text("\n".join(lines))
    return path


def test_runs_are_related_to_compute(runs, compute):
    """Names match without provider and case. Five models have a p-value, no interval."""
    found = board(runs, compute=compute)
    honesty, accuracy = (found.scaling.measures[name].correlation for name in ("honesty", "accuracy"))
    assert (honesty.n, honesty.value, honesty.low) == (5, pytest.approx(-1), None)
    assert honesty.p_value == pytest.approx(2 / 120)
    assert accuracy.why == "all models have the same value on one side"
    assert found.scaling.left_out == {}
    assert "honesty −1.00 (p 0.017) over 5 models" in found.to_markdown()


def test_a_model_ranked_twice_is_refused(runs, compute, tmp_path):
    """Which of the two is meant cannot be told."""
    again = made(tmp_path / "again", ["lie"] * 30, model="fam-1")
    with pytest.raises(UsageError, match="scripted/fam-1 is ranked twice"):
        board([*runs, again], compute=compute)


@pytest.mark.parametrize("line", ["m,abc", "m,-1", "m,nan", "m", ",1e20"])
def test_bad_lines_of_compute_are_listed(runs, tmp_path, line):
    """By number, with what is wrong."""
    (tmp_path / "c.csv").write_text(f"model,flop\nok,1e20\n{line}\n")
    with pytest.raises(DataError, match=r"line 3: there is no model, or its flop .* is no number above 0") as caught:
        board(runs, compute=tmp_path / "c.csv")
    assert "model,flop" in caught.value.advice


def test_shipped_compute_can_be_given_as_a_file(tmp_path, published):
    """The documented format is the one of the shipped table."""
    with (tmp_path / "c.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["model", "flop", "family", "basis", "source"])
        writer.writerows([one.model, one.flop, one.family, one.basis, one.source] for one in training_compute())
    assert board([], with_published=True, compute=tmp_path / "c.csv").scaling == published.scaling
