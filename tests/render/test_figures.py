"""`unmask figure`: every figure in every format, the colours, and what cannot be drawn."""

from __future__ import annotations

import itertools
import re
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.cli.terminal import unmask as command
from tests.render.colour_sight import SIGHT, apart, contrast
from tests.render.made_runs import small_run, subject
from tests.thorough import THOROUGH
from unmask.errors import MissingError, UsageError
from unmask.models.scripted import Scripted
from unmask.records import Verdict
from unmask.render import colours, words
from unmask.render.figures.across import draw_board, draw_forest
from unmask.render.figures.figures import FIGURES, figure
from unmask.render.figures.plots import FigureInputs, figure_style, make_figure, place_labels
from unmask.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAGIC = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("figures")
    honest = Scripted(lambda request: subject(request).replace("not lit, as", "lit, as"), name="scripted/upright")
    return small_run(folder / "keeper", takes=3), small_run(folder / "upright", takes=3, model=honest)


def given(*runs: Run) -> FigureInputs:
    return FigureInputs(tuple(runs), None, None, None)


def sources(name: str, runs: tuple[Run, Run]) -> list[str | Run]:
    return ["published"] if name == "scaling" else list(runs)


def texts(drawing: Figure) -> list[str]:
    """Everything written in a figure."""
    from matplotlib.text import Text

    return [found.get_text() for found in drawing.findobj(Text) if found.get_text()]


FORMATS = [(name, ending) for name in FIGURES for ending in MAGIC if THOROUGH or ending == ".svg" or name == "board"]


@pytest.mark.parametrize(("name", "ending"), FORMATS)
def test_every_figure_in_every_format(name, ending, runs, tmp_path):
    """Each is written as what its name ends in, and the same data give the same SVG: no date and no random name. What
    writes an SVG is one function for all; in a thorough run each figure is drawn twice."""
    out = figure(name, sources(name, runs), tmp_path / f"{name}{ending}")
    assert out.read_bytes().startswith(MAGIC[ending])
    if ending == ".svg" and (THOROUGH or name == "board"):
        again = figure(name, sources(name, runs), tmp_path / "again.svg")
        assert again.read_bytes() == out.read_bytes()


@pytest.mark.parametrize("name", ["outcomes", "honesty-accuracy", "archetypes", "lying-at-k", "board"])
def test_one_run_is_enough(name, runs, tmp_path):
    """Everything but a comparison can be drawn of one run."""
    assert figure(name, [runs[0]], tmp_path / "one.svg").stat().st_size > 1000


def test_letters_are_paths(runs, tmp_path):
    """A figure needs no font where it is shown."""
    text = figure("outcomes", [runs[0]], tmp_path / "a.svg").read_text(encoding="utf-8")
    assert "<text" not in text
    assert "<path" in text


def test_verdicts_have_their_colours(runs, tmp_path):
    """The bars are in the colours of the report."""
    text = figure("outcomes", [runs[0]], tmp_path / "a.svg").read_text(encoding="utf-8")
    for verdict in (Verdict.HONEST, Verdict.LIE):
        assert colours.VERDICTS[verdict].light in text


def test_forest_says_value_and_interval(runs):
    """Each row has its number, with n, and the runs are named."""
    with figure_style():
        found = texts(draw_forest(given(*runs)))
    assert "upright against keeper" in found
    assert any(re.fullmatch(r"−\d+\.\d \[−\d+\.\d, [−+]\d+\.\d\] few", text) for text in found)
    assert "all  (n = 6)" in found


def test_names_of_models_are_never_formulas(runs, tmp_path):
    """A dollar sign in a name is a dollar sign."""
    odd = Scripted(subject, name="scripted/$\\frac{a$<b>&")
    run = small_run(tmp_path / "odd$_$", model=odd)
    with figure_style():
        found = texts(draw_board(given(run, runs[0])))
    assert any("$\\frac{a$<b>&" in text for text in found)
    assert figure("board", [run, runs[0]], tmp_path / "a.svg").exists()


def test_lying_at_k_needs_several_takes(tmp_path):
    """One take has no curve, and the error says what to run."""
    with pytest.raises(UsageError, match="no run has several takes"):
        figure("lying-at-k", [small_run(tmp_path / "one")], tmp_path / "a.svg")


def test_forest_needs_two_runs(runs, tmp_path):
    """There is nothing to compare one run with."""
    with pytest.raises(UsageError, match="compares runs"):
        figure("forest", [runs[0]], tmp_path / "a.svg")


def test_unknown_endings_are_refused_before_anything_is_drawn(runs, tmp_path):
    """The error names the endings that work."""
    with pytest.raises(UsageError, match=r"a\.gif") as error:
        figure("outcomes", [runs[0]], tmp_path / "a.gif")
    assert ".svg, .png, .pdf" in str(error.value.advice)


@pytest.mark.parametrize(("which", "shown"), [("forest", "P(honest)"), ("board", "P(honest)")])
def test_a_figure_shows_the_measure_that_is_asked_for(runs, which, shown):
    """On its axis; P(lie) unless asked."""
    assert shown in figure(which, list(runs), measure="p_honest").svg


def test_a_figure_of_no_measure_refuses_one(runs):
    """It would be ignored."""
    with pytest.raises(UsageError, match="outcomes") as error:
        figure("outcomes", [runs[0]], measure="p_honest")
    assert "forest and board" in str(error.value.advice)


def test_scaling_of_runs_needs_compute(runs, tmp_path):
    """Compute is given as a file, or asked for."""
    with pytest.raises(UsageError, match="training compute") as error:
        figure("scaling", list(runs), tmp_path / "a.svg")
    assert "--compute" in str(error.value.advice)


def test_scaling_of_runs_says_why_there_is_nothing_to_draw(runs, tmp_path):
    """Two models have no rank correlation."""
    (tmp_path / "c.csv").write_text("model,flop\nkeeper,1e20\nupright,1e21\n", encoding="utf-8")
    with pytest.raises(UsageError, match="models have both values; 4 are needed"):
        figure("scaling", list(runs), tmp_path / "a.svg", compute=tmp_path / "c.csv")


def test_matplotlib_is_named_where_it_is_missing(runs, tmp_path, monkeypatch):
    """Without the extra the error says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(MissingError) as error:
        figure("outcomes", [runs[0]], tmp_path / "a.svg")
    assert "unmask[figures]" in str(error.value.advice)


def test_command_writes_a_figure(runs, tmp_path: Path):
    """`unmask figure NAME RUN --out FILE` names the file it wrote."""
    done = command("figure", "archetypes", str(runs[0].path), "--out", "a.png", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "a.png\n"), done.stderr


# --- colours


@pytest.mark.parametrize("sight", SIGHT)
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_verdicts_can_be_told_apart(sight, theme):
    """Every pair of verdict colours, for the usual eye and the three kinds of colour blindness."""
    paints = [getattr(paint, theme) for paint in colours.VERDICTS.values()]
    assert min(apart(a, b, sight) for a, b in combinations(paints, 2)) > 0.1


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_can_be_read(theme):
    """Text of first and second rank has at least 4.5 to 1 on its ground."""
    ground = getattr(colours.GROUND, theme)
    assert all(contrast(getattr(paint, theme), ground) >= 4.5 for paint in (colours.INK, colours.MUTED))


@pytest.mark.parametrize("colour", colours.SERIES)
def test_runs_do_not_look_like_verdicts(colour):
    """No run is drawn in the colour of honest or lie."""
    assert min(apart(colour, colours.VERDICTS[one].light, "usual") for one in (Verdict.HONEST, Verdict.LIE)) > 0.1


def test_all_verdicts_are_named():
    """Nothing lacks a colour or a name."""
    assert set(colours.VERDICTS) == set(words.NAMES) == set(Verdict)


def test_labels_of_crowded_points_do_not_cover_each_other():
    """Seven points within a few percent, as archetypes often are: every label stands free of the others."""
    from matplotlib.text import Annotation, Text

    names = ("all", "known facts", "doubling down", "statistics", "continuations", "disinformation")
    spots = ((94, 58.7), (94, 58), (94, 62), (96, 52), (96, 54), (90, 64))
    with figure_style():
        drawing = make_figure(4.4, 4.1)
        axes = drawing.add_subplot()
        axes.set_xlim(0, 100)
        axes.set_ylim(0, 100)
        place_labels(axes, [(x, y, name) for (x, y), name in zip(spots, names, strict=True)])
        drawing.draw_without_rendering()
        labels = [one for one in axes.texts if isinstance(one, Annotation)]
        boxes = {one.get_text(): Text.get_window_extent(one) for one in labels}
    assert set(boxes) == set(names)
    pairs = itertools.combinations(boxes, 2)
    assert [(a, b) for a, b in pairs if boxes[a].overlaps(boxes[b])] == []
