"""What came back of a batch, written into the journal: answers, refusals, and what has no answer."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from unmask.engine.batch_work import BatchedWorkload
from unmask.engine.work import NUMERIC_JUDGE, SUBJECT, Job
from unmask.errors import FatalModelError, IncompleteError, ModelError, RequestRefusedError
from unmask.models.batch_client import BatchResult, RemoteBatch
from unmask.models.failures import ProviderProblem, find_most_tokens
from unmask.models.http import HttpAnswer
from unmask.models.parameters import REFUSABLE
from unmask.models.tiers import BATCH
from unmask.protocol.plan import SubjectWork
from unmask.records import Completion, Request, Sampling
from unmask.runs.batches import Batch, BatchState, decode_work, hash_scenario


class BatchAnswers:
    """Takes what providers say about batches of one session. Each of the two gives a sentence for the user, or none."""

    def __init__(self, workload: BatchedWorkload) -> None:
        self.workload = workload
        self._numbers = {hash_scenario(scenario.id): number for number, scenario in enumerate(workload.scenarios)}

    def take_refusal(self, batch: Batch, remote: RemoteBatch) -> str:
        """The provider would not take the batch: nothing of it was run."""
        problems, count = remote.problems, len(batch.requests)
        reasons = "; ".join(dict.fromkeys(map(str, problems[:4])))
        self.workload.lose(batch, "refused")
        lines = {problem.line: problem for problem in problems if problem.line and 1 <= problem.line <= count}
        errors = {
            batch.requests[line - 1]: RequestRefusedError(
                f"the provider refused this request of a batch: {problem}",
                most_tokens=find_most_tokens(
                    ProviderProblem(400, problem.message, problem.code), _room_of(batch.requests[line - 1])
                ),
            )
            for line, problem in lines.items()
        }
        too_long = [name for name, error in errors.items() if self._asks_with_less(batch, name, error)]
        if too_long:
            return f"{batch.first.model} allows {self.workload.room_of(batch.role):,} tokens a reply: asked again"
        if len({problem.line for problem in problems}) > len(lines) or len(lines) == count:
            raise FatalModelError(
                f"{batch.first.model}: the provider refused a batch: {reasons}",
                advice="Nothing of it was run or paid for. Correct what it names, or go on without --batch.",
            )
        for name, error in errors.items():
            self._keep(batch, name, error)
        return f"{batch.first.model}: {len(lines)} of {count:,} requests of a batch were refused: {reasons}"

    def take_results(self, batch: Batch, remote: RemoteBatch, results: Sequence[BatchResult], *, is_new: bool) -> str:
        """Write down every answer, then that the batch is collected. What the journal has already is passed over, so a
        kill anywhere in here does no harm. `is_new`: this process has made the batch."""
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
            if answer is not None and self._asks_with_less(batch, result.id, answer):
                answer = None
            again += answer is None
            answered += isinstance(answer, Completion)
            if answer is not None:
                self._keep(batch, result.id, answer)
        unrun = next((result.message for result in results if result.status is None and result.message), "")
        reason = (unrun if remote.state == "ended" else remote.state) if left else None
        self.workload.journal.move(batch, BatchState.COLLECTED, answered=answered, reason=reason)
        self.workload.purse.give_back(batch.name)
        if fatal is not None:
            raise fatal
        if not left:
            return ""
        if {result.id for result in results}.difference(batch.requests):
            raise give_up(batch, "it has answers under ids that were not sent")
        said = (
            f"batch {batch.remote} of {batch.first.model} is over ({reason}) without an answer to {len(left):,} of"
            f" {len(batch.requests):,} requests"
        )
        if is_new and not answered and not again:  # rounds that bring nothing have no end
            raise IncompleteError(said, advice="The same command asks them again.")
        return f"{said}: they are asked again"

    def _asks_with_less(self, batch: Batch, name: str, answer: Completion | ModelError) -> bool:
        return self.workload.asks_with_less(batch.role, answer, _room_of(name))

    def _read_answer(self, batch: Batch, result: BatchResult) -> Completion | ModelError | None:
        """`None` where a parameter was refused: the request goes into the next round without it."""
        found = decode_work(result.id)
        takes = found[1].takes if found and isinstance(found[1], SubjectWork) else ()
        sampling = msgspec.structs.replace(self._sampling_of(batch.role), max_tokens=_room_of(result.id))
        asked = Request((), sampling, n=max(1, len(takes)))
        answer = HttpAnswer(result.status or 0, result.body, {}, 0.0)
        model = self.workload.open_client(batch.role).model
        try:
            completion = model.interpret(answer, asked, sent=REFUSABLE, notes=batch.first.adjusted)
        except FatalModelError:
            raise
        except ModelError as error:
            return error
        return completion and msgspec.structs.replace(completion, latency=None, tier=BATCH)

    def _sampling_of(self, role: str) -> Sampling:
        settings, numeric = self.workload.settings, self.workload.numeric_settings
        if role == NUMERIC_JUDGE and numeric is not None:
            settings = numeric
        return settings.sampling if role == SUBJECT else settings.judge_sampling

    def _keep(self, batch: Batch, name: str, result: Completion | ModelError) -> None:
        """Write an answer down, unless the journal has it."""
        found = decode_work(name)
        number = self._numbers.get(found[0]) if found else None
        if found is None or number is None or number in self.workload.over:
            return
        state, work = self.workload.state(number), found[1]
        if isinstance(work, SubjectWork):
            takes = work.takes if isinstance(result, ModelError) else work.takes[: len(result.choices)]
            replies = [state.reply(work.slot, take) for take in takes]
            has = any(reply and reply.choice is not None and reply.attempt >= work.attempt for reply in replies)
        else:
            calls = state.calls(work.slot, work.digest)
            has = any(call.method is work.method and call.attempt >= work.attempt and not call.error for call in calls)
        if not has:
            job = Job(scenario=number, role=batch.role, depth=0, keys=(name,), work=work)
            most, lost = batch.first.most_usd, int(isinstance(result, ModelError) and result.paid)
            each = None if most is None else most / len(batch.requests)
            self.workload.keep(job, result, room=found[2], lost=lost, most_usd=each)


def _room_of(name: str) -> int | None:
    """The most tokens of a reply to the request of this id."""
    found = decode_work(name)
    return found[2] if found else None


def give_up(batch: Batch, why: str) -> IncompleteError:
    """The error for answers that may have been paid for and cannot be had. Buying them again is up to the user."""
    return IncompleteError(
        f"batch {batch.remote} of {batch.first.model} with {len(batch.requests):,} requests: {why}",
        advice="They may have been paid for. The same command asks again for what has no answer.",
    )
