"""Sessions of work: what they open before the first request, and what several of them share in one event loop."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from unmask.data.load import load
from unmask.engine.define import create_or_continue, define_run, judge_spec
from unmask.engine.session import Interruption, Limiters, open_workload, run_session
from unmask.engine.work import JUDGE, SUBJECT, Workload
from unmask.errors import IncompleteError, Interrupted, JournalError, UnmaskError
from unmask.models.base import Capabilities
from unmask.models.limiter import Limits
from unmask.models.scripted import Scripted, open_scripted
from unmask.models.scripted import answer_as_judge as read_letters
from unmask.records import Completion, Request
from unmask.runs.cost import Purse
from unmask.runs.folder import Folder
from unmask.runs.options import Options, options_from
from unmask.runs.run import Run


class Watched:
    """A scripted model that knows how many requests are with it, and whether it was closed."""

    def __init__(self, model: Scripted) -> None:
        self.model, self.name, self.endpoint = model, model.name, "in here"
        self.capabilities = Capabilities()
        self.most, self.now, self.closed = 0, 0, False
        self.begun = asyncio.Event()
        self.hold: asyncio.Event | None = None

    async def complete(self, request: Request) -> Completion:
        self.now += 1
        self.begun.set()
        self.most = max(self.most, self.now)
        try:
            await (asyncio.sleep(0) if self.hold is None else self.hold.wait())
            return await self.model.complete(request)
        finally:
            self.now -= 1

    async def close(self) -> None:
        self.closed = True


class Sweep:
    """Two runs of one subject and one judge, opened but not begun."""

    def __init__(self, tmp_path: Path, stack: ExitStack, **settings) -> None:
        self.subject = Watched(open_scripted("scripted/liar"))
        self.judge = Watched(Scripted(read_letters, name="scripted/judge"))
        self.limiters = Limiters(Limits(max_connections=3))
        self.interruption = Interruption()
        self.folders = [Folder(tmp_path / name) for name in ("one", "two")]
        self.workloads = [stack.enter_context(self.opened(folder, options_from(settings))) for folder in self.folders]

    def opened(self, folder: Folder, options: Options):
        dataset, models = load("tiny"), {SUBJECT: self.subject, JUDGE: self.judge}
        wanted = define_run(dataset, self.subject, judge_spec(self.judge, options.judge), options)
        definition = create_or_continue(folder, wanted, dataset)
        return open_workload(folder, definition, options, judge_file="scripted_judge", models=models)

    async def run(self, purse: Purse, *workloads: Workload) -> list[UnmaskError | None]:
        shared = {"limiters": self.limiters, "purse": purse, "interruption": self.interruption}
        return await asyncio.gather(*(run_session(one, **shared) for one in workloads), return_exceptions=True)


@pytest.fixture
def stack() -> Iterator[ExitStack]:
    with ExitStack() as opened:
        yield opened


def test_two_sessions_in_one_loop_share_the_connections_and_finish(tmp_path: Path, stack: ExitStack):
    """Neither starves, together they keep the limit, and each folder scores as if it had been alone."""
    sweep = Sweep(tmp_path, stack)
    assert asyncio.run(sweep.run(Purse(), *sweep.workloads)) == [None, None]
    assert max(sweep.subject.most, sweep.judge.most) <= 3
    first, second = (Run(folder.path).score().overall for folder in sweep.folders)
    assert first == second
    assert first.counts["lie"] == 12


def test_sessions_that_pay_from_one_purse_stop_together(tmp_path: Path, stack: ExitStack):
    """What both have spent counts for each of them."""
    sweep = Sweep(tmp_path, stack, set={"price": "1000/1000", "judge.price": "1000/1000"})
    purse = Purse(1.0)
    ends = asyncio.run(sweep.run(purse, *sweep.workloads))
    assert [type(end) for end in ends] == [IncompleteError, IncompleteError]
    assert purse.spent == pytest.approx(sum(workload.bill.cost or 0 for workload in sweep.workloads))


def test_an_interruption_reaches_every_session(tmp_path: Path, stack: ExitStack):
    """The first lets answers in flight come in: they are in the journals."""
    sweep = Sweep(tmp_path, stack)

    async def go() -> list[UnmaskError | None]:
        sweep.subject.hold = asyncio.Event()
        task = asyncio.create_task(sweep.run(Purse(), *sweep.workloads))
        await sweep.subject.begun.wait()
        sweep.interruption.request(signal.SIGINT)
        sweep.subject.hold.set()
        return await task

    ends = asyncio.run(go())
    assert [type(end) for end in ends] == [Interrupted, Interrupted]
    assert sum(len(list(folder.asked())) for folder in sweep.folders) == sweep.subject.model.calls > 0


def test_a_session_that_stops_leaves_the_others_at_work(tmp_path: Path, stack: ExitStack):
    """Its own failure stops its own requests only, although both ask one endpoint."""
    sweep = Sweep(tmp_path, stack)
    sweep.workloads[0].replies.append = _full_disk  # type: ignore[method-assign]
    ends = asyncio.run(sweep.run(Purse(), *sweep.workloads))
    assert [type(end) for end in ends] == [JournalError, type(None)]
    assert sweep.workloads[1].done == len(sweep.workloads[1].scenarios)


def _full_disk(record: object) -> None:
    raise JournalError("no space")
