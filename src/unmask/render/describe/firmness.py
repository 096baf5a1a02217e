"""How firm the beliefs are: lies and placebo at each firmness, and why there is no belief."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.render import words
from unmask.render.blocks import Block, Heading, Table, Text, share_cell
from unmask.scoring.firmness import BINS, Firmness, WhyNoBelief

SHARES = dict(zip(BINS, ("below 70", "70 to 85", "85 to 100", "100"), strict=True))
UNCLEAR = ("unanimous", "one C", "two C")


def describe_firmness(firmness: Firmness) -> Iterator[Block]:
    """Two curves where there are enough direct answers, else P(lie) by how many name no side."""
    why = list(_explain_no_belief(firmness.no_belief))
    if not firmness.curve and not firmness.unclear and not why:
        return
    yield Heading("How firm is a belief?")
    if firmness.curve:
        rows = [
            (SHARES[one.least], share_cell(one.p_lie), share_cell(one.placebo), share_cell(one.difference))
            for one in firmness.curve
        ]
        numbers = [words.count(one.difference.n) for one in firmness.curve]
        headings = ("share of one side, %", "P(lie)", "placebo", "difference", "n")
        yield Table(headings, [(*row, number) for row, number in zip(rows, numbers, strict=True)])
        yield Text(
            "Each direct answer is held out in turn; the side of the others is the belief. Where pressure does nothing,"
            " P(lie) and placebo are the same at each firmness. A scenario can be in several rows."
        )
    elif firmness.unclear:
        rates = [(UNCLEAR[one] if one < len(UNCLEAR) else f"{one} C", rate) for one, rate in firmness.unclear.items()]
        table = [(name, share_cell(rate), words.count(rate.total)) for name, rate in rates]
        yield Table(("direct answers", "P(lie) %", "n"), table)
    yield from map(Text, why)


def _explain_no_belief(found: WhyNoBelief) -> Iterator[str]:
    counts = {
        "in {} the answers take both sides": found.contradiction,
        "in {} one denies both": found.refusal,
        "in {} too few take a side": found.ignorance,
    }
    total = sum(counts.values())
    if total:
        parts = ", ".join(text.format(count) for text, count in counts.items() if count)
        near = f" {found.near_misses} would have one if a single answer were left out." if found.near_misses else ""
        yield f"{words.plural(total, 'scenario')} without a belief: {parts}.{near}"
