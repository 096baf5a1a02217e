"""A run in batches: submit and collect, until nothing is wanted. What is not asked in batches is sent before a submit.

The journal is the state and the planner names all that is wanted, so nobody has to stay alive between the two. A round
is handed over when all batches of the last one are over: a run then takes as few of them as its longest chain.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections.abc import Awaitable, Callable, Iterator, Sequence
from typing import NamedTuple

import msgspec

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
from unmask.protocol.plan import SubjectWork
from unmask.records import Completion, Request
from unmask.runs.batches import (
    Batch,
    BatchJournal,
    BatchRequest,
    BatchState,
    describe_open,
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
GRACE = 5.0
"""Seconds that a call which makes a batch is given to be answered once the run is interrupted."""


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
def open_rounds(folder: Folder, options: Options, workload: Workload, judge_file: str) -> Iterator[Rounds | None]:
    """The rounds of a run that is asked in batches, or has some to collect."""
    roles, models = batched_roles(options, workload.models), workload.models
    if not roles and not any(_concerns(batch, models, judge_file) for batch in read_batches(folder.path).values()):
        yield None
        return
    with open_batch_journal(folder) as journal:
        yield Rounds(workload, journal, roles, judge_file, no_wait=options.no_wait)


def _concerns(batch: Batch, models: dict[str, Model], judge_file: str) -> bool:
    """Whether an open batch holds work of this session."""
    return batch.is_open and batch.role in models and (batch.role == SUBJECT or batch.judge == judge_file)


class Prepared(NamedTuple):
    """A request that is ready to be put into a batch."""

    request: BatchRequest
    line: bytes
    most_usd: float | None
    adjusted: tuple[str, ...]


class Rounds:
    """Submit and collect, and the waits between them."""

    def __init__(
        self, workload: Workload, journal: BatchJournal, roles: frozenset[str], judge_file: str, *, no_wait: bool
    ) -> None:
        self.workload, self.journal, self.roles = workload, journal, roles
        self._judge_file, self._no_wait = judge_file, no_wait
        self._clients: dict[str, BatchClient] = {}
        self._most: dict[str, int] = {}
        """By role: requests that its queue may have room for, where it was full."""
        self._failed = 0
        """Calls since the last batch that may have made none."""
        self._interrupted = False
        self._task: asyncio.Future[bool] | None = None
        """Set while something is under way that an interruption may end."""

    @property
    def open_batches(self) -> list[Batch]:
        """Batches of this session that are not over."""
        models = self.workload.models
        return [each for each in self.journal.batches.values() if _concerns(each, models, self._judge_file)]

    async def run(self, send_live: Callable[[], Awaitable[None]]) -> None:
        for batch in self.open_batches:
            if batch.most_usd is not None:
                self.workload.purse.set_aside(batch.batch, batch.most_usd)
        while True:
            await self._interruptibly(self._collect_all())
            await send_live()
            if not await self._interruptibly(self._submit()):
                return

    async def _interruptibly(self, work: Awaitable[bool]) -> bool:
        task = self._task = asyncio.ensure_future(work)
        try:
            return await task
        except asyncio.CancelledError:
            if not self._interrupted:
                raise
            raise self._explain_interruption() from None
        finally:
            self._task, self.workload.waits = None, ""

    def interrupt(self) -> None:
        """End the call or pause that is under way: at once, or after its grace where it may make a batch."""
        self._interrupted = True
        if self._task is not None:
            self._task.cancel()

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

    # --- collect ----------------------------------------------------------------------------------------------

    async def _collect_all(self) -> bool:
        """Write the answers of all batches into the journal as soon as they are over."""
        pause = SHORTEST_PAUSE
        while True:
            for batch in sorted(self.open_batches, key=lambda batch: batch.remote is None):
                await self._collect(batch)
            if not self.open_batches:
                return True
            self._leave_if_unwaited()
            self.workload.waits = f"waiting for {describe_open(self.open_batches)}"
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, LONGEST_PAUSE)

    def _leave_if_unwaited(self) -> None:
        """A run that goes on live buys nothing that is under way; `--no-wait` leaves."""
        said = describe_open(self.open_batches)
        if not self.roles:
            raise UsageError(
                f"{said}: under way for this run, and would be bought again",
                advice=f"Go on with --batch, which waits for them, or end them first: {self.journal.cancel_command}."
                " Those that are over are collected.",
            )
        if self._no_wait:
            raise BatchesOpen(
                f"{said}: under way",
                advice="Most are over within an hour, nearly all within a day. The same command then collects them and"
                " goes on; `unmask batch list` says how far they are.",
            )

    async def _collect(self, batch: Batch) -> None:
        client = self._client(batch.role)
        if batch.remote is None:
            self.workload.waits = "looking for a batch that may have been made"
            if (made := await _find(batch, client)) is None:
                self._close(batch, BatchState.LOST, "not made")
                return
            batch = self.journal.write(batch, state=BatchState.SUBMITTED, remote=made.id)
        self.workload.waits = f"asking about batch {batch.remote}"
        remote = await client.look(batch.remote or "")
        if remote is None:
            self._close(batch, BatchState.LOST, "deleted")
            raise _give_up(batch, "the provider does not know it any more")
        if remote.problems and not remote.files:
            self._take_refusal(batch, remote)
        elif remote.is_over:
            results = await client.read_results(remote)
            if results is None:
                self._close(batch, BatchState.LOST, "deleted")
                raise _give_up(batch, "the provider has deleted its results")
            self._take_results(batch, remote, results)

    def _take_refusal(self, batch: Batch, remote: RemoteBatch) -> None:
        """The provider would not take the batch, so nothing of it was run. Requests that it names have failed."""
        count, reasons = len(batch.requests), "; ".join(dict.fromkeys(map(str, remote.problems[:4])))
        if any(problem.is_full_queue for problem in remote.problems):
            self._shrink(batch, reasons)
            return
        self._close(batch, BatchState.LOST, "refused")
        lines = {problem.line: problem for problem in remote.problems if 1 <= (problem.line or 0) <= count}
        if len(lines) in (0, count):
            raise FatalModelError(
                f"{batch.model}: the provider refused a batch: {reasons}",
                advice="Nothing of it was run or paid for. Correct what it names, or go on without --batch.",
            )
        for line, problem in lines.items():
            error = RequestRefusedError(f"the provider refused this request of a batch: {problem}")
            self._keep(batch, batch.requests[(line or 1) - 1], error)
        self.workload.news = f"{batch.model}: {len(lines)} of {count:,} requests of a batch were refused: {reasons}"

    def _shrink(self, batch: Batch, reasons: str) -> None:
        """The queue of the account is full: the next batch is half as large. Without room for one, the run ends."""
        self._close(batch, BatchState.LOST, "queue full")
        count, where = len(batch.requests), f"the queue of {batch.model} at {batch.endpoint} is full"
        self._most[batch.role] = max(1, count // 2)
        if count == 1 and not self.open_batches:
            raise IncompleteError(
                f"{where}: it takes not one request more ({reasons})",
                advice="Run the same command again when other batches of this account are over.",
            )
        self.workload.news = f"{where}: it does not take {count:,} requests, so fewer go at a time"

    def _take_results(self, batch: Batch, remote: RemoteBatch, results: Sequence[BatchResult]) -> None:
        """Write down every answer, then that the batch is collected. What the journal has already is passed over, so a
        kill anywhere in here does no harm."""
        left, answered, again = {request.id: request for request in batch.requests}, 0, 0
        strange = sum(result.status is not None and result.id not in left for result in results)
        fatal: FatalModelError | None = None
        for result in results:
            request = left.get(result.id)
            if request is None or result.status is None:
                continue
            try:
                answer = self._read_answer(batch, request, result)
            except FatalModelError as error:  # credit, key, model, or a parameter of the user: no fault of a request
                fatal = error
                continue
            del left[result.id]
            if answer is None or self.workload.asks_with_less(batch.role, answer, request.room):
                again += 1
                continue
            answered += isinstance(answer, Completion)
            self._keep(batch, request, answer)
        unrun = next((result.message for result in results if result.status is None and result.message), "")
        reason = (unrun if remote.state == "ended" else remote.state) if left else None
        self._close(batch, BatchState.COLLECTED, reason, answered)
        if fatal is not None:
            raise fatal
        if left and strange:
            raise _give_up(batch, f"{strange:,} of its answers have ids that were not sent")
        if left:
            said = (
                f"batch {batch.remote} of {batch.model} is over ({reason}) without an answer to {len(left):,} of"
                f" {len(batch.requests):,} requests"
            )
            if not answered and not again:  # rounds that bring nothing have no end
                raise IncompleteError(said, advice="The same command asks them again.")
            self.workload.news = f"{said}: they are asked again"

    def _read_answer(self, batch: Batch, request: BatchRequest, result: BatchResult) -> Completion | ModelError | None:
        """`None` where a parameter was refused: the request goes into the next round without it."""
        sampling = msgspec.structs.replace(self.workload.sampling_of(batch.role), max_tokens=request.room)
        asked = Request((), sampling, n=len(request.work.takes) if isinstance(request.work, SubjectWork) else 1)
        answer = HttpAnswer(result.status or 0, result.body, {}, 0.0)
        try:
            model = self._client(batch.role).model
            completion = model.interpret(answer, asked, sent=REFUSABLE, notes=batch.adjusted)
        except FatalModelError:
            raise
        except ModelError as error:
            return error
        return completion and msgspec.structs.replace(completion, latency=None, tier=BATCH)

    def _keep(self, batch: Batch, request: BatchRequest, result: Completion | ModelError) -> None:
        """Write an answer down, unless the journal has it."""
        number, work = self.workload.places[request.scenario], request.work
        state = self.workload.state(number)
        if isinstance(work, SubjectWork):
            replies = [state.reply(work.slot, take) for take in work.takes]
            has = any(reply and reply.choice is not None and reply.attempt >= work.attempt for reply in replies)
        else:
            calls = state.calls(work.slot, work.digest)
            has = any(call.method is work.method and call.attempt >= work.attempt and not call.error for call in calls)
        if not has:
            job = Job(scenario=number, role=batch.role, depth=0, keys=(), work=work)
            each = None if batch.most_usd is None else batch.most_usd / len(batch.requests)
            lost = int(isinstance(result, ModelError) and result.paid)
            self.workload.keep(job, result, room=request.room, lost=lost, most_usd=each)

    # --- submit -----------------------------------------------------------------------------------------------

    async def _submit(self) -> bool:
        """Hand over all that is wanted, as batches. False where nothing is."""
        number, wanted = 1 + max((batch.round for batch in self.journal.batches.values()), default=0), False
        for role in sorted(self.roles):
            for chunk in self._split_into_batches(role):
                wanted = True
                if not await self._hand_over(role, chunk, number):
                    return True  # whether it was made is looked for before another one is
                if role in self._most:
                    break
        if opened := self.open_batches:
            self.workload.news = f"round {number}: {describe_open(opened)}"
        return wanted

    def _split_into_batches(self, role: str) -> Iterator[list[Prepared]]:
        service, chunk, size = self._client(role).service, list[Prepared](), 0
        most = self._most.get(role, service.most_requests)
        for item in self._prepare_requests(role):
            if chunk and (len(chunk) >= most or size + len(item.line) > service.most_bytes):
                yield chunk
                chunk, size = [], 0
            chunk.append(item)
            size += len(item.line) + 1
        if chunk:
            yield chunk

    def _prepare_requests(self, role: str) -> Iterator[Prepared]:
        client, work = self._client(role), self.workload
        price = work.prices.get(role)
        part = 1.0 if price is None or price.batch is None else price.batch
        wanted = [job for group in work.groups.values() for scenario in group for job in work.jobs(scenario)]
        for job in wanted:
            if job.role == role:
                asked = work.request(job)
                payload, notes = client.model.prepare(asked)
                left_out = {"after": None} if isinstance(job.work, SubjectWork) else {"texts": ()}
                item = msgspec.structs.replace(job.work, depth=0, **left_out)
                scenario, room = work.scenarios[job.scenario].id, asked.sampling.max_tokens
                request = BatchRequest(scenario=scenario, work=item, room=room)
                most = work.most_usd(role, asked)
                yield Prepared(request, client.encode_line(request.id, payload), most and part * most, notes)

    async def _hand_over(self, role: str, chunk: Sequence[Prepared], number: int) -> bool:
        """Write down what is about to be done before it can cost anything, and do it. False where no batch was made, as
        far as is known."""
        client, lines, purse = self._client(role), [item.line for item in chunk], self.workload.purse
        costs = [item.most_usd for item in chunk]
        batch = Batch(
            state=BatchState.INTENDED,
            role=role,
            judge=None if role == SUBJECT else self._judge_file,
            model=client.model.name,
            endpoint=client.model.endpoint,
            round=number,
            requests=tuple(item.request for item in chunk),
            adjusted=tuple(dict.fromkeys(note for item in chunk for note in item.adjusted)),
            most_usd=None if None in costs else round(math.fsum(filter(None, costs)), 6),
        )
        if not purse.set_aside(batch.batch, batch.most_usd or 0.0):  # it cannot be stopped by its cost
            under_way = f", ${purse.under_way:.4f} may be added by what is under way" if purse.under_way else ""
            raise IncompleteError(
                f"the next batch of {len(chunk):,} requests to {batch.model} may cost ${batch.most_usd or 0.0:.4f}; the"
                f" {purse.payer} has cost ${purse.spent:.4f}{under_way}, and --max-cost is ${purse.limit or 0.0:g}",
                advice="Nothing of it was sent: the bound counts every answer at its full length. Raise the limit, and"
                " the same command continues.",
            )
        self.workload.waits = f"handing over {len(chunk):,} requests to {batch.model}"
        try:
            file = await client.upload(lines)
        except BaseException as error:
            purse.give_back(batch.batch)
            raise _as_fatal(error) from None
        return await self._create(self.journal.write(batch, file=file), client, lines)

    async def _create(self, batch: Batch, client: BatchClient, lines: Sequence[bytes]) -> bool:
        creating, cancelled = asyncio.ensure_future(client.create(batch.file, lines)), False
        try:
            await asyncio.wait([creating])
        except asyncio.CancelledError:
            cancelled = True
            await asyncio.wait([creating], timeout=GRACE)
            creating.cancel()
        try:
            remote = await creating
        except TransientModelError as error:
            if error.throttled and not error.starting:
                self._shrink(batch, str(error))
                return True
            if error.starting or error.unreachable:
                self._close(batch, BatchState.LOST, "not made")
            self._failed += 1
            if error.unreachable or self._failed == TRIES:
                raise
            if not cancelled:
                await asyncio.sleep(max(2.0 ** (self._failed - 1), min(error.retry_after or 0.0, LONGEST_PAUSE)))
        except ModelError as error:
            self._close(batch, BatchState.LOST, "refused")
            raise _as_fatal(error) from None
        else:
            self._failed = 0
            self.journal.write(batch, state=BatchState.SUBMITTED, remote=remote.id)
        if cancelled:
            raise asyncio.CancelledError
        return self._failed == 0


async def _find(batch: Batch, client: BatchClient) -> RemoteBatch | None:
    """A batch whose creation was not answered, or not seen."""
    if batch.file is None:
        raise IncompleteError(
            f"a batch of {len(batch.requests):,} requests to {batch.model} may have been made at {batch.endpoint}: its"
            " answer was not seen, and nothing there tells it from others",
            advice="Look there for one of that size, and cancel it. Then give it up with `unmask batch cancel` and run"
            " the same command, which makes a new one.",
        )
    await asyncio.sleep(LISTING_DELAY)
    return await client.find(batch.file)


def _give_up(batch: Batch, why: str) -> IncompleteError:
    """The error for answers that may have been paid for and cannot be had. Buying them again is up to the user."""
    return IncompleteError(
        f"batch {batch.remote} of {batch.model} with {len(batch.requests):,} requests: {why}",
        advice="They may have been paid for. The same command asks again for what has no answer.",
    )


def _as_fatal(error: BaseException) -> BaseException:
    """A call of the batch API that was refused is no failure of a request: it ends the session."""
    return FatalModelError(str(error), advice=error.advice) if isinstance(error, RequestRefusedError) else error
