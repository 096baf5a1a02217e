"""One session of work on a run folder: wires models, limits, course and executor together, and takes them apart."""

from __future__ import annotations

import random
import signal
from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from unmask.bill import Bill
from unmask.course import JUDGE, SUBJECT, Course, Means
from unmask.data import Dataset
from unmask.definition import Definition
from unmask.errors import Interrupted, UsageError
from unmask.execute import Executor, Line
from unmask.folder import Folder, load_seen
from unmask.journal import Lines
from unmask.loops import beating, on_signals
from unmask.models.base import Model
from unmask.models.limits import Endpoint, Limits
from unmask.models.prices import Price, lookup
from unmask.opened import Held
from unmask.options import Options
from unmask.prepare import learner
from unmask.records import Scenario
from unmask.seen import Seen

Progress = Callable[[Course, Executor], None]
"""Called after every answer, every second besides, when a run is being stopped, and once at the end."""

BEAT = 1.0
"""Seconds between two looks at the progress while nothing comes back: a run that waits has to say so."""

GRACE = 5.0
"""Seconds that requests in flight are given to come back once a run is stopped: they are paid for already."""


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
    given, held, whole = _loaded(folder, session.judge_file)
    scenarios, seen = _in_random_order(given, held)
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
    course = Course(scenarios, seen, msgspec.structs.replace(settings, ask=SUBJECT in models), means)
    course.bill = _spent_before(folder, session.judge_file)
    course.cost = course.bill.cost or 0.0
    try:
        await _execute(course, models, options, progress)
    finally:
        for lines in (folder.replies, readings):
            lines.close()
        for model in {id(model): model for model in models.values()}.values():
            await model.close()
    return Held(session.judge_file, given, held, course.bill, folder.size(session.judge_file)) if whole else None


async def _execute(course: Course, models: dict[str, Model], options: Options, progress: Progress | None) -> None:
    endpoints: dict[str, Endpoint] = {}
    limits = Limits(max_connections=options.max_connections, requests_per_minute=options.requests_per_minute)
    for model in models.values():
        if model.endpoint not in endpoints:
            endpoints[model.endpoint] = Endpoint(model.endpoint, limits, rng=random.Random())
    lines = {role: Line(model, endpoints[model.endpoint]) for role, model in models.items()}
    executor = Executor(course, lines, scenarios=len(course.scenarios))
    for endpoint in endpoints.values():
        endpoint.on_free = executor.wake
    if progress is not None:
        executor.tick = lambda: progress(course, executor)

    def stop(number: signal.Signals) -> None:
        if executor.stopping is not None:
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


def _loaded(folder: Folder, judge: str) -> tuple[tuple[Scenario, ...], list[Seen], bool]:
    """Scenarios, what the journal says of them, and whether that is all it says: failures are to be tried again."""
    scenarios = folder.scenarios()
    seen = load_seen(folder, judge, scenarios)
    forgotten = [held.forget_errors() for held in seen]
    return scenarios, seen, not any(forgotten)


def _in_random_order(scenarios: tuple[Scenario, ...], seen: list[Seen]) -> tuple[tuple[Scenario, ...], list[Seen]]:
    """Archetypes mixed, so that the running rate means something early on."""
    pairs = list(zip(scenarios, seen, strict=True))
    random.Random(0).shuffle(pairs)
    return tuple(scenario for scenario, _ in pairs), [held for _, held in pairs]


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
