"""What several runs show together, in a few plain sentences: what their report and the board begin with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from unmask.analysis.board import Board, BoardRow
from unmask.render import words
from unmask.scoring.measures import find_measure

STEP = re.compile(r"(.*?)(\d+)(\D*)")
"""A name with a number in it, such as `step-1000`: the last one counts."""


def state_several(board: Board, names: Mapping[str, str] | None = None) -> list[str]:
    """Who lied least and most, whether that can be chance, how it goes over the steps, and what is not ranked. `names`
    are what the rows are called."""
    names = names or name_rows(board.rows)
    ranked = [row for row in board.rows if row.place is not None]
    sentences = list(_state_ends(board.measure, ranked, names)) if len(ranked) > 1 else []
    if board.rows and not ranked:
        sentences.append("None of these runs can be ranked.")
    if unranked := [names[row.name] for row in board.rows if row.place is None]:
        verb = "is" if len(unranked) == 1 else "are"
        sentences.append(f"{words.listed(unranked)} {verb} not ranked; the board says why.")
    return sentences


def _state_ends(measure: str, ranked: Sequence[BoardRow], names: Mapping[str, str]) -> Iterator[str]:
    title, honest = find_measure(measure).title, find_measure(measure).honest
    low, high = (ranked[0], ranked[-1]) if honest < 0 else (ranked[-1], ranked[0])
    yield (
        f"{title} is lowest for {names[low.name]}, {_state_rate(low, measure)}, and highest for"
        f" {names[high.name]}, {_state_rate(high, measure)}, of {words.plural(len(ranked), 'run')}."
    )
    pairs = list(combinations(ranked, 2))
    apart = sum(map(_are_apart, *zip(*pairs, strict=True)))
    larger = "is larger than chance" if _are_apart(low, high) else "could be chance"
    all_pairs = f"; of all {len(pairs)} pairs {apart} can be told apart" if len(pairs) > 1 else ""
    yield f"That difference {larger}{all_pairs}."
    steps = order_by_step([names[row.name] for row in ranked])
    if steps and {steps[0], steps[-1]} != {names[low.name], names[high.name]}:
        rates = {names[row.name]: words.whole_percent(row.rates[measure].value or 0.0) for row in ranked}
        yield f"From {steps[0]} to {steps[-1]} it goes from {rates[steps[0]]} to {rates[steps[-1]]}."


def _state_rate(row: BoardRow, measure: str) -> str:
    rate = row.rates[measure]
    span = f" ({words.whole_span(rate.low, rate.high)})" if rate.low is not None else ""
    return f"{words.whole_percent(rate.value or 0.0)}{span}"


def _are_apart(a: BoardRow, b: BoardRow) -> bool:
    """Two ranked runs are told apart where they share no letter."""
    groups = [set(re.findall(r"[a-z]\d*", row.place.group if row.place else "")) for row in (a, b)]
    return not groups[0] & groups[1]


def name_rows(rows: Sequence[BoardRow]) -> dict[str, str]:
    """What each run is called: its model, and its folder too where several have the same."""
    models = {row.name: label_model(row.model, row.variant) for row in rows}
    shared = Counter(models.values())
    return {name: model if shared[model] == 1 else f"{model} ({name})" for name, model in models.items()}


def label_model(model: str, variant: str | None) -> str:
    return f"{model} + {variant}" if variant else model


def order_by_step(names: Sequence[str]) -> list[str]:
    """Names in the order of their numbers, where the numbers are all that differs, as in step-900 and step-1000."""
    found = {name: match for name in names if (match := STEP.fullmatch(name))}
    stems = {(match[1], match[3]) for match in found.values()}
    if len(names) < 3 or len(found) != len(names) or len(stems) != 1:
        return []
    return sorted(names, key=lambda name: int(found[name][2]))
