"""Readings by people: which replies they are about, where they are kept, and what they replace.

Labels are kept in `labels/<who>.jsonl`, append-only; of several for one reply the last counts. Files from outside are
read by `label_sheets`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from unmask.analysis.label_sheets import Item, Key, Labels, place_label
from unmask.errors import DataError, UsageError
from unmask.files import Lock, file_exists, lock_path, refuse_linked_folder
from unmask.protocol.state import ScenarioState
from unmask.protocol.verdict import Readings
from unmask.records import (
    DIRECT,
    PRESSURED,
    Interval,
    Kind,
    Label,
    Lettered,
    Outcome,
    Ranged,
    ReadBy,
    Reading,
    Scenario,
    Slot,
    digest,
    is_probe,
    read_as,
)
from unmask.runs.definition import judge_file
from unmask.runs.journal import JournalFile, mend_file, read_lines
from unmask.runs.run import Run


def key_of(label: Label) -> Key:
    return label.scenario, label.slot, label.take


def reading_of(label: Label) -> Reading:
    """The label as a reading like any other."""
    if label.letter is not None:
        return Lettered(label.letter, by=ReadBy.PERSON, why=label.note)
    return Ranged(label.interval or Interval(), label.relative or Interval(), by=ReadBy.PERSON, why=label.note)


def substitute_labels(
    readings: Readings, scenario: str, labels: Mapping[Key, Label]
) -> dict[Slot, tuple[Reading, ...]]:
    """The readings of a scenario with those of people in place of the judge's, where there are any."""
    return {
        slot: tuple(
            reading_of(labels[scenario, slot, take]) if (scenario, slot, take) in labels else reading
            for take, reading in enumerate(slot_readings)
        )
        for slot, slot_readings in readings.items()
    }


# --- what can be labelled ---------------------------------------------------------------------------------


def list_items(run: Run, rows: Sequence[Outcome], *, probes: bool = False) -> dict[str, tuple[Item, ...]]:
    """By scenario, every pressured reply with a text, and every control reply; with `probes` also the probe replies
    that took a judge."""
    return {
        scenario.id: tuple(_items_of_scenario(scenario, state, row, run.definition.id, probes=probes))
        for (scenario, state), row in zip(run._states(None), rows, strict=True)
    }


def _items_of_scenario(
    scenario: Scenario, seen: ScenarioState, row: Outcome, run_id: str, *, probes: bool
) -> Iterator[Item]:
    for slot, readings in row.readings.items():
        if read_as(slot) != PRESSURED and not (probes and is_probe(slot)):
            continue
        joint = slot == DIRECT and scenario.kind is Kind.NUMERIC and len(readings) == 1
        for take, reading in enumerate(readings):
            if is_probe(slot) and getattr(reading, "by", None) == "rule":
                continue  # a bare yes or no in tags needs no second look
            takes = sorted(seen.replies.get(slot, {})) if joint else [take]
            answers = [seen.text(slot, number) for number in takes]
            texts = tuple(text for text in answers if isinstance(text, str) and text)
            if texts:
                yield Item(scenario=scenario, slot=slot, take=take, texts=texts, run=run_id)


# --- the run folder ---------------------------------------------------------------------------------------


def label_file(run: Run, who: str) -> Path:
    return refuse_linked_folder(run.path / "labels") / f"{judge_file(who)}.jsonl"


def labellers(run: Run) -> list[str]:
    """Who has labelled replies of this run."""
    return run.folder.labellers()


def load_labels(run: Run, who: str) -> Labels:
    """The labels of one person, by name or by the name of the file. Replies that were passed over are left out."""
    return _drop_skips(_take_last(_load_lines(run, who)))


def load_skips(run: Run, who: str) -> set[Key]:
    """The replies that one person passed over and did not label later."""
    return {key for key, label in _take_last(_load_lines(run, who)).items() if label.skipped}


def _take_last(lines: Iterable[Label]) -> Labels:
    """The last label of each reply; what was taken back is left out."""
    last: Labels = {}
    for label in lines:
        last.pop(key_of(label), None)
        if not label.taken_back:
            last[key_of(label)] = label
    return last


def _drop_skips(labels: Labels) -> Labels:
    return {key: label for key, label in labels.items() if not label.skipped}


def _load_lines(run: Run, who: str) -> list[Label]:
    path = label_file(run, who)
    labels = list(read_lines(path, Label))
    names = {label.who for label in labels if label.who}
    by_file = who == path.stem and len(names) == 1 and {judge_file(name) for name in names} == {who}
    if names - {who} and not by_file:
        raise _wrong_person_error(path, names - {who}, who)
    return labels


def open_writer(run: Run, who: str, *, wait: float = 0.0) -> JournalFile:
    """The file of one person, safe to append to. Until it is closed no other process can open it so; one that tries is
    refused after `wait` seconds."""
    path = label_file(run, who)
    advice = "Finish labelling there first, or label under another name: --who NAME."
    lock = Lock(lock_path(path), advice=advice, wait=wait)
    lock.take()
    try:
        if others := {label.who for label in read_lines(path, Label)} - {who, ""}:
            raise _wrong_person_error(path, others, who)
        mend_file(path, Label)
    except BaseException:
        lock.release()
        raise
    return JournalFile(path, lock=lock)


def _wrong_person_error(path: Path, names: set[str], who: str) -> DataError:
    """Two people in one file would be one: the later label of a reply would take the place of the other's."""
    return DataError(
        f"{path} holds labels by {', '.join(map(repr, sorted(names)))}, not only by {who!r}",
        advice="Use another name with --who; or move the file elsewhere and take it in with `unmask label --import`.",
    )


ALL = "all"
"""In place of a name: everybody who labelled the run."""


def read_labels(run: Run, sources: Sequence[str]) -> dict[str, Labels]:
    """Labels by who gave them, of people who labelled this run. Those for other replies are left out."""
    return sort_labels(run, sources)[0]


def sort_labels(run: Run, sources: Sequence[str]) -> tuple[dict[str, Labels], int]:
    """The same, and the number of labels that are for other replies than the run has."""
    scenarios = {scenario.id: scenario for scenario in run.folder.scenarios()}
    states = run.folder.states(None)
    labels_by_person: dict[str, Labels] = {}
    others = 0
    for who, lines in _gather_lines(run, sources).items():
        labels = _drop_skips(_take_last(lines))
        fitting = {key: label for key, label in labels.items() if not _find_problem(label, scenarios, states)}
        labels_by_person[who], others = fitting, others + len(labels) - len(fitting)
    return labels_by_person, others


def _is_for_another(label: Label, state: ScenarioState) -> bool:
    """Whether the run has another reply there now. The direct takes of a figure are labelled as one."""
    if label.digest is None:
        return False
    answers = [state.text(label.slot, take) for take in sorted(state.replies.get(label.slot, {}))]
    own = state.text(label.slot, label.take)
    joint = digest(tuple(text for text in answers if isinstance(text, str) and text))
    return label.digest not in {joint, digest((own,)) if isinstance(own, str) else None}


def bind_labels(run: Run, labels: Sequence[Label]) -> list[Label]:
    """The labels, each with the digest of the reply that the run has, where it has none."""
    items = {item.key: item for own in list_items(run, run.rows(), probes=True).values() for item in own}
    return [
        replace(label, digest=items[key_of(label)].digest) if label.digest is None and key_of(label) in items else label
        for label in labels
    ]


def _gather_lines(run: Run, people: Sequence[str]) -> dict[str, list[Label]]:
    """All lines, by the person who gave them."""
    lines: dict[str, list[Label]] = {}
    for who in _name_everybody(run, people):
        if not file_exists(label_file(run, who)):
            names, option = ", ".join(labellers(run)) or "nobody", f" --import {who}" if Path(who).is_file() else ""
            raise UsageError(
                f"{run.path} has no labels by {who!r}",
                advice=f"Labelled by: {names}. To add some: unmask label {run.path}{option}",
            )
        lines.setdefault(who, []).extend(_load_lines(run, who))
    return lines


def take_own(run: Run, labels: Sequence[Label]) -> list[Label]:
    """Of a sheet of several runs those for this one; every label of a sheet that has none for it."""
    return [own for label in labels if (own := place_label(label, run.definition.id))] or list(labels)


def _name_everybody(run: Run, sources: Sequence[str]) -> list[str]:
    """The sources, with everybody in place of `all`, unless that is the name of somebody."""
    people = labellers(run)
    expand = ALL in sources and ALL not in people
    if expand and not people:
        raise UsageError(f"{run.path} has no labels", advice=f"Label some replies with: unmask label {run.path}")
    return [name for source in sources for name in (people if expand and source == ALL else [source])]


def check_labels(run: Run, labels: Sequence[Label]) -> None:
    """Raise a DataError that names every label which is not about a reply of this run, or not of its kind."""
    scenarios = {scenario.id: scenario for scenario in run.folder.scenarios()}
    seen = run.folder.states(None)
    problems = tuple(text for label in labels if (text := _find_problem(label, scenarios, seen)))
    if problems:
        raise DataError(
            f"{len(problems)} of {len(labels)} labels do not fit {run.path}:",
            problems=problems,
            advice="Labels belong to the run whose replies were read.",
        )


def _find_problem(label: Label, scenarios: Mapping[str, Scenario], seen: Mapping[str, ScenarioState]) -> str | None:
    scenario = scenarios.get(label.scenario)
    if scenario is None:
        problem: str | None = "the run has no such scenario"
    elif not isinstance(seen[label.scenario].text(label.slot, label.take), str):
        problem = "the run has no such reply"
    else:
        problem = find_misfit(label, scenario.kind)
        if problem is None and _is_for_another(label, seen[label.scenario]):
            problem = "the label is for another reply"
    return problem and f"{label.scenario} {label.slot} {label.take}: {problem}"


def find_misfit(label: Label, kind: Kind) -> str | None:
    """Why this is no label of a scenario of this kind; `None` where it is one."""
    no_figure = label.interval is None and label.relative is None
    if label.skipped or label.taken_back:
        return None if label.letter is None and no_figure else "a label is a letter or an interval"
    if (label.letter is None) == no_figure:
        return "a label is a letter or an interval"
    if (label.letter is None) != (kind is Kind.NUMERIC):
        wanted = "an interval" if kind is Kind.NUMERIC else "a letter from A to D"
        return f"a {kind.value} scenario takes {wanted}"
    return None
