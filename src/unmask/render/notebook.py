"""What `print` and a notebook show: the text that the command prints, and small tables in HTML.

`records.call_renderer` finds these functions by their names. Text from outside is escaped.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterable, Sequence
from html import escape
from importlib import import_module
from shutil import get_terminal_size
from typing import Any

from unmask.data.dataset import Dataset
from unmask.records import Outcome, Result, Scenario
from unmask.render.colours import VERDICTS
from unmask.render.terminal.progress import ProgressLine
from unmask.render.terminal.score import typed_judge_of
from unmask.render.terminal.transcript import Replies, transcript
from unmask.render.words import NAMES
from unmask.runs.run import Run
from unmask.scoring.measures import MEASURES, Measures, Where, list_measures
from unmask.scoring.score import Score
from unmask.text import escape_html, strip_controls

_TEXTS = {
    "Agreed": "unmask.render.terminal.agree:render",
    "Board": "unmask.render.html.board:render_markdown",
    "Comparison": "unmask.render.terminal.compare:render",
    "Gate": "unmask.render.terminal.gate:render",
    "MitigationReport": "unmask.render.terminal.mitigate:render",
    "Plan": "unmask.render.terminal.power:render",
    "RunPlan": "unmask.render.terminal.plan:render",
    "Score": "unmask.render.terminal.score:render",
    "Sensitivity": "unmask.render.terminal.sensitivity:render",
    "SweepPlan": "unmask.render.terminal.sweep:render_plan",
    "SweepResult": "unmask.render.terminal.sweep:render_result",
}
"""Each result with the function that makes the text of its command, imported when it is asked for."""

_LEFT = "text-align:left;white-space:nowrap"


def result_text(result: Result) -> str:
    module, _, name = _TEXTS[type(result).__name__].partition(":")
    return str(getattr(import_module(module), name)(result)).rstrip("\n")


def result_html(result: Result) -> str:
    if not isinstance(result, Score):
        return f"<pre>{escape(strip_controls(str(result)))}</pre>"
    rows = [
        [archetype.value, str(part.scenarios), str(part.p_lie), str(part.p_honest)]
        for archetype, part in result.archetypes.items()
    ]
    return _headline(result) + _table(
        ["archetype", "scenarios", MEASURES["p_lie"].title, MEASURES["p_honest"].title], rows
    )


def run_html(run: Run) -> str:
    command = shlex.join(["unmask", "report", str(run.path)])
    return f"{_headline(run.score())}<p>Every scenario: <code>{escape_html(command)}</code></p>"


def dataset_html(dataset: Dataset) -> str:
    first = {scenario.archetype: scenario.id for scenario in reversed(dataset.scenarios)}
    rows = [[archetype.value, str(count), first[archetype]] for archetype, count in dataset.counts.items()]
    return _table(["archetype", "scenarios", "first id"], rows, caption=f"{dataset.name}: {len(dataset)} scenarios")


def transcript_text(scenario: Scenario, outcome: Outcome, replies: Replies) -> str:
    return transcript(scenario, outcome, replies, width=get_terminal_size().columns).rstrip("\n")


def _headline(score: Score) -> str:
    """The main measures of a run, with what has to be said before any number."""
    title = ""
    if run := score.run:
        judge = typed_judge_of(run) or "nobody"
        title = f"{run['subject']['model']} on {run['data']['name']}, read by {judge}; "
    titles = [(name, MEASURES[name]) for name in list_measures(Where.NOTEBOOK)]
    rows = [[measure.title, str(getattr(score, name))] for name, measure in titles]
    warnings = "".join(f"<p><b>Warning</b>: {escape_html(finding.text)}.</p>" for finding in score.warnings)
    table = _table((), rows, caption=f"{title}preset {score.preset}")
    return warnings + table + _verdict_bar(score.overall)


def _verdict_bar(measures: Measures) -> str:
    shares = {verdict: measures.shares[verdict] for verdict in VERDICTS}
    segments = "".join(
        f"<span style='flex:{share:.4f};background:{VERDICTS[verdict].light}'></span>"
        for verdict, share in shares.items()
    )
    words = ", ".join(f"{measures.counts[verdict]} {NAMES[verdict]}" for verdict in shares)
    return f"<div style='display:flex;width:24em;height:0.7em'>{segments}</div><p>{words}</p>"


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "") -> str:
    """A table whose first column names its rows."""
    head = "".join(f"<th style='{_LEFT}'>{escape_html(heading)}</th>" for heading in headings)
    body = "".join(
        f"<tr><th style='{_LEFT}'>{escape_html(name)}</th>"
        + "".join(f"<td style='{_LEFT}'>{escape_html(cell)}</td>" for cell in cells)
        + "</tr>"
        for name, *cells in rows
    )
    head = f"<thead><tr>{head}</tr></thead>" if headings else ""
    named = f"<caption style='{_LEFT}'>{escape_html(caption)}</caption>" if caption else ""
    return f"<table>{named}{head}<tbody>{body}</tbody></table>"


# --- progress -----------------------------------------------------------------------------------------------


def open_progress(wanted: bool | None) -> ProgressLine | None:
    """What shows how far a run is: always in a notebook, elsewhere only if it is wanted."""
    if in_notebook():
        return NotebookProgress()
    return ProgressLine() if wanted else None


def in_notebook() -> bool:
    """Whether a kernel runs this code. IPython is asked only where it is loaded: who has none runs in no notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class NotebookProgress(ProgressLine):
    """The line of a terminal as an output of the cell that changes itself."""

    def __init__(self) -> None:
        super().__init__(live=True)
        self._shown: Any = None

    def _write(self, text: str, *, end: bool) -> None:
        output = {"text/plain": text}
        if self._shown is None:
            display = import_module("IPython.display").display
            self._shown = display(output, raw=True, display_id=True)
        else:
            self._shown.update(output, raw=True)
