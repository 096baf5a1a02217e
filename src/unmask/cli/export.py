"""`unmask export`."""

from __future__ import annotations

import click

from unmask.cli import flags
from unmask.cli.options import choice_of, option
from unmask.records import Format, Per


@click.command()
@click.argument("run", metavar="RUN")
@option("--format", "form", type=choice_of(Format), help="What to write; by the ending of --out unless given.")
@option("--out", required=True, metavar="PATH", help="The file to make; the folder to add to for wandb and mlflow.")
@option("--overwrite", is_flag=True, help="Replace a file that is there already.")
@option(
    "--per",
    type=choice_of(Per),
    help="What a row is about: take unless given; with wandb and mlflow nothing but the run.",
)
@flags.preset
@flags.judge
def export(
    run: str, form: str | None, out: str, overwrite: bool, per: str | None, preset: str | None, judge: str | None
) -> None:
    """Write a run as a file for other programs. Nothing is sent, and nothing is overwritten unless you say so."""
    from unmask.cli.finish import warn_about_folder
    from unmask.interop.export import export as write
    from unmask.runs.run import open_run

    opened = open_run(run)
    path = write(opened, format=form, out=out, overwrite=overwrite, per=per, preset=preset, judge=judge)
    warn_about_folder(opened, judge)
    click.echo(str(path))
