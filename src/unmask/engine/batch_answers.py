"""What came back of a batch, written into the journal: answers, refusals, and what has no answer."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Sequence

import msgspec

from unmask.engine.batch_work import BatchedWorkload
from unmask.engine.work import NUMERIC_JUDGE, SUBJECT, Job
from unmask.errors import FatalModelError, ModelError, RequestRefusedError, TransientModelError
from unmask.models.batch_client import QUEUE_FULL, BatchResult, RemoteBatch, refuse_problems
from unmask.models.http import HttpAnswer
from unmask.models.parameters import REFUSABLE
from unmask.models.tiers import BATCH
from unmask.models.user_params import suspect_additions
from unmask.protocol.plan import JudgeWork, SubjectWork
from unmask.records import Completion, Method, Request, Sampling
from unmask.runs.batches import Batch, BatchedRequest, BatchReason, BatchState

MOST_TRIES = 3
"""Batches that a request is put into before it counts as failed; the same command then tries it again."""
ENOUGH_TO_COMPARE = 20
"""Answers of a batch from which on their lengths say whether they stand under the right ids."""
LEAST_CORRELATION = 0.5
WRONG_LENGTH = 4.0
"""The factor by which the tokens of a prompt differ from what its length says, where an answer has the wrong id."""
STOPPED = frozenset({BatchReason.NO_CREDIT, BatchReason.REFUSED})
"""Reasons that end a run: they say nothing about the requests of a batch."""


class BatchAnswers:
    """Takes what providers say about batches of one session."""

    def __init__(self, workload: BatchedWorkload) -> None:
        self.workload = workload
        self.journal = workload.journal
        self._numbers = {scenario.id: number for number, scenario in enumerate(workload.scenarios)}

    def take_refusal(self, batch: Batch, remote: RemoteBatch) -> None:
        """The provider would not take the batch: nothing of it was run."""
        problems, count = remote.problems, len(batch.requests)
        if any(problem.code.lower() in QUEUE_FULL or "enqueued" in problem.message.lower() for problem in problems):
            self.workload.end_refused_by_queue(batch)
            return
        bad = {problem.line for problem in problems}
        by_line = all(isinstance(line, int) and 1 <= line <= count for line in bad) and len(bad) < count
        self.workload.end_lost(batch, BatchReason.REFUSED)
        if not by_line:
            raise refuse_problems(problems, batch.first.model or "")
        for problem in problems:
            request = batch.requests[(problem.line or 1) - 1]
            reason = f"the provider refused this request of a batch: {problem.code} {problem.message}"
            self._keep_answer(batch, request, RequestRefusedError(reason[:500]))

    def take_results(self, batch: Batch, remote: RemoteBatch, results: Sequence[BatchResult]) -> None:
        """Write down every answer, then that the batch is collected. What the journal has already is passed over, so a
        kill anywhere in here does no harm."""
        model = self.workload.open_client(batch.role).model
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
            self._keep_answer(batch, requests[name], answer)
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
        model = self.workload.open_client(batch.role).model
        for answer in answers.values():
            if isinstance(answer, RequestRefusedError):
                suspicion = suspect_additions(self._sampling_of(batch.role), answer, model=model.name)
                if suspicion is not None:
                    answers.clear()
                    return suspicion
        return None

    def _sampling_of(self, role: str) -> Sampling:
        settings, numeric = self.workload.settings, self.workload.numeric_settings
        if role == NUMERIC_JUDGE and numeric is not None:
            settings = numeric
        return settings.sampling if role == SUBJECT else settings.judge_sampling

    def _read_answer(self, role: str, request: BatchedRequest, result: BatchResult) -> Completion | None:
        """`None` where a parameter was refused: the request goes into the next round without it."""
        asked = Request((), self._sampling_of(role), n=max(1, len(request.takes)))
        answer = HttpAnswer(result.status or 0, result.body, {}, 0.0)
        model = self.workload.open_client(role).model
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
                self._keep_answer(batch, request, TransientModelError(message))

    def write_off(self, batch: Batch, reason: BatchReason, message: str) -> None:
        """Its answers are paid for and gone. They are not bought again unasked: their scenarios stay unjudged."""
        for request in batch.requests:
            self._keep_answer(batch, request, RequestRefusedError(message))
        self.journal.move(batch, BatchState.COLLECTED, answered=0, reason=reason)
        self.workload.purse.give_back(batch.name)

    def _keep_answer(self, batch: Batch, request: BatchedRequest, result: Completion | ModelError) -> None:
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
