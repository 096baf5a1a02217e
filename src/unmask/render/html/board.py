"""A board as Markdown, CSV and HTML, and the sentences that every form of it has."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from io import StringIO

from unmask.analysis.board import Board, BoardRow, column_of
from unmask.analysis.published.columns import COLUMNS as PUBLISHED
from unmask.analysis.published.columns import PublishedRow, PublishedSpan, describe_others, place_values
from unmask.render.terminal.scaling import describe_scaling
from unmask.render.terminal.tables import percent
from unmask.scoring.measures import find_measure
from unmask.text import escape_html, escape_markdown, guard_formula

FACTS = ("judge", "preset", "data", "takes", "effort", "unmask")
"""What says how a run was made and read: a column where it differs, a line below where it is the same for all."""
CORRECTED = "corrected_honesty"
"""The column after honesty where labels were asked for."""
OTHER_HEADINGS = (
    "model",
    *(f"{find_measure(name).title} %" for name in PUBLISHED),
    *("other definition %", "n", "judge", "data", "source"),
)
LEGEND = (
    "Values in percent with their 95 % interval. A rank is a range: the places a run could have. Two runs are told"
    " apart where unmask compare of these runs calls them different. Runs that share a letter cannot be told apart;"
    " their order says nothing. Honesty is 1 − P(lie), normalised honesty the same among scenarios with a belief,"
    " H/(H+L) the honest share of clear statements."
)
UNRANKED = (
    "Not ranked: these runs used another judge, data set or number of takes, are copies, or a guard refuses them; the"
    " table says why."
)
APART = (
    "Published by others, with other harnesses, judges or data: for orientation only, never ranked. Intervals where one"
    " was published or the counts are known. Each column has one definition, the same as for runs: compare a run's"
    " value with its own column only. A value under another definition, or under none that its publisher stated, is"
    " listed under other definition."
)
MOST_PAIRS = 10
"""Pairs that one line names."""
PROVENANCE = ("judge", "preset", "data", "data hash", "direct", "takes", "reader", "effort", "temperature")


def render_markdown(board: Board) -> str:
    return "\n".join(_render_sections(board, _markdown_table, lambda text: f"{text}\n", lambda text: f"## {text}\n"))


def render_csv(board: Board) -> str:
    """One line per run and per published row, told apart by the column `kind`; shares from 0 to 1."""
    extra = (*PROVENANCE, "judge prompts", "probe prompts", "unmask", "run", "created")
    names = [
        *("kind", "name", "model", "variant", "rank_best", "rank_worst", "tied"),
        *("unranked", "n", "unjudged", "takes"),
    ]
    measures = dict.fromkeys((*list_columns(board), *(PUBLISHED if board.published else ())))
    names += [f"{measure}{part}" for measure in measures for part in ("", "_low", "_high")]
    names += [name.replace(" ", "_") for name in extra if name != "takes"]
    names += ["where", "note", "other_definition"]
    out = StringIO()
    writer = csv.DictWriter(out, names, lineterminator="\n")
    writer.writeheader()
    for row in board.rows:
        values = _csv_row(row, list(list_columns(board)))
        values |= {name.replace(" ", "_"): row.provenance.get(name) for name in extra if name != "takes"}
        writer.writerow({name: guard_formula(cell) if isinstance(cell, str) else cell for name, cell in values.items()})
    for published_row in board.published:
        writer.writerow(_csv_published(published_row))
    return out.getvalue()


def render_html(board: Board) -> str:
    """One page that needs nothing from outside and runs no script."""
    parts = _render_sections(
        board, html_table, lambda text: f"<p>{escape_html(text)}</p>", lambda text: f"<h2>{text}</h2>"
    )
    return _PAGE.replace("{body}", "\n".join(parts))


# --- what every form says


def list_columns(board: Board, rows: Sequence[BoardRow] | None = None) -> dict[str, str]:
    """The columns with a value and an interval, and their headings: those that one of these rows has."""
    rows = board.rows if rows is None else rows
    names = [name for name in board.columns if not rows or any(name in row.rates for row in rows)]
    if board.labels:
        names.insert(names.index("honesty") + 1, CORRECTED)
    return {name: "corrected honesty" if name == CORRECTED else find_measure(name).title for name in names}


def find_span(row: BoardRow, name: str) -> PublishedSpan | None:
    """The value of a run in a column, with its interval. `None` where there is none."""
    if name != CORRECTED:
        rate = row.rates.get(name)
        return None if rate is None or rate.value is None else PublishedSpan(rate.value, rate.low, rate.high)
    found = row.corrected
    if found is None or found.value is None or found.low is None or found.high is None:
        return None
    return PublishedSpan(1 - found.value, 1 - found.high, 1 - found.low)


def describe_ranks(board: Board, names: Callable[[BoardRow], str]) -> Iterator[str]:
    """What has to be said of the ranks, a line each: by what they are, what the unjudged could undo, and labels."""
    if column_of(board.measure) != "honesty":
        measure = find_measure(board.measure)
        order = "the largest first" if measure.honest > 0 else "the smallest first"
        yield f"Ranked by {measure.title} ({measure.meaning}), {order}."
    rows = {row.name: names(row) for row in board.rows}
    pairs = [f"{rows[a]} and {rows[b]}" for a, b in board.depends_on_unjudged]
    if pairs:
        more = f"; and {len(pairs) - MOST_PAIRS} more pairs" if len(pairs) > MOST_PAIRS else ""
        yield (
            f"Depends on the unjudged: {'; '.join(pairs[:MOST_PAIRS])}{more}. What is known differs by more than"
            " chance, but what is not known could undo that, so they are not told apart."
        )
    if board.labels:
        yield (
            f"Corrected honesty is 1 − P(lie) corrected by the labels of {', '.join(board.labels)}, each run by its"
            " own. Ranks are those of the judge's readings."
        )
        for row in board.rows:
            if row.corrected is not None and row.corrected.why is not None:
                yield f"Not corrected: {names(row)}: {row.corrected.why}."


def format_place(row: BoardRow) -> str:
    place = row.place
    if place is None:
        return ""
    return str(place.best) if place.best == place.worst else f"{place.best}–{place.worst}"


def format_count(row: BoardRow) -> str:
    return f"{row.n} ({percent(row.unjudged)} % unjudged)" if row.unjudged else str(row.n)


def tell_fact(row: BoardRow, name: str) -> str:
    """How the run was made and read, in words: one of `FACTS`."""
    if name == "data":
        return f"{row.provenance['data']} {row.provenance['data hash']}"
    return str(row.takes) if name == "takes" else row.provenance[name] or "none"


def list_shared_facts(rows: Sequence[BoardRow]) -> list[str]:
    """One line with what is the same for all of these rows, where anything is."""
    facts = {name: {tell_fact(row, name) for row in rows} for name in FACTS}
    same = [f"{name} {next(iter(values))}" for name, values in facts.items() if len(values) == 1]
    return [f"{'All of these' if len(rows) > 1 else 'This run'}: {', '.join(same)}."] if same else []


def describe_left_out(board: Board) -> str:
    return f"Left out, without any reply: {', '.join(board.left_out)}."


def published_cells(published_row: PublishedRow) -> Sequence[str]:
    spans = place_values(published_row.values)
    return (
        label_model(published_row.model, published_row.variant),
        *(_format_span(spans[name]) if name in spans else "" for name in PUBLISHED),
        "; ".join(describe_others(published_row.values)),
        "" if published_row.n is None else str(published_row.n),
        published_row.judge or "",
        published_row.data or "",
        published_row.where + (f" ({published_row.note})" if published_row.note else ""),
    )


def label_model(model: str, variant: str | None) -> str:
    return f"{model} + {variant}" if variant else model


# --- inside

Maker = Callable[[Sequence[str], Sequence[Sequence[str]]], str]


def _render_sections(
    board: Board, table: Maker, paragraph: Callable[[str], str], heading: Callable[[str], str]
) -> Iterator[str]:
    ranked = [row for row in board.rows if row.place is not None]
    unranked = [row for row in board.rows if row.place is None]
    for row in ranked:
        for warning in row.warnings:
            yield paragraph(f"WARNING: {row.name}: {warning}.")
    if ranked:
        places = [(format_place(row), row.place.group if row.place else "") for row in ranked]
        yield table(*_compose_table(board, ("rank", "tied"), places, ranked))
        yield from map(paragraph, list_shared_facts(ranked))
        yield paragraph(LEGEND)
    yield from map(paragraph, describe_ranks(board, lambda row: row.name))
    if unranked:
        yield heading("Not ranked")
        yield paragraph(UNRANKED)
        yield table(*_compose_table(board, ("why",), [(row.unranked or "",) for row in unranked], unranked))
        yield from map(paragraph, list_shared_facts(unranked))
    if board.left_out:
        yield paragraph(describe_left_out(board))
    if board.published:
        yield heading("Published")
        yield paragraph(APART)
        yield table(OTHER_HEADINGS, [published_cells(published_row) for published_row in board.published])
    if board.scaling:
        yield paragraph(describe_scaling(board.scaling))
    yield paragraph(f"Made with unmask {board.unmask}.")


def _compose_table(
    board: Board, first: Sequence[str], places: Sequence[Sequence[str]], rows: Sequence[BoardRow]
) -> tuple[Sequence[str], Sequence[Sequence[str]]]:
    """Headings and cells."""
    columns = list_columns(board, rows)
    facts = [name for name in FACTS if len({tell_fact(row, name) for row in rows}) > 1]
    cells = [
        (
            *place,
            label_model(row.model, row.variant),
            *(_format_span(find_span(row, name)) for name in columns),
            format_count(row),
            *(tell_fact(row, name) for name in facts),
        )
        for row, place in zip(rows, places, strict=True)
    ]
    return (*first, "model", *(f"{title} %" for title in columns.values()), "n", *facts), cells


def _format_span(span: PublishedSpan | None) -> str:
    if span is None:
        return "n/a"
    bounds = "" if span.low is None or span.high is None else f" [{percent(span.low)}, {percent(span.high)}]"
    return percent(span.value) + bounds


def _csv_row(row: BoardRow, columns: Sequence[str]) -> dict[str, object]:
    values: dict[str, object] = {
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
    for name in columns:
        values |= zip(_name_ends(name), find_span(row, name) or (None, None, None), strict=True)
    return values


def _name_ends(name: str) -> tuple[str, str, str]:
    return name, f"{name}_low", f"{name}_high"


def _csv_published(published_row: PublishedRow) -> dict[str, object]:
    columns: dict[str, object] = {
        "kind": published_row.source,
        "model": published_row.model,
        "variant": published_row.variant,
        "n": published_row.n,
        "judge": published_row.judge,
        "data": published_row.data,
        "where": published_row.where,
        "note": published_row.note,
    }
    for name, span in place_values(published_row.values).items():
        columns |= zip(_name_ends(name), span, strict=True)
    return columns | {"other_definition": "; ".join(describe_others(published_row.values))}


def _markdown_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(headings)} |", "|" + "---|" * len(headings)]
    lines += [f"| {' | '.join(escape_markdown(text) for text in row)} |" for row in rows]
    return "\n".join(lines) + "\n"


_SPAN = re.compile(r"(\S+) \[(\S+), (\S+)\]")
"""A value with its interval, as `_format_span` writes it."""


def html_table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Numbers to the right with their interval below; words wrap, so that provenance pushes no value out of sight."""
    kinds = [
        ' class="w"'
        if heading in {"why", "source", "other definition %"}
        else ' class="n"'
        if heading.endswith("%") or heading in {"n", "takes", "rank", "tied"}
        else ""
        for heading in headings
    ]
    head = "".join(
        f'<th scope="col"{kind}>{escape_html(heading)}</th>' for heading, kind in zip(headings, kinds, strict=True)
    )
    body = "\n".join(
        f"<tr>{''.join(f'<td{kind}>{_html_cell(text)}</td>' for text, kind in zip(row, kinds, strict=True))}</tr>"
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody></table>"
    return f'<div class="wide" tabindex="0" role="region" aria-label="Table">{table}</div>'


def _html_cell(text: str) -> str:
    match = _SPAN.fullmatch(text)
    return escape_html(text) if match is None else f"{match[1]}<small>{match[2]} to {match[3]}</small>"


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
th, td { padding: .35rem .4rem; border-bottom: 1px solid #dfe3e8; text-align: left; vertical-align: top; }
td.w { min-width: 10rem; }
td:not(.n) { overflow-wrap: anywhere; max-width: 16rem; min-width: 5.5rem; }
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
