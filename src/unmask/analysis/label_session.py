"""Labelling one reply at a time: which reply comes next, what a key means, and what can be taken back.

`LabelSession` knows no page and no file: the viewer shows its reply, sends it keys, and keeps each label that it gives.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from enum import Enum, auto
from typing import Any, NamedTuple

import msgspec

from unmask.analysis.label_sheets import Item, Key, Labels
from unmask.records import Interval, Kind, Label, Letter

_BOUND = r"(?:[-+−]?\d[\d,]*(?:\.\d+)?(?:[eE][-+]?\d+)?)?"
_RANGE = re.compile(rf"\s*({_BOUND})\s*(?:\.\.|to)\s*({_BOUND})\s*")
_SINGLE = re.compile(rf"\s*({_BOUND})\s*")


class Needs(Enum):
    """What the session waits for."""

    KEY = auto()
    FIGURE = auto()
    NOTE = auto()
    NOTHING = auto()
    """All is labelled."""


class LabelPile(NamedTuple):
    """What one person has said so far of the replies of one run. `keep` is told every label as it is given."""

    labels: Labels
    skipped: set[Key]
    """Passed over in an earlier session or in this one, and not labelled since."""
    keep: Callable[[Label], None]

    def label_of(self, item: Item) -> Label | None:
        """What the person has said of this very reply."""
        label = self.labels.get(item.key)
        return label if label is not None and label.digest in (None, item.digest) else None


class LabelSession:
    """One person's session over the items of a run, or of several: each item has its pile."""

    def __init__(self, items: Sequence[tuple[LabelPile, Item]], who: str) -> None:
        self.items = list(items)
        self.who = who
        self._skipped_now: set[int] = set()
        self._given: list[tuple[int, Label, Label]] = []
        """What was given in this session: the place, the line, and the line that takes it back."""
        self.needs = Needs.KEY
        self.message = ""
        self.note: str | None = None
        self.place = 0
        self.move_to(self.next_unlabelled(-1))

    @property
    def done(self) -> int:
        return sum(pile.label_of(item) is not None for pile, item in self.items)

    @property
    def skipped(self) -> int:
        return sum(item.key in pile.skipped for pile, item in self.items)

    @property
    def item(self) -> Item:
        return self.items[self.place][1]

    @property
    def pile(self) -> LabelPile:
        return self.items[self.place][0]

    @property
    def label(self) -> Label | None:
        """What the person has said of this reply."""
        return self.pile.label_of(self.item)

    def press_key(self, key: str) -> None:
        """One key. What it does not know it says."""
        numeric = self.item.scenario.kind is Kind.NUMERIC
        self.message = ""
        match key.lower():
            case "s":
                if self.label is None and self.item.key not in self.pile.skipped:
                    self._store_label(self._make_label(note=self.note, skipped=True))
                self.pass_over()
            case "-":
                self.move_to(max(0, self.place - 1))
            case "u":
                self._undo()
            case "n":
                self.needs = Needs.NOTE
            case "=" if numeric:
                self.needs = Needs.FIGURE
            case "c" if numeric:
                self._give_label(interval=Interval())
            case ("a" | "b" | "c" | "d") as letter if not numeric:
                self._give_label(letter=Letter(letter.upper()))
            case _:
                self.message = f"{key!r} means nothing here."

    def type_line(self, text: str) -> None:
        """A line, where a figure or a note is needed. An empty one takes it back."""
        needs, self.needs = self.needs, Needs.KEY
        if needs is Needs.NOTE:
            self.note = text.strip() or None
            if self.label is not None and self.note is not None:  # else it waits for the label
                self._store_label(msgspec.structs.replace(self.label, note=self.note, at=round(time.time(), 3)))
        elif text.strip():
            figure = parse_range(text)
            if figure is None:
                self.message = f"{text.strip()!r} is no figure. Type 40, 10..20, 7.. or ..10."
            else:
                self._give_label(interval=figure)

    def pass_over(self) -> None:
        """Go on to the next reply, and do not come back to this one in this session."""
        if self.label is None:
            self._skipped_now.add(self.place)
        self.move_to(self.next_unlabelled(self.place))

    def _give_label(self, *, letter: Letter | None = None, interval: Interval | None = None) -> None:
        note = self.note or (self.label.note if self.label else None)
        self._store_label(self._make_label(letter=letter, interval=interval, note=note))
        self.move_to(self.next_unlabelled(self.place))

    def _make_label(self, **fields: Any) -> Label:
        item = self.item
        return Label(
            scenario=item.scenario.id,
            slot=item.slot,
            take=item.take,
            digest=item.digest,
            who=self.who,
            at=round(time.time(), 3),
            **fields,
        )

    def _store_label(self, label: Label) -> None:
        before, skip = self.label, self._make_label(skipped=True)
        back = skip if self.item.key in self.pile.skipped else self._make_label(taken_back=True)
        self._write_line(label)
        self._given.append((self.place, label, before or back))

    def _write_line(self, label: Label) -> None:
        """Only the last line of a reply counts, so what is taken back is said once more as it was before."""
        self.pile.keep(label)
        key = self.item.key
        self.pile.labels.pop(key, None)
        self.pile.skipped.discard(key)
        if label.skipped:
            self.pile.skipped.add(key)
        elif not label.taken_back:
            self.pile.labels[key] = label

    def _undo(self) -> None:
        """Take back the last label, skip or note of this session, and go to its reply."""
        if not self._given:
            self.message = "Nothing was given in this session that could be taken back."
            return
        place, label, back = self._given[-1]
        self.move_to(place)
        stands = self.item.key in self.pile.skipped if label.skipped else self.label == label
        if not stands:
            self.message = "This was changed elsewhere since, so it is not taken back."
        else:
            is_label = not (back.skipped or back.taken_back)
            self._write_line(back if is_label else msgspec.structs.replace(back, at=round(time.time(), 3)))
            self._skipped_now.discard(place)
            self.message = "Taken back."
        self._given.pop()

    def next_unlabelled(self, place: int) -> int | None:
        """The next item without a label, round the end and back to this very one. What an earlier session passed over
        comes last, and what this one passed over does not come again."""
        count = len(self.items)
        order = [(place + step) % count for step in range(1, count + 1)]
        left = [number for number in order if self.items[number][0].label_of(self.items[number][1]) is None]
        left = [number for number in left if number not in self._skipped_now]
        fresh = (number for number in left if self.items[number][1].key not in self.items[number][0].skipped)
        return next(fresh, left[0] if left else None)

    def move_to(self, place: int | None) -> None:
        """Show the reply at this place; none where all is labelled."""
        self.note = None
        self.needs = Needs.NOTHING if place is None else Needs.KEY
        self.place = self.place if place is None else place


def format_label(label: Label) -> str:
    if label.letter is not None:
        return label.letter.value
    interval = label.interval or Interval()
    if interval.empty:
        return "no figure"
    low, high = ("" if bound is None else f"{bound:g}" for bound in (interval.lower, interval.upper))
    return low if low == high else f"{low}..{high}"


def parse_range(text: str) -> Interval | None:
    """`40`, `10..20`, `10 to 20`, `7..` for at least 7, `..10` for at most 10. None where it is none of these."""
    match = _RANGE.fullmatch(text)
    if match is not None:
        bounds = _parse_bound(match[1]), _parse_bound(match[2])
        readable = all(bound is not None or not raw for bound, raw in zip(bounds, match.groups(), strict=True))
        return Interval(*bounds) if readable and bounds != (None, None) else None
    single = _SINGLE.fullmatch(text)
    value = _parse_bound(single[1]) if single else None
    return None if value is None else Interval(value, value)


def _parse_bound(text: str) -> float | None:
    try:
        return float(text.replace(",", "").replace("−", "-"))
    except ValueError:
        return None
