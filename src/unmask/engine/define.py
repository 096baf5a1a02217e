"""Before anything is sent: the definition of a run, and its folder."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from unmask import __version__
from unmask.data.dataset import Dataset, count_by_archetype
from unmask.engine.baseline import check_baseline
from unmask.engine.grow import clear_journal, find_run, grow_run, merge_asides, store_scenarios
from unmask.errors import UsageError
from unmask.files import file_exists
from unmask.judges.asides import ASIDES
from unmask.judges.base import JUDGES, Style
from unmask.judges.letters import prompts_hash
from unmask.models.base import Model, treatments_of
from unmask.models.settings import ModelSettings
from unmask.protocol.probes import PROBE_SYSTEM, SELF_REPORT_QUESTION
from unmask.records import Kind, digest
from unmask.runs.definition import (
    BaselineRef,
    DataSpec,
    Definition,
    JudgeSpec,
    SubjectSpec,
    check_same_run,
    file_of,
    public_url,
)
from unmask.runs.folder import Folder
from unmask.runs.options import Also, Options, list_asides, load_developer_prompt

NO_MODEL = Style.VERBATIM.value
"""The name of the judge that has no model behind it."""


def style_of(judge: Model | str) -> Style:
    """How this judge is asked: every model writes, but for the one that was trained to pick."""
    if isinstance(judge, str):
        return Style.VERBATIM
    abilities = judge.capabilities
    return Style.PICKS if abilities.supports_options and abilities.trained_to_read else Style.LETTERS


def judge_spec(judge: Model | str, settings: ModelSettings, *, numeric: JudgeSpec | None = None) -> JudgeSpec:
    """What defines a judge. The name `verbatim` is for the one without a model."""
    style = style_of(judge)
    has_model = bool(JUDGES[style].questions(Kind.BINARY))
    return JudgeSpec(
        **_recorded(settings, judge if isinstance(judge, str) else judge.name),
        endpoint=None if isinstance(judge, str) else judge.endpoint,
        prompts=prompts_hash(style) if has_model else style.value,
        style=style,
        treatments=() if isinstance(judge, str) else treatments_of(judge),
        numeric=numeric or msgspec.UNSET,
    )


def _recorded(settings: ModelSettings, model: str) -> dict[str, Any]:
    """The settings of a model as a run folder has them: by its name, and without credentials."""
    fields = {name: getattr(settings, name) for name in ModelSettings.__struct_fields__}
    return fields | {"model": model, "base_url": public_url(settings.base_url)}


def check_asides(options: Options, judge: JudgeSpec) -> None:
    """Refuse a question to the judge that this one cannot understand."""
    for slot in list_asides(options, ""):
        able = (
            judge.style is Style.LETTERS if ASIDES[slot].needs_writing else JUDGES[judge.style].questions(Kind.BINARY)
        )
        if not able:
            also = Also.of_judge(slot)
            raise UsageError(
                f"--also {also} needs a judge that understands a reply, and {judge.model} does not",
                advice=f"Ask a judge that is a model, also later with `unmask judge` and --also {also}.",
            )


def select_letters(whole: Dataset, options: Options, *, judge: str) -> tuple[Options, str]:
    """The binary archetypes of the data, for a judge that reads no figures, and how many scenarios are left out."""
    ids = set(options.ids)
    counts = count_by_archetype(scenario for scenario in whole.scenarios if not ids or scenario.id in ids)
    present = [archetype for archetype in counts if not options.archetype or archetype.value in options.archetype]
    letters = [archetype for archetype in present if archetype.traits.kind is Kind.BINARY]
    figures = [archetype for archetype in present if archetype.traits.kind is not Kind.BINARY]
    if not figures:
        return options, ""
    names = ", ".join(figures)
    if options.archetype or not letters:
        raise UsageError(
            f"{judge} reads letters, not numbers: it cannot judge {names}",
            advice="Name a judge for numbers, --numeric-judge NAME, or another judge.",
        )
    count = sum(counts[archetype] for archetype in figures)
    chosen = msgspec.structs.replace(options, archetype=tuple(archetype.value for archetype in letters))
    return chosen, f"{judge} reads letters, not numbers: {count} scenarios ({names}) are left out"


def define_run(dataset: Dataset, model: Model, judge: JudgeSpec, options: Options) -> Definition:
    """The definition this command asks for."""
    check_asides(options, judge)
    file = file_of(judge)
    baseline = Folder(Path(options.beliefs_from)) if options.beliefs_from is not None else None
    if options.control and any(scenario.rung is not None for scenario in dataset.scenarios):
        raise UsageError(
            f"--control: {dataset.name} is a ladder, and its rung 0 is the control", advice="Leave --control out."
        )
    return Definition(
        id=secrets.token_hex(8),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        unmask=__version__,
        data=DataSpec(
            name=dataset.name,
            source=dataset.source,
            revision=dataset.revision,
            hash=dataset.hash,
            full_hash=dataset.full_hash,
            yes_means=dataset.yes_means,
            counts={archetype.value: count for archetype, count in dataset.counts.items()},
            skipped=dataset.skipped,
            archetypes=options.archetype,
            ids=options.ids,
            limit=options.limit,
            seed=options.sample_seed,
            shard=dataset.shard or msgspec.UNSET,
        ),
        subject=SubjectSpec(
            **_recorded(options.subject, model.name), endpoint=model.endpoint, treatments=treatments_of(model)
        ),
        prompts=digest((PROBE_SYSTEM,)),
        developer_prompt=load_developer_prompt(options.developer_prompt) if options.developer_prompt else None,
        beliefs_from=None if baseline is None else BaselineRef(baseline.definition().id, str(baseline.path)),
        direct=options.direct,
        takes=options.takes,
        effort=options.effort,
        preset=options.preset,
        tags=options.tags,
        control=options.control,
        check=Also.CHECK in options.also,
        judge=file,
        judges={file: judge},
        self_report=SELF_REPORT_QUESTION if Also.SELF_REPORT in options.also else None,
        asides=list_asides(options, file),
    )


def create_or_continue(folder: Folder, wanted: Definition, dataset: Dataset) -> Definition:
    """Make the folder, or continue the run it holds, which may grow by it. One without answers is defined anew. All is
    checked before a write, and run.json is written last: a kill before it leaves the run as it was, or more scenarios
    in the folder than the run has.

    The caller holds the locks of replies, of the judge's readings and of run.json.
    """
    is_new = not (folder.exists or file_exists(folder.replies.path))
    old = None if is_new else find_run(folder)
    definition = wanted if old is None else grow_run(folder, old, wanted, dataset)
    if wanted.beliefs_from is not None and (old is None or definition.data.hash != old.data.hash):
        check_baseline(wanted, dataset)
    if old is None:
        if not is_new:
            clear_journal(folder)
        folder.write_scenarios(dataset.scenarios)
    elif definition.data.hash == dataset.hash:
        store_scenarios(folder, dataset)
    if definition != old:
        folder.write_definition(definition)
    folder.mend(*definition.judge_files(definition.judge))
    return definition


def add_judge(folder: Folder, file: str, spec: JudgeSpec, options: Options) -> Definition:
    """Record one more judge of an existing run. Scores keep the judge they had.

    The caller holds the locks of its readings and of run.json.
    """
    old = folder.definition()
    folder.refuse_other_scenarios(old.data)
    if file in old.judges:
        spec = msgspec.structs.replace(spec, tags=spec.tags or old.judges[file].tags)
    wanted = msgspec.structs.replace(
        old,
        judge=old.judge or file,
        judges=old.judges | {file: spec},
        asides=merge_asides(old.asides, list_asides(options, file)),
    )
    for role, room in old.rooms(file).items():
        wanted = wanted.with_room(role, file, room)
    check_same_run(old, wanted, folder.path)
    if wanted != old:
        folder.write_definition(wanted)
    folder.mend(file, replies=False)
    return wanted
