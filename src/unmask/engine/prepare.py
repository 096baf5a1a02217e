"""From the arguments of a command, and what a folder has recorded, to definition, data and models. Sends nothing."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from unmask.data.dataset import Dataset, LoadOptions, is_open
from unmask.data.load import load, select_part
from unmask.engine.define import define_run, leave_figures_out
from unmask.engine.grow import keep_counts
from unmask.engine.readers import OpenedJudge, open_asked, open_judges
from unmask.engine.work import SUBJECT
from unmask.errors import UsageError
from unmask.judges.base import Tags
from unmask.models.base import Model
from unmask.models.keys import URL_VARIABLE, spell_setting
from unmask.records import Archetype
from unmask.runs.commands import check_addresses, complete, recall_judge, recall_run
from unmask.runs.definition import Definition, judge_file
from unmask.runs.folder import Folder, find_runs
from unmask.runs.options import ROLES, Options, options_from

_MODELS = ("model", "judge", "numeric_judge")
_SELECTION = {"limit", "archetype", "ids", "sample_seed", "shard"}


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

    @property
    def models(self) -> dict[str, Model]:
        return {SUBJECT: self.subject, **self.judge.models}


def prepare_run(
    folder: Folder | None,
    data: str | Path | Dataset | None,
    models: dict[str, Any],
    settings: dict[str, Any],
    *,
    asks_for_key: bool = True,
) -> Order:
    """Everything of a run that needs no answer: settings, data and models, checked. Nothing is written."""
    named = {name: value for name, value in models.items() if value is not None}
    old = folder.definition() if folder is not None and folder.exists else None
    if data is None and "model" not in named:
        return _continue_run(folder, old, {**named, **settings}, asks_for_key=asks_for_key)
    for name, value in (("data", data), ("model", models["model"]), ("judge", models["judge"])):
        if value is None:
            raise UsageError(f"no {name} is named", advice=f"Name the {name}: --{name} NAME, in Python {name}=.")
    assert data is not None
    given = {**named, **settings}
    if folder is not None:
        given = {**keep_counts(folder, old, given), **given}
    recorded, news = _recall_numeric(folder, old, given)
    order = _define(
        folder, load_whole(data), complete(recorded, given) if recorded else given, asks_for_key=asks_for_key
    )
    return order._replace(news="; ".join(filter(None, [news, order.news])))


def _define(folder: Folder | None, whole: Dataset, given: Mapping[str, Any], *, asks_for_key: bool) -> Order:
    """The order behind data and arguments."""
    named = {name: value for name, value in given.items() if name in _MODELS}
    options = options_from({name: value for name, value in given.items() if name not in (*_MODELS, "data")}, **named)
    subject = open_asked(options.subject, "subject", asks_for_key=asks_for_key)
    opened = open_judges(options, in_use=[(options.subject.model, subject)], asks_for_key=asks_for_key)
    chosen, left_out = leave_figures_out(whole, options, opened.spec)
    dataset = select_data(whole, chosen)
    wanted = define_run(dataset, subject, opened.spec, chosen)
    news = "; ".join(filter(None, [left_out, _explain_sides(dataset)]))
    return Order(folder, wanted, dataset, chosen, subject, opened, news)


def _explain_sides(dataset: Dataset) -> str:
    """Who said which side *yes* means, where the data itself does not."""
    counts = Counter(scenario.yes_means_by for scenario in dataset.scenarios if scenario.yes_means_by)
    names = ", ".join(f"{judge} ({count} scenarios)" for judge, count in counts.most_common())
    return names and f"which side yes means was annotated by {names}"


def _continue_run(folder: Folder | None, old: Definition | None, given: dict[str, Any], *, asks_for_key: bool) -> Order:
    """The order that continues the run of a folder."""
    if folder is None or old is None:
        if folder is not None and any(find_runs(folder.path)):
            folder.definition()  # says which runs the folder holds
        where = "" if folder is None else f": {folder.path} holds no run to continue, and a new run needs one"
        raise UsageError(f"no model is named{where}", advice=_NEW_RUN)
    file = _file_of(given) if "judge" in given else old.judge
    check_addresses(old, file, given, of=ROLES)
    recorded = recall_run(old, judge=file)
    kept = {name for name in ("developer_prompt", "beliefs_from") if name not in given}
    settings = complete({name: value for name, value in recorded.items() if name not in kept}, given)
    whole = None if _SELECTION & given.keys() else _stored_data(folder, old)
    order = _define(folder, whole or load_whole(settings["data"]), settings, asks_for_key=asks_for_key)
    _refuse_other_address(order, old, given)
    wanted = msgspec.structs.replace(order.wanted, **{name: getattr(old, name) for name in kept})
    if whole is not None:
        wanted = msgspec.structs.replace(wanted, data=old.data)
    return order._replace(wanted=wanted)


_NEW_RUN = "A new run begins with its model: unmask run openai/gpt-4o-mini --judge openai/gpt-4o"


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


def _recall_numeric(
    folder: Folder | None, old: Definition | None, given: Mapping[str, Any]
) -> tuple[dict[str, Any], str]:
    """What a run has recorded of the model that reads numbers for this judge, where the command names none, and a line
    that says so."""
    spec = None if old is None else old.judges.get(_file_of(given))
    if folder is None or old is None or spec is None or not spec.numeric or "numeric_judge" in given:
        return {}, ""
    check_addresses(old, _file_of(given), given, of=("numeric_judge",))
    recorded = recall_judge(old, _file_of(given))
    own = {name: value for name, value in recorded.get("set", {}).items() if name.startswith("numeric.")}
    news = f"numbers are judged by {spec.numeric.model}, as {folder.path} has it"
    return {"numeric_judge": spec.numeric.model, **({"set": own} if own else {})}, news


def complete_judge(folder: Folder, named: dict[str, Any], settings: dict[str, Any]) -> tuple[Options, str]:
    """The options of `unmask judge`: what the command gives, else what the run has recorded of this judge."""
    old, given = folder.definition(), {**named, **settings}
    file = _file_of(given)
    check_addresses(old, file, given, of=ROLES[1:])
    recorded = {name: value for name, value in recall_judge(old, file).items() if name != "tags"}
    both = complete({"preset": old.preset, **recorded}, given)
    options = options_from(
        {name: value for name, value in both.items() if name not in _MODELS},
        **{name: value for name, value in both.items() if name in _MODELS},
    )
    spec = old.judges.get(file)
    is_recalled = spec is not None and spec.numeric and "numeric_judge" not in named
    news = f"numbers are judged by {options.numeric_judge.model}, as {folder.path} has it" if is_recalled else ""
    return options, news


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
