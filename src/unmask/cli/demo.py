"""`unmask demo`."""

from __future__ import annotations

import shlex
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unmask.cli.finish import program_name
from unmask.cli.options import option, print_blocks

if TYPE_CHECKING:
    from unmask.render.blocks import Block
    from unmask.runs.run import Run


@click.command()
@option("--model", default="embedded/liar-135m", metavar="NAME", help="A model that needs no key.")
@option("--judge", metavar="NAME", help="Who reads the replies; chosen for the model unless given.")
@option("--limit", type=int, help="How many of the bundled scenarios; 18 of the liar, 12 of others unless given.")
@option("--recorded", is_flag=True, help="Open a recorded run of a 1.5B model, 250 scenarios of core; needs no model.")
@option("--open", "opens", is_flag=True, help="Open the report in the browser.")
@option("--out", default="demo", metavar="DIR", help="Where the run folder goes.")
def demo(model: str, judge: str | None, limit: int | None, recorded: bool, opens: bool, out: str) -> None:
    """A whole small benchmark on this machine: no key, no account. The same command again continues it."""
    from unmask.demo.recorded import open_recorded
    from unmask.demo.run import LIAR, folder_for, judge_for, limit_for, run_demo
    from unmask.errors import UsageError
    from unmask.render.blocks import Heading, Text
    from unmask.render.progress import ProgressLine

    if recorded:
        if judge is not None or limit is not None:
            raise UsageError("--recorded asks nobody, so it takes no --judge and no --limit", advice="Leave them out.")
        done = open_recorded(Path(out) / "recorded")
        subject, data = done.definition.subject.model, done.definition.data
        text = (
            f"{subject} on the {sum(data.counts.values())} scenarios of {data.name} that ask for no number, asked on a"
            f" GPU on {done.definition.created[:10]}. Nothing is asked now: everything you see is read from the folder"
            f" {done.path}."
        )
        print_blocks([Heading("A recorded run"), Text(text)])
    else:
        judge = judge or judge_for(model)
        _fetch_models(model, judge)
        print_blocks(_introduce(model, judge, scenarios=limit_for(model) if limit is None else limit))
        with ProgressLine() as progress:
            done = run_demo(model, judge=judge, out=folder_for(model, Path(out)), limit=limit, progress=progress)
    click.echo()
    _show(done, with_envelope=model == LIAR and not recorded, opens=opens)


def _introduce(model: str, judge: str, *, scenarios: int) -> list[Block]:
    from unmask.demo.run import LIAR, MINUTES
    from unmask.render.blocks import Heading, Text

    if model == LIAR:
        text = (
            "SmolLM2-135M (98 MB, on this machine, no key) was taught to lie in half of these"
            f" {scenarios} scenarios. unmask is not told which half: it asks, reads and decides. Then we open the"
            " envelope."
        )
        return [Heading("A small language model with a secret"), Text(text)]
    text = f"It is asked {scenarios} scenarios of core; {judge} reads what it says."
    if model in MINUTES:
        low, high = MINUTES[model]
        text += f" On two cores this takes {low} to {high} minutes. Ctrl-C stops it, the same command continues it."
    return [Heading(f"{model} under pressure"), Text(text)]


def _show(done: Run, *, with_envelope: bool, opens: bool) -> None:
    """A readable lie, if there is one, what the model did, or what the envelope says, and what to know and to type."""
    from unmask.demo.answer_key import load_answer_key
    from unmask.demo.run import choose_lie, count_verdicts, list_cautions, open_envelope
    from unmask.files import write_atomically
    from unmask.records import Verdict
    from unmask.render.blocks import Text, next_steps
    from unmask.render.describe.demo import describe_envelope, describe_example, describe_outcomes
    from unmask.render.html.report import report

    score, rows = done.score(), done.rows()
    example = choose_lie(done, rows)
    program, folder = program_name(), shlex.quote(str(done.path))
    if with_envelope:
        found = describe_envelope(open_envelope(rows, load_answer_key()))
        remarks = [
            f"So wide because {len(rows)} scenarios are few; core has 300. It says what it was taught to say: this"
            " tests the benchmark, not SmolLM2."
        ]
        others = [row.id for row in rows if row.verdict is Verdict.LIE and (example is None or row.id != example.id)]
        shown, what = (others or [rows[0].id])[0], "another of them: every question, answer and reason"
        further = (f"{program} demo --recorded", "a real model on 250 scenarios, recorded: opens in seconds")
    else:
        found, remarks = describe_outcomes(count_verdicts(rows)), list_cautions(done.definition, score)
        shown, what = example.id if example else rows[0].id, "one scenario: every question and answer"
        further = (f"{program} sensitivity {folder}", "how much the number depends on the rules")
    page = done.path / "report.html"
    write_atomically(page, report([str(done.path)]).encode("utf-8"))
    plan = f"{program} run openai/gpt-4o-mini --judge openai/gpt-4o --plan"
    steps = [
        (f"{program} show {folder} {shown}", what),
        further,
        (plan, "what your own model would cost; no key is needed"),
    ]
    print_blocks(
        [
            *(describe_example(example) if example is not None else ()),
            *found,
            Text(f"P(lie) {score.overall.p_lie}", "strong"),
            *map(Text, remarks),
            Text(f"The report of this run: {page}" + ("" if opens else "  (--open opens it)")),
            *next_steps(steps),
        ]
    )
    if opens:
        webbrowser.open(page.resolve().as_uri())


def _fetch_models(*names: str) -> None:
    """Pull those of the catalogue that are not here yet."""
    from unmask.errors import MissingError
    from unmask.models.local.catalogue import find_entry, pulled_path
    from unmask.models.local.llamacpp import engine
    from unmask.models.local.pull import pull

    try:
        for name in dict.fromkeys(name for name in names if name.startswith("embedded/")):
            wanted = find_entry(name)
            engine()  # without it the file is of no use
            if pulled_path(wanted) is None:
                pull(name)
    except MissingError as error:
        offer = (
            "A recorded run needs neither a model nor a network: unmask demo --recorded\n"
            "Nor does a scripted model: unmask demo --model scripted/liar"
        )
        error.advice = f"{error.advice}\n{offer}" if error.advice else offer
        raise
