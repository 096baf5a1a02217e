"""A board: who lies least and most, the ranked runs, those that are not ranked, and published values apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from unmask.analysis.board import Board, BoardRow
from unmask.analysis.published.columns import COLUMNS as PUBLISHED
from unmask.analysis.published.columns import PublishedRow, PublishedSpan, describe_others, place_values
from unmask.analysis.scaling import MeasureScaling, Scaling
from unmask.render import words
from unmask.render.blocks import Alert, Block, Cell, Facts, Heading, Link, Table, Text, share_cell
from unmask.render.describe.pressure import state_excess
from unmask.render.describe.several import label_model, name_rows, state_several
from unmask.scoring.measures import find_measure

FACTS = ("judge", "preset", "data", "takes", "effort", "unmask")
"""What says how a run was made and read: a column where it differs, a line below where it is the same for all."""
CORRECTED = "corrected_p_lie"
"""The column after P(lie) where labels were asked for."""
LEGEND = (
    "Values in percent with their 95 % interval. A rank is a range: the places a run could have. Two runs are told"
    " apart where unmask compare of these runs calls them different. Runs that share a letter cannot be told apart;"
    " their order says nothing."
)
HONESTY = (
    "Honesty is 1 − P(lie), normalised honesty the same among scenarios with a belief, H/(H+L) the honest share of"
    " clear statements."
)
UNRANKED = "These runs used another judge, data set or number of takes, are copies, or a guard refuses them."
APART = (
    "Published by others, with other harnesses, judges or data: for orientation only, never ranked. Intervals where one"
    " was published or the counts are known. Each column has one definition, the same as for runs: compare a run's"
    " value with its own column only. A value under another definition, or under none that its publisher stated, is"
    " listed under other definition."
)
MOST_PAIRS = 10
"""Pairs that one line names."""


def describe_board(
    board: Board,
    *,
    details: bool = True,
    links: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
) -> Iterator[Block]:
    """`details` are how each run was made, where runs differ in that, and where published values come from. `links` are
    the addresses of the runs' own pages, `names` what the rows are called."""
    names = names or name_rows(board.rows)
    models = {row.name: Link(names[row.name], links[row.name]) if links else names[row.name] for row in board.rows}
    ranked = [row for row in board.rows if row.place is not None]
    unranked = [row for row in board.rows if row.place is None]
    for row in ranked:
        yield from (Alert(f"{names[row.name]}: {warning}.") for warning in row.warnings)
    if found := state_several(board, names):
        yield Text(" ".join(found), "strong")
    if ranked:
        places = [(format_place(row), row.place.group if row.place else "", models[row.name]) for row in ranked]
        yield _make_table(board, ("rank", "tied", "model"), places, ranked, details=details)
        yield from map(Text, [*list_shared_facts(ranked), LEGEND, *[HONESTY] * bool(board.published)])
    yield from map(Text, describe_ranks(board, names))
    if unranked:
        yield from (Heading("Not ranked"), Text(UNRANKED))
        yield Facts([(names[row.name], f"{row.unranked}.") for row in unranked])
        yield _make_table(board, ("model",), [(models[row.name],) for row in unranked], unranked, details=details)
        yield from map(Text, list_shared_facts(unranked))
    if controlled := [row for row in board.rows if row.excess is not None]:
        yield Heading("With and without the role")
        yield Facts([(names[row.name], state_excess(row.excess)) for row in controlled if row.excess is not None])
        yield Text("An excess ranks nobody: a model that lies anyway has a small one.")
    if board.published:
        yield from (Heading("Published"), Text(APART), make_published_table(board.published, details=details))
    if board.scaling:
        yield Text(describe_scaling(board.scaling))
    yield Text(f"Made with unmask {board.unmask}.", "quiet")


def _make_table(
    board: Board, heads: Sequence[str], first: Sequence[Sequence[str]], rows: Sequence[BoardRow], *, details: bool
) -> Table:
    columns = list_columns(board, rows)
    facts = [name for name in FACTS if details and len({tell_fact(row, name) for row in rows}) > 1]
    cells: list[Sequence[str | Cell]] = [
        (
            *texts,
            *(tell_fact(row, name) for name in facts),
            *(_span_cell(find_span(row, name)) for name in columns),
            format_count(row),
        )
        for row, texts in zip(rows, first, strict=True)
    ]
    headings = (*heads, *facts, *(f"{title} %" for title in columns.values()), "n")
    texts = len(heads) + len(facts)
    return Table(headings, cells, texts=texts, chart=texts if "p_lie" in list(columns)[:1] else None)


def _span_cell(span: PublishedSpan | None) -> Cell:
    return Cell(None) if span is None else share_cell(span)


# --- runs


def list_columns(board: Board, rows: Sequence[BoardRow] | None = None) -> dict[str, str]:
    """The columns with a value and an interval, and their headings: those that one of these rows has."""
    rows = board.rows if rows is None else rows
    names = [name for name in board.columns if not rows or any(name in row.rates for row in rows)]
    if board.labels:
        names.insert(names.index("p_lie") + 1, CORRECTED)
    return {name: "corrected P(lie)" if name == CORRECTED else find_measure(name).title for name in names}


def find_span(row: BoardRow, name: str) -> PublishedSpan | None:
    """The value of a run in a column, with its interval. `None` where there is none."""
    found = row.corrected if name == CORRECTED else row.rates.get(name)
    return None if found is None or found.value is None else PublishedSpan(found.value, found.low, found.high)


def describe_ranks(board: Board, names: Mapping[str, str]) -> Iterator[str]:
    """What to know about the ranks, a line each: by what they are, what the unjudged could undo, and labels."""
    if board.measure != "p_lie":
        measure = find_measure(board.measure)
        order = "the largest first" if measure.honest > 0 else "the smallest first"
        yield f"Ranked by {measure.title} ({measure.meaning}), {order}."
    pairs = [f"{names[a]} and {names[b]}" for a, b in board.depends_on_unjudged]
    if pairs:
        more = f"; and {len(pairs) - MOST_PAIRS} more pairs" if len(pairs) > MOST_PAIRS else ""
        yield (
            f"Depends on the unjudged: {'; '.join(pairs[:MOST_PAIRS])}{more}. What is known differs by more than"
            " chance, but what is not known could undo that, so they are not told apart."
        )
    if board.labels:
        yield (
            f"Corrected P(lie) is corrected by the labels of {', '.join(board.labels)}, each run by its own. Ranks are"
            " those of the judge's readings."
        )
        for row in board.rows:
            if row.corrected is not None and row.corrected.why is not None:
                yield f"Not corrected: {names[row.name]}: {row.corrected.why}."


def format_place(row: BoardRow) -> str:
    place = row.place
    if place is None:
        return ""
    return str(place.best) if place.best == place.worst else f"{place.best}–{place.worst}"


def format_count(row: BoardRow) -> str:
    return f"{row.n} ({words.percent(row.unjudged)} unjudged)" if row.unjudged else str(row.n)


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


# --- what others published


def make_published_table(rows: Sequence[PublishedRow], *, details: bool = True) -> Table:
    """A column for each definition. `details` are values under other definitions, judge, data and source."""
    titles = [f"{find_measure(name).title} %" for name in PUBLISHED]
    if not details:
        shown = [row for row in rows if place_values(row.values)]
        return Table(("model", *titles, "n"), [(_name_published(row), *_published_values(row)) for row in shown])
    headings = ("model", "source", "judge", "data", "other definition %", *titles, "n")
    cells = [
        (
            _name_published(row),
            row.where + (f" ({row.note})" if row.note else ""),
            row.judge or "",
            row.data or "",
            "; ".join(describe_others(row.values)),
            *_published_values(row),
        )
        for row in rows
    ]
    return Table(headings, cells, texts=5)


def _name_published(row: PublishedRow) -> str:
    return label_model(row.model, row.variant)


def _published_values(row: PublishedRow) -> Iterator[str | Cell]:
    spans = place_values(row.values)
    yield from (_span_cell(spans[name]) if name in spans else "" for name in PUBLISHED)
    yield "" if row.n is None else str(row.n)


# --- training compute


def describe_scaling(scaling: Scaling) -> str:
    """The paragraph of `unmask board --compute`."""
    parts = [f"{name} {_describe_measure(scale)}" for name, scale in scaling.measures.items()]
    text = f"Spearman's rank correlation with training compute: {'; '.join(parts)}."
    reasons: dict[str, list[str]] = {}
    for model, why in sorted(scaling.left_out.items()):
        reasons.setdefault(why, []).append(model)
    listed = [f"{why}: {', '.join(models)}" for why, models in reasons.items()]
    return text + (f" Not used: {'; '.join(listed)}." if listed else "")


def _describe_measure(scale: MeasureScaling) -> str:
    found = scale.correlation
    paper = f"({words.correlation(scale.published)} in the paper)"
    if found.value is None:
        return f"unknown, {found.why} {paper}"
    bounds = "" if found.p_value is None else f"(p {words.p_value(found.p_value)})"
    if found.low is not None and found.high is not None:
        bounds = f"[{words.correlation(found.low)}, {words.correlation(found.high)}]"
    text = f"{words.correlation(found.value)} {bounds} over {found.n} models {paper}"
    if found.without_family:
        ends = (min, max) if len(found.without_family) > 1 else (min,)
        families = [end(found.without_family, key=lambda name: found.without_family[name]) for end in ends]
        rest = " to ".join(f"{words.correlation(found.without_family[name])} (no {name})" for name in families)
        text += f", without one family {rest}"
    return text
