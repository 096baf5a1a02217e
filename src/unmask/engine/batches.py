"""A run in batches: rounds over the journal. Collect what is over, plan, send what is live, hand over the next round.

The journal is the state and the planner names all that is wanted, so nobody has to stay alive between two rounds. A
round is handed over when all batches of the last one are over: a run then takes as few of them as its longest chain.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import msgspec

from unmask.engine.work import JUDGE, NUMERIC_JUDGE, SUBJECT, Job, Workload, count_most_tokens, most_output
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
from unmask.models.batch_client import (
    QUEUE_FULL,
    BatchClient,
    BatchResult,
    RemoteBatch,
    UnlistedError,
    open_batch_client,
    refuse_problems,
)
from unmask.models.http import HttpAnswer
from unmask.models.parameters import REFUSABLE
from unmask.models.tiers import BATCH
from unmask.models.user_params import suspect_additions
from unmask.protocol.plan import JudgeWork, SubjectWork
from unmask.records import Completion, Method, Request, Sampling
from unmask.runs.batches import (
    Batch,
    BatchedRequest,
    BatchJournal,
    BatchReason,
    BatchState,
    describe_open,
    name_request,
    open_batch_journal,
    read_batches,
    write_batch_command,
)
from unmask.runs.folder import Folder
from unmask.runs.options import Options

MOST_TRIES = 3
"""Batches that a request is put into before it counts as failed; the same command then tries it again."""
SHORTEST_PAUSE, LONGEST_PAUSE = 1.0, 60.0
"""Seconds between two looks at a batch: a twentieth of its age."""
LISTING_DELAY = 3.0
"""Seconds after which a batch that was made stands in its provider's list."""
QUEUE_MEMORY = 86_400.0
"""Seconds for which a queue that was full makes batches smaller."""
ENOUGH_TO_COMPARE = 20
"""Answers of a batch from which on their lengths say whether they stand under the right ids."""
LEAST_CORRELATION = 0.5
WRONG_LENGTH = 4.0
"""The factor by which the tokens of a prompt differ from what its length says, where an answer has the wrong id."""
STOPPED = frozenset({BatchReason.NO_CREDIT, BatchReason.REFUSED})
"""Reasons that end a run: they say nothing about the requests of a batch."""
RESUBMISSIONS = 3
"""Of a batch whose creation broke and that is not to be found."""


@dataclass(kw_only=True)
class BatchedWorkload(Workload):
    """A workload of which some roles are asked in batches. Their jobs are not sent but gathered in `wanted`."""

    journal: BatchJournal
    judge_file: str
    no_wait: bool = False
    wanted: dict[int, tuple[Job, ...]] = field(default_factory=dict)
    over: set[int] = field(default_factory=set)
    """Scenarios with nothing left to ask."""

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

    def finished(self, scenario: int) -> bool:
        if scenario in self.over or self.wanted.get(scenario):
            return False
        self.over.add(scenario)
        self.wanted.pop(scenario, None)
        return super().finished(scenario)


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
    """The fields of a `BatchedWorkload` besides those of a workload; none where nothing is asked in batches. Raises
    where batches of this run are open and would be bought again."""
    roles = batched_roles(options, models)
    if not roles:
        waiting = [batch for batch in read_batches(folder.path).values() if concerns(batch, models, judge_file)]
        if waiting:
            raise UsageError(
                f"{describe_open(waiting)} {'is' if len(waiting) == 1 else 'are'} under way for this run, and would be"
                " bought again",
                advice="Go on with --batch, which collects them, or end them first: "
                + write_batch_command("cancel", folder),
            )
        yield {}
        return
    with open_batch_journal(folder) as journal:
        yield {"batched": roles, "journal": journal, "judge_file": judge_file, "no_wait": options.no_wait}


def concerns(batch: Batch, models: dict[str, Model], judge_file: str) -> bool:
    """Whether an open batch holds work of this session."""
    return batch.is_open and batch.role in models and (batch.role == SUBJECT or batch.first.judge == judge_file)


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
        self._clients: dict[str, BatchClient] = {}
        self._numbers = {scenario.id: number for number, scenario in enumerate(workload.scenarios)}
        for batch in self.journal.batches.values():
            if batch.is_open and batch.first.most_usd is not None:
                workload.purse.set_aside(batch.name, batch.first.most_usd)

    @property
    def open_batches(self) -> list[Batch]:
        workload = self.workload
        return [
            batch for batch in self.journal.batches.values() if concerns(batch, workload.models, workload.judge_file)
        ]

    async def run(self, send_live: Callable[[], Awaitable[None]]) -> None:
        while True:
            for batch in self.open_batches:
                await self._recover(batch)
            await self._collect_ended()
            if self.open_batches:
                await self._wait()
                continue
            await send_live()
            if not any(self.workload.wanted.values()):
                return
            await self._hand_over_round()

    # --- waiting ----------------------------------------------------------------------------------------------

    async def _wait(self) -> None:
        """Until the next look, or out of here."""
        still = self.open_batches
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
        still = self.open_batches
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

    async def _recover(self, batch: Batch) -> None:
        """A batch without its id at the provider: it was never made, or it was and its answer was never seen."""
        if batch.state is BatchState.SUBMITTED:
            return
        client = self._client(batch.role)
        if client.needs_file and batch.state is BatchState.INTENDED:  # a batch is made of a file, and there is none
            self._end_lost(batch, BatchReason.NOT_SUBMITTED)
            return
        remote = await self._find(batch, client)
        if remote is None and (young := batch.at + LISTING_DELAY - time.time()) > 0:
            await asyncio.sleep(young)
            remote = await self._find(batch, client)
        if remote is None:
            self._end_lost(batch, BatchReason.NOT_SUBMITTED)
        elif client.needs_file or remote.over:  # an open one without a file may be somebody else's: look again later
            self._note_submitted(batch, remote)

    async def _find(self, batch: Batch, client: BatchClient) -> RemoteBatch | None:
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
        for batch in self.open_batches:
            if batch.remote is None:
                continue
            client = self._client(batch.role)
            remote = await client.look(batch.remote)
            if remote is None:
                self._write_off(batch, BatchReason.DELETED, "the provider does not know its batch any more")
            elif remote.over and remote.problems and not remote.files:
                self._take_refusal(batch, remote)
            elif remote.over:
                results = await client.read_results(remote)
                if results is None:
                    self._write_off(batch, BatchReason.DELETED, "the provider has deleted the results of its batch")
                else:
                    self._keep_results(batch, remote, results)
            self._leave_if_stopped()

    def _take_refusal(self, batch: Batch, remote: RemoteBatch) -> None:
        """The provider would not take the batch: nothing of it was run."""
        problems, count = remote.problems, len(batch.requests)
        if any(problem.code.lower() in QUEUE_FULL or "enqueued" in problem.message.lower() for problem in problems):
            self._take_full_queue(batch)
            return
        bad = {problem.line for problem in problems}
        by_line = all(isinstance(line, int) and 1 <= line <= count for line in bad) and len(bad) < count
        self._end_lost(batch, BatchReason.REFUSED)
        if not by_line:
            raise refuse_problems(problems, batch.first.model or "")
        for problem in problems:
            request = batch.requests[(problem.line or 1) - 1]
            reason = f"the provider refused this request of a batch: {problem.code} {problem.message}"
            self._keep(batch, request, RequestRefusedError(reason[:500]))

    def _take_full_queue(self, batch: Batch) -> None:
        self._end_lost(batch, BatchReason.QUEUE_FULL)
        if len(batch.requests) == 1 and not self.open_batches:
            raise IncompleteError(
                f"the queue of {batch.first.model} at {batch.first.endpoint} is full: it takes not one request more",
                advice="Run the same command again when other batches of this account are over.",
            )

    def _keep_results(self, batch: Batch, remote: RemoteBatch, results: Sequence[BatchResult]) -> None:
        """Write down every answer, then that the batch is collected. What the journal has already is passed over, so a
        kill anywhere in here does no harm."""
        model = self._client(batch.role).model
        before = len(model.dropped)
        requests = {request.id: request for request in batch.requests}
        answers: dict[str, Completion | ModelError] = {}
        rows = {result.id for result in results}
        if rows - requests.keys():  # answers under ids that nobody sent: whose they are, nobody can say
            for name in requests.keys() - rows:
                answers[name] = RequestRefusedError(f"batch {batch.remote} has answers under ids that were not sent")
        fatal, stopped_by = self._read_answers(batch, requests, results, answers)
        mixed_up = self._refuse_misplaced(batch, requests, answers) or bool(rows - requests.keys())
        for name, answer in answers.items():
            self._keep(batch, requests[name], answer)
        refused = tuple(model.dropped[before:])
        unanswered = [result.message for result in results if result.id not in answers]
        ending = None if len(answers) == len(requests) else _name_ending(remote.state, unanswered)
        reason = BatchReason.MIXED_UP if mixed_up else stopped_by or ending
        if reason is not None and fatal is None and not refused:
            self._give_up_unanswered(batch, reason, answers)
        answered = sum(isinstance(answer, Completion) for answer in answers.values())
        self.journal.move(batch, BatchState.COLLECTED, answered=answered, reason=reason, refused=refused)
        self.workload.purse.give_back(batch.name)
        if fatal is not None:
            raise fatal

    def _read_answers(
        self,
        batch: Batch,
        requests: dict[str, BatchedRequest],
        results: Sequence[BatchResult],
        answers: dict[str, Completion | ModelError],
    ) -> tuple[FatalModelError | None, BatchReason | None]:
        """Add what each result says to `answers`. Gives the error that ends the run, and why: nothing is wrong with the
        requests then, and those without an answer are planned again."""
        fatal: FatalModelError | None = None
        stopped_by: BatchReason | None = None
        for result in results:
            request = requests.get(result.id)
            if request is None or result.id in answers or result.status is None:
                continue
            try:
                completion = self._read_answer(batch.role, request, result)
            except FatalModelError as error:  # credit, key or model, or a parameter of the user
                fatal = error
                stopped_by = BatchReason.REFUSED if result.status in (400, 422) else BatchReason.NO_CREDIT
            except RequestRefusedError as error:
                answers[result.id] = error
            except TransientModelError:
                continue
            else:
                if completion is not None:
                    answers[result.id] = completion
        suspicion = None if fatal is not None else self._suspect_additions(batch, answers)
        return (suspicion, BatchReason.REFUSED) if suspicion is not None else (fatal, stopped_by)

    def _suspect_additions(self, batch: Batch, answers: dict[str, Completion | ModelError]) -> FatalModelError | None:
        """As live: where a model has never answered and refuses without a reason, parameters of the user may be that.
        Takes these refusals out of `answers`."""
        earlier = (old.answered for old in self.journal.batches.values() if old.role == batch.role)
        if any(earlier) or any(isinstance(answer, Completion) for answer in answers.values()):
            return None
        model = self._client(batch.role).model
        for answer in answers.values():
            if isinstance(answer, RequestRefusedError):
                suspicion = suspect_additions(self._sampling(batch.role), answer, model=model.name)
                if suspicion is not None:
                    answers.clear()
                    return suspicion
        return None

    def _sampling(self, role: str) -> Sampling:
        settings, numeric = self.workload.settings, self.workload.numeric_settings
        if role == NUMERIC_JUDGE and numeric is not None:
            settings = numeric
        return settings.sampling if role == SUBJECT else settings.judge_sampling

    def _read_answer(self, role: str, request: BatchedRequest, result: BatchResult) -> Completion | None:
        """`None` where a parameter was refused: the request goes into the next round without it."""
        asked = Request((), self._sampling(role), n=max(1, len(request.takes)))
        answer = HttpAnswer(result.status or 0, result.body, {}, 0.0)
        model = self._client(role).model
        completion = model.interpret(answer, asked, sent=REFUSABLE, notes=request.adjusted)
        return completion and msgspec.structs.replace(completion, latency=None, tier=BATCH)

    def _refuse_misplaced(
        self, batch: Batch, requests: dict[str, BatchedRequest], answers: dict[str, Completion | ModelError]
    ) -> bool:
        """Providers have put answers under the wrong ids. The tokens of a prompt show it, where lengths differ. Answers
        that do not fit become failures; says whether that is so of the batch as a whole."""
        lengths = {
            name: (requests[name].size, answer.usage.input)
            for name, answer in answers.items()
            if isinstance(answer, Completion) and answer.usage.input and requests[name].size
        }
        misplaced, mixed_up = find_misplaced(lengths)
        for name in answers if mixed_up else misplaced:
            answers[name] = RequestRefusedError(
                f"the answers of batch {batch.remote} do not fit their questions: the provider counts tokens that this"
                " prompt cannot have"
            )
        return mixed_up

    def _give_up_unanswered(
        self, batch: Batch, reason: BatchReason, answers: dict[str, Completion | ModelError]
    ) -> None:
        """Requests that were in enough batches fail; the others are planned again."""
        tries: Counter[str] = Counter()
        for earlier in self.journal.batches.values():
            counts = earlier.state is BatchState.COLLECTED and earlier.reason not in STOPPED
            if (counts and not earlier.refused) or earlier is batch:
                tries.update(request.id for request in earlier.requests)
        for request in batch.requests:
            if request.id not in answers and tries[request.id] >= MOST_TRIES:
                message = f"in {tries[request.id]} batches without an answer; the last: {reason}"
                self._keep(batch, request, TransientModelError(message))

    def _write_off(self, batch: Batch, reason: BatchReason, message: str) -> None:
        """Its answers are paid for and gone. They are not bought again unasked: their scenarios stay unjudged."""
        for request in batch.requests:
            self._keep(batch, request, RequestRefusedError(message))
        self.journal.move(batch, BatchState.COLLECTED, answered=0, reason=reason)
        self.workload.purse.give_back(batch.name)

    def _keep(self, batch: Batch, request: BatchedRequest, result: Completion | ModelError) -> None:
        number = self._numbers.get(request.scenario)
        if number is None or number in self.workload.over:
            return
        state = self.workload.state(number)
        if batch.role == SUBJECT:
            takes = request.takes if isinstance(result, ModelError) else request.takes[: len(result.choices)]
            replies = [state.reply(request.slot, take) for take in takes]
            if any(reply and reply.choice is not None and reply.attempt >= request.attempt for reply in replies):
                return
            work: SubjectWork | JudgeWork = SubjectWork(
                request.slot, request.takes, request.attempt, request.max_tokens
            )
        else:
            digest, method = request.digest or "", request.method or Method.LETTER
            calls = state.calls(request.slot, digest)
            if any(call.method is method and call.attempt >= request.attempt and not call.error for call in calls):
                return
            work = JudgeWork(request.slot, digest, (), method, request.attempt, request.max_tokens)
        self.workload.keep(Job(scenario=number, role=batch.role, depth=0, keys=(request.id,), work=work), result)

    def _end_lost(self, batch: Batch, reason: BatchReason) -> None:
        self.journal.move(batch, BatchState.LOST, reason=reason)
        self.workload.purse.give_back(batch.name)

    # --- handing over -----------------------------------------------------------------------------------------

    async def _hand_over_round(self) -> None:
        """All that is wanted, as batches. Nothing is handed over where the round might cost more than is left."""
        number = self.journal.rounds + 1
        parts = {role: self._prepare(role) for role in sorted(self.workload.batched)}
        self._reserve_cost([prepared for part in parts.values() for prepared in part])
        try:
            for role, prepared in parts.items():
                cap = self._cap(role)
                for chunk in self._split(role, prepared, cap):
                    await self._hand_over(role, chunk, number)
                    self._leave_if_stopped()
                    if cap is not None:  # a queue that was full takes one batch at a time
                        break
        finally:
            self.workload.purse.give_back(self)
        opened = self.open_batches
        if opened:
            self.workload.news = f"round {number}: {describe_open(opened)}"
            self.tick()

    def _prepare(self, role: str) -> list[_Prepared]:
        client, price = self._client(role), self.workload.prices.get(role)
        part = 1.0 if price is None or price.batch is None else price.batch
        result = []
        for jobs in self.workload.wanted.values():
            for job in jobs:
                if job.role != role:
                    continue
                asked = self.workload.request(job)
                payload, notes = client.model.prepare(asked)
                request = self._describe(job, asked, notes)
                sent, answered = count_most_tokens(asked), asked.n * most_output(asked)
                most = None if price is None else part * price.bound(sent=sent, answered=answered)
                result.append(_Prepared(request, client.encode_line(request.id, payload), most))
        return result

    def _describe(self, job: Job, asked: Request, notes: tuple[str, ...]) -> BatchedRequest:
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
            advice="Nothing of the round was sent. Raise the limit, or lower --max-tokens and --judge-max-tokens: the"
            " bound counts all of them. The same command then continues.",
        )

    def _cap(self, role: str) -> int | None:
        """Half of the smallest batch for which the queue was full within a day; `None` where it was not. A queue that
        had no room for one request was filled by others: what it refused until then says nothing about later."""
        since = time.time() - QUEUE_MEMORY
        refused: list[int] = []
        for batch in self.journal.batches.values():
            if batch.role == role and batch.reason is BatchReason.QUEUE_FULL and batch.at > since:
                size = len(batch.requests)
                refused = [] if size == 1 else [*refused, size]
        return min(refused) // 2 if refused else None

    def _split(self, role: str, prepared: Sequence[_Prepared], cap: int | None) -> Iterator[list[_Prepared]]:
        service = self._client(role).service
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
        client, costs = self._client(role), [item.most_usd for item in chunk]
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
                self._end_lost(batch, BatchReason.REFUSED)
                raise _as_fatal(error) from None
            self.journal.move(batch, BatchState.UPLOADED, file=file)
        await self._create(batch, client, file, lines)

    async def _create(self, batch: Batch, client: BatchClient, file: str | None, lines: Sequence[bytes]) -> None:
        """A call that breaks may have made the batch: it is looked for before another one is made."""
        for attempt in range(RESUBMISSIONS):
            try:
                self._note_submitted(batch, await client.create(batch.name, file=file, lines=lines))
                return
            except TransientModelError as error:
                if error.throttled and not error.starting:
                    self._take_full_queue(batch)
                    return
                trouble: ModelError = error
            except ModelError as error:
                self._end_lost(batch, BatchReason.REFUSED)
                raise _as_fatal(error) from None
            await asyncio.sleep(LISTING_DELAY * (attempt + 1))
            remote = await self._find(batch, client)
            if remote is not None:
                if client.needs_file or remote.over:
                    self._note_submitted(batch, remote)
                return  # else it is looked for again: see `_recover`
        self._end_lost(batch, BatchReason.NOT_SUBMITTED)
        raise trouble

    def _note_submitted(self, batch: Batch, remote: RemoteBatch) -> None:
        self.journal.move(batch, BatchState.SUBMITTED, remote=remote.id, expires_at=remote.expires_at)

    def _client(self, role: str) -> BatchClient:
        if role not in self._clients:
            client = self._clients[role] = open_batch_client(self.workload.models[role])
            for batch in self.journal.batches.values():
                if batch.role == role and batch.first.model == client.model.name:
                    for name in batch.refused:
                        client.model.drop_parameter(name)
        return self._clients[role]


def _name_ending(state: str, unanswered: Sequence[str]) -> BatchReason:
    """Why requests have no answer: by the state of their batch, or by what stands in their place, where a provider
    calls every batch that is over `ended`."""
    words = state if state != "ended" else " ".join(unanswered)
    if "expired" in words:
        return BatchReason.EXPIRED
    return BatchReason.CANCELLED if "cancel" in words else BatchReason.FAILED


def find_misplaced(lengths: dict[str, tuple[int, int]]) -> tuple[set[str], bool]:
    """Ids whose prompt tokens do not fit the bytes that were sent, and whether all of them are in disorder."""
    if len(lengths) < ENOUGH_TO_COMPARE:
        return set(), False
    ratios = {name: tokens / size for name, (size, tokens) in lengths.items()}
    usual = statistics.median(ratios.values())
    misplaced = {name for name, ratio in ratios.items() if not 1 / WRONG_LENGTH <= ratio / usual <= WRONG_LENGTH}
    sizes, tokens = zip(*((math.log(size), math.log(count)) for size, count in lengths.values()), strict=True)
    if statistics.pstdev(sizes) < 0.05 or statistics.pstdev(tokens) == 0:
        return misplaced, False
    return misplaced, statistics.correlation(sizes, tokens) < LEAST_CORRELATION


def _as_fatal(error: ModelError) -> ModelError:
    """A call of the batch API that was refused is no failure of a request: it ends the session."""
    return FatalModelError(str(error), advice=error.advice) if isinstance(error, RequestRefusedError) else error
