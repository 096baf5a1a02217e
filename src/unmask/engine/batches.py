"""A run in batches: rounds over the journal. Collect what is over, plan, send what is live, hand over the next round.

The journal is the state and the planner names all that is wanted, so nobody has to stay alive between two rounds. A
round is handed over when all batches of the last one are over: a run then takes as few of them as its longest chain.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple

from unmask.engine.batch_answers import BatchAnswers
from unmask.engine.batch_work import BatchedWorkload
from unmask.engine.work import SUBJECT, Job, count_most_tokens, most_output
from unmask.errors import (
    BatchesOpen,
    FatalModelError,
    IncompleteError,
    Interrupted,
    ModelError,
    RequestRefusedError,
    TransientModelError,
    UsageError,
)
from unmask.models.batch_client import (
    BatchClient,
    RemoteBatch,
    UnlistedError,
)
from unmask.protocol.plan import JudgeWork, SubjectWork
from unmask.records import Request
from unmask.runs.batches import (
    Batch,
    BatchedRequest,
    BatchReason,
    BatchState,
    describe_open,
    name_request,
    write_batch_command,
)

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between two looks at a batch: a twentieth of its age."""
LISTING_DELAY = 3.0
"""Seconds after which a batch that was made stands in its provider's list."""
QUEUE_MEMORY = 86_400.0
"""Seconds for which a queue that was full makes batches smaller."""
RESUBMISSIONS = 3
"""Of a batch whose creation broke and that is not to be found."""


class _Prepared(NamedTuple):
    """A request that is ready to be put into a batch."""

    request: BatchedRequest
    line: bytes
    most_usd: float | None


async def run_rounds(
    workload: BatchedWorkload,
    send_live: Callable[[], Awaitable[None]],
    *,
    listen: Callable[[Callable[[], None]], contextlib.AbstractContextManager[None]],
    tick: Callable[[], None],
) -> None:
    """Rounds until nothing is wanted. `listen` registers what an interruption calls."""
    rounds = Rounds(workload, tick)
    task = asyncio.current_task()

    def stop() -> None:
        if rounds.stop.is_set() and task is not None:
            task.cancel()
        rounds.stop.set()

    try:
        with listen(stop):
            await rounds.run(send_live)
    except asyncio.CancelledError:
        if not rounds.stop.is_set():
            raise
        raise rounds.explain_interruption() from None


class Rounds:
    """The steps of a run in batches."""

    def __init__(self, workload: BatchedWorkload, tick: Callable[[], None]) -> None:
        self.workload = workload
        self.journal = workload.journal
        self.tick = tick
        self.stop = asyncio.Event()
        self.answers = BatchAnswers(workload)
        for batch in self.journal.batches.values():
            if batch.is_open and batch.first.most_usd is not None:
                workload.purse.set_aside(batch.name, batch.first.most_usd)

    async def run(self, send_live: Callable[[], Awaitable[None]]) -> None:
        while True:
            for batch in self.workload.open_batches:
                await self._recover_batch(batch)
            await self._collect_ended()
            if self.workload.open_batches:
                await self._await_next_look()
                continue
            await send_live()
            if not any(self.workload.wanted.values()):
                return
            await self._hand_over_round()

    # --- waiting ----------------------------------------------------------------------------------------------

    async def _await_next_look(self) -> None:
        """Until the next look, or out of here. A run that goes on live buys nothing that is under way."""
        still = self.workload.open_batches
        if not self.workload.batched:
            raise UsageError(
                f"{describe_open(still)} {'is' if len(still) == 1 else 'are'} under way for this run, and would be"
                " bought again",
                advice="Go on with --batch, which waits for them, or end them first: "
                f"{write_batch_command('cancel', self.journal.folder)}. Those that are over are collected.",
            )
        if self.workload.no_wait:
            raise BatchesOpen(
                f"{describe_open(still)}: under way",
                advice="Most are over within an hour, nearly all within a day. The same command then collects them and"
                f" goes on; `{write_batch_command('list', self.journal.folder)}` says how far they are.",
            )
        self.workload.waits = f"waiting for {describe_open(still)}"
        age = time.time() - max(batch.at for batch in still)
        until = time.monotonic() + min(max(SHORTEST_PAUSE, age / 20), LONGEST_PAUSE)
        while (left := until - time.monotonic()) > 0:
            self.tick()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self.stop.wait(), min(1.0, left))
            self._leave_if_stopped()
        self.workload.waits = ""

    def _leave_if_stopped(self) -> None:
        if self.stop.is_set():
            raise self.explain_interruption()

    def explain_interruption(self) -> Interrupted:
        advice = "Everything answered is kept: run the same command again to continue."
        still = self.workload.open_batches
        if not still:
            return Interrupted("interrupted", advice=advice)
        most = [batch.first.most_usd for batch in still]
        bound = f", at most ${sum(filter(None, most)):.2f}" if None not in most else ""
        return Interrupted(
            f"interrupted; {describe_open(still)} {'goes' if len(still) == 1 else 'go'} on and will be paid for{bound}",
            advice="The same command collects what they answer. To end them: "
            + write_batch_command("cancel", self.journal.folder),
        )

    # --- a batch that nobody has seen the id of ---------------------------------------------------------------

    async def _recover_batch(self, batch: Batch) -> None:
        """A batch without its id at the provider: it was never made, or it was and its answer was never seen."""
        if batch.state is BatchState.SUBMITTED:
            return
        client = self.workload.open_client(batch.role)
        if client.needs_file and batch.state is BatchState.INTENDED:  # a batch is made of a file, and there is none
            self.workload.end_lost(batch, BatchReason.NOT_SUBMITTED)
            return
        remote = await self._find_remote(batch, client)
        if remote is None and (young := batch.at + LISTING_DELAY - time.time()) > 0:
            await asyncio.sleep(young)
            remote = await self._find_remote(batch, client)
        if remote is None:
            self.workload.end_lost(batch, BatchReason.NOT_SUBMITTED)
        elif client.needs_file or remote.over:  # an open one without a file may be somebody else's: look again later
            self._note_submitted(batch, remote)

    async def _find_remote(self, batch: Batch, client: BatchClient) -> RemoteBatch | None:
        seen = frozenset(batch.remote for batch in self.journal.batches.values() if batch.remote)
        ids = frozenset(request.id for request in batch.requests)
        try:
            return await client.find(file=batch.file, ids=ids, since=batch.first.at, seen=seen)
        except UnlistedError:
            raise IncompleteError(
                f"whether a batch of {len(batch.requests):,} requests was made at {batch.first.endpoint} cannot be"
                " known: its answer was not seen, and the provider lists no batches",
                advice="Look there for one of that size. If there is none, or to pay for its requests once more:"
                f" {write_batch_command('cancel', self.journal.folder)}, then the same command.",
            ) from None

    # --- collecting -------------------------------------------------------------------------------------------

    async def _collect_ended(self) -> None:
        for batch in self.workload.open_batches:
            if batch.remote is None:
                continue
            client = self.workload.open_client(batch.role)
            remote = await client.look(batch.remote)
            if remote is None:
                self.answers.write_off(batch, BatchReason.DELETED, "the provider does not know its batch any more")
            elif remote.over and remote.problems and not remote.files:
                self.answers.take_refusal(batch, remote)
            elif remote.over:
                results = await client.read_results(remote)
                if results is None:
                    self.answers.write_off(
                        batch, BatchReason.DELETED, "the provider has deleted the results of its batch"
                    )
                else:
                    self.answers.take_results(batch, remote, results)
            self._leave_if_stopped()

    # --- handing over -----------------------------------------------------------------------------------------

    async def _hand_over_round(self) -> None:
        """All that is wanted, as batches. Nothing is handed over where the round might cost more than is left."""
        number = self.journal.rounds + 1
        parts = {role: self._prepare_requests(role) for role in sorted(self.workload.batched)}
        self._reserve_cost([prepared for part in parts.values() for prepared in part])
        try:
            for role, prepared in parts.items():
                cap = self._limit_of_queue(role)
                for chunk in self._split_into_batches(role, prepared, cap):
                    await self._hand_over(role, chunk, number)
                    self._leave_if_stopped()
                    if cap is not None:  # a queue that was full takes one batch at a time
                        break
        finally:
            self.workload.purse.give_back(self)
        opened = self.workload.open_batches
        if opened:
            self.workload.news = f"round {number}: {describe_open(opened)}"
            self.tick()

    def _prepare_requests(self, role: str) -> list[_Prepared]:
        client, price = self.workload.open_client(role), self.workload.prices.get(role)
        part = 1.0 if price is None or price.batch is None else price.batch
        result = []
        for jobs in self.workload.wanted.values():
            for job in jobs:
                if job.role != role:
                    continue
                asked = self.workload.request(job)
                payload, notes = client.model.prepare(asked)
                request = self._name_work(job, asked, notes)
                sent, answered = count_most_tokens(asked), asked.n * most_output(asked)
                most = None if price is None else part * price.bound(sent=sent, answered=answered)
                result.append(_Prepared(request, client.encode_line(request.id, payload), most))
        return result

    def _name_work(self, job: Job, asked: Request, notes: tuple[str, ...]) -> BatchedRequest:
        scenario, work = self.workload.scenarios[job.scenario].id, job.work
        if not isinstance(work, SubjectWork | JudgeWork):
            raise TypeError(f"{work!r} is no work")
        if isinstance(work, SubjectWork):
            digest, method, takes, judge = None, None, work.takes, ""
        else:
            digest, method, takes, judge = work.digest, work.method, (), self.workload.judge_file
        what = digest or " ".join(map(str, takes))
        return BatchedRequest(
            id=name_request(self.journal.run, job.role, judge, scenario, work.slot, what, method, work.attempt),
            scenario=scenario,
            slot=work.slot,
            takes=takes,
            digest=digest,
            method=method,
            attempt=work.attempt,
            max_tokens=work.max_tokens,
            size=sum(len(message.content.encode("utf-8", "replace")) for message in asked.messages),
            adjusted=notes,
        )

    def _reserve_cost(self, prepared: Sequence[_Prepared]) -> None:
        """A batch cannot be stopped by its cost, so the round as a whole has to fit, beside all that is under way. Its
        cost is set aside until its batches begin: a sweep hands over rounds of several runs at a time."""
        purse, most = self.workload.purse, sum(item.most_usd or 0.0 for item in prepared)
        if purse.limit is None or purse.set_aside(self, most):
            return
        under_way = f", ${purse.under_way:.4f} may be added by what is under way" if purse.under_way else ""
        raise IncompleteError(
            f"the next round of {len(prepared):,} requests may cost ${most:.4f}; the {purse.payer} has cost"
            f" ${purse.spent:.4f}{under_way}, and --max-cost is ${purse.limit:g}",
            advice="Nothing of the round was sent. Raise the limit, or lower --max-tokens and judge.max_tokens: the"
            " bound counts all of them. The same command then continues.",
        )

    def _limit_of_queue(self, role: str) -> int | None:
        """Half of the smallest batch for which the queue was full within a day; `None` where it was not. A queue that
        had no room for one request was filled by others: what it refused until then says nothing about later."""
        since = time.time() - QUEUE_MEMORY
        refused: list[int] = []
        for batch in self.journal.batches.values():
            if batch.role == role and batch.reason is BatchReason.QUEUE_FULL and batch.at > since:
                size = len(batch.requests)
                refused = [] if size == 1 else [*refused, size]
        return min(refused) // 2 if refused else None

    def _split_into_batches(
        self, role: str, prepared: Sequence[_Prepared], cap: int | None
    ) -> Iterator[list[_Prepared]]:
        service = self.workload.open_client(role).service
        most = min(service.most_requests, cap or service.most_requests)
        chunk: list[_Prepared] = []
        size = 0
        for item in prepared:
            if chunk and (len(chunk) >= most or size + len(item.line) > service.most_bytes):
                yield chunk
                chunk, size = [], 0
            chunk.append(item)
            size += len(item.line) + 1
        if chunk:
            yield chunk

    async def _hand_over(self, role: str, chunk: Sequence[_Prepared], number: int) -> None:
        """Write down what is about to be done before each step of it."""
        client, costs = self.workload.open_client(role), [item.most_usd for item in chunk]
        batch = self.journal.begin(
            role=role,
            judge=None if role == SUBJECT else self.workload.judge_file,
            model=client.model.name,
            endpoint=client.model.endpoint,
            round=number,
            requests=tuple(item.request for item in chunk),
            most_usd=None if None in costs else round(math.fsum(filter(None, costs)), 6),
        )
        if batch.first.most_usd is not None:
            self.workload.purse.split_off(self, batch.name, batch.first.most_usd)
        lines = [item.line for item in chunk]
        file = None
        if client.needs_file:
            try:
                file = await client.upload(lines)
            except ModelError as error:
                self.workload.end_lost(batch, BatchReason.REFUSED)
                raise _as_fatal(error) from None
            self.journal.move(batch, BatchState.UPLOADED, file=file)
        await self._create_batch(batch, client, file, lines)

    async def _create_batch(self, batch: Batch, client: BatchClient, file: str | None, lines: Sequence[bytes]) -> None:
        """A call that breaks may have made the batch: it is looked for before another one is made."""
        for attempt in range(RESUBMISSIONS):
            try:
                self._note_submitted(batch, await client.create(batch.name, file=file, lines=lines))
                return
            except TransientModelError as error:
                if error.throttled and not error.starting:
                    self.workload.end_refused_by_queue(batch)
                    return
                trouble: ModelError = error
            except ModelError as error:
                self.workload.end_lost(batch, BatchReason.REFUSED)
                raise _as_fatal(error) from None
            await asyncio.sleep(LISTING_DELAY * (attempt + 1))
            remote = await self._find_remote(batch, client)
            if remote is not None:
                if client.needs_file or remote.over:
                    self._note_submitted(batch, remote)
                return  # else it is looked for again: see `_recover_batch`
        self.workload.end_lost(batch, BatchReason.NOT_SUBMITTED)
        raise trouble

    def _note_submitted(self, batch: Batch, remote: RemoteBatch) -> None:
        self.journal.move(batch, BatchState.SUBMITTED, remote=remote.id, expires_at=remote.expires_at)


def _as_fatal(error: ModelError) -> ModelError:
    """A call of the batch API that was refused is no failure of a request: it ends the session."""
    return FatalModelError(str(error), advice=error.advice) if isinstance(error, RequestRefusedError) else error
