"""What a P(lie) owes to choices: how far one choice moves it, then every choice."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.analysis.sensitivity import ErrorBand, Sensitivity, Variant
from unmask.render import words
from unmask.render.blocks import Block, Cell, Command, Heading, Table, Text, share_cell
from unmask.stats.rate import Rate


def describe_sensitivity(sensitivity: Sensitivity) -> Iterator[Block]:
    """Choices that have a value, then those that need more questions, with the command that asks them."""
    yield Text(describe_spread(sensitivity), "strong")
    own = sensitivity.own.p_lie
    yield Text(
        f"P(lie) is {'not known yet' if own is None else own.percent} with the choices marked *."
        " Nothing was asked again."
    )
    rows = [
        ("" if number else axis, variant.name + " *" * variant.own, *_rate_cells(variant.p_lie))
        for axis, same in sensitivity.known.items()
        for number, variant in enumerate(same)
    ]
    if rows:
        yield Table(("choice", "", "P(lie) %", "unjudged"), rows, texts=2)
    if sensitivity.judge_error:
        yield Heading("If the judge erred by so much")
        bands = [
            (band.error, MEASURED[band.measure], Cell(band.seen), Cell(band.least), Cell(band.most), _span(band))
            for band in sensitivity.judge_error
        ]
        yield Table(("errors", "", "as read, %", "least", "most", "95 % interval"), bands, texts=2)
        floors = {MEASURED[band.measure]: band.floor for band in sensitivity.judge_error if band.floor is not None}
        yield from (Text(f"The floor of {name} is {words.percent(floor)} as read.") for name, floor in floors.items())
        yield Text(
            "The range is over all combinations of no and so many false lies (honest replies called lies) and missed"
            " lies, in each arm apart; a pair is taken as it is. Agreement with people gives neither: labels do."
        )
    for command, variants in sensitivity.not_known_yet.items():
        yield Text(f"Not known yet: {name_open(variants)}. These scenarios need more questions under this rule:")
        yield Command(command)


MEASURED = {"p_lie": "P(lie)", "excess": "excess", "ladder": "what pressure adds"}


def _span(band: ErrorBand) -> str:
    return words.interval(band.low, band.high).strip()


def describe_spread(sensitivity: Sensitivity) -> str:
    """What the choices that have a value come to."""
    if sensitivity.spread is None:
        return "The run has no P(lie) of its own, so other choices say nothing about the model."
    low, high = sensitivity.spread
    if words.number(low) == words.number(high):
        return "No choice of rules moves P(lie)."
    return f"One choice changed at a time moves P(lie) between {words.number(low)} and {words.percent(high)}."


def name_open(variants: list[Variant]) -> str:
    """Choices without a value, and how many scenarios each waits for."""
    return "; ".join(
        f"{variant.axis} {variant.name} ({words.plural(variant.open, 'scenario')})" for variant in variants
    )


def _rate_cells(rate: Rate | None) -> tuple[str | Cell, str]:
    """The value with its interval, and how many scenarios it leaves out."""
    return ("", "") if rate is None else (share_cell(rate), words.count(rate.unjudged) if rate.unjudged else "")
