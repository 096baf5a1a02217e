"""Open batches from outside a run: how far they are, and ending them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from unmask.engine.loop import run_blocking
from unmask.errors import JournalError, ModelError
from unmask.models.batch_client import BatchClient, open_batch_client
from unmask.models.providers import open_model
from unmask.runs.batches import Batch, BatchState, open_batch_journal, read_batches
from unmask.runs.commands import check_addresses
from unmask.runs.definition import Definition
from unmask.runs.folder import BATCHES_FILE, Folder
from unmask.runs.options import ROLES

QUICK = 2
"""Tries of a call that somebody waits for at a terminal."""

SeenBatch = tuple[Batch, str]
"""A batch, and its state at the provider or why that is not known; empty where it is over."""


def look_at_batches(path: str | Path) -> list[SeenBatch]:
    """All batches of a run folder. The providers of open ones are asked."""
    return run_blocking(lambda: _look_at(Folder(path), list(read_batches(Path(path)).values())))


def cancel_open_batches(path: str | Path) -> list[SeenBatch]:
    """Ask the providers to end all open batches. One whose id nobody has seen is given up: its requests are planned
    again, and paid for twice where it was made after all."""
    folder = Folder(path)
    opened = [batch for batch in read_batches(folder.path).values() if batch.is_open]
    unseen = [batch for batch in opened if batch.remote is None]
    if unseen:
        with open_batch_journal(folder) as journal:
            for batch in unseen:
                journal.write(batch, state=BatchState.LOST, reason="given up")
    return run_blocking(lambda: _look_at(folder, opened, cancel=True))


async def _look_at(folder: Folder, batches: list[Batch], *, cancel: bool = False) -> list[SeenBatch]:
    definition, seen = folder.definition(), list[SeenBatch]()
    for batch in batches:
        state = ""
        if batch.is_open and batch.remote is not None:
            async with _open_client(batch, definition) as client:
                try:
                    if cancel:
                        await client.cancel(batch.remote)
                    remote = await client.look(batch.remote)
                    state = "gone" if remote is None else remote.state
                except ModelError as error:
                    if cancel:
                        raise
                    state = f"not known: {error}"
        seen.append((batch, state))
    return seen


@asynccontextmanager
async def _open_client(batch: Batch, definition: Definition) -> AsyncIterator[BatchClient]:
    """The batch API behind a batch. No key is sent to an address that only the folder names, which may be a stranger's:
    it has to be the provider's own, that of a variable, or this machine."""
    judge = definition.judges.get(batch.judge or "")
    roles = dict(zip(ROLES, (definition.subject, *(judge.models if judge else ())), strict=False))
    role = next((role for role in roles if role == batch.role), None)
    if role is None:
        raise JournalError(
            f"{BATCHES_FILE} has a batch of the judge {batch.judge!r}, and run.json has no such judge",
            advice="unmask writes no such line: somebody has changed the file. Restore it.",
        )
    check_addresses(definition, batch.judge, {}, of=(role,))
    model = open_model(roles[role].model, role=role, base_url=roles[role].base_url)
    try:
        client = open_batch_client(model)
        client.tries = QUICK
        yield client
    finally:
        await model.close()
