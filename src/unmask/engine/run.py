"""A run from end to end: load, define, ask and read, score. The file to read first.

Not called run.py, because importing a submodule of that name would hide the public function `unmask.run`.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from unmask.data.dataset import Dataset, LoadOptions
from unmask.data.load import load
from unmask.engine.define import NO_MODEL, add_judge, define, judge_spec, refuse_old_name, settle
from unmask.engine.loop import blocking
from unmask.engine.session import Progress, Session, drive
from unmask.files import Lock
from unmask.models.base import Model, capabilities_of
from unmask.models.providers import open_model
from unmask.records import Archetype
from unmask.runs.definition import judge_file
from unmask.runs.folder import Folder, Held
from unmask.runs.options import Options, given

if TYPE_CHECKING:
    from unmask.runs.run import Run


def run(
    *,
    data: str | Path | Dataset,
    model: str | Model,
    judge: str | Model,
    out: str | Path,
    progress: Progress | None = None,
    **settings: Any,
) -> Run:
    """Run the benchmark, or continue it, and return the finished run. Also works inside a running event loop.

    `settings` are the fields of `unmask.Options`. Raises an `UnmaskError`; what was answered before is kept.
    """
    options = given(settings)
    dataset = load_data(data, options)
    subject = opened(model, options)
    # A model in this process that also judges is loaded once: the weights are the same, and so is the queue.
    reader = subject if judge == model and capabilities_of(subject).supports_options else reading(judge, options)
    folder = Folder(out)
    wanted = define(dataset, subject, judge_spec(reader, options), options)
    with Lock(folder.path):
        definition = settle(folder, wanted, dataset, moved=options.moved)
        dataset = msgspec.structs.replace(dataset, scenarios=())  # the folder has them: no need to hold them twice
        session = Session(
            folder=folder,
            definition=definition,
            options=options,
            judge_file=definition.judge or NO_MODEL,
            subject=subject,
            judge=reader,
            dataset=dataset,
        )
        held = blocking(lambda: drive(session, progress))
    return _finished(folder, held)


def judge(path: str | Path, *, judge: str | Model, progress: Progress | None = None, **settings: Any) -> Run:
    """Read the replies of a run with another judge, or complete its readings, without asking the subject.

    A `reader` is this judge's own from then on; without one it reads as it did before, a new judge as the run does.
    """
    folder = Folder(path)
    before = folder.definition()
    options = given({"preset": before.preset, **settings})
    reader = reading(judge, options)
    spec = judge_spec(reader, options)
    if "reader" in settings:
        spec = msgspec.structs.replace(spec, reader=options.reader)
    file = options.judge_name or judge_file(spec.model)
    with Lock(folder.path):
        definition = add_judge(folder, file, spec, moved=options.moved, role_play=options.role_play)
        session = Session(folder=folder, definition=definition, options=options, judge_file=file, judge=reader)
        held = blocking(lambda: drive(session, progress))
    return _finished(folder, held)


def _finished(folder: Folder, held: Held | None) -> Run:
    """What scores a run is imported when there is something to score: until then requests could be under way."""
    from unmask.runs.run import Run

    return Run(folder.path, held)


def load_data(data: str | Path | Dataset, options: Options) -> Dataset:
    if isinstance(data, Dataset):
        return data
    selection = LoadOptions(
        skip_bad_rows=options.skip_bad_rows,
        revision=options.revision,
        archetypes=tuple(Archetype(name) for name in options.archetype),
        ids=options.ids,
        limit=options.limit,
        seed=options.sample_seed,
    )
    return load(data, options=selection)


def opened(model: str | Model, options: Options) -> Model:
    """The subject."""
    if not isinstance(model, str):
        return model
    return open_model(model, role="subject", base_url=options.base_url, timeout=options.timeout)


def reading(judge: str | Model, options: Options) -> Model | str:
    """The model behind a judge, or the name of a judge that needs none."""
    if not isinstance(judge, str) or judge == NO_MODEL:
        return judge
    refuse_old_name(judge)
    return open_model(judge, role="judge", base_url=options.judge_base_url, timeout=options.timeout)
