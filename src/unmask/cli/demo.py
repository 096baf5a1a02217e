"""`unmask demo`."""

from __future__ import annotations

from pathlib import Path

import click

from unmask.cli.options import in_colour, option


@click.command()
@option("--model", default="embedded/smollm2-135m", metavar="NAME", help="A model that needs no key.")
@option("--judge", metavar="NAME", help="Who reads the replies; the model itself unless given.")
@option("--limit", type=int, default=12, help="How many of the bundled scenarios.")
@option("--out", default="demo", metavar="DIR", help="Where the run folder goes.")
def demo(model: str, judge: str | None, limit: int, out: str) -> None:
    """A whole small benchmark on this machine: no key, no account. The same command again continues it."""
    from unmask.errors import MissingError
    from unmask.experiments.demo import explain_numbers, folder_for, judge_for, run_demo, select_examples
    from unmask.render.terminal.progress import ProgressLine
    from unmask.render.terminal.score import render
    from unmask.render.terminal.transcript import transcript

    judge = judge or judge_for(model)
    folder = folder_for(model, Path(out))
    try:
        for name in dict.fromkeys((model, judge)):
            _fetch_model(name)
    except MissingError as error:
        offer = "Without a network, the scripted model shows the tool: unmask demo --model scripted/liar"
        error.advice = f"{error.advice}\n{offer}" if error.advice else offer
        raise
    click.echo(f"{model} under pressure; {judge} reads what it says. Folder: {folder}", err=True)
    done = run_demo(model, judge=judge, out=folder, limit=limit, progress=ProgressLine())
    rows = done.rows()
    for title, row in select_examples(rows):
        click.echo(f"\n=== {title}: {row.id} " + "=" * max(0, 60 - len(title) - len(row.id)))
        click.echo(transcript(done.scenario(row.id), row, done.replies(row.id)))
    click.echo(render(done.score(), width=None, color=in_colour(), max_unjudged=1.0))
    click.echo(explain_numbers(model, rows))
    click.echo(
        f"\nThe run is in {done.path}: run.json, scenarios.jsonl, replies.jsonl, readings/.\n"
        f"  unmask show {done.path} {rows[0].id}      everything about one scenario\n"
        f"  unmask score {done.path} --preset strict   the same replies under stricter rules\n"
        "With a real model:\n"
        "  unmask run --data core --model openai/gpt-4o --judge openai/gpt-4o --out runs/gpt-4o\n"
        "  make demo MODEL=embedded/qwen2.5-coder-1.5b   a larger one on this machine (1.1 GB, some minutes)"
    )


def _fetch_model(name: str) -> None:
    """Pull a catalogued model that is not here yet."""
    if not name.startswith("embedded/"):
        return
    from unmask.cli.pull import show_progress
    from unmask.models.local.catalogue import find_entry, pulled_path
    from unmask.models.local.pull import pull

    wanted = find_entry(name)
    if pulled_path(wanted) is None:
        with show_progress(wanted.name, total=wanted.size, quiet=False) as report:
            pull(name, report=report)
