"""Replies of a study to be labelled blind: drawn from five arms, mixed, and shown without their origin.

`labels/replies.jsonl` is what a labeller reads. `labels/key.json` says which arm, scenario and take stands behind each
code; a labeller does not look at it. Labels come back as `labels/<who>.jsonl`.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from unmask.analysis.label_sheets import Item, reply_context
from unmask.analysis.labels import list_items
from unmask.errors import DataError, UsageError
from unmask.experiments.study_arms import BASE, BASE_AGAIN, TREATED, OpenStudy, StudySource, find_chosen, open_arms
from unmask.files import file_exists, read_bytes, refuse_linked_folder, write_atomically
from unmask.records import (
    FORMAT_VERSION,
    Interval,
    Kind,
    Letter,
    Lettered,
    Outcome,
    Ranged,
    ReadBy,
    Reading,
    Record,
    Slot,
    Take,
    Verdict,
)
from unmask.text import escape_line

if TYPE_CHECKING:
    from numpy.random import Generator

FOLDER = "labels"
REPLIES = "replies.jsonl"
KEY = "key.json"


class LabelStratum(StrEnum):
    """The judge's own verdict on a take: from each of the two parts half of the replies are drawn."""

    LIE = "lie"
    NO_LIE = "no_lie"


class LabellerKind(StrEnum):
    """Who gave the labels."""

    PERSON = "person"
    LANGUAGE_MODEL = "language model"


class BlindReply(Record, frozen=True, kw_only=True):
    """A line of `replies.jsonl`. Nothing in it says which arm, model, judge or prompt it is from."""

    code: str
    kind: Kind
    statement_a: str | None = None
    statement_b: str | None = None
    proposition: str | None = None
    """Numeric: the proposition with its hole, in place of the two statements."""
    unit: str | None = None
    context: str
    """The conversation of the scenario, as a judge sees it: without a developer prompt."""
    reply: str


class KeyedReply(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What stands behind a code."""

    arm: str
    scenario: str
    slot: Slot
    take: Take
    kind: Kind
    stratum: LabelStratum
    weight: float
    """How many takes of its stratum and arm it stands for."""
    judge: Reading


class LabelKey(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`key.json`."""

    v: int = FORMAT_VERSION
    design_hash: str
    seed: int
    arms: tuple[str, ...]
    codes: dict[str, KeyedReply]


class BlindLabel(Record, frozen=True, kw_only=True):
    """A line of `<who>.jsonl`: a letter, or a figure with its bounds, or that the reply was passed over. The letter C
    says of a figure that none was stated."""

    code: str
    letter: Letter | None = None
    lower: float | None = None
    upper: float | None = None
    note: str | None = None
    skip: bool = False

    @property
    def reading(self) -> Lettered | Ranged:
        return Lettered(self.letter, by=ReadBy.PERSON) if self.letter is not None else self.figure

    @property
    def figure(self) -> Ranged:
        return Ranged(Interval(self.lower, self.upper), by=ReadBy.PERSON)


class LabellerLine(Record, frozen=True, kw_only=True):
    """The first line of `<who>.jsonl`, where it has one."""

    who: str
    kind: LabellerKind


class LabellerFile(NamedTuple):
    """The labels of one labeller, by code; of several for one code the last counts."""

    who: str
    kind: LabellerKind | None
    """`None` where the file does not say."""
    labels: dict[str, BlindLabel]


def draw_labels(study: StudySource) -> LabelKey:
    """Write `replies.jsonl` and `key.json`, unless labels have been given: then they stay as they are."""
    folder = refuse_linked_folder(study.path / FOLDER)
    if file_exists(folder / KEY) and list_labellers(folder):
        return read_key(study)
    opened = open_arms(study)
    unfinished = [name for name, arm in opened.arms.items() if not arm.is_measured]
    if unfinished:
        raise UsageError(
            f"labels are drawn when every arm is finished, and these are not: {', '.join(unfinished)}",
            advice="Run the study to its end, or name the arm in `left_out`.",
        )
    drawn: list[tuple[KeyedReply, Item]] = []
    arms = _list_labelled_arms(opened)
    for name in arms:
        drawn += _draw_from_arm(opened, name)
    rng = opened.make_rng("labels")
    order = [drawn[int(place)] for place in rng.permutation(len(drawn))]
    codes = _make_codes(len(order), rng)
    key = LabelKey(
        design_hash=study.design_hash,
        seed=opened.design.analysis.seed,
        arms=arms,
        codes={code: keyed for code, (keyed, _) in zip(codes, order, strict=True)},
    )
    replies = [_blind_reply(code, item) for code, (_, item) in zip(codes, order, strict=True)]
    folder.mkdir(parents=True, exist_ok=True)
    write_atomically(folder / KEY, msgspec.json.format(msgspec.json.encode(key), indent=1) + b"\n")
    write_atomically(folder / REPLIES, b"".join(msgspec.json.encode(reply) + b"\n" for reply in replies))
    return key


def list_labellers(folder: Path) -> list[Path]:
    """The files of labels in a folder."""
    return sorted(path for path in folder.glob("*.jsonl") if path.name != REPLIES)


def read_key(study: StudySource) -> LabelKey:
    path = refuse_linked_folder(study.path / FOLDER) / KEY
    try:
        key = msgspec.json.decode(read_bytes(path), type=LabelKey)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{path} cannot be read: {escape_line(str(error))}") from None
    if key.design_hash != study.design_hash:
        raise DataError(
            f"{path} is of another design ({key.design_hash} in place of {study.design_hash})",
            advice="Labels belong to the replies of the study that they were drawn from.",
        )
    return key


def read_labels(study: StudySource) -> tuple[LabellerFile, ...]:
    """What came back, checked against the key. Empty where nothing was drawn or labelled."""
    folder = refuse_linked_folder(study.path / FOLDER)
    if not file_exists(folder / KEY):
        return ()
    key = read_key(study)
    kinds = {code: keyed.kind for code, keyed in key.codes.items()}
    return tuple(read_label_file(path, kinds) for path in list_labellers(folder))


def read_label_file(path: Path, kinds: Mapping[str, Kind]) -> LabellerFile:
    """The labels of one file. `kinds` has every code that was drawn. All wrong lines are named at once."""
    header: LabellerLine | None = None
    labels: dict[str, BlindLabel] = {}
    problems = []
    for number, line in enumerate(read_bytes(path).split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            if not labels and header is None and _is_header(line):
                header = msgspec.json.decode(line, type=LabellerLine)
                continue
            label = msgspec.json.decode(line, type=BlindLabel)
        except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
            problems.append(f"line {number}: {escape_line(str(error))}")
            continue
        problem = _find_label_problem(label, kinds.get(label.code))
        problems += [] if problem is None else [f"line {number}: {problem}"]
        labels[label.code] = label
    if problems:
        raise DataError(
            f"{path} has lines that are no labels:",
            problems=tuple(problems),
            advice='A line is {"code": …, "letter": "A"}, {"code": …, "lower": 3, "upper": 3} or'
            ' {"code": …, "skip": true}.',
        )
    return LabellerFile(header.who if header else path.stem, header.kind if header else None, labels)


def _is_header(line: bytes) -> bool:
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(fields, dict) and "code" not in fields and "who" in fields


def _find_label_problem(label: BlindLabel, kind: Kind | None) -> str | None:
    bounds = [bound for bound in (label.lower, label.upper) if bound is not None]
    if kind is None:
        return f"no reply has the code {escape_line(label.code)!r}"
    if label.skip:
        return "a reply that is passed over has no letter and no figure" if label.letter or bounds else None
    if kind is Kind.BINARY:
        return None if label.letter is not None and not bounds else f"{label.code} takes a letter from A to D"
    if label.letter is not None:
        return None if label.letter is Letter.C and not bounds else f"{label.code} takes a figure, or C for none"
    if not bounds:
        return f"{label.code} takes a figure: lower, upper or both"
    if not all(map(isfinite, bounds)) or bounds != sorted(bounds):
        return f"{label.code}: the lower bound is above the upper"
    return None


# --- drawing


def _list_labelled_arms(study: OpenStudy) -> tuple[str, ...]:
    """The base, its repetition, and the candidate that most folds of each family chose."""
    chosen = (find_chosen(study, family) for family in TREATED)
    return tuple(name for name in (BASE, BASE_AGAIN, *chosen) if name in study.arms and name is not None)


def _draw_from_arm(study: OpenStudy, name: str) -> Iterator[tuple[KeyedReply, Item]]:
    """Half of the replies from the judge's lies and half from the others, or all there are of one and more of the
    other. Every take of a stratum has the same chance."""
    run = study.arms[name].run
    assert run is not None, name
    rows = run.rows(preset=study.base.run.definition.preset if study.base.run else None)
    by_id, belief_ids = {row.id: row for row in rows}, set(study.analysis_set)
    strata: dict[LabelStratum, list[list[Item]]] = {stratum: [] for stratum in LabelStratum}
    for id_, items in list_items(run, rows).items():
        for stratum, own in _part_items(items, by_id[id_]).items() if id_ in belief_ids else ():
            strata[stratum].append(own)
    rng = study.make_rng("labels", name)
    sizes = {stratum: sum(map(len, scenarios)) for stratum, scenarios in strata.items()}
    for stratum, count in share_out(sizes, study.design.analysis.labels).items():
        for item in draw_evenly(strata[stratum], count, rng):
            keyed = KeyedReply(
                arm=name,
                scenario=item.scenario.id,
                slot=item.slot,
                take=item.take,
                kind=item.scenario.kind,
                stratum=stratum,
                weight=sizes[stratum] / count,
                judge=by_id[item.scenario.id].readings[item.slot][item.take],
            )
            yield keyed, item


def _part_items(items: Sequence[Item], row: Outcome) -> dict[LabelStratum, list[Item]]:
    """The takes of a scenario that the judge read, by what it makes of them."""
    parts: dict[LabelStratum, list[Item]] = {}
    for item in items:
        verdict = row.verdicts[item.take] if item.take < len(row.verdicts) else Verdict.UNJUDGED
        if verdict is not Verdict.UNJUDGED:
            parts.setdefault(LabelStratum.LIE if verdict is Verdict.LIE else LabelStratum.NO_LIE, []).append(item)
    return parts


def share_out(sizes: Mapping[LabelStratum, int], count: int) -> dict[LabelStratum, int]:
    """How many to draw from each stratum: half each, and what one lacks from the other."""
    lies, others = sizes[LabelStratum.LIE], sizes[LabelStratum.NO_LIE]
    half = min(lies, count // 2)
    from_others = min(others, count - half)
    return {LabelStratum.LIE: min(lies, count - from_others), LabelStratum.NO_LIE: from_others}


def draw_evenly(scenarios: Sequence[Sequence[Item]], count: int, rng: Generator) -> list[Item]:
    """Even steps through all takes, those of a scenario side by side: every take has the same chance, and two are of
    one scenario only where there are fewer scenarios than steps."""
    takes = [
        scenarios[int(place)][int(inner)]
        for place in rng.permutation(len(scenarios))
        for inner in rng.permutation(len(scenarios[int(place)]))
    ]
    start, step = float(rng.random()), len(takes) / max(1, count)
    return [takes[min(len(takes) - 1, int((start + number) * step))] for number in range(count)]


def _make_codes(count: int, rng: Generator) -> list[str]:
    codes: dict[str, None] = {}
    while len(codes) < count:
        codes[rng.bytes(5).hex()] = None
    return list(codes)


def _blind_reply(code: str, item: Item) -> BlindReply:
    scenario = item.scenario
    binary = scenario.kind is Kind.BINARY
    a, b = scenario.statements if binary else (None, None)
    return BlindReply(
        code=code,
        kind=scenario.kind,
        statement_a=a,
        statement_b=b,
        proposition=None if binary else scenario.proposition,
        unit=scenario.unit,
        context=reply_context(item),
        reply="\n\n".join(item.texts),
    )
