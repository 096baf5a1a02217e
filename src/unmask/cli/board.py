"""`unmask board`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unmask.cli import flags
from unmask.cli.options import VERDICTS, SectionedCommand, json_flag, option

if TYPE_CHECKING:
    from unmask.scoring.guards import GuardLimits

SUFFIXES = {".md": "markdown", ".csv": "csv", ".json": "json", ".html": "html", ".htm": "html"}


@click.command(cls=SectionedCommand, sections=VERDICTS, examples="unmask board runs/a runs/b --out board.md")
@click.argument("runs", metavar="RUN…", nargs=-1)
@option(
    "--measure",
    metavar="NAME",
    default="p_lie",
    help="What the runs are ranked by: P(lie), shown as honesty, or another measure, as in lying_at_10.",
)
@flags.preset
@flags.judge
@flags.labels
@option("--with-published", is_flag=True, help="Also show published values, apart from the runs.")
@option("--compute", metavar="FILE", help="Correlate with training compute: CSV with model and flop, or `published`.")
@option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a file instead of printing: .md, .csv, .json or .html.",
)
@flags.guards
@json_flag
def board(
    runs: tuple[str, ...],
    measure: str,
    preset: str | None,
    judge: str | None,
    labels: tuple[str, ...],
    with_published: bool,
    compute: str | None,
    out: Path | None,
    as_json: bool,
    guards: GuardLimits,
) -> None:
    """Rank runs as far as they can be told apart. Runs made in another way are listed, not ranked.

    A folder that holds runs, such as that of a sweep, stands for all of them.
    """
    from unmask.analysis.board import board as make
    from unmask.cli.finish import encode_json, name_other_judges
    from unmask.files import choose_by_ending, write_atomically
    from unmask.render.html import board as shown
    from unmask.render.terminal.board import render as draw_table
    from unmask.runs.folder import expand_runs

    runs = tuple(expand_runs(runs))
    chosen = "json" if as_json else "table" if sys.stdout.isatty() else "markdown"
    if out is not None:
        chosen = choose_by_ending(out, SUFFIXES)
    leaderboard = make(
        runs,
        measure=measure,
        preset=preset,
        judge=judge,
        labels=labels,
        with_published=with_published,
        compute=compute,
        guards=guards,
    )
    makers = {
        "table": draw_table,
        "markdown": shown.render_markdown,
        "csv": shown.render_csv,
        "html": shown.render_html,
    }
    text = encode_json(leaderboard.to_json()) + "\n" if chosen == "json" else makers[chosen](leaderboard)
    if out is None:
        click.echo(text, nl=False)
    else:
        write_atomically(out, text.encode())
        click.echo(f"{out}: {len(leaderboard.rows)} runs, {len(leaderboard.published)} published rows")
    name_other_judges(runs, judge)
