"""The course of a run: asks the planner what to send, builds the request, keeps the answer. Driven by the executor."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, TypeVar

import msgspec

from unmask.engine.executor import Job
from unmask.errors import IncompleteError, ModelError, RequestRefusedError
from unmask.judges import letters as read_prompts
from unmask.models.base import Model
from unmask.models.prices import Price
from unmask.protocol import attempts
from unmask.protocol import probes as ask_prompts
from unmask.protocol import readings as gather
from unmask.protocol.plan import Ask, Read, Settings, Work, plan
from unmask.protocol.state import Lazily, ScenarioState
from unmask.protocol.verdict import resolve
from unmask.records import (
    PRESSURED,
    SELF_REPORT,
    Asked,
    Call,
    Completion,
    Judged,
    Letter,
    Message,
    Method,
    Request,
    Scenario,
    Stop,
    Verdict,
)
from unmask.runs.cost import Bill
from unmask.runs.journal import Lines, TooLongError
from unmask.runs.treat import DeveloperPrompt, instructed
from unmask.text import whole_record

SUBJECT, JUDGE = "subject", "judge"

T = TypeVar("T", bound=Call)


@dataclass(frozen=True, kw_only=True)
class Means:
    """What a course works with besides scenarios and settings."""

    replies: Lines
    readings: Lines
    subject: Model | None
    """None where only the judge works."""
    prices: dict[str, Price | None]
    developer_prompt: DeveloperPrompt | None = None
    one_call: bool = True
    """Whether several takes may go out as one request."""
    max_cost: float | None = None
    learned: Callable[[Scenario, Letter], None] | None = None
    """Told which side *yes* means when a judge has said so."""


class Course:
    """One pass over the scenarios. Holds counters the progress line shows."""

    def __init__(
        self, scenarios: tuple[Scenario, ...], seen: list[ScenarioState] | Lazily, settings: Settings, means: Means
    ) -> None:
        self.scenarios = scenarios
        self.seen = seen
        self.settings = settings
        self.means = means
        self.calls: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.verdicts: Counter[Verdict] = Counter()
        self.done = 0
        self.bill = Bill()
        self.cost = 0.0
        self.cost_known = True
        self._uncounted: str | None = None
        """The role that has answered without saying how many tokens that took, although they have a price."""

    def jobs(self, scenario: int, busy: set[object]) -> Iterator[Job]:
        model = self.means.subject
        size = model.max_n if model is not None and self.means.one_call else 1
        for work in plan(self.scenarios[scenario], self.seen[scenario], self.settings, whole_calls=size > 1):
            if isinstance(work, Ask):
                takes = tuple(take for take in work.takes if (work.slot, take) not in busy)
                for start in range(0, len(takes), size):
                    yield _ask_job(scenario, work, takes[start : start + size])
            elif (key := (work.slot, work.digest, work.method)) not in busy:
                yield Job(scenario=scenario, role=JUDGE, depth=work.depth, keys=(key,), work=work)

    def request(self, job: Job) -> Request:
        return request(self.scenarios[job.scenario], job.work, self.settings, self.means.developer_prompt)

    def keep(self, job: Job, outcome: Completion | ModelError) -> ModelError | None:
        common = _line(self.scenarios[job.scenario], job.role, outcome, self.means.prices)
        self._count(job.role, outcome, common["cost_usd"])
        try:
            self._write(job, outcome, common)
        except TooLongError as error:
            if isinstance(outcome, ModelError):
                raise
            # Written down, it would make the whole run unreadable. No model writes that much: the endpoint is at fault.
            refused = RequestRefusedError(f"the answer is too long: {error.size} bytes in the journal")
            self.failed[job.role] += 1
            self._write(job, refused, _line(self.scenarios[job.scenario], job.role, refused, self.means.prices))
            return refused
        return None

    def _write(self, job: Job, outcome: Completion | ModelError, common: dict[str, Any]) -> None:
        scenario, seen = self.scenarios[job.scenario], self.seen[job.scenario]
        if isinstance(job.work, Ask):
            line = _written(self.means.replies, _asked(job.work, outcome, common))
            self.bill.add(SUBJECT, line)
            seen.add_asked(line)
        elif isinstance(job.work, Read):
            work = job.work
            judged = _written(
                self.means.readings,
                Judged(slot=work.slot, digest=work.digest, method=work.method, attempt=work.attempt, **common),
            )
            self.bill.add(JUDGE, judged)
            seen.add_judged(judged)
            if work.method is Method.POLARITY and self.means.learned is not None:
                side = attempts.polarity_said(judged)
                if side is not None:
                    self.means.learned(scenario, side)

    def finished(self, scenario: int) -> None:
        self.done += 1
        seen, reads, preset = self.seen[scenario], self.settings.reads, self.settings.preset
        found = resolve(self.scenarios[scenario], gather.gather(self.scenarios[scenario], seen, reads), preset=preset)
        seen.found = (reads, preset), found
        self.verdicts[found.verdict] += 1
        if isinstance(self.seen, Lazily):
            self.seen.let_go(scenario)

    def halt(self) -> str | None:
        """Raises where the limit could not be kept and there is more to send: unknown is not nothing."""
        limit = self.means.max_cost
        if limit is not None and self._uncounted is not None and self.done < len(self.scenarios):
            raise IncompleteError(
                f"the {self._uncounted} does not say how many tokens its answers take (`usage`), "
                f"so --max-cost ${limit:g} cannot be kept",
                advice="What was answered is kept. The same command without --max-cost continues (`unmask plan` says "
                "what to expect), or use an endpoint that reports usage.",
            )
        if limit is not None and self.cost >= limit:
            return f"the run has cost ${self.cost:.4f}, and --max-cost is ${limit:g}"
        return None

    def _count(self, role: str, outcome: Completion | ModelError, cost: float | None) -> None:
        self.calls[role] += 1
        if isinstance(outcome, ModelError):
            self.failed[role] += 1
        elif cost is None:
            self.cost_known = False
            if self.means.prices.get(role) is not None and not _withheld(outcome):
                self._uncounted = self._uncounted or role
        else:
            self.cost += cost


def request(scenario: Scenario, work: Work | object, settings: Settings, prompt: DeveloperPrompt | None) -> Request:
    """The request behind a piece of work."""
    if isinstance(work, Read):
        sampling = msgspec.structs.replace(settings.judge_sampling, max_tokens=work.max_tokens)
        return read_prompts.request(work.method, scenario, work.slot, work.texts, sampling=sampling)
    if not isinstance(work, Ask):
        raise TypeError(f"{work!r} is no work")
    sampling = msgspec.structs.replace(settings.sampling, max_tokens=work.max_tokens)
    if sampling.seed is not None:  # takes asked one by one must not all come out the same
        sampling = msgspec.structs.replace(sampling, seed=sampling.seed + work.takes[0])
    pressured = work.slot in {PRESSURED, SELF_REPORT}
    messages: tuple[Message, ...] = ask_prompts.messages(scenario, PRESSURED if pressured else work.slot)
    if prompt is not None and pressured:
        messages = instructed(messages, prompt)
    if work.slot == SELF_REPORT:
        messages = ask_prompts.reported(messages, work.after or "", settings.self_report or "")
    return Request(messages, sampling, n=len(work.takes))


def _ask_job(scenario: int, work: Ask, takes: tuple[int, ...]) -> Job:
    keys = tuple((work.slot, take) for take in takes)
    part = msgspec.structs.replace(work, takes=takes)
    return Job(scenario=scenario, role=SUBJECT, depth=work.depth, keys=keys, work=part)


def _line(
    scenario: Scenario, role: str, outcome: Completion | ModelError, prices: dict[str, Price | None]
) -> dict[str, Any]:
    if isinstance(outcome, ModelError):
        return {"scenario": scenario.id, "error": str(outcome), "cost_usd": None, "at": round(time.time(), 3)}
    price = prices.get(role)
    return {
        "scenario": scenario.id,
        "choices": outcome.choices,
        "usage": outcome.usage,
        "latency": outcome.latency,
        "cost_usd": price.cost(outcome.usage) if price else None,
        "model": outcome.model,
        "adjusted": outcome.adjusted,
        "at": round(time.time(), 3),
    }


def _withheld(completion: Completion) -> bool:
    """Whether a filter answered in the model's place, which has no tokens to count."""
    return all(choice.stop is Stop.FILTER and not choice.text for choice in completion.choices)


def _written(lines: Lines, line: T) -> T:
    """The line as it stands in the journal. Half characters in an answer or a failure do not lose it."""
    try:
        lines.append(line)
    except UnicodeEncodeError:
        line = whole_record(line)
        lines.append(line)
    return line


def _asked(work: Ask, outcome: Completion | ModelError, common: dict[str, Any]) -> Asked:
    takes = work.takes if isinstance(outcome, ModelError) else work.takes[: len(outcome.choices)]
    return Asked(slot=work.slot, takes=takes, attempt=work.attempt, max_tokens=work.max_tokens, **common)
