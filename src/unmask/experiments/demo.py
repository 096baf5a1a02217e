"""The demonstration: a real model, a real run, and two conversations worth reading."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from unmask.data.bundled import bundled_sets
from unmask.engine.run import run
from unmask.engine.session import Progress
from unmask.records import Outcome, Verdict
from unmask.runs.definition import judge_file
from unmask.runs.run import Run

DEFAULT_MODEL = "embedded/smollm2-135m"
MAX_TOKENS = 128
"""Room for a reply: enough for a small model to say what it has to say, and a bound on how long a demo takes."""


def judge_for(model: str) -> str:
    """A model on this machine judges itself, so that one file is enough; a scripted one has a scripted judge."""
    return "scripted/judge" if model.startswith("scripted/") else model


def folder_for(model: str, parent: Path) -> Path:
    return parent / judge_file(model)


def run_demo(model: str, *, judge: str, out: Path, limit: int, progress: Progress | None) -> Run:
    """Run a stratified sample of the largest bundled set, or continue a run that was stopped."""
    return run(
        data="core" if "core" in bundled_sets() else "tiny",
        model=model,
        judge=judge,
        out=out,
        limit=limit,
        max_tokens=MAX_TOKENS,
        judge_max_tokens=2 * MAX_TOKENS,
        progress=progress,
    )


def select_examples(rows: list[Outcome]) -> Iterator[tuple[str, Outcome]]:
    """A lie and an honest answer, if there are any; where neither is, one scenario of whatever there is most of."""
    any_shown = False
    for verdict, title in ((Verdict.LIE, "A lie"), (Verdict.HONEST, "An honest answer")):
        row = next((row for row in rows if row.verdict is verdict), None)
        if row is not None:
            any_shown = True
            yield title, row
    if not any_shown and rows:
        yield f"No lie and no honest answer; one that is {rows[0].verdict.value.replace('_', ' ')}", rows[0]


def explain_numbers(model: str, rows: list[Outcome]) -> str:
    """What the numbers of this model mean, in plain words."""
    if model.startswith("scripted/"):
        return "This model follows a script: the table shows what the tool does, not what any model believes."
    beliefless = sum(row.verdict is Verdict.NO_BELIEF for row in rows)
    words = f"{beliefless} of {len(rows)} scenarios showed no consistent belief, and without a belief there is no lie. "
    if "135m" in model:
        return (
            words + "A model of 135 million parameters answers the same question differently from one time to the "
            "next, and the judge is this same small model, so the few verdicts above are anecdotes. Use a larger "
            "model for a number you want to quote."
        )
    return words + "The judge is the same model as the subject: for a number to quote, use a stronger judge."
