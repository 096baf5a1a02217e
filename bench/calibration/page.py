"""The findings as a table, a figure and the page bench/results/calibration.md."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.calibration.found import Finding, Kind

RESULTS = Path(__file__).resolve().parent.parent / "results"
BEGIN, END = "<!-- written by python -m bench.calibration: begin -->", "<!-- end -->"
FIGURE = "calibration.svg"

GOALS = {
    Kind.COVERAGE: "93.5 to 97.5 %",
    Kind.AT_LEAST: "at least 93.5 %",
    Kind.FEW: "at least 91 %",
    Kind.FALSE_POSITIVE: "at most 5.5 %",
    Kind.NEVER: "never",
    Kind.BIAS: "below 0.3 points",
    Kind.SMALL_BIAS: "below 0.2 points",
    Kind.ONE_LOOK: "at most 2.5 %",
    Kind.HISTORIES: "at most 5 %",
    Kind.POWER: "at least 80 %",
    Kind.PLANNED: "at least 78 %",
    Kind.SHARE: "",
    Kind.REFERENCE: "",
}


class Made(NamedTuple):
    """How the findings were made, so that they can be made again."""

    runs: int
    seed: int
    version: str


def write(findings: Sequence[Finding], made: Made, *, folder: Path = RESULTS) -> Path:
    """Put table and figure into calibration.md, between its two marks."""
    page = folder / "calibration.md"
    text = page.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    _, after = rest.split(END)
    page.write_text(before + "\n".join([BEGIN, "", *body(findings, made), "", END]) + after, encoding="utf-8")
    figure(findings, folder / FIGURE)
    return page


def body(findings: Sequence[Finding], made: Made) -> Iterator[str]:
    yield f"    python -m bench.calibration --runs {made.runs} --seed {made.seed}"
    yield ""
    yield f"unmask {made.version}. {summary(findings)}"
    yield ""
    yield f"![Coverage of every interval with its Monte Carlo error]({FIGURE})"
    yield ""
    yield "| planted | measured | value | more runs would give | goal | met |"
    yield "|---|---|--:|--:|---|---|"
    last = None
    for one in findings:
        shown = "" if one.setting == last else f"{one.setting} ({one.runs} runs)"
        last = one.setting
        what = one.what if one.kind in {Kind.COVERAGE, Kind.REFERENCE, Kind.SHARE} else f"{one.what}: {one.kind.value}"
        met = {True: "yes", False: "**no**", None: ""}[one.met]
        if one.pending:
            yield f"| {shown} | {what} | {_numbers(one)} | {GOALS[one.kind]} | {met}, but close |"
        elif one.again is None:
            yield f"| {shown} | {what} | {_numbers(one)} | {GOALS[one.kind]} | {met} |"
        else:
            yield f"| {shown} | {what} | {_numbers(one)} | {GOALS[one.kind]} | close |"
            yield f"|  | again, {one.again.runs} runs | {_numbers(one.again)} | {GOALS[one.kind]} | {met} |"


def _numbers(one: Finding) -> str:
    unit = "points" if one.kind in {Kind.BIAS, Kind.SMALL_BIAS, Kind.REFERENCE} else "%"
    digits = 2 if unit == "points" else 1
    bounds = f"{100 * one.low:.{digits}f} to {100 * one.high:.{digits}f}" if one.runs else "exact"
    return f"{100 * one.value:.{digits}f} {unit} | {bounds}"


def summary(findings: Iterable[Finding]) -> str:
    judged = [one for one in findings if one.met is not None]
    missed = [one for one in judged if not one.met]
    due = sum(one.pending for one in judged)
    close = f" {due} are close to a limit and wait for their second round." if due else ""
    if not missed:
        return f"All {len(judged)} goals are met.{close}"
    return f"{len(judged) - len(missed)} of {len(judged)} goals are met.{close}"


def table(findings: Iterable[Finding]) -> str:
    """For a terminal, one line each."""
    rows = []
    for one in findings:
        mark = {True: " ", False: "!", None: " "}[one.met]
        for count in (one, one.again) if one.again else (one,):
            bounds = f"[{100 * count.low:6.2f}, {100 * count.high:6.2f}]"
            rows.append(f"{mark} {100 * count.value:7.2f} {bounds} {count.runs:6d}  {one.kind}: {one.what}")
    return "\n".join(rows)


def figure(findings: Sequence[Finding], path: Path) -> None:
    """Coverage of every interval, one dot each, with the goal as a band."""
    import matplotlib as mpl

    mpl.use("svg")
    import matplotlib.pyplot as plt

    shown = [one for one in findings if one.kind in {Kind.COVERAGE, Kind.AT_LEAST}]
    with mpl.rc_context({"svg.hashsalt": "unmask", "svg.fonttype": "none", "font.size": 8}):
        drawing, axes = plt.subplots(figsize=(8, 1 + 0.13 * len(shown)))
        axes.axvspan(93.5, 97.5, color="#dfe8f3", zorder=0)
        axes.axvline(95, color="#7a8ca5", linewidth=0.8, zorder=1)
        for place, first in enumerate(reversed(shown)):
            colour, one = "#1f4e8c" if first.met else "#b3261e", first.again or first
            axes.plot([100 * one.low, 100 * one.high], [place, place], color=colour, linewidth=1)
            axes.plot(100 * one.value, place, "o", color=colour, markersize=3)
        names = [f"{one.what} · {one.setting}" for one in reversed(shown)]
        axes.set_yticks(
            range(len(shown)), [name if len(name) < 110 else name[:108] + "…" for name in names], fontsize=4.5
        )
        axes.set_ylim(-1, len(shown))
        axes.set_xlabel("coverage of 95 % intervals, in % of simulated runs; lines are the Monte Carlo error")
        drawing.tight_layout()
        drawing.savefig(path, format="svg", metadata={"Date": None})
        plt.close(drawing)
