"""`unmask board`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from unmask.cli import flags
from unmask.cli.options import Command, encode_json, json_flag, option, show_result


@click.command(cls=Command, examples="unmask board runs/a runs/b --out board.md")
@click.argument("runs", metavar="RUN…", nargs=-1)
@flags.measure
@flags.preset
@flags.judge
@flags.labels
@option("--with-published", is_flag=True, help="Also show published values, apart from the runs.")
@option(
    "--out",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write a file instead of printing: .md, .csv, .json or .html.",
)
@option(
    "--compute",
    metavar="FILE",
    rare=True,
    help="Correlate with training compute: CSV with model and flop, or `published`.",
)
@flags.guards
@json_flag
def board(runs: tuple[str, ...], out: Path | None, as_json: bool, **settings: Any) -> None:
    """Rank runs as far as they can be told apart. Runs made in another way are listed, not ranked.

    A folder of runs, such as a sweep's, counts as all of them.
    """
    from unmask.analysis.board import Board
    from unmask.analysis.board import board as make
    from unmask.files import choose_by_ending, write_atomically
    from unmask.render.board_csv import render_csv
    from unmask.render.html.report import render_board
    from unmask.runs.run import open_runs

    writers = {
        ".md": Board.to_markdown,
        ".csv": render_csv,
        ".json": lambda found: encode_json(found.to_json()) + "\n",
        ".html": render_board,
    }
    write = None if out is None else choose_by_ending(out, writers)
    leaderboard = make(open_runs(runs), **settings)
    if out is None or write is None:
        show_result(leaderboard, as_json=as_json, details=False)
        if not as_json:
            click.echo("--out board.html, .md or .csv has how each run was made, and all sources.")
    else:
        write_atomically(out, write(leaderboard).encode())
        click.echo(f"{out}: {len(leaderboard.rows)} runs, {len(leaderboard.published)} published rows")
