"""`batches.jsonl`: what was handed to batch APIs, written before and after every step, so that nothing is bought twice.

A batch begins with a line `intended`, before it is made. `submitted` names the batch at the provider. `collected` ends
it: its answers are in the journal. `lost` ends it as well: nothing of it was run, or nothing of it can be had.
"""

from __future__ import annotations

import hashlib
import re
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
from unmask.models.tiers import is_remote_id
from unmask.protocol.plan import JudgeWork, SubjectWork
from unmask.records import FORMAT_VERSION, Method, Record
from unmask.runs.folder import BATCHES_FILE
from unmask.runs.journal import JournalFile, mend_file, read_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from unmask.runs.folder import Folder


class BatchState(StrEnum):
    INTENDED = "intended"
    SUBMITTED = "submitted"
    COLLECTED = "collected"
    LOST = "lost"


class BatchLine(Record, frozen=True, kw_only=True):
    """One line of `batches.jsonl`."""

    v: int = FORMAT_VERSION
    batch: str
    """Our own name of the batch: 16 hexadecimal digits."""
    at: float
    """Seconds since the epoch."""
    state: BatchState
    role: str | None = None
    """`subject`, `judge` or `numeric_judge`. This and what follows is in the line `intended`."""
    judge: str | None = None
    """File name, without ending, of the judge."""
    model: str | None = None
    endpoint: str | None = None
    round: int | None = None
    """Counted from 1: how often requests of this run have been handed over."""
    requests: tuple[str, ...] = ()
    """The `custom_id` of each request: scenario (16 digits of its hash), slot, attempt, most tokens, then its
    takes, or the texts that a judge reads."""
    adjusted: tuple[str, ...] = ()
    """What was changed because the endpoint refuses it, as in the journal."""
    most_usd: float | None = None
    """What the batch may cost at most."""
    file: str | None = None
    """The uploaded file, where the provider takes one."""
    remote: str | None = None
    """In the line `submitted`: the batch at the provider."""
    answered: int | None = None
    """In the line `collected`: answers in the journal."""
    reason: str | None = None
    """Why requests have no answer; in the line `lost`, why there is no batch."""


class Batch:
    """One batch, from all its lines."""

    def __init__(self, first: BatchLine) -> None:
        self.name = first.batch
        self.first = first
        self.state = first.state
        self.remote: str | None = None
        self.answered: int | None = None
        self.reason: str | None = None

    def add(self, line: BatchLine) -> None:
        self.state = line.state
        self.remote = line.remote or self.remote
        self.answered = line.answered if line.answered is not None else self.answered
        self.reason = line.reason or self.reason

    @property
    def is_open(self) -> bool:
        return self.state in (BatchState.INTENDED, BatchState.SUBMITTED)

    @property
    def role(self) -> str:
        return self.first.role or ""

    @property
    def requests(self) -> tuple[str, ...]:
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

    def begin(self, **fields: object) -> Batch:
        """Write down a batch that is about to be made."""
        line = self._append(secrets.token_hex(8), BatchState.INTENDED, fields)
        self.batches[line.batch] = Batch(line)
        return self.batches[line.batch]

    def move(self, batch: Batch, state: BatchState, **fields: object) -> None:
        batch.add(self._append(batch.name, state, fields))

    def _append(self, name: str, state: BatchState, fields: dict[str, object]) -> BatchLine:
        line = msgspec.convert({"batch": name, "at": round(time.time(), 3), "state": state, **fields}, BatchLine)
        self._file.append(line)
        return line

    @property
    def rounds(self) -> int:
        return max((batch.first.round or 0 for batch in self.batches.values()), default=0)

    @property
    def cancel_command(self) -> str:
        return f"unmask batch cancel {shlex.quote(str(self.folder.path))}"

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


# --- the id of a request ---------------------------------------------------------------------------------------

_METHODS = {
    Method.LETTER: "l",
    Method.INTERVAL: "i",
    Method.PICK_AB: "ab",
    Method.PICK_BA: "ba",
    Method.SELF_REPORT: "sr",
    Method.ROLE_PLAY: "rp",
    Method.MISLEADS_AB: "mab",
    Method.MISLEADS_BA: "mba",
}
_WORK_ID = re.compile(
    r"([0-9a-f]{16})-(\w+)-(\d{1,9})-(\d{0,9})-(?:(\d{1,9})_(\d{1,9})|([0-9a-f]{20})-(\w+))", re.ASCII
)


def hash_scenario(scenario: str) -> str:
    return hashlib.blake2b(scenario.encode("utf-8", "surrogatepass"), digest_size=8).hexdigest()


def encode_work(scenario: str, work: SubjectWork | JudgeWork, room: int | None) -> str:
    """The key of a piece of work as the `custom_id` of its request: all that is needed to write its answer down. Takes
    of one request follow each other."""
    head = f"{hash_scenario(scenario)}-{work.slot}-{work.attempt}-{room or ''}"
    if isinstance(work, SubjectWork):
        return f"{head}-{work.takes[0]}_{len(work.takes)}"
    return f"{head}-{work.digest}-{_METHODS[work.method]}"


def decode_work(text: str) -> tuple[str, SubjectWork | JudgeWork, int | None] | None:
    """The hash of the scenario, the work and the most tokens of a reply; `None` where this is no such id."""
    found = _WORK_ID.fullmatch(text)
    if found is None:
        return None
    scenario, slot, attempt, most, first, count, digest, method = found.groups()
    room = int(most) if most else None
    if digest is None:
        takes = tuple(range(int(first), int(first) + min(int(count), 1000)))
        return scenario, SubjectWork(slot, takes, int(attempt)), room
    methods = {code: known for known, code in _METHODS.items()}
    if method not in methods:
        return None
    return scenario, JudgeWork(slot, digest, (), methods[method], int(attempt)), room


def describe_open(batches: Iterable[Batch]) -> str:
    """`2 batches with 1,234 requests at https://api.openai.com`."""
    still = list(batches)
    count = sum(len(batch.requests) for batch in still)
    where = ", ".join(dict.fromkeys(batch.first.endpoint or "" for batch in still))
    noun = "batch" if len(still) == 1 else "batches"
    return f"{len(still)} {noun} with {count:,} request{'' if count == 1 else 's'} at {where}"
