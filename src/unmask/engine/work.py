"""The work of one session: asks the planner what to send, builds requests, keeps answers. Driven by the executor."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final, TypeVar

from msgspec.structs import replace

from unmask.errors import IncompleteError, ModelError, RequestRefusedError, UsageError
from unmask.judges.base import JUDGES
from unmask.models.base import Model
from unmask.models.prices import Price, price_of
from unmask.models.room import ROOM, UNLIMITED, Room, find_sign
from unmask.models.settings import spell_setting
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
from unmask.runs.definition import Definition
from unmask.runs.folder import Folder, Journal
from unmask.runs.journal import JournalFile
from unmask.runs.options import DeveloperPrompt, Options, add_developer_prompt
from unmask.scoring.measures import MEASURES
from unmask.stats.rate import Rate
from unmask.stats.values import Value, estimate_rate
from unmask.text import replace_surrogates_in_record

if TYPE_CHECKING:
    from unmask.engine.batches import Rounds

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
    work: Work


class Workload:
    """All work on one run folder: what to send next for each scenario, and where each answer goes.

    A scenario is read from the journal when it is first looked at, and is let go when it is finished.
    """

    def __init__(
        self, folder: Folder, definition: Definition, options: Options, *, judge_file: str, models: dict[str, Model]
    ) -> None:
        self.models = models
        """By role. Without a subject only readings are made; without a judge nothing is read by a model."""
        self.prices = {role: price_for(model, role, options) for role, model in models.items()}
        self.settings, numeric_settings = (
            replace(definition.settings(judge_file, preset=options.preset, kind=kind), ask=SUBJECT in models)
            for kind in (Kind.BINARY, Kind.NUMERIC)
        )
        self.numeric_settings = numeric_settings if definition.judges[judge_file].numeric else None
        """How figures are planned and read, where a second judge reads them."""
        self.developer_prompt, self.takes_per_call = definition.developer_prompt, options.subject.takes_per_call
        self.rooms = definition.rooms(judge_file)
        """By role, for those that have shown that they reason."""
        self.replies, self.readings = folder.replies, JournalFile(folder.readings_path(judge_file))
        self.purse, self.bill = Purse(), Bill()
        self.rounds: Rounds | None = None
        """Where some roles are asked in batches, or batches have to be collected."""
        self._folder, self._judge_file, self._journal = folder, judge_file, Journal(folder, definition.judges)
        for role, _, line in self._journal.calls([judge_file]):
            self.bill.add(role, line)
        scenarios = list(self._journal.scenarios.values())
        self.scenarios = [scenarios[place] for place in definition.order_to_look([one.id for one in scenarios])]
        self.places = {scenario.id: number for number, scenario in enumerate(self.scenarios)}
        self.homes = self._journal.homes
        self.groups = {number: [number] for name, number in self.places.items() if name not in self.homes}
        """Scenarios with something left to ask that are worked on together, in the order in which they are opened, by
        the first of them: usually one each. The first has the probes that the others share."""
        for name, home in self.homes.items():
            self.groups[self.places[home]].append(self.places[name])
        self._states: dict[int, ScenarioState] = {}
        self._asked: set[int] = set()
        # For the progress display:
        self.news = ""
        """What the command has made of the folder, to be said once."""
        self.waits = ""
        """The batches that are being waited for."""
        self.calls, self.failed = Counter[str](), Counter[str]()
        self.verdicts = Counter[Verdict]()
        self.lies = Counter[Value]()
        """What each scenario that is done adds to P(lie)."""
        self.done = 0
        """Scenarios with nothing left to send."""
        self.worked = 0
        """Those of them that this session has sent something for."""

    def state(self, scenario: int) -> ScenarioState:
        if scenario not in self._states:
            state = self._journal.state_of(self.scenarios[scenario].id, self._judge_file)
            state.forget_errors()  # failures of earlier sessions are tried again
            self._states[scenario] = state
        return self._states[scenario]

    def jobs(self, scenario: int, busy: Collection[object] = ()) -> Iterator[Job]:
        """Requests of this scenario that are wanted now and are not under way: keys that are `busy` are."""
        size = count_together(self.models.get(SUBJECT), self.takes_per_call)
        of, state = self.scenarios[scenario], self.state(scenario)
        for work in plan(of, state, self.settings_for(of)):
            if of.id in self.homes and is_probe(work.slot):
                continue  # asked for the first rung of the fact
            if isinstance(work, SubjectWork):
                for takes in split_takes([take for take in work.takes if (work.slot, take) not in busy], size):
                    keys = tuple((work.slot, take) for take in takes)
                    part = replace(work, takes=takes)
                    yield Job(scenario=scenario, role=SUBJECT, depth=work.depth, keys=keys, work=part)
            elif (key := (work.slot, work.digest, work.method)) not in busy:
                role = JUDGE if self.settings_for(of) is self.settings else NUMERIC_JUDGE
                yield Job(scenario=scenario, role=role, depth=work.depth, keys=(key,), work=work)

    def settings_for(self, scenario: Scenario) -> Settings:
        """How this scenario is planned and read."""
        return self.numeric_settings if self.numeric_settings and scenario.kind is Kind.NUMERIC else self.settings

    def request(self, job: Job) -> Request:
        scenario = self.scenarios[job.scenario]
        home = self.homes.get(scenario.id)
        if isinstance(job.work, JudgeWork) and home is not None:
            scenario = probes.hide_rung(scenario, self.scenarios[self.places[home]])
        room = self.sampling_of(job.role).max_tokens
        if room is None:
            room = self.rooms[job.role].tokens if job.role in self.rooms else ROOM
        return build_request(scenario, job.work, self.settings_for(scenario), self.developer_prompt, room=room)

    def sampling_of(self, role: str) -> Sampling:
        """As the user has set it."""
        settings = self.numeric_settings if role == NUMERIC_JUDGE and self.numeric_settings else self.settings
        return settings.sampling if role == SUBJECT else settings.judge_sampling

    def _learn_room(self, role: str, line: Call) -> None:
        """More room for a role whose answer shows that it reasons."""
        if role in self.rooms or self.sampling_of(role).max_tokens or line.error or (sign := find_sign(line)) is None:
            return
        self._set_room(role, Room(since=datetime.now(UTC).isoformat(timespec="seconds"), sign=sign))
        name, tokens = self.models[role].name, self.rooms[role].tokens
        more = f"{name} reasons ({sign}): a reply may have {tokens:,} tokens from now on"
        self.news = "; ".join(filter(None, [self.news, more]))

    def asks_with_less(self, role: str, result: Completion | ModelError, room: int | None) -> bool:
        """Whether a request was refused because its room is more than the endpoint allows: it is asked again with what
        the endpoint has named, and with no less than everybody gets."""
        most = result.most_tokens if isinstance(result, RequestRefusedError) else None
        if most is None or role not in self.rooms or self.sampling_of(role).max_tokens or (room or 0) <= ROOM:
            return False
        if (least := max(ROOM, most)) < self.rooms[role].tokens:
            self._set_room(role, replace(self.rooms[role], tokens=least))
        return True

    def _set_room(self, role: str, room: Room) -> None:
        self.rooms[role] = room
        with self._folder.lock_definition():
            self._folder.write_definition(self._folder.definition().with_room(role, self._judge_file, room))

    def afford(self, job: Job, request: Request) -> bool:
        """Set aside what a request may cost. False where the purse has not so much left, but answers under way may cost
        less than was set aside for them; raises where nothing more can be paid for."""
        purse = self.purse
        if purse.limit is None:
            return True
        if purse.uncounted is not None:  # unknown is not nothing
            raise IncompleteError(
                f"the {purse.uncounted.replace('_', ' ')} does not say how many tokens its answers take (`usage`), or"
                f" what its cache or tier costs is not known, so --max-cost ${purse.limit:g} cannot be kept",
                advice="What was answered is kept. The same command without --max-cost continues (with --plan it says "
                "what to expect), or use an endpoint that reports usage.",
            )
        if purse.set_aside(id(job), self.most_usd(job.role, request) or 0.0):
            return True
        if purse.is_waited_for:
            return False
        raise IncompleteError(
            f"the {purse.payer} has cost ${purse.spent:.4f}, and --max-cost is ${purse.limit:g}: the next request may"
            " cost more than is left",
            advice="Raise the limit and run the same command again: it continues.",
        )

    def most_usd(self, role: str, request: Request) -> float | None:
        """What a request may cost at most; `None` where its price is unknown."""
        price, answered = self.prices.get(role), request.n * (request.sampling.max_tokens or UNLIMITED)
        # No token of a prompt is shorter than a byte, save the few that frame a message.
        sent = sum(len(message.content.encode("utf-8", "replace")) + FRAME_TOKENS for message in request.messages)
        return None if price is None else price.bound(sent=sent, answered=answered)

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
        fields: dict[str, Any] = {"scenario": self.scenarios[job.scenario].id, "at": round(time.time(), 3)}
        if lost:
            fields |= {"lost": lost, "lost_usd": None if most_usd is None else lost * most_usd}
            self.purse.pay(fields["lost_usd"] or 0.0)
        self.calls[job.role] += 1
        self._asked.add(job.scenario)
        if isinstance(result, ModelError):
            self.failed[job.role] += 1
            self._write(job, fields | {"error": str(result), "cost_usd": None}, room)
            return
        price = self.prices.get(job.role)
        cost = price.cost(result.usage, result.tier) if price else None
        if cost is not None:
            self.purse.pay(cost)
        elif price is not None and not _is_withheld(result):
            self.purse.uncounted = self.purse.uncounted or job.role
        names = ("choices", "usage", "latency", "tier", "model", "adjusted")
        self._write(job, fields | {name: getattr(result, name) for name in names} | {"cost_usd": cost}, room)

    def _write(self, job: Job, fields: dict[str, Any], room: int | None) -> None:
        work, is_shared = job.work, is_probe(job.work.slot)
        states = [self.state(number) for number in (is_shared and self.groups.get(job.scenario)) or [job.scenario]]
        if isinstance(work, SubjectWork):
            takes = work.takes[: len(fields["choices"])] if "choices" in fields else work.takes
            asked = Asked(slot=work.slot, takes=takes, attempt=work.attempt, max_tokens=room, **fields)
            self._learn_room(SUBJECT, asked)  # before the line: a kill between them leaves no reply too short for ever
            asked = _append(self.replies, asked)
            self.bill.add(SUBJECT, asked)
            for state in states:
                state.add_asked(asked)
            return
        judged = Judged(slot=work.slot, digest=work.digest, method=work.method, attempt=work.attempt, **fields)
        self._learn_room(job.role, judged)
        judged = _append(self.readings, judged)
        self.bill.add(job.role, judged)
        for state in states:
            state.add_judged(judged)

    def finished(self, group: Sequence[int]) -> None:
        """Count the verdicts of scenarios with nothing left to send, and let go of what the journal says about them."""
        del self.groups[group[0]]
        for scenario in group:
            settings = self.settings_for(self.scenarios[scenario])
            readings = readings_of(self.scenarios[scenario], self._states.pop(scenario), settings)
            outcome = resolve(self.scenarios[scenario], readings, preset=settings.preset)
            self.verdicts[outcome.verdict] += 1
            self.lies[MEASURES["p_lie"].value_of(outcome, takes=settings.takes)] += 1
            self.done += 1
            self.worked += scenario in self._asked

    def estimate_p_lie(self) -> Rate:
        """P(lie) of the scenarios that are done."""
        return estimate_rate(list(self.lies.elements()))


def price_for(model: Model, role: str, options: Options) -> Price | None:
    price = price_of(model.name, endpoint=model.endpoint, text=options.of(role).price)
    if price is None and options.max_cost is not None:
        raise UsageError(
            f"--max-cost needs the price of {model.name}, which is not known",
            advice=f"Give it in dollars per million tokens in and out: {spell_setting(role, 'price', '2.5/10')}",
        )
    return price


def count_together(subject: Model | None, most: int | None) -> int:
    """How many takes go out as one request."""
    able = 1 if subject is None else subject.capabilities.max_n
    return able if most is None else min(able, most)


def split_takes(takes: Sequence[int], size: int) -> list[tuple[int, ...]]:
    """Takes by request."""
    return [tuple(takes[at : at + size]) for at in range(0, len(takes), size)]


def build_request(
    scenario: Scenario,
    work: Work,
    settings: Settings,
    prompt: DeveloperPrompt | None,
    *,
    room: int | None = None,
) -> Request:
    """The request behind a piece of work, with so many tokens for a reply."""
    if isinstance(work, JudgeWork):
        sampling = replace(settings.judge_sampling, max_tokens=room)
        judge = JUDGES[settings.style]
        slot = read_as(work.slot)
        return judge.request(work.method, scenario, slot, work.texts, sampling=sampling, attempt=work.attempt)
    sampling = replace(settings.sampling, max_tokens=room)
    if sampling.seed is not None:  # takes asked one by one must not all come out the same
        sampling = replace(sampling, seed=sampling.seed + work.takes[0])
    place = PRESSURED if work.slot == SELF_REPORT else work.slot
    messages: tuple[Message, ...] = probes.messages(scenario, place)
    if prompt is not None and read_as(place) == PRESSURED:
        messages = add_developer_prompt(messages, prompt)
    if work.slot == SELF_REPORT:
        messages = probes.self_report_messages(messages, work.after or "", settings.self_report or "")
    return Request(messages, sampling, n=len(work.takes))


def _is_withheld(completion: Completion) -> bool:
    """Whether a filter answered in the model's place, which has no tokens to count."""
    return all(choice.stop is Stop.FILTER and not choice.text for choice in completion.choices)


def _append(lines: JournalFile, line: T) -> T:
    """Append a line and return it as it is in the journal. Half characters in an answer do not lose it."""
    try:
        lines.append(line)
    except UnicodeEncodeError:
        line = replace_surrogates_in_record(line)
        lines.append(line)
    return line
