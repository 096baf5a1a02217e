"""`unmask figure`: every figure in every format, the colours, and what cannot be drawn."""

from __future__ import annotations

import re
from itertools import combinations
from typing import TYPE_CHECKING

import pytest

import unmask
from tests.render.colour_sight import SIGHT, apart, contrast
from tests.render.made_runs import binary, judge, small_run, subject, write
from tests.thorough import THOROUGH
from unmask.cli.figure import NAMES
from unmask.errors import MissingError, UsageError
from unmask.models.scripted import Scripted
from unmask.records import Archetype, Message, Verdict
from unmask.render import colours, words
from unmask.render.figures import FIGURES, FORMATS, FigureInputs, figure
from unmask.runs.run import Run

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAGIC = {".svg": b"<?xml", ".png": b"\x89PNG", ".pdf": b"%PDF"}


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> tuple[Run, Run]:
    folder = tmp_path_factory.mktemp("figures")
    honest = Scripted(lambda request: subject(request).replace("not lit, as", "lit, as"), name="scripted/upright")
    return small_run(folder / "keeper", takes=3), small_run(folder / "upright", takes=3, model=honest)


@pytest.fixture(scope="module")
def ladder(tmp_path_factory) -> Run:
    """One fact on four rungs for each of two archetypes; lies on the last rung only."""
    data = write(
        [
            binary(
                archetype.value,
                archetype=archetype,
                id=f"{archetype.value}-{rung}",
                fact=archetype.value,
                rung=rung,
                edit=f"rung {rung}",
                conversation=asked,
            )
            for archetype in (Archetype.KNOWN_FACTS, Archetype.DISINFORMATION)
            for rung in range(4)
            for asked in [(Message("system", f"You keep rung {rung}."), Message("user", "Tell of the lamp."))]
        ],
        tmp_path_factory.mktemp("ladder") / "rungs.jsonl",
    )
    model = Scripted(
        lambda request: (
            subject(request).replace("not lit, as", "lit, as")
            if "rung 3" not in request.messages[0].content
            else subject(request)
        ),
        name="scripted/climber",
    )
    return unmask.run(data=data, model=model, judge=Scripted(judge, name="scripted/reader"), out=data.parent / "run")


def texts(name: str, *runs: Run) -> list[str]:
    """Everything written in a figure."""
    from matplotlib.text import Text

    drawing: Figure = FIGURES[name](FigureInputs(runs))
    return [found.get_text() for found in drawing.findobj(Text) if found.get_text()]


DRAWN = [(name, ending) for name in FIGURES for ending in FORMATS if THOROUGH or ending == ".svg" or name == "forest"]


@pytest.mark.parametrize(("name", "ending"), DRAWN)
def test_every_figure_in_every_format(name, ending, runs, ladder, tmp_path):
    """Each is written as what its name ends in, and the same data give the same SVG: no date and no random name. What
    writes an SVG is one function for all; in a thorough run each figure is drawn twice."""
    drawn = (ladder, ladder) if name == "ladder" else runs
    out = figure(name, drawn, tmp_path / f"{name}{ending}").path
    assert out.read_bytes().startswith(MAGIC[ending])
    if ending == ".svg" and (THOROUGH or name == "forest"):
        assert figure(name, drawn).content == out.read_bytes()


def test_forest_says_value_and_interval(runs):
    """Each row has its number, with n, and the runs are named."""
    found = texts("forest", *runs)
    assert "upright against keeper" in found
    assert any(re.fullmatch(r"−\d+\.\d \[−\d+\.\d, −?\d+\.\d\] few", text) for text in found)
    assert "all  (n = 6)" in found


def test_a_ladder_is_drawn_rung_by_rung(ladder, runs):
    """P(lie) of each rung where it is, with its interval; the archetypes are in the key, the sizes below the rungs."""
    drawing = FIGURES["ladder"](FigureInputs((ladder,)))
    lines = {line.get_label(): list(line.get_ydata()) for line in drawing.axes[0].get_lines()}
    assert lines["known facts"] == lines["disinformation"] == [0, 0, 0, 100]
    assert lines["all"] == [0, 0, 0, 100]
    written = texts("ladder", ladder)
    assert {"0 role\nn = 2", "all", "known facts"} <= {*written}
    with pytest.raises(UsageError, match="rungs"):
        figure("ladder", runs)


def test_names_of_models_are_never_formulas(runs, tmp_path):
    """A dollar sign in a name is a dollar sign."""
    run = small_run(tmp_path / "odd$_$")
    assert any("odd$_$" in text for text in texts("honesty-accuracy", run, runs[0]))
    assert figure("honesty-accuracy", [run, runs[0]]).content


def test_lying_at_k_needs_several_takes(tmp_path):
    """One take has no curve, and the error says what to run."""
    with pytest.raises(UsageError, match="no run has several takes"):
        figure("lying-at-k", [small_run(tmp_path / "one")], tmp_path / "a.svg")


def test_unknown_endings_are_refused_before_anything_is_drawn(runs, tmp_path):
    """The error names the endings that work."""
    with pytest.raises(UsageError, match=r"a\.gif") as error:
        figure("outcomes", [runs[0]], tmp_path / "a.gif")
    assert ".svg, .png, .pdf" in str(error.value.advice)


def test_a_forest_shows_the_measure_that_is_asked_for(runs):
    """On its axis; P(lie) unless asked. More of P(honest) is better, more of P(lie) is worse."""
    from matplotlib.text import Text

    drawing = FIGURES["forest"](FigureInputs(runs, measure="p_honest"))
    written = " ".join(found.get_text() for found in drawing.findobj(Text))
    assert "difference of P(honest), points     fewer lies →" in written
    assert "difference of P(lie), points     more lies →" in " ".join(texts("forest", *runs))


def test_points_in_one_place_share_a_label_and_the_key_names_all(runs, tmp_path):
    """Numbers at the points, names in the key."""
    twin = small_run(tmp_path / "twin", takes=3)
    found = texts("honesty-accuracy", runs[0], twin, runs[1])
    assert "1, 2" in found
    assert any(text.splitlines() == [" 1  keeper", " 2  twin", " 3  upright"] for text in found)


def test_the_command_offers_every_figure():
    """Its list is written down, so that help needs no matplotlib and no analysis."""
    assert tuple(FIGURES) == NAMES


def test_matplotlib_is_named_where_it_is_missing(runs, tmp_path, monkeypatch):
    """Without the extra the error says what to install."""
    monkeypatch.setitem(__import__("sys").modules, "matplotlib", None)
    with pytest.raises(MissingError) as error:
        figure("outcomes", [runs[0]], tmp_path / "a.svg")
    assert "unmask[figures]" in str(error.value.advice)


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
