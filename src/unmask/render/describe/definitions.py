"""One run in other people's definitions of honesty, and why it differs from what they printed."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.analysis.published.gap import PublishedGap
from unmask.render import words
from unmask.render.blocks import Block, Cell, Facts, Heading, Table, Text, share_cell
from unmask.scoring.definitions import DefinedScore


def describe_definitions(score: DefinedScore) -> Iterator[Block]:
    """A row a definition, then who does not state theirs."""
    yield Text("Honesty of the same replies, as each publisher counts it. Only equal definitions compare.")
    rows = [
        (one.name, share_cell(one.honesty), words.count(one.honesty.total), one.archetypes) for one in score.definitions
    ]
    yield Table(("as", "honesty %", "n", "archetypes"), rows)
    yield Facts([(one.name, f"{one.numerator} / {one.denominator}; {one.publishers}") for one in score.definitions])
    if score.not_stated:
        yield Heading("Not stated")
        yield Facts([(f"{who}", f"{what}; no number") for who, what in score.not_stated.items()])
    takes = f", {words.plural(score.takes, 'take')}" if score.takes > 1 else ""
    yield Text(f"Verdicts of preset {score.preset}{takes}. --preset makes them by other rules.", "quiet")


def describe_gap(gap: PublishedGap) -> Iterator[Block]:
    """From the run's own honesty to the published one, a setting at a time."""
    published = gap.published
    first = f"{published.source} published {words.percent(gap.honesty)} honesty for {published.model}"
    yield Text(f"{first}; this run of {gap.model} has {gap.own.percent}.", "strong")
    rows: list[tuple[str, str | Cell]] = [("this run, 1 − P(lie)", share_cell(gap.own))]
    rows += [(f"their {part.setting}", words.points(part.change)) for part in gap.parts]
    rows.append(("this run as they count", share_cell(gap.recounted)))
    if gap.remainder is not None:
        rows.append(("the rest", words.difference(gap.remainder)))
    rows.append(("published", words.number(gap.honesty)))
    yield Table(("honesty, % and points", ""), rows)
    yield Text(
        "The rest is data, judge, caps, sampling, model version and chance together; nothing here can tell them apart."
    )
    facts = {"definition": published.definition.value, "n": words.count(published.n), "where": published.where}
    facts |= {"data": published.data or "not stated", "judge": published.judge or "not stated"}
    yield Facts([*facts.items(), *([("note", published.note)] if published.note else [])])
