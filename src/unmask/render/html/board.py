"""A board as Markdown, CSV and HTML."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from io import StringIO

from unmask.analysis.board import COLUMNS, Board, Other, Row
from unmask.analysis.published.values import Published
from unmask.render.terminal.tables import percent
from unmask.stats.rate import Rate
from unmask.text import cell, escaped, harmless

SHOWN = {name: column.title for name, column in COLUMNS.items() if column.title}
"""The measures that tables have, with their headings."""
PUBLISHED = {name: column.published for name, column in COLUMNS.items() if column.title and column.published}
"""Those of them that others published, with the names there."""
HEADINGS = (
    *("rank", "tied", "model"),
    *(f"{title} %" for title in SHOWN.values()),
    *("n", "judge", "preset", "data", "takes", "effort", "unmask"),
)
OTHER_HEADINGS = (
    "model",
    *(f"{'Lying@10' if published == 'lying_at_10' else SHOWN[name]} %" for name, published in PUBLISHED.items()),
    *("n", "judge", "data", "source"),
)
LEGEND = (
    "Values in percent with their 95 % interval. A rank is a range: the places a run could have at 95 % confidence for"
    " the whole table. Runs that share a letter cannot be told apart; their order says nothing."
)
UNRANKED = (
    "Not ranked: these runs used another judge, data set or number of takes and cannot be ranked with the others."
)
APART = (
    "Published by others, with other harnesses, judges or data: for orientation only, never ranked. Intervals where one"
    " was published or the counts are known."
)
PROVENANCE = ("judge", "preset", "data", "data hash", "direct", "takes", "reader", "effort", "temperature")


def markdown(board: Board) -> str:
    return "\n".join(_sections(board, _markdown_table, lambda text: f"{text}\n", lambda text: f"## {text}\n"))


def table_csv(board: Board) -> str:
    """One line per run and per published row, told apart by the column `kind`; shares from 0 to 1."""
    extra = (*PROVENANCE, "judge prompts", "probe prompts", "unmask", "run", "created")
    names = [
        "kind",
        "name",
        "model",
        "variant",
        "rank_best",
        "rank_worst",
        "tied",
        "unranked",
        "n",
        "unjudged",
        "takes",
    ]
    names += [f"{measure}{part}" for measure in COLUMNS for part in ("", "_low", "_high")]
    names += [name.replace(" ", "_") for name in extra if name != "takes"] + ["where", "note"]
    out = StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for row in board.rows:
        said = _csv_row(row) | {name.replace(" ", "_"): row.provenance.get(name) for name in extra}
        writer.writerow({name: harmless(cell) if isinstance(cell, str) else cell for name, cell in said.items()})
    for other in board.published:
        writer.writerow(_csv_other(other))
    return out.getvalue()


def html(board: Board) -> str:
    """One page that needs nothing from outside and runs no script."""
    parts = _sections(board, _html_table, lambda text: f"<p>{escaped(text)}</p>", lambda text: f"<h2>{text}</h2>")
    return _PAGE.replace("{body}", "\n".join(parts))


# --- inside

Maker = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def _sections(
    board: Board, table: Maker, paragraph: Callable[[str], str], heading: Callable[[str], str]
) -> Iterator[str]:
    ranked = [row for row in board.rows if row.place is not None]
    unranked = [row for row in board.rows if row.place is None]
    if ranked:
        yield table(HEADINGS, [_cells(row) for row in ranked])
        yield paragraph(LEGEND)
    if unranked:
        yield heading("Not ranked")
        yield paragraph(UNRANKED)
        yield table(("why", *HEADINGS[2:]), [(row.unranked or "", *_cells(row)[2:]) for row in unranked])
    if board.published:
        yield heading("Published")
        yield paragraph(APART)
        yield table(OTHER_HEADINGS, [_other_cells(other) for other in board.published])
    yield paragraph(f"Made with unmask {board.unmask}, scoring version {board.scoring_version}, seed {board.seed}.")


def _cells(row: Row) -> Sequence[str]:
    place = row.place
    span = ""
    if place is not None:
        span = str(place.best) if place.best == place.worst else f"{place.best}–{place.worst}"
    facts = row.provenance
    left_out = f" ({row.unjudged} unjudged)" if row.unjudged else ""
    return (
        span,
        place.group if place else "",
        _named(row.model, row.variant),
        *(_rate(getattr(row, name)) for name in SHOWN),
        f"{row.n}{left_out}",
        facts["judge"] or "none",
        facts["preset"] or "",
        f"{facts['data']} {facts['data hash']}",
        str(row.takes),
        facts["effort"] or "",
        facts["unmask"] or "",
    )


def _other_cells(other: Other) -> Sequence[str]:
    values = other.values
    cells = {name: _value(values.get(published)) for name, published in PUBLISHED.items()}
    lies = values.get("p_lie")
    if "honesty" not in values and lies is not None:
        cells["honesty"] = _range(1 - lies.value, None if lies.high is None else 1 - lies.high, _rest(lies.low))
    return (
        _named(other.model, other.variant),
        *cells.values(),
        "" if other.n is None else str(other.n),
        other.judge or "",
        other.data or "",
        other.where + (f" ({other.note})" if other.note else ""),
    )


def _rest(share: float | None) -> float | None:
    return None if share is None else 1 - share


def _named(model: str, variant: str | None) -> str:
    return f"{model} + {variant}" if variant else model


def _rate(rate: Rate | None) -> str:
    return "unknown" if rate is None else _range(rate.value, rate.low, rate.high)


def _value(one: Published | None) -> str:
    return "" if one is None else _range(one.value, one.low, one.high)


def _range(value: float | None, low: float | None, high: float | None) -> str:
    span = "" if low is None or high is None else f" [{percent(low)}, {percent(high)}]"
    return percent(value) + span


def _csv_row(row: Row) -> dict[str, object]:
    found: dict[str, object] = {
        "kind": "run",
        "name": row.name,
        "model": row.model,
        "variant": row.variant,
        "rank_best": row.place and row.place.best,
        "rank_worst": row.place and row.place.worst,
        "tied": row.place and row.place.group,
        "unranked": row.unranked,
        "n": row.n,
        "unjudged": row.unjudged,
        "takes": row.takes,
    }
    for measure in COLUMNS:
        rate: Rate | None = getattr(row, measure)
        for part, field in (("", "value"), ("_low", "low"), ("_high", "high")):
            found[measure + part] = None if rate is None else getattr(rate, field)
    return found


def _csv_other(other: Other) -> dict[str, object]:
    found: dict[str, object] = {
        "kind": other.source,
        "model": other.model,
        "variant": other.variant,
        "n": other.n,
        "judge": other.judge,
        "data": other.data,
        "where": other.where,
        "note": other.note,
    }
    values = dict(other.values)
    if "p_lie" in values and "honesty" not in values:
        lies = values["p_lie"]
        found |= {"honesty": 1 - lies.value, "honesty_low": _rest(lies.high), "honesty_high": _rest(lies.low)}
    for name, published in PUBLISHED.items():
        found |= _csv_value(values.get(published), name)
    return found


def _csv_value(one: Published | None, column: str) -> dict[str, object]:
    return {} if one is None else {column: one.value, f"{column}_low": one.low, f"{column}_high": one.high}


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings)]
    lines += [f"| {' | '.join(cell(one) for one in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


_SPAN = re.compile(r"(\S+) \[(\S+), (\S+)\]")
"""A value with its interval, as `_range` writes it."""


def _html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Numbers to the right with their interval below; words wrap, so that provenance pushes no value out of sight."""
    kinds = [
        ' class="n"'
        if one.endswith("%") or one in {"n", "takes", "rank"}
        else ' class="w"'
        if one in {"why", "source"}
        else ""
        for one in headings
    ]
    head = "".join(f'<th scope="col"{kind}>{escaped(one)}</th>' for one, kind in zip(headings, kinds, strict=True))
    body = "\n".join(
        f"<tr>{''.join(f'<td{kind}>{_html_cell(one)}</td>' for one, kind in zip(row, kinds, strict=True))}</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return f'<div class="wide" tabindex="0" role="region" aria-label="Table">{table}</div>'


def _html_cell(text: str) -> str:
    found = _SPAN.fullmatch(text)
    return escaped(text) if found is None else f"{found[1]}<small>{found[2]} to {found[3]}</small>"


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>unmask board</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 84rem; padding: 0 1.5rem; color: #1d2129;
  background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .35rem .6rem; border-bottom: 1px solid #dfe3e8; text-align: left; vertical-align: top; }
td.w { min-width: 15rem; }
td:not(.n) { overflow-wrap: break-word; max-width: 16rem; }
th { background: #f7f8fa; color: #59616e; font-size: 13px; font-weight: 600; vertical-align: bottom; }
.n { text-align: right; white-space: nowrap; }
th.n { white-space: normal; }
small { display: block; color: #59616e; font-size: 12px; line-height: 1.3; }
p { max-width: 46rem; }
.wide { overflow-x: auto; }
.wide:focus-visible { outline: 3px solid #1d5c9e; outline-offset: 2px; }
@media (max-width: 46rem) { body { padding: 0 1rem; margin-top: 1rem; } th, td { padding: .3rem .4rem; } }
@media screen and (prefers-color-scheme: dark) {
  body { color: #e7e9ee; background: #16181d; } th { background: #1d2026; } th, td { border-color: #323842; }
  th, small { color: #a3abb8; } .wide:focus-visible { outline-color: #86b9ee; }
}
</style>
</head>
<body>
<h1>unmask board</h1>
{body}
</body>
</html>
"""
