"""What a session asks in batches: its workload, which roles that are, and the batches it has under way."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from unmask.engine.work import JUDGE, NUMERIC_JUDGE, SUBJECT, Job, Workload
from unmask.errors import IncompleteError, UsageError
from unmask.models.base import Model
from unmask.models.batch_client import BatchClient, open_batch_client
from unmask.runs.batches import (
    Batch,
    BatchJournal,
    BatchReason,
    BatchState,
    open_batch_journal,
    read_batches,
)
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
        batched = []
        for job in super().jobs(scenario, busy):
            if job.role in self.batched:
                batched.append(job)
            else:
                yield job
        self.wanted[scenario] = tuple(batched)

    def finished(self, scenario: int) -> None:
        if scenario not in self.over and not self.wanted.get(scenario):
            self.over.add(scenario)
            self.wanted.pop(scenario, None)
            super().finished(scenario)

    @property
    def open_batches(self) -> list[Batch]:
        """Batches of this session that are not over."""
        return [batch for batch in self.journal.batches.values() if concerns(batch, self.models, self.judge_file)]

    def open_client(self, role: str) -> BatchClient:
        """The batch API of a role. Parameters that it has refused in earlier batches are not sent again."""
        if role not in self.clients:
            client = self.clients[role] = open_batch_client(self.models[role])
            for batch in self.journal.batches.values():
                if batch.role == role and batch.first.model == client.model.name:
                    for name in batch.refused:
                        client.model.drop_parameter(name)
        return self.clients[role]

    def end_lost(self, batch: Batch, reason: BatchReason) -> None:
        """Write down that nothing of a batch was run."""
        self.journal.move(batch, BatchState.LOST, reason=reason)
        self.purse.give_back(batch.name)

    def end_refused_by_queue(self, batch: Batch) -> None:
        """The queue of the account is full: the next round is smaller. A round of one request ends the session."""
        self.end_lost(batch, BatchReason.QUEUE_FULL)
        if len(batch.requests) == 1 and not self.open_batches:
            raise IncompleteError(
                f"the queue of {batch.first.model} at {batch.first.endpoint} is full: it takes not one request more",
                advice="Run the same command again when other batches of this account are over.",
            )


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
    """The fields of a `BatchedWorkload` besides those of a workload; none where nothing is asked in batches, and none
    are open that this run has to collect."""
    roles = batched_roles(options, models)
    if not roles and not any(concerns(batch, models, judge_file) for batch in read_batches(folder.path).values()):
        yield {}
        return
    with open_batch_journal(folder) as journal:
        yield {"batched": roles, "journal": journal, "judge_file": judge_file, "no_wait": options.no_wait}


def concerns(batch: Batch, models: dict[str, Model], judge_file: str) -> bool:
    """Whether an open batch holds work of this session."""
    return batch.is_open and batch.role in models and (batch.role == SUBJECT or batch.first.judge == judge_file)
