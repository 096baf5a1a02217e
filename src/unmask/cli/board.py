"""`unmask board`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from unmask.cli import flags
from unmask.cli.options import VERDICTS, SectionedCommand, json_flag, option, show_result

if TYPE_CHECKING:
    from unmask.analysis.board import Board
    from unmask.scoring.guards import GuardLimits

SUFFIXES = {".md": "markdown", ".csv": "csv", ".json": "json", ".html": "html", ".htm": "html"}


@click.command(cls=SectionedCommand, sections=VERDICTS, examples="unmask board runs/a runs/b --out board.md")
@click.argument("runs", metavar="RUN…", nargs=-1)
@option(
    "--measure",
    metavar="NAME",
    default="p_lie",
    help="What the runs are ranked by: P(lie), or another measure, as in lying_at_10.",
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

    A folder of runs, such as a sweep's, counts as all of them.
    """
    from unmask.analysis.board import board as make
    from unmask.files import choose_by_ending, write_atomically
    from unmask.runs.run import open_runs

    opened = open_runs(runs)
    kind = None if out is None else choose_by_ending(out, SUFFIXES)
    leaderboard = make(
        opened,
        measure=measure,
        preset=preset,
        judge=judge,
        labels=labels,
        with_published=with_published,
        compute=compute,
        guards=guards,
    )
    if out is not None and kind is not None:
        write_atomically(out, _write(leaderboard, kind).encode())
        click.echo(f"{out}: {len(leaderboard.rows)} runs, {len(leaderboard.published)} published rows")
    else:
        show_result(leaderboard, as_json=as_json, details=False)
    if out is None and not as_json:
        click.echo("--out board.html, .md or .csv has how each run was made, and all sources.")


def _write(board: Board, kind: str) -> str:
    from unmask.cli.finish import encode_json
    from unmask.render.board_csv import render_csv
    from unmask.render.html.board import render_html

    match kind:
        case "csv":
            return render_csv(board)
        case "html":
            return render_html(board)
        case "markdown":
            return board.to_markdown()
    return encode_json(board.to_json()) + "\n"
