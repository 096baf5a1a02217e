"""What `print` and a notebook show: the text that the command prints, and small tables in HTML.

`records.call_renderer` finds these functions by their names. Text from outside is escaped.
"""

from __future__ import annotations

import shlex
import sys
from importlib import import_module
from typing import Any

from unmask.data.dataset import Dataset
from unmask.records import Outcome, Result, Scenario
from unmask.render import words
from unmask.render.blocks import Command, Table, to_html, to_markdown, to_terminal
from unmask.render.describe.conversation import Replies
from unmask.render.describe.results import describe
from unmask.render.describe.transcript import describe_transcript
from unmask.render.progress import Log, ProgressLine
from unmask.runs.run import Run


def result_text(result: Result) -> str:
    """What the command prints."""
    return to_terminal(describe(result)).rstrip("\n")


def result_html(result: Result) -> str:
    return to_html(describe(result), level=4)


def result_markdown(result: Result) -> str:
    return to_markdown(describe(result))


def run_html(run: Run) -> str:
    command = shlex.join(["unmask", "report", str(run.path)])
    return to_html([*describe(run.score()), Command(command, "every scenario")], level=4)


def dataset_html(dataset: Dataset) -> str:
    first = {scenario.archetype: scenario.id for scenario in reversed(dataset.scenarios)}
    rows = [(archetype.traits.title, first[archetype], str(count)) for archetype, count in dataset.counts.items()]
    title = f"{dataset.name}: {words.plural(len(dataset), 'scenario')}"
    return to_html([Table(("archetype", "first id", "scenarios"), rows, texts=2, title=title)])


def transcript_text(scenario: Scenario, outcome: Outcome, replies: Replies) -> str:
    return to_terminal(describe_transcript(scenario, outcome, replies)).rstrip("\n")


# --- progress -----------------------------------------------------------------------------------------------


def open_progress(wanted: bool | None) -> ProgressLine | None:
    """What shows how far a run is: always in a notebook, elsewhere only if it is wanted."""
    if in_notebook():
        return ProgressLine(CellOutput())
    return ProgressLine() if wanted else None


def in_notebook() -> bool:
    """Whether a kernel runs this code. IPython is asked only where it is loaded: without it there is no notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return shell is not None and hasattr(shell, "kernel")


class CellOutput(Log):
    """An output of the cell that changes itself."""

    every = 0.2

    def __init__(self) -> None:
        super().__init__(sys.stderr)
        self._shown: Any = None

    def tell(self, text: str) -> None:
        output = {"text/plain": text}
        if self._shown is None:
            display = import_module("IPython.display").display
            self._shown = display(output, raw=True, display_id=True)
        else:
            self._shown.update(output, raw=True)
