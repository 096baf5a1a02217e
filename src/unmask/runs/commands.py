"""The settings behind a run, read back from its definition: what continues it, and the command that repeats it."""

from __future__ import annotations

import os
import shlex
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from unmask.errors import UsageError
from unmask.judges.base import Tags
from unmask.models.keys import URL_VARIABLE
from unmask.models.providers import is_known_address
from unmask.models.settings import KEYWORD_OF, SET_PREFIX, ModelSettings, Role, flag_of, read_setting, spell_setting
from unmask.models.user_params import format_value
from unmask.records import Effort, Preset
from unmask.runs.definition import Definition, JudgeSpec, SubjectSpec, public_url
from unmask.runs.options import ROLES, SETTINGS, Also, Options, as_arguments, merge_arguments

_DEFAULT = Options()


def run_command(run: Definition, path: Path, *, judge: str | None = None, preset: Preset | None = None) -> str:
    """`unmask run …` with every setting that differs from its default."""
    settings = recall_run(run, judge=judge)
    settings["preset"] = (preset or run.preset).value
    return shlex.join(["unmask", "run", *write_flags({**settings, "out": str(path)})])


def completing_command(
    run: Definition,
    path: Path,
    *,
    judge: str | None = None,
    only_judge: bool = False,
    **settings: Preset | Effort | Tags | None,
) -> str:
    """The shortest command that asks what is missing of a run, or `only_judge` what a judge has not read. The folder
    knows its settings: what is typed is another judge, preset, effort or reader of tags than the run's, and addresses
    that only it names."""
    file = judge or run.judge
    spec = run.judges.get(file or "")
    typed: dict[str, Any] = {}
    if spec is not None and (only_judge or file != run.judge):
        named = {"model": spec.model, "name": spec.name}
        typed = as_arguments("judge", {name: value for name, value in named.items() if value is not None})
    for role, asked in _asked_models(run, spec)[only_judge:]:
        if asked.base_url and not is_known_address(asked.model, asked.base_url):
            typed = merge_arguments(typed, as_arguments(role, {"base_url": asked.base_url}))
    typed |= {name: value.value for name, value in settings.items() if value and value is not getattr(run, name)}
    words = ["judge", str(path)] if only_judge else ["run", "--out", str(path)]
    return shlex.join(["unmask", *words, *write_flags(typed)])


def _asked_models(run: Definition, judge: JudgeSpec | None) -> list[tuple[Role, SubjectSpec | JudgeSpec]]:
    """The subject, the judge and the one for numbers, as far as there are any, each with its role."""
    return list(zip(ROLES, (run.subject, *(judge.models if judge else ())), strict=False))


def recall_run(run: Definition, *, judge: str | None = None) -> dict[str, Any]:
    """The keyword arguments of `unmask.run` behind a run, as far as they differ from their defaults, for one of its
    judges."""
    file, prompt, data = judge or run.judge, run.developer_prompt, run.data
    settings = _recall_model(run.subject, "subject", _DEFAULT.subject)
    from_judge = recall_judge(run, file)
    chosen: dict[str, Any] = {
        "data": f"{data.source.partition('@')[0]}@{data.revision}" if data.revision else data.source,
        "tags": run.settings(file).tags,
        "control": run.control,
        "takes": run.takes,
        "direct": run.direct,
        "effort": run.effort,
        "preset": run.preset,
        "limit": data.limit,
        "sample_seed": data.seed,
        "shard": str(data.shard) if data.shard else None,
        "archetype": data.archetypes,
        "ids": data.ids,
        "developer_prompt": prompt and (prompt.path or prompt.name),
        "beliefs_from": run.beliefs_from and run.beliefs_from.path,
    }
    also = [Also.CHECK] * run.check + [Also.SELF_REPORT] * (run.self_report is not None)
    chosen["also"] = (*also, *from_judge.get("also", ()))
    kept = {name: value for name, value in chosen.items() if value != getattr(_DEFAULT, name, None)}
    return merge_arguments(from_judge, settings, kept)


def recall_judge(run: Definition, file: str | None) -> dict[str, Any]:
    """The keyword arguments of `unmask.judge` behind one judge of a run, as far as they differ from their defaults."""
    spec = run.judges.get(file or "")
    if spec is None:
        return {}
    settings = _recall_model(spec, "judge", _DEFAULT.judge)
    if spec.numeric:
        usual = ModelSettings(temperature=spec.temperature, max_tokens=spec.max_tokens)
        second = _recall_model(spec.numeric, "numeric_judge", usual)
        settings = merge_arguments(settings, second)
    if spec.tags is not None:
        settings["tags"] = spec.tags
    if also := tuple(Also.of_judge(slot) for slot, files in run.asides.items() if file in files):
        settings["also"] = also
    return settings


def _recall_model(spec: SubjectSpec | JudgeSpec, role: Role, usual: ModelSettings) -> dict[str, Any]:
    """What was set of one model."""
    names = ("model", *(name for name in ModelSettings.__struct_fields__ if name != "model"))
    values = {name: getattr(spec, name) for name in names}
    return as_arguments(role, {name: value for name, value in values.items() if value != getattr(usual, name)})


# --- continuing -------------------------------------------------------------------------------------------------


def complete(recorded: Mapping[str, Any], given: Mapping[str, Any]) -> dict[str, Any]:
    """What a run has recorded, with what a command gives in its place: an entry of `set` by its own keyword if it has
    one."""
    spelled = {**given, "set": {}}
    for name, value in given.get("set", {}).items():
        role, field, read = read_setting(name, value)
        spelled = merge_arguments(spelled, as_arguments(role, {field: read}))
    return merge_arguments(recorded, spelled)


def check_addresses(run: Definition, judge: str | None, given: Mapping[str, Any], *, of: Collection[str]) -> None:
    """Refuse an address that only the folder names, which may be a stranger's: keys would go there. One is known that
    the command or a variable names, and that of this machine or of the provider. `of` are the roles to look at."""
    typed = {given.get("base_url"), given.get("judge_base_url"), *given.get("set", {}).values()}
    typed |= {os.environ.get(variable) for variable in URL_VARIABLE.values()}  # not of .env: it came with the folder
    known = {public_url(url) for url in typed if isinstance(url, str)}
    for role, asked in _asked_models(run, run.judges.get(judge or "")):
        named = given.get(KEYWORD_OF.get((role, "base_url"), "")) or f"{SET_PREFIX[role]}base_url" in given.get(
            "set", {}
        )
        url = asked.base_url
        if role in of and url and not named and url not in known and not is_known_address(asked.model, url):
            raise UsageError(
                f"{asked.model} was asked at {url}, an address that only the run folder names",
                advice=f"If you know it, name it: export {URL_VARIABLE[role]}={shlex.quote(url)}, or"
                f" {spell_setting(role, 'base_url', shlex.quote(url))}",
            )


# --- as words ---------------------------------------------------------------------------------------------------


def write_flags(settings: Mapping[str, Any]) -> Iterator[str]:
    """Keyword arguments of `unmask.run` as words of a command line."""
    last = ("out", "preset")
    order = ("model", "data", "judge", "numeric_judge", *(name for name in SETTINGS if name not in last), *last)
    for name in sorted(settings, key=order.index):
        value, flag = settings[name], flag_of(name)
        if isinstance(value, dict):
            for key, part in value.items():
                text = format_value(part) if flag.endswith("param") or isinstance(part, dict) else part
                yield from (flag, f"{key}={text}")
        elif name == "also":
            yield from (flag, ",".join(value))
        elif isinstance(value, tuple):
            for part in value:
                yield from (flag, part)
        elif isinstance(value, bool):
            yield from [flag] * value
        elif name == "model":
            yield str(value)
        elif value is not None:
            yield from (flag, str(value))
