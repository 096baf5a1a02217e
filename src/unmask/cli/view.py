"""`unmask view`."""

from __future__ import annotations

import os
import sys
import threading
import webbrowser
from collections.abc import Sequence
from pathlib import Path

import click

from unmask.cli.options import option


@click.command()
@click.argument("folders", metavar="[FOLDER…]", nargs=-1, type=click.Path(path_type=Path))
@option("--port", type=click.IntRange(0, 65535), default=0, help="Port of the server; any free one unless given.")
@option("--no-open", is_flag=True, help="Do not open the browser; only print the address.")
@option("--allow-remote", "remote", metavar="HOST", help="Let other machines connect; HOST is the name that they use.")
def view(folders: tuple[Path, ...], port: int, no_open: bool, remote: str | None) -> None:
    """Look at runs in the browser: lists, scenarios, comparisons, labels.

    FOLDER is a run, or a folder of runs; `runs` unless given. The server answers this machine only, and only with
    the printed URL. Ctrl-C ends it.
    """
    from unmask.errors import UsageError

    if not folders and not Path("runs").is_dir():
        raise UsageError("there is no folder runs here", advice="Name the folder of your runs.")
    if remote:
        click.echo(
            "What is sent is not encrypted. Safer: ssh -L PORT:127.0.0.1:PORT\nwithout --allow-remote.", err=True
        )
    serve_pages(folders or (Path("runs"),), port=port, remote=remote, opens=not no_open)


def serve_pages(
    folders: Sequence[Path], *, page: str = "/?", port: int = 0, remote: str | None = None, opens: bool = True
) -> None:
    """Print the address of a page of the viewer, open it in the browser, and serve it until Ctrl-C."""
    from unmask.viewer.serve import serve

    def ready(address: str) -> None:
        click.echo(address)
        click.echo("Ctrl-C ends the viewer.", err=True)
        if opens:  # some browsers keep the caller waiting
            threading.Thread(target=_open_browser, args=(address,), daemon=True).start()

    try:
        serve(folders, page=page, port=port, remote=remote, ready=ready)
    except KeyboardInterrupt:
        click.echo("The viewer has ended.", err=True)
        # A thread that still reads a long journal would keep the process. Nothing waits to be written: labels are on
        # disk before their request is answered, and the server has waited for open requests.
        sys.stdout.flush()
        os._exit(0)


def _open_browser(address: str) -> None:
    if not webbrowser.open(address):
        click.echo("unmask: no browser could be started here; open the address above", err=True)
