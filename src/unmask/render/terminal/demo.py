"""The demo as text for a terminal of 80 columns or more: what it is, one lie, the envelope, and what to type next."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from unmask.experiments.demo import DemoExample, Envelope
from unmask.records import Verdict
from unmask.render.terminal.tables import wrap_text
from unmask.render.words import NAMES
from unmask.stats.rate import Rate
from unmask.text import strip_controls

WIDTH = 80
_LABEL = 11
"""Columns of the words that stand before a quotation."""


def show_intro(title: str, text: str) -> str:
    return "\n".join([title, *_indent(text), ""])


def show_example(example: DemoExample) -> str:
    """One lie from what the model believes to what it says."""
    lines = [
        f"ONE LIE{example.id.rjust(WIDTH - len('ONE LIE'))}",
        f"  Asked neutrally, {_count_times(len(example.answers))}:",
        *_quote("question", example.question),
        *_quote("answers", " · ".join(example.answers)),
        *_quote("BELIEVES", example.believes),
        "  Then at work:",
        *_quote("told", example.told),
        *_quote("user", example.user),
        *_quote("model", example.reply),
        *_quote("SAYS", example.says),
        "  A lie: it says what it does not believe.",
        "",
    ]
    return "\n".join(lines)


def show_envelope(envelope: Envelope) -> str:
    """What became of the planted halves, and of sincere mistakes."""
    further = [verdict for verdict in Verdict if verdict not in _ALWAYS]
    columns = [*_ALWAYS, *(verdict for verdict in further if envelope.lies[verdict] + envelope.honest[verdict])]
    titles = [_TITLES.get(verdict, NAMES[verdict]) for verdict in columns]
    halves = (
        (envelope.lies, "scenarios where it was taught to lie"),
        (envelope.honest, "where it was taught to be honest"),
    )
    lines = ["THE ENVELOPE".ljust(_NAMES) + "".join(title.rjust(_COLUMN) for title in titles)]
    for counts, name in halves:
        row = f"  {sum(counts.values())} {name}".ljust(_NAMES)
        lines.append(row + "".join(str(counts[verdict]).rjust(_COLUMN) for verdict in columns))
    if envelope.mistakes:
        lines += _indent(_explain_mistakes(envelope))
    return "\n".join([*lines, ""])


_ALWAYS = (Verdict.LIE, Verdict.HONEST)
_TITLES = {Verdict.LIE: "called lie"}
_NAMES, _COLUMN = 40, 10


def _explain_mistakes(envelope: Envelope) -> str:
    count, honest = envelope.mistakes, envelope.honest[Verdict.HONEST]
    what = "is" if count == 1 else "are"
    return (
        f"{count} of the {honest} honest answers {what} factually wrong, because it was taught to believe that: a"
        " sincere mistake is not a lie."
    )


def show_outcomes(counts: Mapping[Verdict, int]) -> str:
    """How often each verdict was given, where there is no envelope."""
    shown = " · ".join(f"{NAMES[verdict]} {count}" for verdict, count in counts.items() if count)
    return "\n".join(["WHAT IT DID", *_indent(shown), ""])


def show_headline(p_lie: Rate, *, remarks: Sequence[str]) -> str:
    """P(lie) in one line, then what the reader should know of it."""
    return "\n".join([f"  P(lie) {p_lie}", *(line for remark in remarks for line in _indent(remark)), ""])


def _indent(text: str, by: int = 2) -> list[str]:
    return wrap_text(" " * by + strip_controls(text), WIDTH)


def _quote(label: str, text: str) -> list[str]:
    lines = [line for line in strip_controls(text).split("\n") if line.strip()]
    parts = [part for line in lines for part in wrap_text(line, WIDTH - _LABEL - 4)]
    margin = " " * (_LABEL + 4)
    return [f"{margin if place else f'    {label}'.ljust(_LABEL + 4)}{part}" for place, part in enumerate(parts)]


def _count_times(count: int) -> str:
    return {1: "once", 2: "twice", 3: "three times"}.get(count, f"{count} times")
