"""What else a number depends on than the model: the settings of runs side by side."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from unmask.errors import escape_line
from unmask.judges.base import Style, Tags
from unmask.records import Preset, Record
from unmask.runs.definition import Definition, JudgeSpec, SubjectSpec, describe_settings
from unmask.scoring.identity import AnsweredBy

SettingTexts = dict[str, str | None]


class Setting(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One setting in which runs differ, with its value in each of them."""

    name: str
    values: tuple[str | None, ...]
    reading: bool
    """Whether it says how replies become verdicts, so that a difference between runs may come from it."""
    warning: str | None = None
    """What a difference in it does to the number, where that is known."""


READING_SETTINGS = (
    *("data hash", "probe prompts", "direct", "takes", "tags", "judge", "judge style", "judge prompts"),
    *("judge temperature", "judge top p", "judge parameters", "judge headers"),
    *("yes means", "preset"),
)
"""Two scores may be ranked only where these are the same: they say how a reply becomes a verdict. The rest belongs to
the subject (sampling, developer prompt) or changes no verdict (effort, addresses, the room of a judge)."""
_WARNINGS = {
    "max tokens": "replies that are cut off are read as they stand; a thinking model of 27 billion parameters measured"
    " 89.7 % honesty with replies cut at 1,000 tokens and 69.6 % at 32,000",
    "judge max tokens": "a judge that is cut off before it answers leaves the reply unread",
}
"""What a difference in it does to the number, although it does not say how a reply is read."""


def settings_of(run: Definition, *, judge: str | None, preset: Preset) -> SettingTexts:
    """Everything that defines a run, as text, read with this judge file and preset."""
    judges = [run.judges[file] for file in run.judge_files(judge) if file in run.judges]
    specs = [spec for each in judges for spec in each.models]
    subject, data = run.subject, run.data

    def of_judges(value: Callable[[JudgeSpec], object]) -> str | None:
        return _join_values(map(value, specs))

    values: dict[str, object] = {
        "model": subject.model,
        "treatments": ", ".join(f"{each.kind}@{each.hash}" for each in subject.treatments) or None,
        "endpoint": _address(subject),
        **describe_settings(subject),
        "room": subject.room and subject.room.tokens,
        "developer prompt": run.developer_prompt and run.developer_prompt.name,
        "beliefs from": run.beliefs_from and run.beliefs_from.run,
        "data": data.name,
        "data revision": data.revision,
        "data hash": data.hash[:12],
        "scenarios": sum(data.counts.values()),
        "probe prompts": run.prompts[:12],
        "direct": run.direct,
        "takes": run.takes,
        "grown": ", ".join(f"from {size}" for size in run.grown) or None,
        "effort": run.effort.value,
        "tags": _describe_tags(run, judges),
        "judge": _join_values(spec.title for spec in judges),
        "judge endpoint": of_judges(_address),
        "judge style": of_judges(lambda spec: spec.style.value),
        "judge prompts": of_judges(lambda spec: _shorten_hash(spec.prompts)),
    }
    described = list(map(describe_settings, specs))
    for name in describe_settings(subject):
        if name != "seed":  # a judge is asked without one
            values[f"judge {name}"] = _join_values(each[name] for each in described)
    values |= {
        "judge room": of_judges(lambda spec: spec.room and spec.room.tokens),
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
        names = [
            ", ".join(escape_line(name) for answered in part for name in sorted(answered.names)) or None
            for part in parts
        ]
        for question in set(asked):
            if len({name for model, name in zip(asked, names, strict=True) if model == question and name}) > 1:
                for text, name in zip(texts, names, strict=True):
                    text[title] = name
    return texts


def differing_settings(runs: Sequence[Mapping[str, str | None]]) -> tuple[Setting, ...]:
    """The settings that are not the same in all runs, in the order of `settings_of`."""
    return tuple(
        Setting(name=name, values=values, reading=name in READING_SETTINGS, warning=_WARNINGS.get(name))
        for name in (runs[0] if runs else ())
        if len(set(values := tuple(run.get(name) for run in runs))) > 1
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


def _address(model: SubjectSpec | JudgeSpec) -> str | None:
    """Where requests go; in-process models have no address but their own name."""
    return None if model.endpoint == model.model else model.endpoint


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
