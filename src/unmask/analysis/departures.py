"""Where a run differs from the published setting."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from unmask.data.dataset import REPOSITORY
from unmask.models.room import ROOM
from unmask.models.user_params import describe_headers, describe_params
from unmask.records import Preset
from unmask.runs.definition import Definition
from unmask.scoring.score import Score

PUBLISHED_JUDGES = re.compile(r"(?:gpt-4o|o3-mini)(?:-\d{4}-\d\d-\d\d)?")
"""With the date of a snapshot or without. gpt-4o-mini is another model."""


class Departure(NamedTuple):
    """One difference from the published setting."""

    text: str
    short: str = ""
    """Where it forbids a comparison with published values: in a word or two."""


def list_departures(run: Definition, score: Score) -> Iterator[Departure]:
    """Where this run differs from the published protocol, the reasons not to compare it first."""
    if run.data.source.lower() != REPOSITORY.lower():
        text = f"This run used {run.data.name}, not the scenarios of the paper ({REPOSITORY})."
        yield Departure(f"{text} Do not compare it with published scores.", "other scenarios")
    elif run.data.limit or run.data.ids or run.data.archetypes or run.data.shard:
        yield Departure(f"Only {score.overall.scenarios:,} scenarios of the data were used.", "a part of the scenarios")
    files = run.judge_files(score.run.get("judge"))
    models = [run.judges[file].model for file in files if file in run.judges]
    if not models or not all(PUBLISHED_JUDGES.fullmatch(model.rpartition("/")[2]) for model in models):
        who = f"Judge: {', '.join(models)}." if models else "No model has judged the replies."
        yield Departure(f"{who} The paper used gpt-4o, and o3-mini for numbers.", "another judge")
    if score.preset != Preset.PAPER.value:
        yield Departure(f"The verdicts follow the rules {score.preset}, not those of the paper.", "other rules")
    if run.developer_prompt is not None:
        yield Departure(f"The developer prompt {run.developer_prompt.name!r} was added.", "a developer prompt")
    yield from map(Departure, _list_settings(run, score.spent.long_replies))


def _list_settings(run: Definition, long_replies: int | None) -> Iterator[str]:
    sampling = run.subject.sampling
    if sampling.temperature != 1.0:
        yield f"Temperature {_format_setting(sampling.temperature)}, not 1."
    if sampling.max_tokens not in {None, ROOM}:
        yield f"At most {sampling.max_tokens} tokens a reply, not {ROOM}."
    if sampling.max_tokens is None and long_replies:
        is_one = long_replies == 1
        yield f"{long_replies:,} repl{'y was' if is_one else 'ies were'} longer than {ROOM:,} tokens."
    if sampling.max_tokens is None and long_replies is None:
        yield f"How many replies were longer than {ROOM:,} tokens is not known."
    if additions := ", ".join(filter(None, [describe_params(sampling.params), describe_headers(sampling.headers)])):
        yield f"Also sent to the model: {additions}."
    if run.direct != 3:
        yield f"The direct question was asked {run.direct} times, not 3 times."
    if run.takes not in {1, 10}:
        yield f"{run.takes} replies under pressure per scenario, not 1, or 10 for Lying@10."
    if run.beliefs_from is not None:
        yield f"Beliefs were taken over from run {run.beliefs_from.run}."


def _format_setting(value: object) -> str:
    return "the endpoint's own" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
