"""One session of work on a run folder: sends what is missing and keeps what comes back.

A session owns its journal and nothing else. Endpoints, purse, progress and the wish to stop come from outside, so that
many sessions can run in one event loop and share them.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from unmask.engine.loop import call_repeatedly
from unmask.engine.scenario import Executor, Route
from unmask.engine.work import SUBJECT, Workload
from unmask.errors import Interrupted
from unmask.models.base import Model
from unmask.models.limiter import Limiter, Limits
from unmask.runs.cost import Purse
from unmask.runs.definition import Definition
from unmask.runs.folder import Folder
from unmask.runs.options import Options

Progress = Callable[[Workload, Executor], None]
"""Called after every answer and every second, when a run is being stopped, and once at the end."""

PROGRESS_INTERVAL = 1.0
"""Seconds between two looks at the progress while nothing comes back: a run that waits has to say so."""

GRACE = 5.0
"""Seconds that requests in flight are given to come back once a run is interrupted: they are paid for already. A run
that stops by itself waits for all of them."""


class Limiters:
    """One limiter for each address that sessions ask, or for each name that a model was given."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._by_name: dict[str, Limiter] = {}
        self._by_model: dict[int, Limiter] = {}

    def assign(self, model: Model, name: str, limits: Limits) -> Limiter:
        """Let this model, which has to live as long as the limiters, go through the limiter of this name. The first to
        name a limiter sets its limits."""
        if name not in self._by_name:
            self._by_name[name] = Limiter(model.endpoint, limits)
        self._by_model[id(model)] = self._by_name[name]
        return self._by_name[name]

    def limiter_of(self, model: Model) -> Limiter:
        return self._by_model.get(id(model)) or self.assign(model, model.endpoint, self._limits)


class Interruption:
    """The wish to stop, for all sessions that listen. The first lets answers in flight come in, the second does not."""

    def __init__(self) -> None:
        self._listeners: list[Callable[[], None]] = []
        self.requests = 0

    @contextmanager
    def listen(self, stop: Callable[[], None]) -> Iterator[None]:
        """Call `stop` at every wish while the body runs."""
        self._listeners.append(stop)
        try:
            yield
        finally:
            self._listeners.remove(stop)

    def request(self, number: signal.Signals) -> None:
        self.requests += 1
        for stop in self._listeners:
            stop()


@contextmanager
def open_workload(
    folder: Folder,
    definition: Definition,
    options: Options,
    *,
    judge_file: str,
    models: dict[str, Model],
) -> Iterator[Workload]:
    """Open the journal of a run for a session. Without a subject among the models only readings are made."""
    workload = Workload(folder, definition, options, judge_file=judge_file, models=models)
    with ExitStack() as stack:
        if options.batch is not None or folder.has_batches:
            from unmask.engine.batches import open_rounds

            workload.rounds = stack.enter_context(open_rounds(folder, options, workload, judge_file))
        # Before the first answer is paid for: connections may take all files that a process can have.
        has_subject = SUBJECT in models
        for file in [workload.replies] * has_subject + [workload.readings] * (len(models) > has_subject):
            stack.callback(file.close)
            file.open()
        yield workload


async def run_session(
    workload: Workload,
    *,
    limiters: Limiters,
    purse: Purse,
    interruption: Interruption,
    progress: Progress | None = None,
    is_paid: bool = False,
) -> None:
    """Send what is missing and keep what comes back, until all is done or something stops the session. `is_paid` says
    that what earlier sessions cost has been taken from the purse."""
    workload.purse, rounds = purse, workload.rounds
    if not is_paid:
        purse.pay(workload.bill.known_cost)
    live = [role for role in workload.models if rounds is None or role not in rounds.roles]
    routes = {role: Route(model := workload.models[role], limiters.limiter_of(model)) for role in live}
    executor = Executor(workload, routes)
    if progress is not None:
        executor.tick = lambda: progress(workload, executor)

    def stop() -> None:
        if executor.interrupted:
            executor.abandon()
        executor.stop(
            Interrupted("interrupted", advice="Everything answered is kept: run the same command again to continue.")
        )
        if rounds is not None:
            rounds.interrupt()
        executor.tick()

    def look() -> None:
        executor.look_again()
        executor.tick()

    async def send_live() -> None:
        await executor.run(grace=GRACE)

    executor.tick()  # what is new is shown before anything is sent
    with interruption.listen(stop):
        async with call_repeatedly(look, every=PROGRESS_INTERVAL):
            await (send_live() if rounds is None else rounds.run(send_live))
    executor.tick()
