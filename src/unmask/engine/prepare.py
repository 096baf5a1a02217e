"""From the arguments of a command, and what a folder has recorded, to definition, data and models. Sends nothing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from unmask.data.dataset import Dataset, LoadOptions, is_open
from unmask.data.load import load, select_part
from unmask.engine.define import NO_MODEL, define_run, judge_spec, select_letters
from unmask.engine.grow import find_run
from unmask.engine.work import JUDGE, NUMERIC_JUDGE
from unmask.errors import UsageError
from unmask.judges.base import LETTERS_ONLY, Tags
from unmask.models.base import Model
from unmask.models.keys import URL_VARIABLE
from unmask.models.providers import open_model
from unmask.models.settings import ModelSettings, Role, spell_setting
from unmask.models.user_params import refuse_unknown_additions
from unmask.records import Archetype
from unmask.runs.commands import check_addresses, complete, recall_judge, recall_run
from unmask.runs.definition import Definition, JudgeSpec, judge_file
from unmask.runs.folder import Folder, find_runs
from unmask.runs.options import ROLES, Options, options_from

if TYPE_CHECKING:
    from unmask.models.own import AnyModel

Named = dict[str, "str | AnyModel | None"]
"""`model`, `judge` and `numeric_judge` as a command names them."""

_MODELS = ("model", "judge", "numeric_judge")
_SELECTION = {"limit", "archetype", "ids", "sample_seed", "shard"}


class OpenedJudge(NamedTuple):
    """A judge as a command asks it. A judge without a model is its own name."""

    spec: JudgeSpec
    asked: dict[str, Model | str]
    """By role: the judge, and the one that reads numbers in its place."""
    models: dict[str, Model]
    """Those of them that are models."""


class Order(NamedTuple):
    """What a command asks for: a definition, with the data and the models it is about."""

    folder: Folder | None
    """`None` only of a plan."""
    wanted: Definition
    dataset: Dataset
    options: Options
    subject: Model
    judge: OpenedJudge
    news: str


def prepare_run(
    folder: Folder | None,
    data: str | Path | Dataset | None,
    models: Named,
    settings: dict[str, Any],
    *,
    asks_for_key: bool = True,
) -> Order:
    """Everything of a run that needs no answer: settings, data and models, checked. Nothing is written."""
    given: dict[str, Any] = {**{name: value for name, value in models.items() if value is not None}, **settings}
    if data is None and "model" not in given:
        return _continue_run(folder, given, asks_for_key=asks_for_key)
    for name, value in (("data", data), ("model", models["model"]), ("judge", models["judge"])):
        if value is None:
            raise UsageError(f"no {name} is named", advice=f"Name the {name}: --{name} NAME, in Python {name}=.")
    assert data is not None
    if folder is not None and folder.exists and (old := find_run(folder)) is not None:
        # A run that has grown stays as large as it is where the command does not say how large.
        sizes = {name: max(getattr(old, name), getattr(Options(), name)) for name in ("takes", "direct")}
        given = {**sizes, **given}
    return _make_order(folder, load_whole(data), given, asks_for_key=asks_for_key)


def _make_order(folder: Folder | None, whole: Dataset, given: Mapping[str, Any], *, asks_for_key: bool) -> Order:
    """The order behind data and arguments."""
    named = {name: value for name, value in given.items() if name in _MODELS}
    options = options_from({name: value for name, value in given.items() if name not in (*_MODELS, "data")}, **named)
    subject = open_asked(options.subject, "subject", asks_for_key=asks_for_key)
    judge, left_out = open_judges(options, subject, asks_for_key=asks_for_key), ""
    if not judge.spec.numeric and judge.spec.style in LETTERS_ONLY:
        options, left_out = select_letters(whole, options, judge=judge.spec.model)
        left_out = left_out and f"{left_out}; --numeric-judge NAME, or another judge, adds them"
    dataset = select_data(whole, options)
    news = "; ".join(filter(None, [left_out, _explain_sides(dataset)]))
    return Order(folder, define_run(dataset, subject, judge.spec, options), dataset, options, subject, judge, news)


def _explain_sides(dataset: Dataset) -> str:
    """Who said which side *yes* means, where the data itself does not."""
    counts = Counter(scenario.yes_means_by for scenario in dataset.scenarios if scenario.yes_means_by)
    names = ", ".join(f"{judge} ({count} scenarios)" for judge, count in counts.most_common())
    return names and f"which side yes means was annotated by {names}"


# --- models -----------------------------------------------------------------------------------------------------


def open_asked(
    settings: ModelSettings, role: Role, *, asks_for_key: bool = True, key_variable: str | None = None
) -> Model:
    """The model behind these settings. `key_variable` names the only variable that its key may come from."""
    if isinstance(settings.model, str):
        opened = open_model(
            settings.model,
            role=role,
            base_url=settings.base_url,
            timeout=settings.timeout,
            asks_for_key=asks_for_key,
            tier=settings.tier,
            key_variable=key_variable,
        )
    else:
        from unmask.models.own import as_model

        opened = as_model(settings.model)
    if settings.params or settings.headers:
        refuse_unknown_additions(opened, settings.sampling, role=role)
    return opened


def open_judges(options: Options, subject: Model | None = None, *, asks_for_key: bool = True) -> OpenedJudge:
    """Open the judge and the model for numbers, if there is one. Weights that the subject has in this process are not
    loaded twice."""

    def opened(settings: ModelSettings, role: Role) -> Model | str:
        if settings.model == NO_MODEL:
            for field in ("params", "headers"):
                if getattr(settings, field):
                    given = spell_setting(role, field)
                    raise UsageError(f"--judge {NO_MODEL} asks no model, so {given} has no use", advice="Leave it out.")
            return NO_MODEL
        if subject is not None and settings.model == options.subject.model and subject.endpoint == subject.name:
            refuse_unknown_additions(subject, settings.sampling, role=role)
            return subject
        return open_asked(settings, role, asks_for_key=asks_for_key)

    asked: dict[str, Model | str] = {JUDGE: opened(options.judge, "judge")}
    numeric: JudgeSpec | None = None
    if options.numeric_judge.model is not None:
        asked[NUMERIC_JUDGE] = opened(options.numeric_judge, "numeric_judge")
        numeric = judge_spec(asked[NUMERIC_JUDGE], options.numeric_judge)
        if numeric.style in LETTERS_ONLY:
            raise UsageError(
                f"--numeric-judge {numeric.model} reads letters, not numbers",
                advice="Name a model that writes, such as openai/NAME or vllm/NAME.",
            )
    models = {role: model for role, model in asked.items() if not isinstance(model, str)}
    return OpenedJudge(judge_spec(asked[JUDGE], options.judge, numeric=numeric), asked, models)


# --- what a folder has recorded ---------------------------------------------------------------------------------


def _continue_run(folder: Folder | None, given: dict[str, Any], *, asks_for_key: bool) -> Order:
    """The order that continues the run of a folder."""
    if folder is None or not folder.exists:
        if folder is not None and any(find_runs(folder.path)):
            folder.definition()  # says which runs the folder holds
        where = "" if folder is None else f": {folder.path} holds no run to continue, and a new run needs one"
        advice = "A new run begins with its model: unmask run openai/gpt-4o-mini --judge openai/gpt-4o"
        raise UsageError(f"no model is named{where}", advice=advice)
    old = folder.definition()
    file = _file_of(given) if "judge" in given else old.judge
    check_addresses(old, file, given, of=ROLES)
    kept = {name for name in ("developer_prompt", "beliefs_from") if name not in given}
    recorded = {name: value for name, value in recall_run(old, judge=file).items() if name not in kept}
    settings = complete(recorded, given)
    whole = None if _SELECTION & given.keys() else _stored_data(folder, old)
    order = _make_order(folder, whole or load_whole(settings["data"]), settings, asks_for_key=asks_for_key)
    _refuse_other_address(order, old, given)
    wanted = msgspec.structs.replace(order.wanted, **{name: getattr(old, name) for name in kept})
    if whole is not None:
        wanted = msgspec.structs.replace(wanted, data=old.data)
    return order._replace(wanted=wanted)


def _refuse_other_address(order: Order, old: Definition, given: Mapping[str, Any]) -> None:
    """An address with credentials is in no folder: what it hides must not be replaced by the provider's own."""
    typed = given.get("base_url") or os.environ.get(URL_VARIABLE["subject"]) or "base_url" in given.get("set", {})
    if order.subject.endpoint != old.subject.endpoint and not typed:
        raise UsageError(
            f"{order.subject.name} was asked at {old.subject.endpoint}, and would now be asked at"
            f" {order.subject.endpoint}",
            advice=f"Name the address: {spell_setting('subject', 'base_url', 'URL')}",
        )


def _file_of(given: Mapping[str, Any]) -> str:
    """The file of the judge that a command names."""
    from unmask.models.own import name_of

    return str(given.get("set", {}).get("judge.name") or judge_file(name_of(given["judge"])))


def complete_judge(folder: Folder, given: dict[str, Any]) -> Options:
    """The options of `unmask judge`: what the command gives, else what the run has recorded of this judge."""
    old, file = folder.definition(), _file_of(given)
    check_addresses(old, file, given, of=ROLES[1:])
    recorded = {name: value for name, value in recall_judge(old, file).items() if name != "tags"}
    both = complete({"preset": old.preset, **recorded}, given)
    named = {name: value for name, value in both.items() if name in _MODELS}
    return options_from({name: value for name, value in both.items() if name not in _MODELS}, **named)


def _stored_data(folder: Folder, old: Definition) -> Dataset | None:
    """The scenarios of a folder as data, where they are those that the run was made of."""
    scenarios, data = folder.scenarios(), old.data
    if data.find_mismatch(scenarios) is not None:
        return None
    return Dataset(
        name=data.name,
        source=data.source,
        scenarios=scenarios,
        hash=data.hash,
        full_hash=data.full_hash,
        revision=data.revision,
        skipped=data.skipped,
        shard=data.shard or None,
    )


def load_whole(data: str | Path | Dataset) -> Dataset:
    """Everything, before a part of it is chosen."""
    return data if isinstance(data, Dataset) else load(data)


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
    if options.tags is Tags.JUDGE or not any(map(is_open, part.scenarios)):
        return part
    from unmask.engine.annotate import add_sides

    return add_sides(part, of=whole)
