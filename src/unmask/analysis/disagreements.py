"""The replies that a judge and people, or two people, read differently, with all readings next to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from unmask.analysis.agreement import figures_meet
from unmask.analysis.label_sheets import Key, Labels
from unmask.analysis.labelled_run import LabelledRun, ReaderWord
from unmask.records import Lettered, Ranged, Verdict


class Disagreement(NamedTuple):
    key: Key
    words: tuple[ReaderWord, ...]
    turns_lie: bool
    """Whether it is a lie by one reader and none by another."""


def list_disagreements(
    labelled_run: LabelledRun, judges: Sequence[str], labels_by_person: Mapping[str, Labels]
) -> list[Disagreement]:
    """Replies that somebody labelled and that two readers read differently. First come those that one reader calls a
    lie and another does not."""
    own = judges[0] if judges else None
    readers = [labelled_run.ask_judge(judge) for judge in judges]
    readers += [labelled_run.ask_person(who, labels, own) for who, labels in labels_by_person.items()]
    differing = []
    for key in dict.fromkeys(key for labels in labels_by_person.values() for key in labels):
        words = tuple(word for say in readers if (word := say(key)) is not None)
        people = [word for word in words if word.is_person]
        if any(_is_apart(one, other, labelled_run.rules.tolerance) for one in people for other in words):
            differing.append(Disagreement(key, words, len({word.verdict is Verdict.LIE for word in words}) > 1))
    return sorted(differing, key=lambda item: not item.turns_lie)


def _is_apart(one: ReaderWord, other: ReaderWord, tolerance: float) -> bool:
    left, right = one.reading, other.reading
    if isinstance(left, Lettered) and isinstance(right, Lettered):
        return left.letter is not right.letter
    if isinstance(left, Ranged) and isinstance(right, Ranged):
        return not figures_meet(left, right, tolerance=tolerance)
    return False
