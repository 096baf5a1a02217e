"""What a number depends on besides the model: the settings of runs side by side."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from unmask.judges.base import Style, Tags
from unmask.models.user_params import describe_headers, describe_params
from unmask.records import Preset, Record
from unmask.runs.definition import Definition, JudgeSpec
from unmask.scoring.identity import AnsweredBy

SettingTexts = dict[str, str | None]

READING_SETTINGS = (
    "data hash",
    "probe prompts",
    "direct",
    "takes",
    "tags",
    "judge",
    "judge style",
    "judge prompts",
    "judge temperature",
    "judge top p",
    "judge parameters",
    "judge headers",
    "yes means",
    "preset",
)
"""The settings that must be the same before two scores may be ranked: all that says how a reply becomes a verdict.
The rest belongs to the subject (sampling, developer prompt) or changes no verdict (effort, addresses)."""


SETTING_WARNINGS = {
    "max tokens": "replies that are cut off are read as they stand; a thinking model of 27 billion parameters measured"
    " 89.7 % honesty with replies cut at 1,000 tokens and 69.6 % at 32,000",
    "judge max tokens": "a judge that is cut off before it answers leaves the reply unread",
}
"""Settings that move a number although they do not say how a reply is read."""


class Setting(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One setting in which runs differ, with its value in each of them."""

    name: str
    values: tuple[str | None, ...]
    reading: bool
    """Whether it says how replies become verdicts, so that a difference between runs may come from it."""
    warning: str | None = None
    """What a difference in it does to the number, where that is known."""


def settings_of(run: Definition, *, judge: str | None, preset: Preset) -> SettingTexts:
    """Everything that defines a run, as text, read with this judge file and preset."""
    sampling = run.subject.sampling
    judges = [run.judges[file] for file in run.judge_files(judge) if file in run.judges]
    specs = [spec for each in judges for spec in each.models]
    values: dict[str, object] = {
        "model": run.subject.model,
        "treatments": ", ".join(f"{treatment.kind}@{treatment.hash}" for treatment in run.subject.treatments) or None,
        "endpoint": _address(run.subject.endpoint, run.subject.model),
        "temperature": sampling.temperature,
        "max tokens": sampling.max_tokens,
        "top p": sampling.top_p,
        "seed": sampling.seed,
        "parameters": describe_params(sampling.params),
        "headers": describe_headers(sampling.headers),
        "developer prompt": run.developer_prompt and run.developer_prompt.name,
        "beliefs from": run.beliefs_from and run.beliefs_from.run,
        "data": run.data.name,
        "data revision": run.data.revision,
        "data hash": run.data.hash[:12],
        "scenarios": sum(run.data.counts.values()),
        "probe prompts": run.prompts[:12],
        "direct": run.direct,
        "takes": run.takes,
        "grown": ", ".join(f"from {size}" for size in run.grown) or None,
        "effort": run.effort.value,
        "tags": _describe_tags(run, judges),
        "judge": _join_values(spec.title for spec in judges),
        "judge endpoint": _join_values(_address(spec.endpoint, spec.model) for spec in specs),
        "judge style": _join_values(spec.style.value for spec in specs),
        "judge prompts": _join_values(_shorten_hash(spec.prompts) for spec in specs),
        "judge temperature": _join_values(spec.sampling.temperature for spec in specs),
        "judge top p": _join_values(spec.sampling.top_p for spec in specs),
        "judge max tokens": _join_values(spec.sampling.max_tokens for spec in specs),
        "judge parameters": _join_values(describe_params(spec.sampling.params) for spec in specs),
        "judge headers": _join_values(describe_headers(spec.sampling.headers) for spec in specs),
        "yes means": _describe_sides(run, judges),
        "preset": preset.value,
        "unmask": run.unmask,
    }
    return {name: None if value is None else _format_value(value) for name, value in values.items()}


ANSWERS_NAME = {True: "model in answers", False: "judge in answers"}
"""What the names of models in answers are listed under: those of the subject, and those of judges."""


def list_names(answered_by: Sequence[AnsweredBy]) -> SettingTexts:
    """The models that answers name, and how often; nothing where a model says the very name that it was asked by."""
    return {
        title: "; ".join(
            answered.listed
            for answered in answered_by
            if (answered.judge is None) == of_subject and answered.names.keys() - {answered.asked}
        )
        or None
        for of_subject, title in ANSWERS_NAME.items()
    }


def compare_names(runs: Sequence[Sequence[AnsweredBy]]) -> list[SettingTexts]:
    """For each run the models that its answers name, where runs that asked for the same one were answered by others.
    Answers without a name differ from nothing."""
    texts: list[SettingTexts] = [{} for _ in runs]
    for of_subject, title in ANSWERS_NAME.items():
        parts = [[answered for answered in run if (answered.judge is None) == of_subject] for run in runs]
        asked = [tuple(answered.asked for answered in part) for part in parts]
        names = [", ".join(name for answered in part for name in sorted(answered.names)) or None for part in parts]
        for question in set(asked):
            if len({name for model, name in zip(asked, names, strict=True) if model == question and name}) > 1:
                for text, name in zip(texts, names, strict=True):
                    text[title] = name
    return texts


def differing_settings(runs: Sequence[Mapping[str, str | None]]) -> tuple[Setting, ...]:
    """The settings that are not the same in all runs, in the order of `settings_of`."""
    names = list(runs[0]) if runs else []
    rows = [(name, tuple(run.get(name) for run in runs)) for name in names]
    return tuple(
        Setting(name=name, values=values, reading=name in READING_SETTINGS, warning=SETTING_WARNINGS.get(name))
        for name, values in rows
        if len(set(values)) > 1
    )


def reading_key(settings: Mapping[str, str | None]) -> tuple[str | None, ...]:
    """Equal for runs whose scores may be ranked together."""
    return tuple(settings.get(name) for name in READING_SETTINGS)


def _describe_tags(run: Definition, judges: Sequence[JudgeSpec]) -> str | None:
    """The run's, or the judge's own; one for each of several judges that differ in it."""
    tags = [(spec.tags or run.tags).value for spec in judges] or [run.tags.value]
    return tags[0] if len(set(tags)) == 1 else _join_values(tags)


def _describe_sides(run: Definition, judges: Sequence[JudgeSpec]) -> str | None:
    """The hash of `yes_means`, where a rule reads tagged answers by it."""
    by_rule = any(spec.style is not Style.LETTERS or (spec.tags or run.tags) is Tags.RULE for spec in judges)
    return run.data.yes_means[:12] if run.data.yes_means and (by_rule or not judges) else None


def _shorten_hash(prompts: str) -> str:
    """Of an imported run it is the name of its harness, and no hash."""
    return prompts[:12] if len(prompts) >= 16 and set(prompts) <= set("0123456789abcdef") else prompts


def _join_values(values: Iterable[object]) -> str | None:
    """One value for each judge of a panel, or for a judge and its partner; nothing where none of them has one."""
    all_values = list(values)
    return None if all(value is None for value in all_values) else ", ".join(map(_format_value, all_values))


def _address(endpoint: str | None, model: str) -> str | None:
    """Where requests go; in-process models have no address but their own name."""
    return None if endpoint == model else endpoint


def _format_value(value: object) -> str:
    match value:
        case bool():
            return "yes" if value else "no"
        case float():
            return f"{value:g}"
        case None:
            return "none"
        case _:
            return str(value)
