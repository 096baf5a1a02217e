"""A run from end to end: load, define, ask and read, score. The file to read first."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import msgspec

from unmask.data.dataset import Dataset
from unmask.engine.baseline import borrow_probes
from unmask.engine.define import NO_MODEL, add_judge, check_asides, create_or_continue
from unmask.engine.grow import explain_change, find_run
from unmask.engine.loop import on_signals, run_blocking
from unmask.engine.prepare import complete_judge, open_judges, prepare_run
from unmask.engine.session import Interruption, Limiters, Progress, open_workload, run_session
from unmask.engine.work import SUBJECT, Workload
from unmask.models.base import Model
from unmask.models.limiter import Limits
from unmask.models.settings import combine_patience
from unmask.records import call_renderer
from unmask.runs.cost import Purse
from unmask.runs.definition import Definition, JudgeSpec, file_of
from unmask.runs.folder import Folder
from unmask.runs.options import Options, RunSettings

if TYPE_CHECKING:
    from unmask.models.own import AnyModel
    from unmask.runs.run import Run

IMPATIENCE = 0.5
"""Seconds that closing a model may take after the second Ctrl-C."""


def run(
    *,
    out: str | Path,
    data: str | Path | Dataset | None = None,
    model: str | AnyModel | None = None,
    judge: str | AnyModel | None = None,
    numeric_judge: str | AnyModel | None = None,
    progress: Progress | bool | None = None,
    **settings: Unpack[RunSettings],
) -> Run:
    """Run the benchmark, or continue it, and return the finished run. Also works inside a running event loop.

    `model` and `judge` are names, functions from messages to a text, or objects with a method `complete`; so is
    `numeric_judge`, which reads figures in the place of the judge. With neither `data` nor `model` the run in the
    folder is continued: what is not given is as the folder has it. A notebook shows the progress unless `progress` is
    False, a script only if it is True. `settings` are those of `unmask.RunSettings`. Raises an `UnmaskError`; what was
    answered before is kept.
    """
    folder = Folder(out)
    order = prepare_run(folder, data, {"model": model, "judge": judge, "numeric_judge": numeric_judge}, dict(settings))
    models = {SUBJECT: order.subject, **order.judge.models}
    opened = open_run_workload(folder, order.wanted, order.dataset, order.options, models)
    return _work(folder, opened, order.options, progress, news=order.news)


@contextlib.contextmanager
def open_run_workload(
    folder: Folder, wanted: Definition, dataset: Dataset, options: Options, models: dict[str, Model]
) -> Iterator[Workload]:
    """Make the folder of a run or continue it, and open its journal for a session. The folder is locked meanwhile."""
    _check_batches(options, models)  # before there is a folder
    with contextlib.ExitStack() as locks:
        locks.enter_context(folder.lock_replies())
        for name in wanted.judge_files(wanted.judge):
            locks.enter_context(folder.lock_readings(name))
        with folder.lock_definition():
            before = find_run(folder) if folder.exists else None
            definition = create_or_continue(folder, wanted, dataset)
        if definition.beliefs_from is not None:
            borrow_probes(folder, definition)
        del dataset  # the folder has its scenarios: no need to hold them twice
        file = definition.judge or NO_MODEL
        with open_workload(folder, definition, options, judge_file=file, models=models) as workload:
            if before is not None:
                workload.news = explain_change(folder, before, wanted, definition)
            yield workload


def judge(
    path: str | Path,
    *,
    judge: str | AnyModel,
    numeric_judge: str | AnyModel | None = None,
    progress: Progress | bool | None = None,
    **settings: Unpack[RunSettings],
) -> Run:
    """Read the replies of a run with another judge, or complete its readings, without asking the subject.

    `judge`, `numeric_judge` and `progress` are as for `run`. What is not given is as the run has recorded it of this
    judge; a new judge has the defaults, and `tags` of the run.
    """
    folder = Folder(path)
    named = {"judge": judge} | ({} if numeric_judge is None else {"numeric_judge": numeric_judge})
    options = complete_judge(folder, {**named, **settings})
    judges = open_judges(options)
    check_asides(options, judges.spec)
    spec = msgspec.structs.replace(judges.spec, tags=options.tags if "tags" in settings else None)
    return _work(folder, open_judge_workload(folder, spec, options, judges.models), options, progress)


@contextlib.contextmanager
def open_judge_workload(
    folder: Folder, spec: JudgeSpec, options: Options, models: dict[str, Model], *, borrows: bool = False
) -> Iterator[Workload]:
    """Add a judge to a run, or continue its readings, and open them for a session. They are locked meanwhile. With
    `borrows` it takes over what it has read of the probes in the run that lent them."""
    _check_batches(options, models)
    file = file_of(spec)
    with contextlib.ExitStack() as stack:
        stack.enter_context(folder.lock_readings(file))
        # A run that grows meanwhile changes run.json: what is opened here belongs together.
        with folder.lock_definition():
            definition = add_judge(folder, file, spec, options)
            if borrows and definition.beliefs_from is not None:
                borrow_probes(folder, msgspec.structs.replace(definition, judge=file))
            opened = open_workload(folder, definition, options, judge_file=file, models=models)
            workload = stack.enter_context(opened)
        yield workload


def _check_batches(options: Options, models: dict[str, Model]) -> None:
    """Refuse `--batch` where a model has no batch API."""
    if options.batch is not None:
        from unmask.engine.batches import batched_roles

        batched_roles(options, models)


def _work(
    folder: Folder,
    opened: AbstractContextManager[Workload],
    options: Options,
    progress: Progress | bool | None,
    *,
    news: str = "",
) -> Run:
    """One session, and the run as it is then. A notebook shows the progress unless it is not wanted."""
    with opened as workload:
        workload.news = "; ".join(filter(None, [workload.news, news]))
        if not callable(progress) and (progress or (progress is None and "IPython" in sys.modules)):
            progress = call_renderer("open_progress", progress)
        run_blocking(lambda: _run_alone(workload, options, progress if callable(progress) else None))
    from unmask.runs.run import Run  # what scores a run is imported when there is something to score

    return Run(folder.path)


async def _run_alone(workload: Workload, options: Options, progress: Progress | None) -> None:
    """One session with endpoints, a purse and signal handlers of its own. Its models are closed at the end."""
    limits = Limits(max_connections=options.max_connections, requests_per_minute=options.requests_per_minute)
    limiters, interruption, models = Limiters(limits), Interruption(), workload.models
    for model in models.values():  # what shares an address has the patience of both
        sharing = [options.of(role) for role, other in models.items() if other.endpoint == model.endpoint]
        limiters.assign(model, model.endpoint, msgspec.structs.replace(limits, **combine_patience(sharing)))
    try:
        with on_signals(interruption.request):
            await run_session(
                workload,
                limiters=limiters,
                purse=Purse(options.max_cost),
                interruption=interruption,
                progress=progress,
            )
    finally:
        for model in {id(model): model for model in models.values()}.values():
            if interruption.requests < 2:
                await model.close()
            else:  # a model that is at work in this process is not waited for
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(model.close(), IMPATIENCE)
