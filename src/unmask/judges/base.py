"""One protocol for every way of judging, and the table of all ways.

A new way of judging is one file of this room with the five functions of `Judge`, and one row of `JUDGES`: a member of
`Style` and the name of the file. Nobody else asks which style a judge has.
"""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from importlib import import_module
from typing import Protocol, cast

from unmask.records import (
    Choice,
    Judged,
    Kind,
    Letter,
    Method,
    Reading,
    Request,
    Sampling,
    Scenario,
    Slot,
)


class Style(StrEnum):
    """What is behind a judge. The values are in `run.json`."""

    LETTERS = "letters"
    """A model that writes reasons and then a letter, or bounds."""
    PICKS = "picks"
    """A model that was trained to pick among fixed words. It reads no figures."""
    VERBATIM = "verbatim"
    """No model: words of the scenario, found in the reply as they are."""


PANEL = "panel:"
"""How a panel is named: `panel:openai/gpt-4o,verbatim,anthropic/claude`."""

LETTERS_ONLY = frozenset({Style.PICKS})
"""Judges that read no figures."""


class Tags(StrEnum):
    """Who reads a bare yes or no in tags."""

    RULE = "rule"
    """A rule, where the side that *yes* means is known."""
    JUDGE = "judge"
    """The judge, as every other reply."""


class Judge(Protocol):
    """How one style of judge is asked, and what its answers mean. All of it is pure."""

    def questions(self, kind: Kind) -> tuple[Method, ...]:
        """The questions about one reply. None where there is no model that could be asked."""

    def request(
        self,
        method: Method,
        scenario: Scenario,
        slot: Slot,
        texts: tuple[str, ...],
        *,
        sampling: Sampling,
        attempt: int = 1,
    ) -> Request:
        """The request that puts one question about these texts, for the first time or, with a reminder, again."""

    def reading(self, calls: Sequence[Judged], *, kind: Kind) -> Reading:
        """What all answers about the same texts say, in file order. Lines of other methods are passed over."""

    def by_rule(self, scenario: Scenario, slot: Slot, text: str, *, tags: Tags) -> Reading | None:
        """A reading without a question, or None where the judge has to look."""

    def imagined(self, method: Method, side: Letter) -> Choice:
        """An answer that says this side, for estimates."""


_FILES = {
    Style.LETTERS: "letters",
    Style.PICKS: "pick",
    Style.VERBATIM: "verbatim",
}


class _JudgeTable(dict[Style, Judge]):
    """A row is a module of this room. It is imported when its judge is first needed."""

    def __missing__(self, style: Style) -> Judge:
        self[style] = judge = cast("Judge", import_module(f"{__package__}.{_FILES[style]}"))
        return judge


JUDGES: dict[Style, Judge] = _JudgeTable()
