"""`unmask batch list` and `unmask batch cancel`."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import click

from unmask.cli.options import json_flag, print_blocks, print_json

if TYPE_CHECKING:
    from unmask.engine.batch_control import SeenBatch


@click.group()
def batch() -> None:
    """See and end what a run has handed to batch APIs."""


@batch.command("list")
@click.argument("run", metavar="RUN")
@json_flag
def list_batches(run: str, as_json: bool) -> None:
    """Show the batches of a run. The provider is asked how far the open ones are."""
    from unmask.engine.batch_control import look_at_batches
    from unmask.render.blocks import Table

    rows = look_at_batches(run)
    if as_json:
        print_json({"run": run, "batches": list(map(_to_row, rows))})
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
    from unmask.errors import escape_line

    rows = cancel_open_batches(run)
    if as_json:
        print_json({"run": run, "cancelled": list(map(_to_row, rows))})
        return
    for batch, said in rows:
        what = "given up: it was never seen at the provider" if batch.remote is None else f"{batch.remote}: {said}"
        click.echo(escape_line(f"{len(batch.requests):,} requests to {batch.model}, {what}"))
    if not rows:
        click.echo(f"{run} has no open batches")
    elif any(batch.remote for batch, _ in rows):
        click.echo("What they have answered is paid for. The same `unmask run` command collects it and continues.")


def _to_row(row: SeenBatch) -> dict[str, Any]:
    batch, said = row
    fields: dict[str, Any] = {name: getattr(batch, name) for name in batch.__struct_fields__}
    return fields | {"requests": len(batch.requests), "said": said}


def _format_row(row: SeenBatch) -> list[str]:
    batch, said = row
    state = batch.state.value if batch.reason is None else f"{batch.state} ({batch.reason})"
    minutes = max(0.0, time.time() - batch.at) / 60
    since = f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.0f} h"
    answered = "" if batch.answered is None else f"{batch.answered:,}"
    return [batch.model, batch.role, state, said, str(batch.round), f"{len(batch.requests):,}", answered, since]
