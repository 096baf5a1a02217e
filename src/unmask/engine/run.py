"""A run from end to end: load, define, ask and read, score. The file to read first."""

from __future__ import annotations

import asyncio
import contextlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import msgspec

from unmask.data.dataset import Dataset, LoadOptions
from unmask.data.load import load, select_part
from unmask.engine.define import (
    NO_MODEL,
    add_judge,
    create_or_continue,
    define_run,
    judge_spec,
    leave_figures_out,
    pair_judges,
)
from unmask.engine.loop import on_signals, run_blocking
from unmask.engine.readers import Partner, open_judge, open_partner
from unmask.engine.session import Endpoints, Interruption, Progress, open_workload, run_session
from unmask.engine.work import JUDGE, NUMERIC_JUDGE, SUBJECT, Workload
from unmask.judges.base import Reader
from unmask.models.base import Model
from unmask.models.endpoint import Limits
from unmask.models.providers import check_tier, open_model
from unmask.models.user_params import refuse_unknown_additions
from unmask.records import Archetype, Kind, call_renderer
from unmask.runs.cost import Purse
from unmask.runs.definition import Definition, JudgeSpec, judge_file
from unmask.runs.folder import Folder
from unmask.runs.options import Options, RunSettings, options_from

if TYPE_CHECKING:
    from unmask.models.own import AnyModel
    from unmask.runs.run import Run

IMPATIENCE = 0.5
"""Seconds that closing a model may take after the second Ctrl-C."""


def run(
    *,
    data: str | Path | Dataset,
    model: str | AnyModel,
    judge: str | AnyModel,
    out: str | Path,
    numeric_judge: str | AnyModel | None = None,
    progress: Progress | bool | None = None,
    **settings: Unpack[RunSettings],
) -> Run:
    """Run the benchmark, or continue it, and return the finished run. Also works inside a running event loop.

    `model` and `judge` are names, functions from messages to a text, or objects with a method `complete`; so is
    `numeric_judge`, which reads figures in the place of the judge. A notebook shows the progress unless `progress` is
    False, a script only if it is True. `settings` are the fields of `unmask.Options`. Raises an `UnmaskError`; what
    was answered before is kept.
    """
    options = options_from(settings)
    whole = load_whole(data, options)
    subject = open_subject(model, options)
    check_tier(options.judge_tier, judge, flag="--judge-tier")
    # A model in this process that also judges is loaded once: the weights are the same, and so is the queue.
    in_process = subject.endpoint == subject.name and subject.capabilities.supports_options
    same = judge == model and (not isinstance(model, str) or in_process)
    reader = subject if same else open_judge(judge, options)
    if same:
        refuse_unknown_additions(subject, options.judge_sampling, prefix="judge-")
    folder = Folder(out)
    spec = judge_spec(reader, options)
    partner = open_partner(numeric_judge, options, folder=folder, judge=spec, in_use=[(model, subject)])
    chosen, left_out = leave_figures_out(whole, partner.options, spec, partner=partner.spec)
    dataset = select_data(whole, chosen)
    wanted = define_run(dataset, subject, spec, chosen, partner=partner.spec)
    models = {SUBJECT: subject} | models_behind(reader, partner)
    with open_run_workload(folder, wanted, dataset, options, models) as workload:
        workload.news = "; ".join(filter(None, [workload.news, partner.news, left_out]))
        run_blocking(lambda: _run_alone(workload, options, progress))
    return _open_finished(folder)


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
            before = folder.definition() if folder.exists else None
            definition = create_or_continue(folder, wanted, dataset, moved=options.moved)
        if definition.beliefs_from is not None:
            from unmask.engine.baseline import borrow_probes

            borrow_probes(folder, definition)
        del dataset  # the folder has its scenarios: no need to hold them twice
        file = definition.judge or NO_MODEL
        with open_workload(folder, definition, options, judge_file=file, models=models) as workload:
            if before is not None:
                from unmask.engine.grow import explain_change

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

    `judge`, `numeric_judge` and `progress` are as for `run`.
    A `reader` is this judge's own from then on; without one it reads as it did before, a new judge as the run does.
    """
    folder = Folder(path)
    options = options_from({"preset": folder.definition().preset, **settings})
    reader = open_judge(judge, options)
    spec = judge_spec(reader, options)
    file = options.judge_name or judge_file(spec.model)
    partner = open_partner(numeric_judge, options, folder=folder, judge=spec)
    specs = pair_judges(file, spec, partner.spec, partner.options)
    if "reader" in settings:
        specs = {name: msgspec.structs.replace(each, reader=options.reader) for name, each in specs.items()}
    with open_judge_workload(folder, file, specs, options, models_behind(reader, partner)) as workload:
        workload.news = partner.news
        run_blocking(lambda: _run_alone(workload, options, progress))
    return _open_finished(folder)


@contextlib.contextmanager
def open_judge_workload(
    folder: Folder,
    file: str,
    specs: dict[str, JudgeSpec],
    options: Options,
    models: dict[str, Model],
    *,
    borrows: bool = False,
) -> Iterator[Workload]:
    """Add a judge to a run, with its partner where `specs` has one, or continue its readings, and open them for a
    session. They are locked meanwhile. With `borrows` it takes over what it has read of the probes in the run that
    lent them."""
    _check_batches(options, models)
    with contextlib.ExitStack() as stack:
        for name in specs:
            stack.enter_context(folder.lock_readings(name))
        # A run that grows meanwhile changes run.json: what is opened here belongs together.
        with folder.lock_definition():
            definition = add_judge(folder, file, specs, moved=options.moved, role_play=options.role_play)
            if borrows and definition.beliefs_from is not None:
                from unmask.engine.baseline import borrow_probes

                borrow_probes(folder, msgspec.structs.replace(definition, judge=file))
            opened = open_workload(folder, definition, options, judge_file=file, models=models)
            workload = stack.enter_context(opened)
        yield workload


def _check_batches(options: Options, models: dict[str, Model]) -> None:
    """Refuse `--batch` where a model has no batch API."""
    if options.batch is not None:
        from unmask.engine.batch_work import batched_roles

        batched_roles(options, models)


def _open_progress(wanted: bool | None) -> Progress | None:
    """What shows how far a run is, where nothing was passed that does: a notebook shows it unless it is not wanted."""
    if wanted is False or (wanted is None and "IPython" not in sys.modules):
        return None
    shown: Progress | None = call_renderer("open_progress", wanted)
    return shown


async def _run_alone(workload: Workload, options: Options, progress: Progress | bool | None) -> None:
    """One session with endpoints, a purse and signal handlers of its own. Its models are closed at the end."""
    endpoints = Endpoints(
        Limits(
            max_connections=options.max_connections,
            requests_per_minute=options.requests_per_minute,
            wait_for_server=options.wait_for_server,
        )
    )
    interruption = Interruption()
    try:
        with on_signals(interruption.request):
            await run_session(
                workload,
                endpoints=endpoints,
                purse=Purse(options.max_cost),
                interruption=interruption,
                progress=progress if callable(progress) else _open_progress(progress),
            )
    finally:
        await endpoints.close()
        for model in {id(model): model for model in workload.models.values()}.values():
            if interruption.requests < 2:
                await model.close()
            else:  # a model that is at work in this process is not waited for
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(model.close(), IMPATIENCE)


def _open_finished(folder: Folder) -> Run:
    from unmask.runs.run import Run  # what scores a run is imported when there is something to score

    return Run(folder.path)


def load_whole(data: str | Path | Dataset, options: Options) -> Dataset:
    """Everything, before a part of it is chosen."""
    if isinstance(data, Dataset):
        return data
    return load(data, options=LoadOptions(skip_bad_rows=options.skip_bad_rows, revision=options.revision))


def select_data(whole: Dataset, options: Options) -> Dataset:
    """The part of loaded data that these options choose, with the sides that were annotated."""
    selection = LoadOptions(
        archetypes=tuple(Archetype(name) for name in options.archetype),
        ids=options.ids,
        limit=options.limit,
        seed=options.sample_seed,
        shard=options.shard,
    )
    part = select_part(whole, options=selection)
    if options.reader is Reader.LLM or all(one.yes_means or one.kind is Kind.NUMERIC for one in part.scenarios):
        return part
    from unmask.engine.annotate import add_sides

    return add_sides(part, of=whole)


def open_subject(model: str | AnyModel, options: Options, *, asks_for_key: bool = True) -> Model:
    check_tier(options.tier, model, flag="--tier")
    if isinstance(model, str):
        opened = open_model(
            model,
            role="subject",
            base_url=options.base_url,
            timeout=options.timeout,
            asks_for_key=asks_for_key,
            tier=options.tier,
        )
    else:
        from unmask.models.own import as_model

        opened = as_model(model)
    refuse_unknown_additions(opened, options.sampling)
    return opened


def models_behind(judge: Model | str, partner: Partner | None = None) -> dict[str, Model]:
    readers = {JUDGE: judge, NUMERIC_JUDGE: None if partner is None else partner.reader}
    return {role: reader for role, reader in readers.items() if reader is not None and not isinstance(reader, str)}
