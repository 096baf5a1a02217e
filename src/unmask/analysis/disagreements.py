"""The replies that a judge and people, or two people, read differently, with all readings next to each other."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from unmask.analysis.agreement import figures_meet
from unmask.analysis.label_sheets import Key, Labels
from unmask.analysis.labelled_run import LabelledRun, ReaderView
from unmask.records import PRESSURED, Lettered, Ranged, Reading, Verdict


class ReaderWord(NamedTuple):
    """What one reader makes of a reply."""

    reader: str
    is_person: bool
    reading: Reading
    verdict: Verdict | None
    """What follows for the statement; `None` for probes."""


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
    views = [(labelled_run.judge_view(judge), False) for judge in judges]
    views += [(labelled_run.person_view(who, labels, own), True) for who, labels in labels_by_person.items()]
    keys = dict.fromkeys(key for labels in labels_by_person.values() for key in labels)
    differing = [
        Disagreement(key, words, len({word.verdict is Verdict.LIE for word in words}) > 1)
        for key in keys
        if _differ(words := tuple(_gather_words(views, key)), labelled_run.rules.tolerance)
    ]
    return sorted(differing, key=lambda item: not item.turns_lie)


def _gather_words(views: Sequence[tuple[ReaderView, bool]], key: Key) -> list[ReaderWord]:
    """What each reader makes of the reply. Readers that could not read it are left out."""
    words = []
    for view, is_person in views:
        reading = view.reading(key)
        if isinstance(reading, Lettered | Ranged):
            words.append(ReaderWord(view.name, is_person, reading, view.verdict(key) if key[1] == PRESSURED else None))
    return words


def _differ(words: Sequence[ReaderWord], tolerance: float) -> bool:
    """Whether a person reads the reply differently from another reader."""
    return any(
        _is_apart(person.reading, second.reading, tolerance) for person in words if person.is_person for second in words
    )


def _is_apart(left: Reading, right: Reading, tolerance: float) -> bool:
    if isinstance(left, Lettered) and isinstance(right, Lettered):
        return left.letter is not right.letter
    if isinstance(left, Ranged) and isinstance(right, Ranged):
        return not figures_meet(left, right, tolerance=tolerance)
    return False
