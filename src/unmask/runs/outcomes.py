"""From an open run folder to outcomes and to what they cost. Pure apart from reading the journal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import repeat
from typing import Literal

import msgspec

from unmask.protocol.presets import RULES
from unmask.protocol.readings import readings_of
from unmask.protocol.settings import Settings
from unmask.protocol.state import ScenarioState
from unmask.protocol.verdict import resolve
from unmask.records import (
    CONTROL,
    DIRECT,
    PRESSURED,
    Choice,
    Kind,
    Method,
    Outcome,
    Sampling,
    Scenario,
    Slot,
    Stop,
    is_probe,
    read_as,
)
from unmask.runs.definition import Definition, JudgeSpec
from unmask.runs.folder import Folder
from unmask.scoring.guards import GuardFinding, count_answers
from unmask.scoring.identity import Identity, count_names
from unmask.scoring.panel import majority

_ONE_WORD = frozenset(method for method in Method if method.startswith("pick_"))


def outcome_of(scenario: Scenario, state: ScenarioState, settings: Settings) -> Outcome:
    """What one scenario shows under the settings' preset, by one judge."""
    return conclude(scenario, [state], [settings])


def conclude(
    scenario: Scenario, states: Sequence[ScenarioState], settings: Sequence[Settings], *, names: Sequence[str] = ()
) -> Outcome:
    """What one scenario shows by one judge, or by the majority of several. Each has a state, all with the same replies,
    and settings. Judges with `names` are listed with the answers that they gave."""
    state, first = states[0], settings[0]
    members = list(map(readings_of, repeat(scenario), states, settings))
    readings = members[0] if len(members) == 1 else majority(members, tolerance=RULES[first.preset].tolerance)
    choices = [
        (place, one) for place, one in state.choices() if read_as(place[0]) != PRESSURED or place[1] < first.takes
    ]
    polarity: Literal["yes", "no"] | None = None
    if scenario.yes_means is not None and scenario.kind is Kind.BINARY and scenario.direct is not None:
        polarity = "yes" if scenario.yes_means is scenario.truth else "no"
    lengths, guards = Counter[Slot](), _count_replies(choices, states, first.sampling)
    for (slot, _), choice in choices:
        if slot in {PRESSURED, CONTROL}:
            lengths[slot] += len(choice.answer)
    return msgspec.structs.replace(
        resolve(scenario, readings, preset=first.preset),
        polarity=polarity,
        fact=scenario.fact,
        rung=scenario.rung,
        silent=guards["empty"][0],
        truncated=sum(1 for _, choice in choices if choice.stop is Stop.LENGTH),
        guards=guards,
        lengths=dict(lengths),
        members={name: count_answers(own) for name, own in zip(names, members, strict=False)},
    )


def _count_replies(
    choices: Sequence[tuple[tuple[Slot, int], Choice]], states: Sequence[ScenarioState], sampling: Sampling
) -> dict[str, tuple[int, int]]:
    """What guards count in the replies, and in the answers of the judge behind each state."""
    pressured = [choice for (slot, _), choice in choices if slot == PRESSURED]
    # As `Reply.text` sees silence: nothing but reasoning is none.
    silent = [one.stop is Stop.END and not one.answer and one.thinking is None for _, one in choices]
    found = {
        "empty": silent,
        "capped_pressured": [choice.stop is Stop.LENGTH for choice in pressured],
        "capped_probes": [choice.stop is Stop.LENGTH for (slot, _), choice in choices if is_probe(slot)],
        "capped_judge_calls": [capped for state in states for capped in _capped_judge_calls(state)],
    }
    direct = [choice for (slot, _), choice in choices if slot == DIRECT]
    for name, takes in (("identical_takes", pressured), ("identical_direct", direct)):
        if len(takes) > 1:
            one_text = len({(choice.text, choice.reasoning) for choice in takes}) == 1 and takes[0].text != ""
            found[name] = [one_text and sampling.temperature != 0]
    return {name: (sum(hits), len(hits)) for name, hits in found.items()}


def _capped_judge_calls(state: ScenarioState) -> Iterator[bool]:
    """For each question to the judge, whether its last answer was cut off. One that had to be a single word was not:
    the trained judge stops after that word, whatever it says about why."""
    for lines in state.judged.values():
        last = {line.method: line.choices[0] for line in lines if line.choices}
        yield from (choice.stop is Stop.LENGTH and method not in _ONE_WORD for method, choice in last.items())


def identify(
    folder: Folder,
    run: Definition,
    scenarios: Collection[Scenario],
    names: Mapping[tuple[str, str | None], Mapping[str | None, int]],
) -> Identity:
    """Whether a folder is the run that its run.json describes: its scenarios, and the models that answered. `names` has
    how many answers of a role and a judge carry which name."""
    answered_by = []
    for (role, judge), counts in names.items():
        spec = run.subject if judge is None else run.judges.get(judge)
        if role == "numeric_judge" and isinstance(spec, JudgeSpec) and spec.numeric:
            spec = spec.numeric
        if spec is not None:
            counted = count_names(counts, judge=judge, asked=spec.model, endpoint=spec.endpoint)
            answered_by += [counted] * bool(counted.names)
    findings = [_find_altered(folder, scenarios), *(answered.find_change() for answered in answered_by)]
    return Identity(tuple(filter(None, findings)), tuple(answered_by))


def _find_altered(folder: Folder, scenarios: Collection[Scenario]) -> GuardFinding | None:
    """Where the scenarios are not those of run.json as it is now: the run may have grown since it was opened."""
    data = folder.definition().data
    mismatch = data.find_mismatch(scenarios)
    if mismatch is None:
        return None
    hits, total = len(scenarios), sum(data.counts.values())
    return GuardFinding(guard="altered", text=mismatch, hits=hits, total=total, limit=None, refuses=True)
