"""A run in batches: submit and collect, until nothing is wanted. What is not asked in batches is sent before a submit.

The journal is the state and the planner names all that is wanted, so nobody has to stay alive between the two. A round
is handed over when all batches of the last one are over: a run then takes as few of them as its longest chain.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from functools import partial
from typing import Any, NamedTuple, TypeVar

from unmask.engine.batch_answers import BatchAnswers, give_up
from unmask.engine.batch_work import BatchedWorkload
from unmask.engine.work import SUBJECT
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
from unmask.models.batch_client import TRIES, BatchClient, RemoteBatch
from unmask.protocol.plan import JudgeWork, SubjectWork
from unmask.runs.batches import Batch, BatchState, describe_open, encode_work

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between two looks at batches: half as long again each time."""
LISTING_DELAY = 3.0
"""Seconds after which a batch that was made is in its provider's list."""
TICK = 1.0
GRACE = 5.0
"""Seconds that a call which makes a batch is given to be answered once the run is interrupted."""

T = TypeVar("T")


class Prepared(NamedTuple):
    """A request that is ready to be put into a batch."""

    id: str
    line: bytes
    most_usd: float | None
    adjusted: tuple[str, ...]


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
    """The two steps of a run in batches, and the waits between them."""

    def __init__(self, workload: BatchedWorkload, tick: Callable[[], None]) -> None:
        self.workload = workload
        self.journal = workload.journal
        self.tick = tick
        self.stop = asyncio.Event()
        self.answers = BatchAnswers(workload)
        self._most: dict[str, int] = {}
        """By role: requests that its queue may have room for, where it was full."""
        self._made: set[str] = set()
        """Batches of this process."""
        for batch in workload.open_batches:
            if batch.first.most_usd is not None:
                workload.purse.set_aside(batch.name, batch.first.most_usd)

    async def run(self, send_live: Callable[[], Awaitable[None]]) -> None:
        pause = SHORTEST_PAUSE
        while True:
            await self.collect()
            if self.workload.open_batches:
                self._leave_if_unwaited()
                await self._call(
                    partial(asyncio.sleep, pause), f"waiting for {describe_open(self.workload.open_batches)}"
                )
                pause = min(1.5 * pause, LONGEST_PAUSE)
                continue
            await send_live()
            if not any(self.workload.wanted.values()):
                return
            await self.submit()
            pause = SHORTEST_PAUSE

    # --- waiting ----------------------------------------------------------------------------------------------

    async def _call(self, work: Callable[[], Coroutine[Any, Any, T]], what: str, *, grace: float = 0.0) -> T:
        """Await a call or a pause, and show what it is. An interruption ends it at once, or after `grace`."""
        if self.stop.is_set():
            raise self.explain_interruption()
        task, stopping = asyncio.ensure_future(work()), asyncio.ensure_future(self.stop.wait())
        self.workload.waits = what
        try:
            while not task.done() and not self.stop.is_set():
                await asyncio.wait({task, stopping}, timeout=TICK, return_when=asyncio.FIRST_COMPLETED)
                if not task.done():
                    self.tick()
            if not task.done() and grace:
                await asyncio.wait({task}, timeout=grace)
            if not task.done():
                raise self.explain_interruption()
            return task.result()
        finally:
            self.workload.waits = ""
            stopping.cancel()
            if not task.done():
                task.cancel()
                await asyncio.wait({task})

    def _leave_if_unwaited(self) -> None:
        """A run that goes on live buys nothing that is under way; `--no-wait` leaves."""
        still = self.workload.open_batches
        if not self.workload.batched:
            raise UsageError(
                f"{describe_open(still)} {'is' if len(still) == 1 else 'are'} under way for this run, and would be"
                " bought again",
                advice=f"Go on with --batch, which waits for them, or end them first: {self.journal.cancel_command}."
                " Those that are over are collected.",
            )
        if self.workload.no_wait:
            raise BatchesOpen(
                f"{describe_open(still)}: under way",
                advice="Most are over within an hour, nearly all within a day. The same command then collects them and"
                " goes on; `unmask batch list` says how far they are.",
            )

    def explain_interruption(self) -> Interrupted:
        still = self.workload.open_batches
        if not still:
            advice = "Everything answered is kept: run the same command again to continue."
            return Interrupted("interrupted", advice=advice)
        most = [batch.first.most_usd for batch in still]
        bound = f", at most ${sum(filter(None, most)):.2f}" if None not in most else ""
        return Interrupted(
            f"interrupted; {describe_open(still)} {'goes' if len(still) == 1 else 'go'} on and will be paid for{bound}",
            advice=f"The same command collects what they answer. To end them: {self.journal.cancel_command}",
        )

    # --- collect ----------------------------------------------------------------------------------------------

    async def collect(self) -> None:
        """Write the answers of all batches that are over into the journal."""
        for batch in sorted(self.workload.open_batches, key=lambda batch: batch.remote is None):
            client = self.workload.open_client(batch.role)
            if batch.remote is None:
                self._note(batch, await self._find(batch, client))
            if batch.remote is None:
                continue
            remote = await self._call(partial(client.look, batch.remote), f"asking about batch {batch.remote}")
            if remote is None:
                self.workload.lose(batch, "deleted")
                raise give_up(batch, "the provider does not know it any more")
            if remote.is_over:
                await self._collect_one(batch, remote, client)

    async def _collect_one(self, batch: Batch, remote: RemoteBatch, client: BatchClient) -> None:
        if remote.problems and not remote.files:
            if any(problem.is_full_queue for problem in remote.problems):
                self._shrink(batch)
            else:
                self._say(self.answers.take_refusal(batch, remote))
            return
        results = await self._call(partial(client.read_results, remote), f"reading batch {batch.remote}")
        if results is None:
            self.workload.lose(batch, "deleted")
            raise give_up(batch, "the provider has deleted its results")
        if said := self.answers.take_results(batch, remote, results, is_new=batch.name in self._made):
            self._say(said)

    # --- submit -----------------------------------------------------------------------------------------------

    async def submit(self) -> None:
        """Hand over all that is wanted, as batches. A queue that was full takes one at a time."""
        number = self.journal.rounds + 1
        for role in sorted(self.workload.batched):
            for chunk in self._split_into_batches(role, self._prepare_requests(role)):
                await self._hand_over(role, chunk, number)
                if role in self._most:
                    break
        if opened := self.workload.open_batches:
            self._say(f"round {number}: {describe_open(opened)}")

    def _prepare_requests(self, role: str) -> Iterator[Prepared]:
        client, price = self.workload.open_client(role), self.workload.prices.get(role)
        part = 1.0 if price is None or price.batch is None else price.batch
        for job in [job for jobs in self.workload.wanted.values() for job in jobs if job.role == role]:
            if not isinstance(job.work, SubjectWork | JudgeWork):
                raise TypeError(f"{job.work!r} is no work")
            asked = self.workload.request(job)
            payload, notes = client.model.prepare(asked)
            name = encode_work(self.workload.scenarios[job.scenario].id, job.work, asked.sampling.max_tokens)
            most = self.workload.most_usd(role, asked)
            yield Prepared(name, client.encode_line(name, payload), most and part * most, notes)

    def _split_into_batches(self, role: str, prepared: Iterator[Prepared]) -> Iterator[list[Prepared]]:
        service = self.workload.open_client(role).service
        most = self._most.get(role, service.most_requests)
        chunk: list[Prepared] = []
        size = 0
        for item in prepared:
            if chunk and (len(chunk) >= most or size + len(item.line) > service.most_bytes):
                yield chunk
                chunk, size = [], 0
            chunk.append(item)
            size += len(item.line) + 1
        if chunk:
            yield chunk

    async def _hand_over(self, role: str, chunk: Sequence[Prepared], number: int) -> None:
        """Write down what is about to be done before it can cost anything."""
        client, lines = self.workload.open_client(role), [item.line for item in chunk]
        costs = [item.most_usd for item in chunk]
        most = None if None in costs else round(math.fsum(filter(None, costs)), 6)
        self._reserve_cost(client, most or 0.0, len(chunk))
        what = f"handing over {len(chunk):,} requests to {client.model.name}"
        try:
            file = await self._call(partial(client.upload, lines), what)
            batch = self.journal.begin(
                role=role,
                judge=None if role == SUBJECT else self.workload.judge_file,
                model=client.model.name,
                endpoint=client.model.endpoint,
                round=number,
                requests=tuple(item.id for item in chunk),
                adjusted=tuple(dict.fromkeys(note for item in chunk for note in item.adjusted)),
                most_usd=most,
                file=file,
            )
        except RequestRefusedError as error:
            raise _as_fatal(error) from None
        finally:
            self.workload.purse.give_back(self)
        if most is not None:
            self.workload.purse.set_aside(batch.name, most)
        self._made.add(batch.name)
        await self._create(batch, client, lines, what)

    def _reserve_cost(self, client: BatchClient, most: float, count: int) -> None:
        """A batch cannot be stopped by its cost, so it has to fit as a whole, next to all that is under way."""
        purse = self.workload.purse
        if purse.limit is None or purse.set_aside(self, most):
            return
        under_way = f", ${purse.under_way:.4f} may be added by what is under way" if purse.under_way else ""
        raise IncompleteError(
            f"the next batch of {count:,} requests to {client.model.name} may cost ${most:.4f}; the {purse.payer} has"
            f" cost ${purse.spent:.4f}{under_way}, and --max-cost is ${purse.limit:g}",
            advice="Nothing of it was sent: the bound counts every answer at its full length. Raise the limit, and the"
            " same command continues.",
        )

    async def _create(self, batch: Batch, client: BatchClient, lines: Sequence[bytes], what: str) -> None:
        """A call that breaks may have made the batch: it is looked for before another one is made."""
        for attempt in range(TRIES):
            try:
                remote: RemoteBatch | None
                remote = await self._call(partial(client.create, batch.first.file, lines), what, grace=GRACE)
            except TransientModelError as error:
                if error.throttled and not error.starting:
                    self._shrink(batch)
                    return
                remote = None if error.starting or error.unreachable else await self._find(batch, client)
                if remote is None and (error.unreachable or attempt + 1 == TRIES):
                    self.workload.lose(batch, "not made")
                    raise
            except ModelError as error:
                self.workload.lose(batch, "refused")
                raise _as_fatal(error) from None
            if remote is not None:
                self._note(batch, remote)
                return
            await self._call(partial(asyncio.sleep, 2.0**attempt), what)

    async def _find(self, batch: Batch, client: BatchClient) -> RemoteBatch | None:
        """A batch whose creation was not answered, or not seen."""
        what, count = "looking for a batch that may have been made", len(batch.requests)
        if batch.first.file is None:
            raise IncompleteError(
                f"a batch of {count:,} requests to {batch.first.model} may have been made at {batch.first.endpoint}:"
                " its answer was not seen, and nothing there tells it from others",
                advice="Look there for one of that size, and cancel it. Then give it up with"
                f" {self.journal.cancel_command} and run the same command, which makes a new one.",
            )
        for pause in (0.0, LISTING_DELAY):
            await self._call(partial(asyncio.sleep, pause), what)
            remote = await self._call(partial(client.find, batch.first.file), what)
            if remote is not None:
                return remote
        return None

    def _note(self, batch: Batch, remote: RemoteBatch | None) -> None:
        if remote is None:
            self.workload.lose(batch, "not made")
        else:
            self.journal.move(batch, BatchState.SUBMITTED, remote=remote.id)

    def _shrink(self, batch: Batch) -> None:
        """The queue of the account is full: the next batch is half as large. Without room for one, the run ends."""
        self.workload.lose(batch, "queue full")
        count, where = len(batch.requests), f"the queue of {batch.first.model} at {batch.first.endpoint} is full"
        self._most[batch.role] = max(1, count // 2)
        if count == 1 and not self.workload.open_batches:
            raise IncompleteError(
                f"{where}: it takes not one request more",
                advice="Run the same command again when other batches of this account are over.",
            )
        self._say(f"{where}: it does not take {count:,} requests, so fewer go at a time")

    def _say(self, news: str) -> None:
        self.workload.news = news
        self.tick()


def _as_fatal(error: ModelError) -> ModelError:
    """A call of the batch API that was refused is no failure of a request: it ends the session."""
    return FatalModelError(str(error), advice=error.advice) if isinstance(error, RequestRefusedError) else error
