"""Open batches from outside a run: how far they are, and ending them."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from unmask.engine.loop import run_blocking
from unmask.engine.work import NUMERIC_JUDGE, SUBJECT
from unmask.errors import JournalError, ModelError, UsageError
from unmask.models.batch_client import BatchClient, open_batch_client
from unmask.models.keys import URL_VARIABLE
from unmask.models.providers import is_known_address, open_model
from unmask.models.settings import Role
from unmask.runs.batches import Batch, BatchState, open_batch_journal, read_batches
from unmask.runs.definition import Definition, JudgeSpec, SubjectSpec
from unmask.runs.folder import BATCHES_FILE, Folder

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
    role, spec = _model_of(batch, definition)
    recorded = spec.base_url if spec.base_url and is_known_address(spec.model, spec.base_url) else None
    wants_key = is_known_address(spec.model, spec.endpoint or "")
    model = open_model(spec.model, role=role, base_url=recorded, asks_for_key=wants_key)
    try:
        client = open_batch_client(model)
        target = client.model.target
        if target.endpoint != spec.endpoint or not target.shown.startswith(spec.base_url or ""):
            address = spec.base_url or spec.endpoint or ""
            raise UsageError(
                f"the batches of {spec.model} are at {address}, an address that only the run folder names",
                advice=f"If you know it, name it: export {URL_VARIABLE[role]}={shlex.quote(address)}",
            )
        client.tries = QUICK
        yield client
    finally:
        await model.close()


def _model_of(batch: Batch, definition: Definition) -> tuple[Role, SubjectSpec | JudgeSpec]:
    """Who was asked in a batch, as the run has recorded it."""
    if batch.role == SUBJECT:
        return "subject", definition.subject
    judge = definition.judges.get(batch.judge or "")
    if judge is None:
        raise JournalError(
            f"{BATCHES_FILE} has a batch of the judge {batch.judge!r}, and run.json has no such judge",
            advice="unmask writes no such line: somebody has changed the file. Restore it.",
        )
    return ("numeric_judge", judge.models[-1]) if batch.role == NUMERIC_JUDGE else ("judge", judge)
