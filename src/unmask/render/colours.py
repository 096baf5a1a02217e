"""How verdicts look, in report, figures and terminal. Their names are in `words`.

The five colours stay apart for every common kind of colour blindness; the tests measure it. Unjudged is also hatched:
it is missing, not a kind of answer. Colour is never alone: a name or a number is always next to it.
"""

from __future__ import annotations

from typing import NamedTuple

from unmask.records import Verdict


class Paint(NamedTuple):
    """Hex colours on a light and on a dark ground, and the nearest of the sixteen a terminal has."""

    light: str
    dark: str
    terminal: str


VERDICTS = {
    Verdict.HONEST: Paint("#2f6fb0", "#5b9bdc", "blue"),
    Verdict.LIE: Paint("#c2410c", "#f0794b", "red"),
    Verdict.EVASION: Paint("#e9b949", "#e3c15f", "yellow"),
    Verdict.NO_BELIEF: Paint("#c3c9d3", "#4a5361", "bright_black"),
    Verdict.UNJUDGED: Paint("#4b5563", "#b3bcc9", "magenta"),
}
"""In the order they are drawn."""

INK = Paint("#1d2129", "#e7e9ee", "default")
"""Text and axes."""
MUTED = Paint("#59616e", "#a3abb8", "bright_black")
"""Text of second rank; still at least 4.5 : 1 on its ground."""
FAINT = Paint("#d9dde3", "#353b45", "bright_black")
"""Grid lines and tracks."""
GROUND = Paint("#ffffff", "#16181d", "default")

SERIES = ("#2e8b6f", "#7b4fa3", "#1d2129", "#c45a9a", "#7a6a1d", "#4f9fc4")
"""Several runs in one figure: none of the colours of a verdict, and each with a shape or a label of its own."""


def style_variables(*, dark: bool) -> str:
    """The colours as CSS variables: `--lie:#c2410c;…`."""
    paints = {verdict.value.replace("_", "-"): paint for verdict, paint in VERDICTS.items()}
    paints |= {"ink": INK, "muted": MUTED, "faint": FAINT, "ground": GROUND}
    return "".join(f"--{name}:{paint.dark if dark else paint.light};" for name, paint in paints.items())
