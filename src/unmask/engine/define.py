"""Before anything is sent: the definition of a run, and its folder."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

import msgspec

from unmask import __version__
from unmask.data.dataset import Dataset, count_by_archetype
from unmask.errors import MissingError, UsageError
from unmask.judges.base import JUDGES, LETTERS_ONLY, Style
from unmask.judges.letters import prompts_hash
from unmask.models.base import Model, treatments_of
from unmask.protocol.probes import PROBE_SYSTEM, SELF_REPORT_QUESTION
from unmask.records import Kind, digest
from unmask.runs.definition import (
    BaselineRef,
    DataSpec,
    Definition,
    JudgeSpec,
    SubjectSpec,
    check_same_run,
    judge_file,
    public_url,
)
from unmask.runs.folder import Folder
from unmask.runs.options import Options, load_developer_prompt

NO_MODEL = Style.VERBATIM.value
"""The name of the judge that has no model behind it."""


def style_of(judge: Model | str) -> Style:
    """How this judge is asked: every model writes, but for the one that was trained to pick."""
    if isinstance(judge, str):
        return Style.VERBATIM
    abilities = judge.capabilities
    return Style.PICKS if abilities.supports_options and abilities.trained_to_read else Style.LETTERS


def judge_spec(judge: Model | str, options: Options) -> JudgeSpec:
    """What defines a judge. The name `verbatim` stands for the one that has no model behind it."""
    style = style_of(judge)
    has_model = bool(JUDGES[style].questions(Kind.BINARY))
    if options.role_play and not has_model:
        raise UsageError(
            f"--role-play needs a judge that understands a reply, and {judge} does not",
            advice="Ask a model: unmask judge RUN --judge PROVIDER/NAME --role-play",
        )
    spec = JudgeSpec(
        model=judge if isinstance(judge, str) else judge.name,
        endpoint=None if isinstance(judge, str) else judge.endpoint,
        base_url=public_url(options.judge_base_url),
        sampling=options.judge_sampling,
        prompts=prompts_hash(style) if has_model else style.value,
        style=style,
        treatments=() if isinstance(judge, str) else treatments_of(judge),
    )
    _refuse_unwritable(spec)
    return spec


def leave_figures_out(
    whole: Dataset, options: Options, judge: JudgeSpec, *, partner: JudgeSpec | None
) -> tuple[Options, str]:
    """What to select of the data for these judges, and a line that says what is left out. Where nobody reads figures
    these are the binary archetypes, as if somebody had chosen them."""
    if partner is not None or judge.style not in LETTERS_ONLY:
        return options, ""
    chosen, left_out = select_letters(whole, options, judge=judge.model)
    return chosen, left_out and f"{left_out}; --numeric-judge NAME, or another judge, adds them"


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
            f"{judge} reads letters, not figures: it cannot judge {names}",
            advice="Name a judge for figures, --numeric-judge NAME, or another judge.",
        )
    count = sum(counts[archetype] for archetype in figures)
    chosen = msgspec.structs.replace(options, archetype=tuple(archetype.value for archetype in letters))
    return chosen, f"{judge} reads letters, not figures: {count} scenarios ({names}) are left out"


def define_run(
    dataset: Dataset, model: Model, judge: JudgeSpec, options: Options, *, partner: JudgeSpec | None = None
) -> Definition:
    """The definition this command asks for. `partner` reads figures in the place of the judge."""
    file = options.judge_name or judge_file(judge.model)
    baseline = Folder(Path(options.beliefs_from)) if options.beliefs_from is not None else None
    wanted = Definition(
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
            model=model.name,
            endpoint=model.endpoint,
            base_url=public_url(options.base_url),
            sampling=options.sampling,
            treatments=treatments_of(model),
        ),
        prompts=digest((PROBE_SYSTEM,)),
        developer_prompt=load_developer_prompt(options.developer_prompt) if options.developer_prompt else None,
        beliefs_from=None if baseline is None else BaselineRef(baseline.definition().id, str(baseline.path)),
        direct=options.direct,
        takes=options.takes,
        effort=options.effort,
        preset=options.preset,
        reader=options.reader,
        check=options.check_provided,
        judge=file,
        judges=pair_judges(file, judge, partner, options),
        self_report=SELF_REPORT_QUESTION if options.self_report else None,
        role_play=(file,) if options.role_play else (),
    )
    _refuse_unwritable(wanted)
    return wanted


def pair_judges(file: str, judge: JudgeSpec, partner: JudgeSpec | None, options: Options) -> dict[str, JudgeSpec]:
    """A judge and the one that reads figures in its place, by their files; the first names the second."""
    if partner is None:
        return {file: judge}
    second = refuse_same_file(partner.model, file, options)
    named = msgspec.structs.replace(judge, numeric_judge=second)
    return {file: named, second: msgspec.structs.replace(partner, numeric_only=True)}


def refuse_same_file(numeric_judge: str, judge: str, options: Options) -> str:
    """The file of a second judge, which is never that of the first."""
    file = options.numeric_judge_name or judge_file(numeric_judge)
    if file.casefold() == judge.casefold():
        raise UsageError(
            f"--numeric-judge {numeric_judge} is the judge itself: both would be kept in readings/{judge}.jsonl",
            advice="Leave it out: a judge without a partner reads figures too. For other settings of the same model"
            " give it a name: --numeric-judge-name NAME",
        )
    return file


def _refuse_unwritable(record: Definition | JudgeSpec) -> None:
    """Names of files may hold bytes that are no text, and run.json cannot."""
    try:
        msgspec.json.encode(record)
    except UnicodeEncodeError as error:
        raise UsageError(
            f"{error.object!r} holds bytes that are no UTF-8, and run.json has to name it",
            advice="Rename the file or folder, or write the URL in plain letters.",
        ) from None


def create_or_continue(folder: Folder, wanted: Definition, dataset: Dataset, *, moved: bool = False) -> Definition:
    """Make the folder, or continue the run it holds, which may grow by it. One without answers is defined anew where
    the command says something else. All is checked before a write, and run.json is written last: a kill before it
    leaves the run as it was, or more scenarios in the folder than the run has.

    The caller holds the locks of replies, of the judge's readings and of run.json.
    """
    if folder.exists:
        definition = _continue_run(folder, wanted, dataset, moved=moved)
    else:
        if any(folder.asked()):
            raise MissingError(
                f"{folder.path} has replies but no run.json", advice="Restore run.json, or choose another --out."
            )
        _check_baseline(wanted, dataset)
        definition = _create_run(folder, wanted, dataset)
    folder.mend(*definition.judge_files(definition.judge))
    return definition


def _create_run(folder: Folder, wanted: Definition, dataset: Dataset) -> Definition:
    folder.write_scenarios(dataset.scenarios)
    folder.write_definition(wanted)
    return wanted


def _continue_run(folder: Folder, wanted: Definition, dataset: Dataset, *, moved: bool) -> Definition:
    """The definition of the run that the folder holds, with what this command adds to it."""
    from unmask.engine.grow import clear_journal, find_run, fit_data, refuse_other_scenarios, store_scenarios
    from unmask.runs.commands import run_command

    old = find_run(folder, wanted, moved=moved)
    if old is None:
        _check_baseline(wanted, dataset)
        clear_journal(folder)
        return _create_run(folder, wanted, dataset)
    refuse_other_scenarios(folder, old.data, dataset)
    data, other_data = fit_data(folder, old.data, wanted.data, dataset)
    again = partial(run_command, path=folder.path)
    check_same_run(old, wanted, moved=moved, again=again, other_data=other_data)
    grown = old.grown
    if data.hash != old.data.hash:
        _check_baseline(wanted, dataset)
        grown = (*grown, sum(old.data.counts.values()))
    if data.hash == dataset.hash:
        store_scenarios(folder, dataset)
    judges = old.judges
    if old.reader is not wanted.reader:  # those of a run that goes on with another reader keep theirs
        judges = {
            file: msgspec.structs.replace(spec, reader=spec.reader or old.reader) for file, spec in judges.items()
        }
    definition = msgspec.structs.replace(
        wanted,
        id=old.id,
        created=old.created,
        unmask=old.unmask,
        judges=_merge_judges(judges, wanted.judges),
        role_play=_merge_names(old.role_play, wanted.role_play),
        data=data,
        grown=grown,
    )
    if definition != old:
        folder.write_definition(definition)
    return definition


def _check_baseline(wanted: Definition, dataset: Dataset) -> None:
    if wanted.beliefs_from is not None:
        from unmask.engine.baseline import check_baseline

        check_baseline(wanted, dataset)


def add_judge(
    folder: Folder, file: str, specs: dict[str, JudgeSpec], *, moved: bool = False, role_play: bool = False
) -> Definition:
    """Record one more judge of an existing run, with its partner if `specs` have one. Scores keep the judge they had.

    The caller holds the locks of their readings and of run.json.
    """
    from unmask.runs.commands import judge_command

    old = folder.definition()
    folder.refuse_other_scenarios(old.data)
    specs = {
        name: msgspec.structs.replace(spec, reader=spec.reader or old.judges[name].reader)
        if name in old.judges
        else spec
        for name, spec in specs.items()
    }
    wanted = msgspec.structs.replace(
        old,
        judge=old.judge or file,
        judges=old.judges | specs,
        role_play=_merge_names(old.role_play, (file,) if role_play else ()),
    )
    check_same_run(old, wanted, moved=moved, again=partial(judge_command, path=folder.path))
    wanted = msgspec.structs.replace(wanted, judges=_merge_judges(old.judges, wanted.judges))
    if wanted != old:
        folder.write_definition(wanted)
    folder.mend(*specs, replies=False)
    return wanted


def _merge_judges(before: dict[str, JudgeSpec], now: dict[str, JudgeSpec]) -> dict[str, JudgeSpec]:
    """The judges of both. One that is now asked only for figures, in the place of another, keeps what was recorded of
    it as a judge of its own."""
    merged = before | now
    for file in before.keys() & now.keys():
        was, spec = before[file], now[file]
        merged[file] = msgspec.structs.replace(
            spec,
            numeric_judge=was.numeric_judge if spec.numeric_only else spec.numeric_judge,
            numeric_only=was.numeric_only if spec.numeric_only else spec.numeric_only,
        )
    return merged


def _merge_names(before: tuple[str, ...], now: tuple[str, ...]) -> tuple[str, ...]:
    """What a judge was asked stays asked, in the order it was."""
    return tuple(dict.fromkeys((*before, *now)))
