"""`batches.jsonl`: what was handed to batch APIs, written before and after every step, so that nothing is bought twice.

Every line is a whole batch, and the last one of a batch counts. It is `intended` before it is made and `submitted` once
the provider has named it. `collected`: its answers are in the journal. `lost`: there is nothing to collect.
"""

from __future__ import annotations

import secrets
import shlex
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from unmask.errors import JournalError
from unmask.files import Lock, lock_path
from unmask.models.tiers import is_remote_id
from unmask.protocol.plan import Work
from unmask.records import FORMAT_VERSION, Record, digest
from unmask.runs.folder import BATCHES_FILE
from unmask.runs.journal import JournalFile, mend_file, read_lines

if TYPE_CHECKING:
    from unmask.runs.folder import Folder


class BatchState(StrEnum):
    INTENDED = "intended"
    SUBMITTED = "submitted"
    COLLECTED = "collected"
    LOST = "lost"


class BatchRequest(Record, frozen=True, kw_only=True):
    """All that is needed to write an answer down."""

    scenario: str
    work: Work
    """Without the texts that it is about."""
    room: int | None
    """The most tokens of a reply."""

    @property
    def id(self) -> str:
        """The `custom_id` of the request."""
        return digest((msgspec.json.encode(self).decode(),))


class Batch(Record, frozen=True, kw_only=True):
    """One line of `batches.jsonl`."""

    v: int = FORMAT_VERSION
    batch: str = msgspec.field(default_factory=lambda: secrets.token_hex(8))
    """Our own name of the batch: 16 hexadecimal digits."""
    at: float = 0.0
    """Seconds since the epoch."""
    state: BatchState
    role: str
    """`subject`, `judge` or `numeric_judge`."""
    judge: str | None = None
    """File name, without ending, of the judge."""
    model: str
    endpoint: str
    round: int
    """Counted from 1: how often requests of this run have been handed over."""
    requests: tuple[BatchRequest, ...]
    adjusted: tuple[str, ...] = ()
    """What was changed because the endpoint refuses it, as in the journal."""
    most_usd: float | None = None
    """What the batch may cost at most."""
    file: str | None = None
    """The uploaded file, where the provider takes one."""
    remote: str | None = None
    """The batch at the provider."""
    answered: int | None = None
    """Answers in the journal."""
    reason: str | None = None
    """Why requests have no answer, or why there is no batch."""

    @property
    def is_open(self) -> bool:
        return self.state in (BatchState.INTENDED, BatchState.SUBMITTED)


def read_batches(path: Path) -> dict[str, Batch]:
    """All batches of a run folder by name, in the order in which they began."""
    batches: dict[str, Batch] = {}
    for batch in read_lines(path / BATCHES_FILE, Batch):
        for remote in filter(None, (batch.file, batch.remote)):
            if not is_remote_id(remote):
                raise JournalError(
                    f"{path / BATCHES_FILE}: {remote[:100]!r} is no id that a provider gives",
                    advice="unmask writes no such line: somebody has changed the file. Restore it.",
                )
        batches[batch.batch] = batch
    return batches


class BatchJournal:
    """The batches of a run folder, and the file that more lines go into. One process at a time."""

    def __init__(self, folder: Folder) -> None:
        path = folder.path / BATCHES_FILE
        self.cancel_command = f"unmask batch cancel {shlex.quote(str(folder.path))}"
        self.file = JournalFile(path)
        mend_file(path)
        self.batches = read_batches(folder.path)

    def write(self, batch: Batch, **changes: Any) -> Batch:
        """Write down a batch as it is now."""
        batch = msgspec.structs.replace(batch, at=round(time.time(), 3), **changes)
        self.file.append(batch)
        self.batches[batch.batch] = batch
        return batch


@contextmanager
def open_batch_journal(folder: Folder) -> Iterator[BatchJournal]:
    advice = "Wait for it to end, or stop it: batches go on at the provider, and the same command collects them."
    with Lock(lock_path(folder.path / BATCHES_FILE), advice=advice):
        journal = BatchJournal(folder)
        try:
            yield journal
        finally:
            journal.file.close()


def describe_open(batches: Iterable[Batch]) -> str:
    """`2 batches with 1,234 requests at https://api.openai.com`."""
    still = list(batches)
    count = sum(len(batch.requests) for batch in still)
    where = ", ".join(dict.fromkeys(batch.endpoint for batch in still))
    noun = "batch" if len(still) == 1 else "batches"
    return f"{len(still)} {noun} with {count:,} request{'' if count == 1 else 's'} at {where}"
