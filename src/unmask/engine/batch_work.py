"""What a session asks in batches: its workload, which roles that are, and the batches it has under way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from typing import ClassVar

import msgspec

from unmask.engine.work import JUDGE, NUMERIC_JUDGE, SUBJECT, Job, Workload
from unmask.errors import UsageError
from unmask.models.base import Model
from unmask.models.batch_client import BatchClient, open_batch_client
from unmask.protocol.plan import SubjectWork
from unmask.runs.batches import Batch, BatchJournal, BatchState, open_batch_journal, read_batches
from unmask.runs.folder import Folder
from unmask.runs.options import Options


@dataclass(kw_only=True)
class BatchedWorkload(Workload):
    """A workload of which some roles are asked in batches. Their jobs are not sent but gathered in `wanted`."""

    in_rounds: ClassVar[bool] = True
    journal: BatchJournal
    judge_file: str
    no_wait: bool = False
    wanted: dict[int, tuple[Job, ...]] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)
    """Scenarios with nothing left to ask."""
    clients: dict[str, BatchClient] = field(default_factory=dict)
    """By role, opened when first needed."""

    def jobs(self, scenario: int, busy: set[object]) -> Iterator[Job]:
        if scenario in self.over:
            return
        batched: list[Job] = []
        for job in super().jobs(scenario, busy):
            if job.role in self.batched:
                batched += _split_takes(job)
            else:
                yield job
        self.wanted[scenario] = tuple(batched)

    def finished(self, scenario: int) -> None:
        if scenario not in self.over and not any(self.wanted.get(number) for number in self._group_of[scenario]):
            self.over.add(scenario)
            self.wanted.pop(scenario, None)
            super().finished(scenario)

    @cached_property
    def _group_of(self) -> dict[int, tuple[int, ...]]:
        """The scenarios that share their probes: one has nothing left to ask where all have."""
        return {number: group for group in self.groups for number in group}

    @property
    def open_batches(self) -> list[Batch]:
        """Batches of this session that are not over."""
        return [batch for batch in self.journal.batches.values() if concerns(batch, self.models, self.judge_file)]

    def open_client(self, role: str) -> BatchClient:
        if role not in self.clients:
            self.clients[role] = open_batch_client(self.models[role])
        return self.clients[role]

    def lose(self, batch: Batch, reason: str) -> None:
        """Write down that there is nothing to collect."""
        self.journal.move(batch, BatchState.LOST, reason=reason)
        self.purse.give_back(batch.name)


def _split_takes(job: Job) -> Iterator[Job]:
    """Takes of a request in a batch follow each other: its id says the first, and how many."""
    if not isinstance(job.work, SubjectWork):
        yield job
        return
    for _, pairs in groupby(enumerate(job.work.takes), key=lambda pair: pair[1] - pair[0]):
        takes = tuple(take for _, take in pairs)
        work = msgspec.structs.replace(job.work, takes=takes)
        yield msgspec.structs.replace(job, work=work, keys=tuple((work.slot, take) for take in takes))


def batched_roles(options: Options, models: dict[str, Model]) -> frozenset[str]:
    """The roles that `--batch` puts into batches. Raises where one of them has no batch API."""
    if options.batch is None:
        return frozenset()
    judges = {JUDGE, NUMERIC_JUDGE}
    roles = frozenset(judges if options.batch == "judge" else {SUBJECT, *judges}) & models.keys()
    if not roles:
        raise UsageError(
            "--batch judge: the judge is no model, so there is nothing to put into batches",
            advice="Leave --batch out, or name a model as the judge.",
        )
    for role in roles:
        open_batch_client(models[role])
    return roles


@contextlib.contextmanager
def prepare_batches(
    folder: Folder, options: Options, *, models: dict[str, Model], judge_file: str
) -> Iterator[dict[str, object]]:
    """The fields that a `BatchedWorkload` adds to a workload; none where nothing is asked in batches, and none are
    open that this run has to collect."""
    roles = batched_roles(options, models)
    if not roles and not any(concerns(batch, models, judge_file) for batch in read_batches(folder.path).values()):
        yield {}
        return
    with open_batch_journal(folder) as journal:
        yield {"batched": roles, "journal": journal, "judge_file": judge_file, "no_wait": options.no_wait}


def concerns(batch: Batch, models: dict[str, Model], judge_file: str) -> bool:
    """Whether an open batch holds work of this session."""
    return batch.is_open and batch.role in models and (batch.role == SUBJECT or batch.first.judge == judge_file)
