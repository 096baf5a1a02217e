"""`unmask scaling`."""

from __future__ import annotations

from pathlib import Path

import click

from unmask.cli.options import in_colour, json_flag, option, print_json


@click.command()
@click.argument("board", metavar="BOARD")
@option("--compute", type=click.Path(path_type=Path), metavar="FILE", help="CSV with the columns model and flop.")
@option("--figure", type=click.Path(path_type=Path), metavar="FILE", help="Also draw it: .svg, .png or .pdf.")
@option("--resample-seed", type=int, default=0, help="Random seed of the bootstrap.")
@json_flag
def scaling(board: str, compute: Path | None, figure: Path | None, resample_seed: int, as_json: bool) -> None:
    """Correlate accuracy and honesty with training compute, and say where that is fragile.

    BOARD is a file written by `unmask board --out board.json`, a folder with runs, or the word `published` for the
    paper's table.
    """
    from unmask.analysis.scaling import scaling as correlate
    from unmask.render.terminal import scaling as shown

    result = correlate(board, compute=compute, seed=resample_seed)
    if figure is not None:
        shown.write_figure(result, figure)
    if as_json:
        print_json(result.to_json())
    else:
        click.echo(shown.render(result, color=in_colour()), nl=False)
