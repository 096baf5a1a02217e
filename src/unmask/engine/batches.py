"""A run in batches: submit and collect, until nothing is wanted. What is not asked in batches is sent before a submit.

The journal is the state and the planner names all that is wanted, so nobody has to stay alive between the two. A round
is handed over when all batches of the last one are over: a run then takes as few of them as its longest chain.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Sequence
from typing import Any, NamedTuple, TypeVar

import msgspec

from unmask.engine.loop import call_repeatedly
from unmask.engine.work import JUDGE, NUMERIC_JUDGE, SUBJECT, Job, Workload
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
from unmask.models.base import Model
from unmask.models.batch_client import BatchClient, BatchResult, RemoteBatch, open_batch_client
from unmask.models.http import HttpAnswer
from unmask.models.parameters import REFUSABLE
from unmask.models.tiers import BATCH
from unmask.protocol.plan import JudgeWork, SubjectWork
from unmask.records import Completion, Request
from unmask.runs.batches import (
    Batch,
    BatchJournal,
    BatchState,
    decode_work,
    describe_open,
    encode_work,
    hash_scenario,
    open_batch_journal,
    read_batches,
)
from unmask.runs.folder import Folder
from unmask.runs.options import Options

SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between two looks at batches: half as long again each time."""
LISTING_DELAY = 3.0
"""Seconds after which a batch that was made is in its provider's list."""
TRIES = 5
"""Calls in a row that make no batch."""
TICK = 1.0
GRACE = 5.0
"""Seconds that a call which makes a batch is given to be answered once the run is interrupted."""

T = TypeVar("T")


def batched_roles(options: Options, models: dict[str, Model]) -> frozenset[str]:
    """The roles that `--batch` puts into batches. Raises where one of them has no batch API."""
    if options.batch is None:
        return frozenset()
    roles = {JUDGE, NUMERIC_JUDGE, *([SUBJECT] if options.batch == "all" else [])} & models.keys()
    if not roles:
        raise UsageError(
            "--batch judge: the judge is no model, so there is nothing to put into batches",
            advice="Leave --batch out, or name a model as the judge.",
        )
    for role in roles:
        open_batch_client(models[role])
    return frozenset(roles)


@contextlib.contextmanager
def open_batches(
    folder: Folder, options: Options, *, models: dict[str, Model], judge_file: str
) -> Iterator[dict[str, object]]:
    """The fields of a workload that is asked in batches, or has some to collect; none where neither is so."""
    roles = batched_roles(options, models)
    if not roles and not any(_concerns(batch, models, judge_file) for batch in read_batches(folder.path).values()):
        yield {}
        return
    with open_batch_journal(folder) as journal:
        yield {"batched": roles, "batches": journal, "judge_file": judge_file, "no_wait": options.no_wait}


def _concerns(batch: Batch, models: dict[str, Model], judge_file: str) -> bool:
    """Whether an open batch holds work of this session."""
    return batch.is_open and batch.role in models and (batch.role == SUBJECT or batch.judge == judge_file)


class Prepared(NamedTuple):
    """A request that is ready to be put into a batch."""

    id: str
    line: bytes
    most_usd: float | None
    adjusted: tuple[str, ...]


class Rounds:
    """Submit and collect, and the waits between them."""

    def __init__(self, workload: Workload, journal: BatchJournal, tick: Callable[[], None]) -> None:
        self.workload = workload
        self.journal = journal
        self.tick = tick
        self._numbers = {hash_scenario(scenario.id): number for number, scenario in enumerate(workload.scenarios)}
        self._clients: dict[str, BatchClient] = {}
        self._most: dict[str, int] = {}
        """By role: requests that its queue may have room for, where it was full."""
        self._failed = 0
        """Calls since the last batch that may have made none."""
        self._interrupted = False
        self._waiting: asyncio.Future[Any] | None = None
        self._grace = 0.0
        for batch in self.open_batches:
            if batch.most_usd is not None:
                workload.purse.set_aside(batch.batch, batch.most_usd)

    @property
    def open_batches(self) -> list[Batch]:
        """Batches of this session that are not over."""
        workload = self.workload
        return [each for each in self.journal.batches.values() if _concerns(each, workload.models, workload.judge_file)]

    async def run(self, send_live: Callable[[], Awaitable[None]]) -> None:
        pause = SHORTEST_PAUSE
        while True:
            await self._collect()
            if self.open_batches:
                self._leave_if_unwaited()
                await self._call(asyncio.sleep(pause), f"waiting for {describe_open(self.open_batches)}")
                pause = min(1.5 * pause, LONGEST_PAUSE)
                continue
            await send_live()
            if not any(self.workload.wanted.values()):
                return
            await self._submit()
            pause = SHORTEST_PAUSE

    # --- waiting ----------------------------------------------------------------------------------------------

    def interrupt(self) -> None:
        """End the call or pause that is under way: at once, or after its grace where it may make a batch."""
        first, self._interrupted = not self._interrupted, True
        if self._waiting is not None:
            asyncio.get_running_loop().call_later(self._grace if first else 0.0, self._waiting.cancel)

    async def _call(self, work: Coroutine[Any, Any, T], what: str, *, grace: float = 0.0) -> T:
        """Await a call or a pause, and show what it is."""
        if self._interrupted:
            work.close()
            raise self._explain_interruption()
        waiting: asyncio.Future[T] = asyncio.ensure_future(work)
        self._waiting, self._grace, self.workload.waits = waiting, grace, what
        try:
            async with call_repeatedly(self.tick, every=TICK):
                return await waiting
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            raise self._explain_interruption() from None
        finally:
            self._waiting, self.workload.waits = None, ""

    def _leave_if_unwaited(self) -> None:
        """A run that goes on live buys nothing that is under way; `--no-wait` leaves."""
        said = describe_open(self.open_batches)
        if not self.workload.batched:
            raise UsageError(
                f"{said}: under way for this run, and would be bought again",
                advice=f"Go on with --batch, which waits for them, or end them first: {self.journal.cancel_command}."
                " Those that are over are collected.",
            )
        if self.workload.no_wait:
            raise BatchesOpen(
                f"{said}: under way",
                advice="Most are over within an hour, nearly all within a day. The same command then collects them and"
                " goes on; `unmask batch list` says how far they are.",
            )

    def _explain_interruption(self) -> Interrupted:
        if not (still := self.open_batches):
            advice = "Everything answered is kept: run the same command again to continue."
            return Interrupted("interrupted", advice=advice)
        most = [batch.most_usd for batch in still]
        bound = f", at most ${sum(filter(None, most)):.2f}" if None not in most else ""
        return Interrupted(
            f"interrupted; {describe_open(still)} {'goes' if len(still) == 1 else 'go'} on and will be paid for{bound}",
            advice=f"The same command collects what they answer. To end them: {self.journal.cancel_command}",
        )

    def _client(self, role: str) -> BatchClient:
        if role not in self._clients:
            self._clients[role] = open_batch_client(self.workload.models[role])
        return self._clients[role]

    def _close(self, batch: Batch, state: BatchState, reason: str | None, answered: int | None = None) -> None:
        """Write down that a batch is over."""
        self.journal.write(batch, state=state, reason=reason, answered=answered)
        self.workload.purse.give_back(batch.batch)

    def _say(self, news: str) -> None:
        self.workload.news = news
        self.tick()

    # --- collect ----------------------------------------------------------------------------------------------

    async def _collect(self) -> None:
        """Write the answers of all batches that are over into the journal."""
        for batch in sorted(self.open_batches, key=lambda batch: batch.remote is None):
            client, known = self._client(batch.role), batch
            if batch.remote is None:
                if (made := await self._find(batch, client)) is None:
                    self._close(batch, BatchState.LOST, "not made")
                    continue
                known = self.journal.write(batch, state=BatchState.SUBMITTED, remote=made.id)
            remote = await self._call(client.look(known.remote or ""), f"asking about batch {known.remote}")
            if remote is None:
                self._close(known, BatchState.LOST, "deleted")
                raise _give_up(known, "the provider does not know it any more")
            if remote.problems and not remote.files:
                self._take_refusal(known, remote)
            elif remote.is_over:
                results = await self._call(client.read_results(remote), f"reading batch {known.remote}")
                if results is None:
                    self._close(known, BatchState.LOST, "deleted")
                    raise _give_up(known, "the provider has deleted its results")
                self._take_results(known, remote, results)

    async def _find(self, batch: Batch, client: BatchClient) -> RemoteBatch | None:
        """A batch whose creation was not answered, or not seen."""
        if batch.file is None:
            raise IncompleteError(
                f"a batch of {len(batch.requests):,} requests to {batch.model} may have been made at {batch.endpoint}:"
                " its answer was not seen, and nothing there tells it from others",
                advice="Look there for one of that size, and cancel it. Then give it up with"
                f" {self.journal.cancel_command} and run the same command, which makes a new one.",
            )
        what = "looking for a batch that may have been made"
        remote = await self._call(client.find(batch.file), what)
        if remote is None:
            await self._call(asyncio.sleep(LISTING_DELAY), what)
            remote = await self._call(client.find(batch.file), what)
        return remote

    def _take_refusal(self, batch: Batch, remote: RemoteBatch) -> None:
        """The provider would not take the batch, so nothing of it was run. Requests that it names have failed."""
        if any(problem.is_full_queue for problem in remote.problems):
            self._shrink(batch)
            return
        self._close(batch, BatchState.LOST, "refused")
        count, reasons = len(batch.requests), "; ".join(dict.fromkeys(map(str, remote.problems[:4])))
        lines = {problem.line: problem for problem in remote.problems if 1 <= (problem.line or 0) <= count}
        if len(lines) in (0, count):
            raise FatalModelError(
                f"{batch.model}: the provider refused a batch: {reasons}",
                advice="Nothing of it was run or paid for. Correct what it names, or go on without --batch.",
            )
        for line, problem in lines.items():
            error = RequestRefusedError(f"the provider refused this request of a batch: {problem}")
            self._keep(batch, batch.requests[(line or 1) - 1], error)
        self._say(f"{batch.model}: {len(lines)} of {count:,} requests of a batch were refused: {reasons}")

    def _take_results(self, batch: Batch, remote: RemoteBatch, results: Sequence[BatchResult]) -> None:
        """Write down every answer, then that the batch is collected. What the journal has already is passed over, so a
        kill anywhere in here does no harm."""
        left, answered, again = set(batch.requests), 0, 0
        fatal: FatalModelError | None = None
        for result in results:
            if result.id not in left or result.status is None:
                continue
            try:
                answer = self._read_answer(batch, result)
            except FatalModelError as error:  # credit, key, model, or a parameter of the user: no fault of a request
                fatal = error
                continue
            left.discard(result.id)
            _, _, room = decode_work(result.id) or ("", None, None)
            if answer is None or self.workload.asks_with_less(batch.role, answer, room):
                again += 1
                continue
            answered += isinstance(answer, Completion)
            self._keep(batch, result.id, answer)
        unrun = next((result.message for result in results if result.status is None and result.message), "")
        reason = (unrun if remote.state == "ended" else remote.state) if left else None
        self._close(batch, BatchState.COLLECTED, reason, answered)
        if fatal is not None:
            raise fatal
        if left and {result.id for result in results}.difference(batch.requests):
            raise _give_up(batch, "it has answers under ids that were not sent")
        if left:
            said = (
                f"batch {batch.remote} of {batch.model} is over ({reason}) without an answer to {len(left):,} of"
                f" {len(batch.requests):,} requests"
            )
            if not answered and not again:  # rounds that bring nothing have no end
                raise IncompleteError(said, advice="The same command asks them again.")
            self._say(f"{said}: they are asked again")

    def _read_answer(self, batch: Batch, result: BatchResult) -> Completion | ModelError | None:
        """`None` where a parameter was refused: the request goes into the next round without it."""
        found = decode_work(result.id)
        takes = found[1].takes if found and isinstance(found[1], SubjectWork) else ()
        sampling = msgspec.structs.replace(
            self.workload.sampling_of(batch.role), max_tokens=found[2] if found else None
        )
        asked = Request((), sampling, n=max(1, len(takes)))
        answer = HttpAnswer(result.status or 0, result.body, {}, 0.0)
        try:
            model = self._client(batch.role).model
            completion = model.interpret(answer, asked, sent=REFUSABLE, notes=batch.adjusted)
        except FatalModelError:
            raise
        except ModelError as error:
            return error
        return completion and msgspec.structs.replace(completion, latency=None, tier=BATCH)

    def _keep(self, batch: Batch, name: str, result: Completion | ModelError) -> None:
        """Write an answer down, unless the journal has it."""
        found = decode_work(name)
        number = self._numbers.get(found[0]) if found else None
        if found is None or number is None:
            return
        state, work = self.workload.state(number), found[1]
        if isinstance(work, SubjectWork):
            replies = [state.reply(work.slot, take) for take in work.takes]
            has = any(reply and reply.choice is not None and reply.attempt >= work.attempt for reply in replies)
        else:
            calls = state.calls(work.slot, work.digest)
            has = any(call.method is work.method and call.attempt >= work.attempt and not call.error for call in calls)
        if not has:
            job = Job(scenario=number, role=batch.role, depth=0, keys=(name,), work=work)
            each = None if batch.most_usd is None else batch.most_usd / len(batch.requests)
            lost = int(isinstance(result, ModelError) and result.paid)
            self.workload.keep(job, result, room=found[2], lost=lost, most_usd=each)

    # --- submit -----------------------------------------------------------------------------------------------

    async def _submit(self) -> None:
        """Hand over all that is wanted, as batches. A queue that was full takes one at a time."""
        number = 1 + max((batch.round for batch in self.journal.batches.values()), default=0)
        for role in sorted(self.workload.batched):
            for chunk in self._split_into_batches(role, self._prepare_requests(role)):
                if not await self._hand_over(role, chunk, number):
                    return  # whether it was made is looked for before another one is
                if role in self._most:
                    break
        if opened := self.open_batches:
            self._say(f"round {number}: {describe_open(opened)}")

    def _prepare_requests(self, role: str) -> Iterator[Prepared]:
        client, price = self._client(role), self.workload.prices.get(role)
        part = 1.0 if price is None or price.batch is None else price.batch
        for job in [job for jobs in self.workload.wanted.values() for job in jobs if job.role == role]:
            assert isinstance(job.work, SubjectWork | JudgeWork)
            asked = self.workload.request(job)
            payload, notes = client.model.prepare(asked)
            name = encode_work(self.workload.scenarios[job.scenario].id, job.work, asked.sampling.max_tokens)
            most = self.workload.most_usd(role, asked)
            yield Prepared(name, client.encode_line(name, payload), most and part * most, notes)

    def _split_into_batches(self, role: str, prepared: Iterator[Prepared]) -> Iterator[list[Prepared]]:
        service = self._client(role).service
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

    async def _hand_over(self, role: str, chunk: Sequence[Prepared], number: int) -> bool:
        """Write down what is about to be done before it can cost anything, and do it. False where nobody knows whether
        it was done."""
        client, lines = self._client(role), [item.line for item in chunk]
        costs = [item.most_usd for item in chunk]
        most = None if None in costs else round(math.fsum(filter(None, costs)), 6)
        self._refuse_cost(client, most or 0.0, len(chunk))
        what = f"handing over {len(chunk):,} requests to {client.model.name}"
        try:
            file = await self._call(client.upload(lines), what)
            batch = Batch(
                state=BatchState.INTENDED,
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
            self.journal.write(batch)
        except RequestRefusedError as error:
            raise _as_fatal(error) from None
        finally:
            self.workload.purse.give_back(self)
        if most is not None:
            self.workload.purse.set_aside(batch.batch, most)
        return await self._create(batch, client, lines, what)

    def _refuse_cost(self, client: BatchClient, most: float, count: int) -> None:
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

    async def _create(self, batch: Batch, client: BatchClient, lines: Sequence[bytes], what: str) -> bool:
        try:
            remote = await self._call(client.create(batch.file, lines), what, grace=GRACE)
        except TransientModelError as error:
            if error.throttled and not error.starting:
                self._shrink(batch)
                return True
            if error.starting or error.unreachable:
                self._close(batch, BatchState.LOST, "not made")
            self._failed += 1
            if error.unreachable or self._failed == TRIES:
                raise
            await self._call(asyncio.sleep(2.0 ** (self._failed - 1)), what)
            return False
        except ModelError as error:
            self._close(batch, BatchState.LOST, "refused")
            raise _as_fatal(error) from None
        self._failed = 0
        self.journal.write(batch, state=BatchState.SUBMITTED, remote=remote.id)
        return True

    def _shrink(self, batch: Batch) -> None:
        """The queue of the account is full: the next batch is half as large. Without room for one, the run ends."""
        self._close(batch, BatchState.LOST, "queue full")
        count, where = len(batch.requests), f"the queue of {batch.model} at {batch.endpoint} is full"
        self._most[batch.role] = max(1, count // 2)
        if count == 1 and not self.open_batches:
            raise IncompleteError(
                f"{where}: it takes not one request more",
                advice="Run the same command again when other batches of this account are over.",
            )
        self._say(f"{where}: it does not take {count:,} requests, so fewer go at a time")


def _give_up(batch: Batch, why: str) -> IncompleteError:
    """The error for answers that may have been paid for and cannot be had. Buying them again is up to the user."""
    return IncompleteError(
        f"batch {batch.remote} of {batch.model} with {len(batch.requests):,} requests: {why}",
        advice="They may have been paid for. The same command asks again for what has no answer.",
    )


def _as_fatal(error: ModelError) -> ModelError:
    """A call of the batch API that was refused is no failure of a request: it ends the session."""
    return FatalModelError(str(error), advice=error.advice) if isinstance(error, RequestRefusedError) else error
