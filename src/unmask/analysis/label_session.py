"""What one person is asked to read, of one run or of several mixed, and under which name; and labels from outside."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from unicodedata import normalize

from msgspec.structs import replace

from unmask.analysis.label_sheets import Item, Key, place_label, read_file
from unmask.analysis.labelled_run import LabelledRun
from unmask.analysis.labels import check_labels, key_of, list_items, load_labels, open_writer
from unmask.analysis.sampling import choose_in_arms
from unmask.errors import DataError, UsageError
from unmask.records import Label, Slot, Verdict, digest, is_probe
from unmask.runs.commands import completing_command
from unmask.runs.run import Run, use_each

SIZE = 150
"""As many as the published check of the judge."""

LONGEST_NAME = 100
LONGEST_WAIT = 5.0
"""Seconds for which a label waits for another process that writes one under the same name."""

Replies = list[tuple[Run, Item]]


def label(run: Run | str | Path, *, size: int = SIZE, sample_seed: int = 0, probes: bool = False) -> list[Item]:
    """The replies that people should read, of up to `size` scenarios: those with a belief that some judge sees and a
    take that some judge has read. Where there is a control, half of `size` are for its replies. `probes` adds the probe
    replies, so that errors in beliefs are corrected too."""
    if size < 1:
        raise UsageError(f"--size {size} is too small", advice="Give at least 1.")
    opened = run if isinstance(run, Run) else Run(run)
    items = list_items(opened, opened.rows(), probes=probes)
    judges: list[str | None] = [*sorted(opened.definition.judges)] or [None]
    lies = {}
    for arm in LabelledRun(opened, None).list_arms():
        shown = {name for name in arm.scenarios if _list_in_arm(items[name], arm.arm)}
        rows = [row for judge in judges for row in arm.rows_by_id(judge).values() if row.id in shown]
        able = {row.id for row in rows if arm.can_be_labelled(row, probes=probes)}
        lies[arm.arm] = {name: row.verdict is Verdict.LIE for name, row in arm.rows_by_id(None).items() if name in able}
    if not any(lies.values()):
        raise UsageError(
            f"{opened.path} has no reply that a label could change",
            advice=f"Finish the run first: {completing_command(opened.definition, opened.path)}",
        )
    drawn: dict[Key, Item] = {}  # the probes of a scenario come once, before the first of its statements
    for name, slot in choose_in_arms(lies, size=size, seed=sample_seed):
        own = _list_in_arm(items[name], slot)
        drawn |= {item.key: item for item in sorted(own, key=lambda one: (one.slot == slot, one.slot, one.take))}
    return list(drawn.values())


def _list_in_arm(items: Sequence[Item], arm: Slot) -> list[Item]:
    return [item for item in items if item.slot == arm or is_probe(item.slot)]


def draw_replies(
    runs: Sequence[Run],
    *,
    size: int = SIZE,
    in_all: bool = False,
    sample_seed: int = 0,
    probes: bool = False,
) -> Replies:
    """The replies of up to `size` scenarios of each run, or with `in_all` of all runs together, in an order that tells
    nothing of run and judge. A run without a reply to label is left out with a warning.

    With `in_all` each run has its own order of scenarios: otherwise the few of each run would be the same few."""
    ordered = sorted(runs, key=lambda run: run.definition.id)
    if len(ordered) > 1:
        ordered = [run for run, _ in use_each(ordered, lambda run: (run, label(run, size=1, probes=probes)))]
    each, more = divmod(size, len(ordered)) if in_all and size > 0 else (size, 0)
    drawn: Replies = []
    for place, run in enumerate(ordered):
        own = each + (place < more)
        if own or size < 1:
            seed = int(digest((str(sample_seed), run.definition.id)), 16) if in_all else sample_seed
            items = label(run, size=own, sample_seed=seed, probes=probes)
            drawn += [(run, item) for item in items]
    if len(ordered) > 1:  # in the same order each time
        Random("\n".join(run.definition.id for run in ordered)).shuffle(drawn)
    return drawn


def count_people(runs: Sequence[Run]) -> Counter[str]:
    """The labels of each person in these runs."""
    people: Counter[str] = Counter()
    for run in runs:
        for file in run.folder.labellers():
            labels = load_labels(run, file).values()
            people[next((label.who for label in labels if label.who), file)] += len(labels)
    return people


def find_name(who: str, people: Counter[str]) -> str:
    """The name to label under: the known one where it differs in capitals and spaces only."""
    name = who.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(
            f"{who[:LONGEST_NAME]!r} is no name",
            advice=f"Labels need a name of 1 to {LONGEST_NAME} characters.",
        )
    return next((known for known in [*people] if name not in people and _fold(known) == _fold(name)), name)


def _fold(name: str) -> str:
    return " ".join(normalize("NFKC", name).casefold().split())


def store_labels(run: Run, labels: Sequence[Label]) -> None:
    """Append labels of one person. They are on disk when this returns."""
    with closing(open_writer(run, labels[0].who, wait=LONGEST_WAIT)) as lines:
        for one in labels:
            lines.append(one)


def import_labels(runs: Sequence[Run], path: Path, *, who: str | None = None) -> tuple[int, dict[str, int]]:
    """Take in the labels of a file, each into its run. How many there were, and how many are new by person; nothing is
    written unless all fit."""
    labels = [label for label in read_file(path) if not (label.skipped or label.taken_back)]
    if not labels:
        raise UsageError(f"{path} has no label: every row is empty", advice="Fill in `letter`, or `lower` and `upper`.")
    if not who and not all(label.who for label in labels):
        raise UsageError("the file does not say who gave the labels", advice="Add --who NAME.")
    people = count_people(runs)
    names = {name: find_name(name, people) for name in {who or label.who for label in labels}}
    labels = [replace(label, who=names[who or label.who]) for label in labels]
    placed = _sort_by_run(runs, labels)
    for run, own in placed:
        check_labels(run, own)
    added: Counter[str] = Counter()
    for run, own in placed:
        for name in names.values():
            added[name] += _store_new(run, name, [one for one in own if one.who == name])
    return len(labels), dict(+added)


def _sort_by_run(runs: Sequence[Run], labels: Sequence[Label]) -> list[tuple[Run, list[Label]]]:
    """A label without a token belongs to the only run. Of a sheet of several runs, one run takes what is for it."""
    told = labels if len(runs) == 1 else [label for label in labels if label.token]
    found = [(run, [own for label in told if (own := place_label(label, run.definition.id))]) for run in runs]
    strange = len(labels) - sum(len(own) for _, own in found)
    if strange == len(labels) or (strange and len(runs) > 1):
        raise DataError(
            f"{strange} of {len(labels)} labels are for none of the runs named",
            advice="Name the runs that the replies were exported from.",
        )
    return [(run, own) for run, own in found if own]


def _store_new(run: Run, who: str, labels: Sequence[Label]) -> int:
    """Store those that say something new, each with the digest of the reply that the run has."""
    stored = load_labels(run, who)
    items = {item.key: item for own in list_items(run, run.rows(), probes=True).values() for item in own}
    new = []
    for label in labels:
        key, before = key_of(label), stored.get(key_of(label))
        bound = label.digest or (items[key].digest if key in items else None)
        own = replace(label, token=None, digest=bound)
        if before is None or replace(before, at=None) != replace(own, at=None):
            new.append(own)
    if new:
        store_labels(run, new)
    return len(new)
