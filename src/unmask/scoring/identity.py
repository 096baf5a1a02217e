"""Which model answered: the names that answers carry, against the one that was asked for. Pure.

An endpoint may answer with another model than it was asked for: a gateway falls back, an alias moves on to another
snapshot, a server holds another checkpoint under the same name.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from unmask.errors import escape_line
from unmask.records import Record
from unmask.scoring.guards import GuardFinding

_MOST = 4
"""Names that a sentence lists."""


class AnsweredBy(Record, frozen=True, kw_only=True, omit_defaults=False):
    """The names of models in the answers of the subject or of one judge."""

    judge: str | None
    """The file of the judge; `None` for the subject."""
    asked: str
    """The model that was asked for."""
    answers: int
    """How many there are. Failures and what was copied from another run are not among them."""
    names: dict[str, int]
    """How many answers carry each name, the most frequent first. Answers without a name are in none of them."""
    other: int
    """Answers that name another model than was asked for."""

    @property
    def who(self) -> str:
        return "answers" if self.judge is None else "answers of the judge"

    @property
    def listed(self) -> str:
        """`gpt-4o-2024-08-06 (965 of 965)`; of many names the most frequent."""
        shown = [f"{escape_line(name)} ({count:,} of {self.answers:,})" for name, count in self.names.items()]
        more = [f"and {len(shown) - _MOST} more names"] if len(shown) > _MOST else []
        return ", ".join([*shown[:_MOST], *more])

    @property
    def changed(self) -> bool:
        """Whether answers name different models, so that it changed while the run was made."""
        return len({_bare_name(name) for name in self.names}) > 1

    def explain(self) -> str | None:
        """One sentence where all answers are of one model, another than was asked for."""
        if not self.other or self.changed:
            return None
        return f"The {self.who} name the model: {self.listed}; {self.asked} was asked for."

    def find_change(self) -> GuardFinding | None:
        """What has to be said before any number where the model has changed."""
        if not self.changed:
            return None
        named = sum(self.names.values())
        return GuardFinding(
            guard="models",
            text=f"the {self.who} name more than one model: {self.listed}; {self.asked} was asked for",
            hits=named - max(self.names.values()),
            total=named,
            limit=None,
            refuses=False,
        )


class Identity(NamedTuple):
    """What the journal of a run shows about the folder itself."""

    findings: tuple[GuardFinding, ...]
    """What has to be said before any number, whatever the replies are."""
    answered_by: tuple[AnsweredBy, ...]
    """Which models the answers name: those of the subject, then those of each judge."""


NOTHING_KNOWN = Identity((), ())


def count_names(counts: Mapping[str | None, int], *, judge: str | None, asked: str, endpoint: str | None) -> AnsweredBy:
    """`counts` has how many answers carry each name, and under `None` how many carry none. A model in this process,
    whose `endpoint` is its own name, is always the one that was asked for, whatever it calls itself."""
    names = {name: count for name, count in counts.items() if name and count}
    names = dict(sorted(names.items(), key=lambda item: (-item[1], item[0])))
    other = sum(count for name, count in names.items() if endpoint != asked and not is_same_model(asked, name))
    return AnsweredBy(judge=judge, asked=asked, answers=sum(counts.values()), names=names, other=other)


def is_same_model(asked: str, named: str) -> bool:
    """Whether an answer that names this model is of the one that was asked for: its name contains the asked one, as
    `gpt-4o-2024-08-06` does with `openai/gpt-4o`. What comes before the last slash of the asked one is the provider or
    a path, and `-latest` at its end means any snapshot."""
    return _bare_name(asked).removesuffix("-latest") in named.casefold()


def _bare_name(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].casefold()
