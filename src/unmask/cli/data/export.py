"""`unmask data export`: sets for other programs."""

from __future__ import annotations

from pathlib import Path

import click

from unmask.cli.data.look import summarise_set
from unmask.cli.options import json_flag, option, print_json


@click.command()
@click.argument("source", metavar="PATH")
@option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="A new or empty folder.")
@json_flag
def export(source: str, *, out: Path, as_json: bool) -> None:
    """Write the set at PATH as the reference code's folder, one CSV per archetype, so that others can run it."""
    from unmask.data.export import export_reference
    from unmask.data.load import load

    dataset = load(source)
    files = [str(path) for path in export_reference(dataset, out_dir=out)]
    if as_json:
        print_json({"layout": "reference", "out": str(out), "files": files, **summarise_set(dataset)})
    else:
        click.echo("\n".join([*files, f"{len(dataset.scenarios)} scenarios; use them with --data {out}"]))
