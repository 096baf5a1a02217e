"""`unmask batch list` and `unmask batch cancel`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from unmask.cli import crash
from unmask.cli.options import json_flag, print_blocks, print_json

if TYPE_CHECKING:
    from unmask.engine.batch_control import BatchStatus


@click.group()
def batch() -> None:
    """See and end what a run has handed to batch APIs."""


@batch.command("list")
@click.argument("run", metavar="RUN")
@json_flag
def list_batches(run: str, as_json: bool) -> None:
    """Show the batches of a run, and ask the provider how far the open ones are."""
    from unmask.engine.batch_control import look_at_batches
    from unmask.render.blocks import Table

    rows = look_at_batches(run)
    if as_json:
        print_json({"run": run, "batches": rows})
    elif not rows:
        click.echo(f"{run} has no batches")
    else:
        headings = ("model", "role", "state", "at the provider", "round", "requests", "answered", "since")
        print_blocks([Table(headings, [_format_row(row) for row in rows], texts=4)])


@batch.command("cancel")
@click.argument("run", metavar="RUN")
@json_flag
def cancel_batches(run: str, as_json: bool) -> None:
    """End the open batches of a run. What they have answered is paid for: the same `unmask run` collects it."""
    from unmask.engine.batch_control import cancel_open_batches

    rows = cancel_open_batches(run)
    if as_json:
        print_json({"run": run, "cancelled": rows})
        return
    for row in rows:
        what = "given up: it was never seen at the provider" if row.remote is None else f"{row.remote}: {row.said}"
        click.echo(crash.clean_for_terminal(f"{row.requests:,} requests to {row.model}, {what}"))
    if not rows:
        click.echo(f"{run} has no open batches")
    elif any(row.remote for row in rows):
        click.echo("What they have answered is paid for. The same `unmask run` command collects it and continues.")


def _format_row(row: BatchStatus) -> list[str]:
    state = row.state if row.reason is None else f"{row.state} ({row.reason})"
    minutes = max(0.0, time.time() - row.at) / 60
    since = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"
    answered = "" if row.answered is None else f"{row.answered:,}"
    return [row.model, row.role, state, row.said, str(row.round), f"{row.requests:,}", answered, since]
