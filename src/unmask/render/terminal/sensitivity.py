"""What a headline owes to choices, as text for a terminal."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from unmask.analysis.sensitivity import Sensitivity, Variant
from unmask.render.terminal.tables import TextTable, format_bounds, make_table, percent, render_parts
from unmask.text import strip_controls

if TYPE_CHECKING:
    from rich.text import Text

    from unmask.stats.rate import Rate


def render(sensitivity: Sensitivity, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(sensitivity), width=width, color=color)


def _compose_parts(sensitivity: Sensitivity) -> Iterator[str | Text | TextTable]:
    from rich.text import Text

    own = sensitivity.own.p_lie
    yield (
        f"P(lie) {'not known yet' if own is None else own.percent} under the run's own choices: preset"
        f" {sensitivity.preset}, judge {sensitivity.judge or 'none'}"
    )
    yield describe_spread(sensitivity) + " Nothing was asked again; * marks what the run itself uses.\n"
    rows = [
        ("" if number else axis, variant.name + (" *" if variant.own else ""), *_show_rate(variant.p_lie))
        for axis, same in sensitivity.known.items()
        for number, variant in enumerate(same)
    ]
    if rows:
        yield make_table(("choice", "", "P(lie) %", "unjudged"), rows, left=2)
    for command, variants in sensitivity.not_known_yet.items():
        yield f"\nNot known yet: {name_open(variants)}. This asks for what they need:"
        yield Text(f"  {strip_controls(command)}", no_wrap=True)


def describe_spread(sensitivity: Sensitivity) -> str:
    """What the choices that have a value come to."""
    if sensitivity.spread is None:
        return "The run has no P(lie) of its own, so other choices say nothing about the model."
    low, high = map(percent, sensitivity.spread)
    if low == high:
        return "No choice below moves it."
    return f"One choice changed at a time moves it between {low} and {high} %."


def name_open(variants: list[Variant]) -> str:
    """Choices without a value, and how many scenarios each waits for."""
    return "; ".join(
        f"{variant.axis} {variant.name} ({variant.open} scenario{'s' if variant.open > 1 else ''})"
        for variant in variants
    )


def _show_rate(rate: Rate | None) -> tuple[str, str]:
    """The value with its interval, and how many scenarios it leaves out."""
    if rate is None:
        return "", ""
    return percent(rate.value) + format_bounds(rate.low, rate.high), str(rate.unjudged or "")
