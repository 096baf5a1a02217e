"""`unmask figure`."""

from __future__ import annotations

import click

from unmask.cli import flags
from unmask.cli.options import option

NAMES = ("outcomes", "archetypes", "honesty-accuracy", "lying-at-k", "ladder", "forest", "mitigations")


@click.command()
@click.argument("name", metavar="NAME", type=click.Choice(NAMES))
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@option("--out", metavar="FILE", required=True, help="Where to write it: .svg, .png or .pdf.")
@flags.preset
@flags.judge
@option("--measure", metavar="NAME", help="For forest: P(lie), or another measure, as in lying_at_10.")
def figure(
    name: str, runs: tuple[str, ...], out: str, preset: str | None, judge: str | None, measure: str | None
) -> None:
    """Draw a figure of runs.

    NAME is outcomes, archetypes, honesty-accuracy, lying-at-k, ladder, forest or mitigations. The last two
    compare the other runs with the first.
    """
    from unmask.render.figures import figure as draw
    from unmask.runs.run import open_runs

    click.echo(str(draw(name, open_runs(runs), out, preset=preset, judge=judge, measure=measure).path))
