"""The work of one session: asks the planner what to send, builds requests, keeps answers. Driven by the executor."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from unmask.errors import IncompleteError, ModelError, RequestRefusedError
from unmask.judges.base import JUDGES
from unmask.models.base import Model
from unmask.models.prices import Price
from unmask.models.room import ROOM, UNLIMITED, Room, find_sign
from unmask.protocol import probes
from unmask.protocol.plan import JudgeWork, SubjectWork, Work, plan
from unmask.protocol.readings import readings_of
from unmask.protocol.settings import Settings
from unmask.protocol.state import ScenarioState
from unmask.protocol.verdict import resolve
from unmask.records import (
    PRESSURED,
    SELF_REPORT,
    Asked,
    Call,
    Completion,
    Judged,
    Kind,
    Message,
    Record,
    Request,
    Sampling,
    Scenario,
    Stop,
    Verdict,
    is_probe,
    read_as,
)
from unmask.runs.cost import Bill, Purse
from unmask.runs.journal import JournalFile
from unmask.runs.options import DeveloperPrompt, add_developer_prompt
from unmask.scoring.measures import MEASURES
from unmask.stats.rate import Rate
from unmask.stats.values import Value, estimate_rate
from unmask.text import replace_surrogates_in_record

if TYPE_CHECKING:
    from unmask.runs.batches import BatchJournal

SUBJECT: Final = "subject"
JUDGE: Final = "judge"
NUMERIC_JUDGE: Final = "numeric_judge"

FRAME_TOKENS = 16
"""What a chat template puts around a message, at most."""

T = TypeVar("T", bound=Call)


class Job(Record, frozen=True, kw_only=True):
    """One request to one model, with what it is for. `keys` tell jobs of one scenario apart; the deepest goes first."""

    scenario: int
    role: str
    depth: int
    keys: tuple[object, ...]
    work: object


@dataclass(kw_only=True)
class Workload:
    """All work on one run folder: what to send next for each scenario, and where each answer goes.

    A scenario is read from the journal when the executor first looks at it, and is let go when it is finished.
    """

    scenarios: tuple[Scenario, ...]
    load_state: Callable[[int], ScenarioState]
    """Reads what the journal holds about the scenario with this number."""
    settings: Settings
    models: dict[str, Model]
    """By role. Without a subject only readings are made; without a judge nothing is read by a model."""
    prices: dict[str, Price | None]
    replies: JournalFile
    readings: JournalFile
    """Where the answers of the judge go, and of the model that reads numbers in its place."""
    numeric_settings: Settings | None = None
    """How figures are planned and read, where a second judge reads them."""
    news: str = ""
    """What the command has made of the folder, to be said once."""
    bill: Bill = field(default_factory=Bill)
    purse: Purse = field(default_factory=Purse)
    developer_prompt: DeveloperPrompt | None = None
    homes: dict[str, str] = field(default_factory=dict)
    """For scenarios that share the probes of another one: which, by their ids."""
    takes_per_call: int | None = None
    """How many takes may go out as one request, if not as many as the model takes."""
    rooms: dict[str, Room] = field(default_factory=dict)
    """By role, for those that have shown that they reason."""
    save_room: Callable[[str, Room], None] = lambda *_: None
    """Writes into run.json that a role has more room, or less of it."""
    signs: dict[str, Call] = field(default_factory=dict)
    """By role: an answer in the journal that shows that it reasons."""
    batches: BatchJournal | None = None
    """Where some roles are asked in batches, or batches have to be collected: see `engine.batches`."""
    batched: frozenset[str] = frozenset()
    """Roles that are asked in batches."""
    judge_file: str = ""
    no_wait: bool = False
    wanted: dict[int, list[Job]] = field(default_factory=dict)
    """By scenario, what the next batches are to ask."""
    over: set[int] = field(default_factory=set)
    """Scenarios with nothing left to ask."""
    waits: str = ""
    """The batches that are being waited for, for whoever shows progress."""

    calls: Counter[str] = field(default_factory=Counter)
    failed: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[Verdict] = field(default_factory=Counter)
    lies: Counter[Value] = field(default_factory=Counter)
    """What each scenario that is done adds to P(lie)."""
    done: int = 0
    """Scenarios with nothing left to send. Like the counters above, it is there for whoever shows progress."""
    worked: int = 0
    """Those of them that this session has sent something for."""
    asked: set[int] = field(default_factory=set)
    """Scenarios that this session has sent something for."""
    open_states: dict[int, ScenarioState] = field(default_factory=dict)

    def state(self, scenario: int) -> ScenarioState:
        if scenario not in self.open_states:
            self.open_states[scenario] = self.load_state(scenario)
        return self.open_states[scenario]

    def jobs(self, scenario: int, busy: set[object]) -> Iterable[Job]:
        """Requests of this scenario that are wanted now and are not under way: keys that are `busy` are. What is asked
        in batches waits in `wanted`."""
        jobs = self._plan_jobs(scenario, busy)
        if not self.batched:
            return jobs
        every = list(jobs)
        self.wanted[scenario] = [job for job in every if job.role in self.batched]
        return [job for job in every if job.role not in self.batched]

    def _plan_jobs(self, scenario: int, busy: set[object]) -> Iterator[Job]:
        size = count_together(self.models.get(SUBJECT), self.takes_per_call)
        of, state = self.scenarios[scenario], self.state(scenario)
        shares = of.id in self.homes
        for work in plan(of, state, self.settings_for(of)):
            if shares and is_probe(work.slot):
                continue  # asked for the first rung of the fact
            if isinstance(work, SubjectWork):
                for takes in split_takes([take for take in work.takes if (work.slot, take) not in busy], size):
                    keys = tuple((work.slot, take) for take in takes)
                    part = msgspec.structs.replace(work, takes=tuple(takes))
                    yield Job(scenario=scenario, role=SUBJECT, depth=work.depth, keys=keys, work=part)
            elif (key := (work.slot, work.digest, work.method)) not in busy:
                role = self._judge_role(scenario)
                yield Job(scenario=scenario, role=role, depth=work.depth, keys=(key,), work=work)

    def settings_for(self, scenario: Scenario) -> Settings:
        """How this scenario is planned and read."""
        return self.numeric_settings if self.numeric_settings and scenario.kind is Kind.NUMERIC else self.settings

    def _judge_role(self, scenario: int) -> str:
        """Which of the two judges reads this scenario."""
        return JUDGE if self.settings_for(self.scenarios[scenario]) is self.settings else NUMERIC_JUDGE

    def request(self, job: Job) -> Request:
        scenario = self.scenarios[job.scenario]
        home = self.homes.get(scenario.id)
        if isinstance(job.work, JudgeWork) and home is not None:
            scenario = probes.hide_rung(scenario, self.scenarios[self._places[home]])
        room = self.room_of(job.role)
        return build_request(scenario, job.work, self.settings_for(scenario), self.developer_prompt, room=room)

    def room_of(self, role: str) -> int:
        """The most tokens of a reply: as the user has fixed it, else what the model has shown to need."""
        room = self.rooms.get(role)
        return self._fixed_room(role) or (ROOM if room is None else room.tokens)

    def sampling_of(self, role: str) -> Sampling:
        settings = self.numeric_settings if role == NUMERIC_JUDGE and self.numeric_settings else self.settings
        return settings.sampling if role == SUBJECT else settings.judge_sampling

    def _fixed_room(self, role: str) -> int | None:
        return self.sampling_of(role).max_tokens

    def learn_room(self, role: str, line: Call) -> None:
        """More room for a role whose answer shows that it reasons."""
        if role in self.rooms or self._fixed_room(role) or line.error is not None or (sign := find_sign(line)) is None:
            return
        self._set_room(role, Room(since=datetime.now(UTC).isoformat(timespec="seconds"), sign=sign))
        name, tokens = self.models[role].name, self.rooms[role].tokens
        more = f"{name} reasons ({sign}): a reply may have {tokens:,} tokens from now on"
        self.news = "; ".join(filter(None, [self.news, more]))

    def asks_with_less(self, role: str, result: Completion | ModelError, room: int | None) -> bool:
        """Whether a request was refused because its room is more than the endpoint allows: it is asked again with what
        the endpoint has named, and with no less than everybody gets."""
        most = result.most_tokens if isinstance(result, RequestRefusedError) else None
        if most is None or role not in self.rooms or self._fixed_room(role) or (room or 0) <= ROOM:
            return False
        if (least := max(ROOM, most)) < self.rooms[role].tokens:
            self._set_room(role, msgspec.structs.replace(self.rooms[role], tokens=least))
        return True

    def _set_room(self, role: str, room: Room) -> None:
        self.rooms[role] = room
        self.save_room(role, room)

    def afford(self, job: Job, request: Request) -> bool:
        """Set aside what a request may cost; False where the purse has not so much left."""
        most = None if self.purse.limit is None else self.most_usd(job.role, request)
        return most is None or self.purse.set_aside((id(self), job.scenario, job.keys), most)

    def most_usd(self, role: str, request: Request) -> float | None:
        """What a request may cost at most; `None` where its price is unknown."""
        price, answered = self.prices.get(role), request.n * (request.sampling.max_tokens or UNLIMITED)
        return None if price is None else price.bound(sent=count_most_tokens(request), answered=answered)

    def settle(self, job: Job) -> None:
        """A request is over: what it cost is paid for."""
        self.purse.give_back((id(self), job.scenario, job.keys))

    def has_failed_before(self, job: Job) -> bool:
        """Whether this very request has failed in an earlier session."""
        return self.state(job.scenario).failed_before.issuperset(job.keys)

    def keep(
        self,
        job: Job,
        result: Completion | ModelError,
        *,
        room: int | None,
        lost: int = 0,
        most_usd: float | None = None,
    ) -> None:
        """Write down an answer, or why there is none. It might have had `room` tokens. `lost` answers to the request
        could not be used, and cost at most `most_usd` each."""
        scenario = self.scenarios[job.scenario]
        fields = _line_fields(scenario, job.role, result, self.prices)
        if lost:
            fields |= {"lost": lost, "lost_usd": None if most_usd is None else lost * most_usd}
            self.purse.pay(fields["lost_usd"] or 0.0)
        self.calls[job.role] += 1
        self.asked.add(job.scenario)
        if isinstance(result, ModelError):
            self.failed[job.role] += 1
        elif fields["cost_usd"] is not None:
            self.purse.pay(fields["cost_usd"])
        elif self.prices.get(job.role) is not None and not _is_withheld(result):
            self.purse.uncounted = self.purse.uncounted or job.role
        self._write_line(job, result, fields | ({"max_tokens": room} if isinstance(job.work, SubjectWork) else {}))

    def _write_line(self, job: Job, result: Completion | ModelError, fields: dict[str, Any]) -> None:
        work = job.work
        if isinstance(work, SubjectWork):
            takes = work.takes if isinstance(result, ModelError) else work.takes[: len(result.choices)]
            asked = Asked(slot=work.slot, takes=takes, attempt=work.attempt, **fields)
            asked = _append(self.replies, asked)
            self.bill.add(SUBJECT, asked)
            self.learn_room(SUBJECT, asked)
            for state in self._states_of(job):
                state.add_asked(asked)
        elif isinstance(work, JudgeWork):
            judged = Judged(slot=work.slot, digest=work.digest, method=work.method, attempt=work.attempt, **fields)
            judged = _append(self.readings, judged)
            self.bill.add(job.role, judged)
            self.learn_room(job.role, judged)
            for state in self._states_of(job):
                state.add_judged(judged)

    def _states_of(self, job: Job) -> list[ScenarioState]:
        """The scenario of an answer, and the rungs that share it where it is that of a probe."""
        members = self._sharing.get(job.scenario, ()) if is_probe(getattr(job.work, "slot", "")) else ()
        return [self.state(scenario) for scenario in (job.scenario, *members)]

    @property
    def groups(self) -> list[tuple[int, ...]]:
        """The scenarios with something left to ask that are worked on together, in the order in which they are opened:
        usually one each."""
        sharing = {other for others in self._sharing.values() for other in others}
        first = (number for number in range(len(self.scenarios)) if number not in sharing | self.over)
        return [(number, *self._sharing.get(number, ())) for number in first]

    @cached_property
    def _sharing(self) -> dict[int, tuple[int, ...]]:
        """For the scenario that the probes of a fact are asked for, those that share them."""
        sharing: dict[int, tuple[int, ...]] = {}
        for scenario, home in self.homes.items():
            sharing[self._places[home]] = (*sharing.get(self._places[home], ()), self._places[scenario])
        return sharing

    @cached_property
    def _places(self) -> dict[str, int]:
        return {scenario.id: number for number, scenario in enumerate(self.scenarios)}

    def finished(self, group: Sequence[int]) -> None:
        """Count the verdicts of scenarios with nothing left to send, and let go of what the journal says about them."""
        if any(self.wanted.get(scenario) for scenario in group):
            return
        for scenario in group:
            self._finish(scenario)

    def _finish(self, scenario: int) -> None:
        settings = self.settings_for(self.scenarios[scenario])
        readings = readings_of(self.scenarios[scenario], self.state(scenario), settings)
        outcome = resolve(self.scenarios[scenario], readings, preset=settings.rules)
        self.verdicts[outcome.verdict] += 1
        self.lies[MEASURES["p_lie"].value_of(outcome, takes=settings.takes)] += 1
        self.done += 1
        self.worked += scenario in self.asked
        self.over.add(scenario)
        self.wanted.pop(scenario, None)
        del self.open_states[scenario]

    def estimate_p_lie(self) -> Rate:
        """P(lie) of the scenarios that are done."""
        return estimate_rate(list(self.lies.elements()))

    def halt(self) -> str | None:
        """A reason to send nothing more: the purse is empty. Raises where the limit could not be kept and there is more
        to send: unknown is not nothing."""
        limit = self.purse.limit
        if limit is None:
            return None
        if self.purse.uncounted is not None and self.done < len(self.scenarios):
            raise IncompleteError(
                f"the {self.purse.uncounted.replace('_', ' ')} does not say how many tokens its answers take (`usage`),"
                f" or what its cache or tier costs is not known, so --max-cost ${limit:g} cannot be kept",
                advice="What was answered is kept. The same command without --max-cost continues (with --plan it says "
                "what to expect), or use an endpoint that reports usage.",
            )
        return self.describe_empty_purse() if self.purse.spent >= limit else None

    def describe_empty_purse(self) -> str:
        return f"the {self.purse.payer} has cost ${self.purse.spent:.4f}, and --max-cost is ${self.purse.limit:g}"


def count_together(subject: Model | None, most: int | None) -> int:
    """How many takes go out as one request."""
    able = 1 if subject is None else subject.capabilities.max_n
    return able if most is None else min(able, most)


def split_takes(takes: Iterable[int], size: int) -> list[list[int]]:
    """Takes by request: of one they follow each other, because the id of a request in a batch says the first, and how
    many."""
    parts: list[list[int]] = []
    for take in takes:
        if parts and len(parts[-1]) < size and take == parts[-1][-1] + 1:
            parts[-1].append(take)
        else:
            parts.append([take])
    return parts


def build_request(
    scenario: Scenario,
    work: Work | object,
    settings: Settings,
    prompt: DeveloperPrompt | None,
    *,
    room: int | None = None,
) -> Request:
    """The request behind a piece of work, with so many tokens for a reply."""
    if isinstance(work, JudgeWork):
        sampling = msgspec.structs.replace(settings.judge_sampling, max_tokens=room)
        judge = JUDGES[settings.style]
        slot = read_as(work.slot)
        return judge.request(work.method, scenario, slot, work.texts, sampling=sampling, attempt=work.attempt)
    if not isinstance(work, SubjectWork):
        raise TypeError(f"{work!r} is no work")
    sampling = msgspec.structs.replace(settings.sampling, max_tokens=room)
    if sampling.seed is not None:  # takes asked one by one must not all come out the same
        sampling = msgspec.structs.replace(sampling, seed=sampling.seed + work.takes[0])
    place = PRESSURED if work.slot == SELF_REPORT else work.slot
    messages: tuple[Message, ...] = probes.messages(scenario, place)
    if prompt is not None and read_as(place) == PRESSURED:
        messages = add_developer_prompt(messages, prompt)
    if work.slot == SELF_REPORT:
        messages = probes.self_report_messages(messages, work.after or "", settings.self_report or "")
    return Request(messages, sampling, n=len(work.takes))


def _line_fields(
    scenario: Scenario, role: str, result: Completion | ModelError, prices: dict[str, Price | None]
) -> dict[str, Any]:
    if isinstance(result, ModelError):
        return {"scenario": scenario.id, "error": str(result), "cost_usd": None, "at": round(time.time(), 3)}
    price = prices.get(role)
    return {
        "scenario": scenario.id,
        "choices": result.choices,
        "usage": result.usage,
        "latency": result.latency,
        "cost_usd": price.cost(result.usage, result.tier) if price else None,
        "tier": result.tier,
        "model": result.model,
        "adjusted": result.adjusted,
        "at": round(time.time(), 3),
    }


def count_most_tokens(request: Request) -> int:
    """The tokens of a prompt at most: none is shorter than a byte, save the few that frame a message."""
    return sum(len(message.content.encode("utf-8", "replace")) + FRAME_TOKENS for message in request.messages)


def _is_withheld(completion: Completion) -> bool:
    """Whether a filter answered in the model's place, which has no tokens to count."""
    return all(choice.stop is Stop.FILTER and not choice.text for choice in completion.choices)


def _append(lines: JournalFile, line: T) -> T:
    """Append a line and return it as it stands in the journal. Half characters in an answer do not lose it."""
    try:
        lines.append(line)
    except UnicodeEncodeError:
        line = replace_surrogates_in_record(line)
        lines.append(line)
    return line
