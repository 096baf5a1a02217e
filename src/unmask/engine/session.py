"""One session of work on a run folder: wires models, limits, course and executor together, and takes them apart."""

from __future__ import annotations

import errno
import random
import signal
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec

from unmask.data.dataset import Dataset
from unmask.engine.define import learner
from unmask.engine.executor import Executor, Line
from unmask.engine.loop import beating, on_signals
from unmask.engine.work import JUDGE, SUBJECT, Course, Means
from unmask.errors import Interrupted, JournalError, UsageError
from unmask.models.base import Model
from unmask.models.endpoint import Endpoint, Limits
from unmask.models.prices import Price, lookup
from unmask.protocol.state import Lazily, ScenarioState
from unmask.records import Scenario
from unmask.runs.cost import Bill
from unmask.runs.definition import Definition
from unmask.runs.folder import Folder, Held, OneByOne, load_seen
from unmask.runs.journal import Lines
from unmask.runs.options import Options

Progress = Callable[[Course, Executor], None]
"""Called after every answer, every second besides, when a run is being stopped, and once at the end."""

BEAT = 1.0
"""Seconds between two looks at the progress while nothing comes back: a run that waits has to say so."""

LONG = 100_000
"""Replies from which on a run is read scenario by scenario, and not kept in memory for the score: some 200 MB."""

GRACE = 5.0
"""Seconds that requests in flight are given to come back once a run is interrupted: they are paid for already. A run
that stops by itself waits for all of them."""


@dataclass(frozen=True, kw_only=True)
class Session:
    """Who works on which folder. Without a subject only readings are made; a judge named `rules` has no model."""

    folder: Folder
    definition: Definition
    options: Options
    judge_file: str
    subject: Model | None = None
    judge: Model | str
    dataset: Dataset | None = None


async def drive(session: Session, progress: Progress | None) -> Held | None:
    """Send what is missing and keep what comes back, until all is done or something stops the run. Returns what is
    in the journal now, where memory is sure to hold the same: then nobody has to read it again."""
    folder, options = session.folder, session.options
    known = _known(folder, session)
    models = _models(session)
    prices = {role: _price(model, role, options) for role, model in models.items()}
    readings = Lines(folder.readings(session.judge_file), reserve=True)
    settings = session.definition.settings(session.judge_file, preset=options.preset)
    means = Means(
        replies=folder.replies,
        readings=readings,
        subject=models.get(SUBJECT),
        prices=prices,
        developer_prompt=session.definition.developer_prompt,
        one_call=options.one_call,
        max_cost=options.max_cost,
        learned=learner(session.dataset, session.judge_file) if session.dataset is not None else None,
    )
    course = Course(known.scenarios, known.seen, msgspec.structs.replace(settings, ask=SUBJECT in models), means)
    course.bill = known.bill
    course.cost = course.bill.cost or 0.0
    try:
        ready([lines for role, lines in ((SUBJECT, folder.replies), (JUDGE, readings)) if role in models])
        await _execute(course, models, options, progress)
    finally:
        for lines in (folder.replies, readings):
            lines.close()
        for model in {id(model): model for model in models.values()}.values():
            await model.close()
        known.close()
    if known.whole is None:
        return None
    given, held = known.whole
    return Held(session.judge_file, given, held, course.bill, folder.size(session.judge_file))


def ready(journals: Iterable[Lines]) -> None:
    """Open what answers go into before the first is paid for: connections may take all files a process can have."""
    for lines in journals:
        try:
            lines.open()
        except JournalError as error:
            if isinstance(error.__cause__, OSError) and error.__cause__.errno in (errno.EMFILE, errno.ENFILE):
                error.advice = "Raise the limit of open files with ulimit -n, or lower --max-connections."
            raise


async def _execute(course: Course, models: dict[str, Model], options: Options, progress: Progress | None) -> None:
    endpoints: dict[str, Endpoint] = {}
    limits = Limits(max_connections=options.max_connections, requests_per_minute=options.requests_per_minute)
    for role, model in models.items():
        if model.endpoint not in endpoints:
            endpoints[model.endpoint] = Endpoint(model.endpoint, limits, rng=random.Random())
        if course.bill.calls[role]:
            endpoints[model.endpoint].vouch(model)
    lines = {role: Line(model, endpoints[model.endpoint]) for role, model in models.items()}
    executor = Executor(course, lines, scenarios=len(course.scenarios))
    for endpoint in endpoints.values():
        endpoint.on_free = executor.wake
    if progress is not None:
        executor.tick = lambda: progress(course, executor)

    def stop(number: signal.Signals) -> None:
        if executor.interrupted:
            executor.abandon()
        executor.stop(
            Interrupted("interrupted", advice="Everything answered is kept: run the same command again to continue.")
        )
        executor.tick()

    try:
        async with beating(executor.tick, every=BEAT):
            with on_signals(stop):
                await executor.run(grace=GRACE)
    finally:
        for endpoint in endpoints.values():
            await endpoint.close()
    if progress is not None:
        progress(course, executor)


class _Known(NamedTuple):
    """What a session starts from. `whole` are scenarios and what is seen of them in the order of the folder, where
    memory holds all that the journal says."""

    scenarios: tuple[Scenario, ...]
    """Archetypes mixed, so that the running rate means something early on."""
    seen: list[ScenarioState] | Lazily
    bill: Bill
    whole: tuple[tuple[Scenario, ...], list[ScenarioState]] | None = None
    close: Callable[[], None] = lambda: None


def _known(folder: Folder, session: Session) -> _Known:
    judge, scenarios = session.judge_file, folder.scenarios()
    order = list(range(len(scenarios)))
    random.Random(0).shuffle(order)
    mixed = tuple(scenarios[number] for number in order)
    most = session.definition.direct + session.definition.takes + 2
    if len(scenarios) * most > LONG:
        return _one_by_one(folder, judge, mixed, [scenario.id for scenario in scenarios])
    seen = load_seen(folder, judge, scenarios)
    forgotten = [held.forget_errors() for held in seen]  # failures are to be tried again
    bill = _spent_before(folder, judge)
    return _Known(mixed, [seen[number] for number in order], bill, None if any(forgotten) else (scenarios, seen))


def _one_by_one(folder: Folder, judge: str, mixed: tuple[Scenario, ...], ids: list[str]) -> _Known:
    """A long run is never held as a whole."""
    bill = Bill()
    journal = OneByOne(folder, ids, [judge], paid=bill.add)
    places = {name: number for number, name in enumerate(ids)}

    def load(scenario: int) -> ScenarioState:
        seen = journal.seen(places[mixed[scenario].id], judge)
        seen.forget_errors()
        return seen

    return _Known(mixed, Lazily(load), bill, close=journal.close)


def _models(session: Session) -> dict[str, Model]:
    pairs = ((SUBJECT, session.subject), (JUDGE, session.judge))
    return {role: model for role, model in pairs if isinstance(model, Model)}


def _price(model: Model, role: str, options: Options) -> Price | None:
    given = options.price if role == SUBJECT else options.judge_price
    price = Price.parse(given) if given else lookup(model.name, endpoint=model.endpoint)
    if price is None and options.max_cost is not None:
        flag = "--price" if role == SUBJECT else "--judge-price"
        raise UsageError(
            f"--max-cost needs the price of {model.name}, which is not known",
            advice=f"Give it in dollars per million tokens in and out: {flag} 2.5/10",
        )
    return price


def _spent_before(folder: Folder, judge: str) -> Bill:
    bill = Bill()
    for asked in folder.asked():
        bill.add("subject", asked)
    for judged in folder.judged(judge):
        bill.add("judge", judged)
    return bill
