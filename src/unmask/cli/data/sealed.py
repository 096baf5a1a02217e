"""`unmask data seal` and `open`: a set under a passphrase."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import click

from unmask.cli.options import option

_FILE = click.Path(path_type=Path)


@click.command()
@click.argument("file", type=_FILE, metavar="FILE")
@option("--out", type=_FILE, required=True, metavar="FILE.sealed", help="A new file.")
def seal(file: Path, *, out: Path) -> None:
    """Encrypt the .jsonl file FILE with a passphrase, asked for or from UNMASK_PASSPHRASE."""
    from unmask.data.dataset import SEALED_SUFFIX
    from unmask.data.seal import seal as sealed
    from unmask.data.seal import write_new
    from unmask.errors import UsageError
    from unmask.text import escape_line

    if file.suffix.lower() not in (".jsonl", ".ndjson"):
        raise UsageError(
            f"{escape_line(file.name)} is not a .jsonl file", advice="Only sets in our own format are sealed."
        )
    if out.suffix.lower() != SEALED_SUFFIX:
        raise UsageError(
            f"{escape_line(out.name)} does not end in {SEALED_SUFFIX}",
            advice=f"--data knows sealed sets by {SEALED_SUFFIX}.",
        )
    data = _read_file(file)
    write_new(out, sealed(data, passphrase=_ask_passphrase(confirm=True)))
    click.echo(f"{out}: sealed. {file} is still there in the clear.")


@click.command("open")
@click.argument("file", type=_FILE, metavar="FILE.sealed")
@option("--out", type=_FILE, required=True, metavar="FILE", help="A new file, readable by you only.")
def open_(file: Path, *, out: Path) -> None:
    """Decrypt FILE.sealed. To run on it this is not needed: --data takes it when UNMASK_PASSPHRASE is set."""
    from unmask.data.seal import unseal, write_new

    data = _read_file(file)
    write_new(out, unseal(data, passphrase=_ask_passphrase(confirm=False), name=file.name))
    click.echo(f"{out}: opened. It is in the clear.")


def _read_file(file: Path) -> bytes:
    from unmask.errors import MissingError
    from unmask.text import escape_line

    try:
        return file.read_bytes()
    except OSError as error:
        raise MissingError(f"cannot read {escape_line(str(file))}: {error.strerror or error}") from error


def _ask_passphrase(*, confirm: bool) -> str:
    """From the variable, or typed unseen. Never an argument: those can be read by everybody on the machine."""
    from unmask.data.seal import VARIABLE
    from unmask.errors import MissingError

    if passphrase := os.environ.get(VARIABLE):
        return passphrase
    if not sys.stdin.isatty():
        raise MissingError("there is no passphrase, and nobody to ask for it", advice=f"Set {VARIABLE}.")
    return str(click.prompt("Passphrase", hide_input=True, confirmation_prompt=confirm, err=True))
