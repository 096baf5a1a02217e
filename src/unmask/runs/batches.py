"""`batches.jsonl`: what was handed to batch APIs, written before and after every step, so that nothing is bought twice.

A batch begins with a line `intended`, which has its requests. `uploaded` names the file at the provider, `submitted`
the batch there. `collected` ends it: its answers stand in the journal. `lost` ends it as well: nothing of it was run.
"""

from __future__ import annotations

import hashlib
import secrets
import shlex
import time
from collections.abc import Iterable
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from unmask.errors import JournalError
from unmask.files import Lock, lock_path
from unmask.models.keys import URL_VARIABLE, Role
from unmask.models.providers import is_known_address
from unmask.models.tiers import is_remote_id
from unmask.records import FORMAT_VERSION, Method, Record, Slot
from unmask.runs.folder import BATCHES_FILE
from unmask.runs.journal import JournalFile, mend_file, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unmask.runs.definition import Definition, JudgeSpec, SubjectSpec
    from unmask.runs.folder import Folder


class BatchState(StrEnum):
    INTENDED = "intended"
    UPLOADED = "uploaded"
    SUBMITTED = "submitted"
    COLLECTED = "collected"
    LOST = "lost"


ENDED = frozenset({BatchState.COLLECTED, BatchState.LOST})


class BatchReason(StrEnum):
    """Why a batch ended without all its answers."""

    NOT_SUBMITTED = "not submitted"
    REFUSED = "refused"
    QUEUE_FULL = "queue full"
    EXPIRED = "expired"
    CANCELLED = "cancelled"
    FAILED = "failed"
    NO_CREDIT = "no credit"
    DELETED = "deleted"
    MIXED_UP = "mixed up"
    GIVEN_UP = "given up"


class BatchedRequest(Record, frozen=True, kw_only=True):
    """One request of a batch, with what it is for. `takes` for the subject, `digest` and `method` for the judge."""

    id: str
    """Sent as `custom_id`: the same for the same work."""
    scenario: str
    slot: Slot
    takes: tuple[int, ...] = ()
    digest: str | None = None
    method: Method | None = None
    attempt: int = 1
    max_tokens: int | None = None
    size: int = 0
    """Bytes of its messages, to tell whether an answer fits."""
    adjusted: tuple[str, ...] = ()
    """What was changed because the endpoint refuses it, as in the journal."""


class BatchLine(Record, frozen=True, kw_only=True):
    """One line of `batches.jsonl`."""

    v: int = FORMAT_VERSION
    batch: str
    """Our own name of the batch: 16 hexadecimal digits."""
    at: float
    """Seconds since the epoch."""
    state: BatchState
    role: str | None = None
    """`subject` or `judge`. This and what follows stands in the line `intended`."""
    judge: str | None = None
    """File name, without ending, of the judge."""
    model: str | None = None
    endpoint: str | None = None
    round: int | None = None
    """Counted from 1: how often requests of this run have been handed over."""
    requests: tuple[BatchedRequest, ...] = ()
    most_usd: float | None = None
    """What the batch may cost at most."""
    file: str | None = None
    """In the line `uploaded`: the file at the provider."""
    remote: str | None = None
    """In the line `submitted`: the batch at the provider. This and the next."""
    expires_at: float | None = None
    answered: int | None = None
    """In the line `collected`: answers in the journal. This and what follows."""
    reason: BatchReason | None = None
    """Why requests have no answer; in the line `lost`, why there is no batch."""
    refused: tuple[str, ...] = ()
    """Parameters that the endpoint refuses and that are not sent any more."""


class Batch:
    """One batch, from all its lines."""

    def __init__(self, first: BatchLine) -> None:
        self.name = first.batch
        self.first = first
        self.at = first.at
        self.state = first.state
        self.file: str | None = None
        self.remote: str | None = None
        self.expires_at: float | None = None
        self.answered: int | None = None
        self.reason: BatchReason | None = None
        self.refused: tuple[str, ...] = ()

    def add(self, line: BatchLine) -> None:
        self.state, self.at = line.state, line.at
        self.file = line.file or self.file
        self.remote = line.remote or self.remote
        self.expires_at = line.expires_at or self.expires_at
        self.answered = line.answered if line.answered is not None else self.answered
        self.reason = line.reason or self.reason
        self.refused = line.refused or self.refused

    @property
    def is_open(self) -> bool:
        return self.state not in ENDED

    @property
    def role(self) -> str:
        return self.first.role or ""

    @property
    def requests(self) -> tuple[BatchedRequest, ...]:
        return self.first.requests


def read_batches(path: Path) -> dict[str, Batch]:
    """All batches of a run folder by name, in the order in which they began."""
    batches: dict[str, Batch] = {}
    for line in read_lines(path / BATCHES_FILE, BatchLine):
        for remote in (line.file, line.remote):
            if remote is not None and not is_remote_id(remote):
                raise JournalError(
                    f"{path / BATCHES_FILE}: {remote[:100]!r} is no id that a provider gives",
                    advice="unmask writes no such line: somebody has changed the file. Restore it.",
                )
        if line.batch not in batches:
            batches[line.batch] = Batch(line)
        batches[line.batch].add(line)
    return batches


class BatchJournal:
    """The batches of a run folder, and the file that more lines go into. One process at a time."""

    def __init__(self, folder: Folder) -> None:
        self.folder = folder
        self._file = JournalFile(folder.path / BATCHES_FILE, checksum=True)
        mend_file(folder.path / BATCHES_FILE, BatchLine)
        self.batches = read_batches(folder.path)
        self.run = folder.definition().id

    def begin(self, **fields: object) -> Batch:
        """Write down a batch that is about to be made."""
        name = secrets.token_hex(8)
        line = msgspec.convert(
            {"batch": name, "at": round(time.time(), 3), "state": BatchState.INTENDED, **fields}, BatchLine
        )
        self._file.append(line)
        self.batches[name] = Batch(line)
        return self.batches[name]

    def move(self, batch: Batch, state: BatchState, **fields: object) -> None:
        line = msgspec.convert({"batch": batch.name, "at": round(time.time(), 3), "state": state, **fields}, BatchLine)
        self._file.append(line)
        batch.add(line)

    @property
    def rounds(self) -> int:
        return max((batch.first.round or 0 for batch in self.batches.values()), default=0)

    def close(self) -> None:
        self._file.close()


@contextmanager
def open_batch_journal(folder: Folder) -> Iterator[BatchJournal]:
    advice = "Wait for it to end, or stop it: batches go on at the provider, and the same command collects them."
    with Lock(lock_path(folder.path / BATCHES_FILE), advice=advice):
        journal = BatchJournal(folder)
        try:
            yield journal
        finally:
            journal.close()


def name_request(*parts: object) -> str:
    """40 hexadecimal digits for one piece of work: run, role, judge, scenario, slot, takes or digest, method, attempt.
    The same work has the same name in every process."""
    state = hashlib.blake2b(digest_size=20)
    for part in parts:
        data = str(part).encode("utf-8", "surrogatepass")
        state.update(len(data).to_bytes(8, "big") + data)
    return state.hexdigest()


def describe_open(batches: Iterable[Batch]) -> str:
    """`2 batches with 1,234 requests at https://api.openai.com`."""
    still = list(batches)
    count = sum(len(batch.requests) for batch in still)
    where = ", ".join(dict.fromkeys(batch.first.endpoint or "" for batch in still))
    noun = "batch" if len(still) == 1 else "batches"
    return f"{len(still)} {noun} with {count:,} request{'' if count == 1 else 's'} at {where}"


def model_of_batch(batch: Batch, definition: Definition) -> tuple[Role, SubjectSpec | JudgeSpec]:
    """Who was asked in a batch, as the run has recorded it."""
    if batch.role == "subject":
        return "subject", definition.subject
    file = batch.first.judge or ""
    if batch.role == "numeric_judge":
        return "numeric_judge", definition.judges[file].models[-1]
    return "judge", definition.judges[file]


def write_batch_command(verb: str, folder: Folder) -> str:
    """`unmask batch VERB RUN`, after the variables for addresses that only the folder names: no key is sent there."""
    definition = folder.definition()
    open_batches = [batch for batch in read_batches(folder.path).values() if batch.is_open]
    named = (model_of_batch(batch, definition) for batch in open_batches)
    variables = {
        f"{URL_VARIABLE[role]}={shlex.quote(spec.base_url)}"
        for role, spec in named
        if spec.base_url is not None and not is_known_address(spec.model, spec.base_url)
    }
    return " ".join([*sorted(variables), "unmask", "batch", verb, shlex.quote(str(folder.path))])
