"""`unmask figure`."""

from __future__ import annotations

import click

from unmask.cli import settings
from unmask.cli.options import option
from unmask.render.figures.figures import FIGURES


@click.command()
@click.argument("name", metavar="NAME", type=click.Choice(list(FIGURES)))
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@option("--out", metavar="FILE", required=True, help="Where to write it: .svg, .png or .pdf.")
@option("--preset", type=settings.PRESETS, help="Scoring rules; each run's own unless given.")
@option("--judge", metavar="NAME", help="Whose readings; the judge of the last `unmask run` unless given.")
@option("--measure", metavar="NAME", help="For forest and board: P(lie), or another measure, as in lying_at_10.")
@option("--compute", metavar="FILE", help="For scaling: CSV with the columns model and flop.")
def figure(
    name: str,
    runs: tuple[str, ...],
    out: str,
    preset: str | None,
    judge: str | None,
    measure: str | None,
    compute: str | None,
) -> None:
    """Draw a figure of runs, chosen by NAME.

    `forest` and `mitigations` hold the further runs against the first. `scaling` takes runs, or the word
    `published` for the paper's table.
    """
    from unmask.render.figures.figures import figure as draw

    click.echo(str(draw(name, runs, out, preset=preset, judge=judge, compute=compute, measure=measure)))
