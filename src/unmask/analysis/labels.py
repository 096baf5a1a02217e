"""Readings by people: which replies they are about, where they are kept, and what they replace.

Labels are kept in `labels/<who>.jsonl`, append-only; of several for one reply the last counts. Files from outside are
read by `label_sheets`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from unmask.analysis.label_sheets import Item, Key, Labels
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
from unmask.runs.folder import Journal
from unmask.runs.journal import JournalFile, mend_file, read_lines
from unmask.runs.run import Run


def key_of(label: Label) -> Key:
    return label.scenario, label.slot, label.take


def reading_of(label: Label) -> Lettered | Ranged:
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


def load_labels(run: Run, who: str, *, skips: bool = False) -> Labels:
    """The last label of each reply by one person, named as they are or as their file is. What was taken back is left
    out, and without `skips` also what was passed over."""
    path = label_file(run, who)
    last: Labels = {}
    names = set()
    for label in read_lines(path, Label):
        last.pop(key_of(label), None)
        if not label.taken_back:
            last[key_of(label)] = label
        names.add(label.who)
    by_file = who == path.stem and len(names) == 1 and {judge_file(name) for name in names} == {who}
    if not by_file:
        _refuse_others(path, names, who)
    return {key: label for key, label in last.items() if skips or not label.skipped}


def open_writer(run: Run, who: str, *, wait: float = 0.0) -> JournalFile:
    """The file of one person, safe to append to. Until it is closed no other process can open it so; one that tries is
    refused after `wait` seconds."""
    path = label_file(run, who)
    advice = "Finish labelling there first, or label under another name: --who NAME."
    lock = Lock(lock_path(path), advice=advice, wait=wait)
    lock.take()
    try:
        _refuse_others(path, {label.who for label in read_lines(path, Label)}, who)
        mend_file(path)
    except BaseException:
        lock.release()
        raise
    return JournalFile(path, lock=lock)


def _refuse_others(path: Path, names: set[str], who: str) -> None:
    """Two people in one file would be one: the later label of a reply would take the place of the other's."""
    if others := names - {who, ""}:
        raise DataError(
            f"{path} holds labels by {', '.join(map(repr, sorted(others)))}, not only by {who!r}",
            advice="Use another name with --who; or move the file elsewhere, then `unmask label --import` it.",
        )


ALL = "all"
"""In place of a name: everybody who labelled the run."""


def sort_labels(run: Run, people: Sequence[str]) -> tuple[dict[str, Labels], int]:
    """Labels by who gave them, and how many of these people's are for other replies than the run has."""
    known = run.folder.labellers()
    if ALL in people and ALL not in known:
        if not known:
            raise UsageError(f"{run.path} has no labels", advice=f"Label some replies with: unmask label {run.path}")
        people = [*people, *known]
    journal = run.folder.journal()
    fitting: dict[str, Labels] = {}
    others = 0
    for who in dict.fromkeys(who for who in people if who != ALL or ALL in known):
        if not file_exists(label_file(run, who)):
            names, option = ", ".join(known) or "nobody", f" --import {who}" if Path(who).is_file() else ""
            raise UsageError(
                f"{run.path} has no labels by {who!r}",
                advice=f"Labelled by: {names}. To add some: unmask label {run.path}{option}",
            )
        labels = load_labels(run, who)
        fitting[who] = {key: label for key, label in labels.items() if not _find_problem(label, journal)}
        others += len(labels) - len(fitting[who])
    return fitting, others


def check_labels(run: Run, labels: Sequence[Label]) -> None:
    """Raise a DataError that names every label which is not about a reply of this run, or not of its kind."""
    journal = run.folder.journal()
    problems = tuple(text for label in labels if (text := _find_problem(label, journal)))
    if problems:
        raise DataError(
            f"{len(problems)} of {len(labels)} labels do not fit {run.path}:",
            problems=problems,
            advice="Labels belong to the run whose replies were read.",
        )


def _find_problem(label: Label, journal: Journal) -> str | None:
    scenario = journal.scenarios.get(label.scenario)
    state = None if scenario is None else journal.state_of(label.scenario, None)
    if scenario is None or state is None:
        problem: str | None = "the run has no such scenario"
    elif not isinstance(state.text(label.slot, label.take), str):
        problem = "the run has no such reply"
    else:
        problem = find_misfit(label, scenario.kind)
        if problem is None and _is_for_another(label, state):
            problem = "the label is for another reply"
    return problem and f"{label.scenario} {label.slot} {label.take}: {problem}"


def _is_for_another(label: Label, state: ScenarioState) -> bool:
    """Whether the run has another reply there now. The direct takes of a number are labelled as one."""
    own = state.text(label.slot, label.take)
    texts = [state.text(label.slot, take) for take in sorted(state.replies.get(label.slot, {}))]
    joint = tuple(text for text in texts if isinstance(text, str) and text)
    return label.digest not in (None, digest((str(own),)), digest(joint))


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
