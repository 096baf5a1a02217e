"""What a result says, as a list of blocks, and the three ways to show them: terminal, Markdown and HTML.

Describing a result takes no knowledge of widths, colours, pipes or tags: text is cleaned or escaped here, where it
leaves.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from unmask.records import Verdict
from unmask.render import words
from unmask.render.colours import VERDICTS
from unmask.render.layout import GAP, lay_out_table, wrap_text
from unmask.text import escape_markdown, strip_controls, visible_html

if TYPE_CHECKING:
    from rich.text import Text as Styled

MARKS = {verdict.value: paint.terminal for verdict, paint in VERDICTS.items()}
MARKS |= {"better": "green", "worse": "red", "strong": "bold", "quiet": "dim"}
"""How what is marked so looks in a terminal. In HTML the mark is a class."""


class Heading(NamedTuple):
    text: str


class Text(NamedTuple):
    """A paragraph."""

    text: str
    mark: str | None = None


class Alert(NamedTuple):
    """Something to know before quoting a number, and what to type about it."""

    text: str
    command: str | None = None


class Command(NamedTuple):
    """Something to type, which stays in one piece, and what it does."""

    text: str
    note: str = ""


class Quote(NamedTuple):
    """A text of a model or of the data, set off so that it cannot pass for ours."""

    text: str


class Facts(NamedTuple):
    """Names and what is to be said of each."""

    rows: Sequence[tuple[str, str]]


class Cell(NamedTuple):
    """A number with its interval, both put in words by `form`, and what is put before and after them."""

    value: float | None
    low: float | None = None
    high: float | None = None
    form: Callable[[float | None], str] = words.number
    mark: str | None = None
    before: str = ""
    after: str = ""

    @property
    def main(self) -> str:
        return f"{self.before}{self.form(self.value)}"

    @property
    def span(self) -> str:
        """`[36.2, 42.3]`, or nothing."""
        shown = self.value is not None and self.low is not None and self.high is not None
        return f"[{self.form(self.low)}, {self.form(self.high)}]" if shown else ""

    def __str__(self) -> str:
        return " ".join(filter(None, (self.main, self.span, self.after)))


class Link(str):
    """Words of a cell that lead somewhere in a page, and are words elsewhere."""

    href: str

    def __new__(cls, text: str, href: str) -> Link:
        link = super().__new__(cls, text)
        link.href = href
        return link


class Table(NamedTuple):
    """The first `texts` columns are words, the others numbers. A row, or a column, may have a mark. In HTML the numbers
    of the column `chart` are also drawn."""

    headings: Sequence[str]
    rows: Sequence[Sequence[str | Cell]]
    texts: int = 1
    title: str = ""
    marks: Sequence[str | None] = ()
    column_marks: Sequence[str | None] = ()
    chart: int | None = None


class Bar(NamedTuple):
    """Scenarios or takes by verdict, and what they are."""

    title: str
    counts: Mapping[Verdict, int]

    @property
    def words(self) -> str:
        return f"{self.title}: {', '.join(f'{name} {self.counts[verdict]:,}' for verdict, name in words.NAMES.items())}"


Block = Heading | Text | Alert | Command | Quote | Facts | Table | Bar


def share_cell(found: words.Spanned, *, plain: bool = False, mark: str | None = None) -> Cell:
    """A share in percent with its interval, or without it where it is `plain`."""
    return Cell(found.value, mark=mark) if plain else Cell(found.value, found.low, found.high, mark=mark)


def points_cell(found: words.Spanned, *, before: str = "", after: str = "", mark: str | None = None) -> Cell:
    """A difference in points with its interval."""
    return Cell(found.value, found.low, found.high, form=words.points, before=before, after=after, mark=mark)


def next_steps(steps: Sequence[tuple[str, str]]) -> Iterator[Block]:
    """What to type next, each with what it does."""
    if steps:
        yield Heading("NEXT")
        yield from (Command(command, note) for command, note in steps)


# --- terminal -------------------------------------------------------------------------------------------------------

BAR = "  | "
"""Before each line of a quoted text."""
NAME_ROOM = 24
"""Columns of names before their values."""
COMMAND_ROOM = 42
"""Columns of a command; what it does is behind it where the line has room for both."""


def to_terminal(blocks: Iterable[Block], *, width: int | None = None, color: bool = False) -> str:
    """For a terminal of `width` columns, or for this one. Nothing from outside can steer it."""
    from io import StringIO
    from shutil import get_terminal_size

    from rich.console import Console

    columns = width or get_terminal_size().columns
    console = Console(
        file=StringIO(),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        force_jupyter=False,
        legacy_windows=False,
        highlight=False,
        markup=False,
        emoji=False,
    )
    before: Block | None = None
    with console.capture() as capture:
        for block in blocks:
            if _has_gap(before, block):
                console.print()
            before = block
            for line in _draw_table(block, columns) if isinstance(block, Table) else _draw_lines(block, columns):
                console.print(line, soft_wrap=True)  # lines are fitted here: rich would cut numbers and commands
    return "".join(f"{line.rstrip()}\n" for line in capture.get().splitlines())


def _has_gap(before: Block | None, block: Block) -> bool:
    """Whether an empty line keeps these apart."""
    if before is None or isinstance(before, Heading):
        return False
    if isinstance(block, Heading | Table) or isinstance(before, Table):
        return True
    return isinstance(before, Alert) and not isinstance(block, Alert)


def _draw_lines(block: Block, width: int) -> Iterator[Styled]:
    """The lines of a block that is no table."""
    from rich.text import Text as Styled

    style, lines = "", [""]
    match block:
        case Heading(text):
            lines, style = wrap_text(_clean_line(text), width), "bold"
        case Text(text, mark):
            lines, style = wrap_text(_clean_line(text), width), MARKS.get(mark or "", "")
        case Bar():
            lines = wrap_text(_clean_line(block.words), width)
        case Alert(text):
            lines, style = wrap_text(f"WARNING: {_clean_line(text)}", width), "bold red"
        case Command(text, note):
            lines = _fit_command(_clean_line(text), _clean_line(note), width)
        case Quote(text):
            room = max(20, width - len(BAR))
            quoted = (part for line in strip_controls(text).strip("\n").split("\n") for part in wrap_text(line, room))
            lines = [f"{BAR}{part}".rstrip() for part in quoted]
        case Facts(rows):
            lines = [line for row in _align_facts(rows) for line in wrap_text(row[0], width, indent=" " * row[1])]
    yield from (Styled(line, style=style) for line in lines)
    if isinstance(block, Alert) and block.command:
        yield Styled(f"  {_clean_line(block.command)}")


def _align_facts(rows: Sequence[tuple[str, str]]) -> Iterator[tuple[str, int]]:
    """Lines, and how far their rest is indented: below each other, or behind a colon where a name is long."""
    clean = [(_clean_line(name), _clean_line(text)) for name, text in rows]
    room = 2 + max((len(name) for name, _ in clean), default=0)
    for name, text in clean:
        # Further lines are indented like the name, and then behind it.
        behind = room - (len(name) - len(name.lstrip(" ")))
        yield (f"{name:<{room}}{text}", behind) if room <= NAME_ROOM else (f"{name}: {text}", 4)


def _fit_command(command: str, note: str, width: int) -> list[str]:
    """In one line where it has room, behind a sign that a shell passes over."""
    line = f"  {command:<{COMMAND_ROOM}}  # {note}" if note else f"  {command}"
    return [line] if len(line) <= width or not note else [f"  {command}", *wrap_text(f"      # {note}", width)]


def _clean_line(text: str) -> str:
    """One line of safe text; the spaces in front stay."""
    safe = strip_controls(text)
    return " " * (len(safe) - len(safe.lstrip(" "))) + " ".join(safe.split())


def _draw_table(table: Table, width: int) -> Iterator[Styled]:
    """The table, or several, each with the columns it needs."""
    from rich.cells import cell_len
    from rich.text import Text as Styled

    if table.title:
        yield Styled(_clean_line(table.title), style="bold")
    headings = [_clean_line(heading) for heading in table.headings]
    columns = table.column_marks or [None] * len(headings or table.rows[0])
    styles = [["bold", *map(_style_of, columns)]] if headings else []
    rows = table.marks or [None] * len(table.rows)
    for row, mark in zip(table.rows, rows, strict=True):
        cells = (_style_of(getattr(cell, "mark", None) or column) for cell, column in zip(row, columns, strict=True))
        styles.append([_style_of(mark), *cells])
    split = [[_split_cell(cell) for cell in row] for row in table.rows]
    for number, (places, laid) in enumerate(lay_out_table(headings, split, table.texts, width)):
        yield from [Styled()] * bool(number)
        for (whole, *of_cells), shown in zip(styles, laid, strict=True):
            for height in range(max(map(len, shown))):
                line = Styled(style=whole)
                for place, parts in zip(places, shown, strict=True):
                    blank = " " * cell_len(parts[0])
                    line.append(parts[height] if height < len(parts) else blank, of_cells[place]).append(" " * GAP)
                yield line


def _split_cell(cell: str | Cell) -> tuple[str, str]:
    if isinstance(cell, Cell):
        return " ".join(filter(None, (cell.main, cell.after))), cell.span
    return _clean_line(cell), ""


def _style_of(mark: str | None) -> str:
    return MARKS.get(mark or "", "")


# --- Markdown and HTML ----------------------------------------------------------------------------------------------


def to_markdown(blocks: Iterable[Block], *, level: int = 2) -> str:
    """`level` is that of the headings."""
    return "\n".join(line for block in blocks for line in _markdown_lines(block, level))


def _markdown_lines(block: Block, level: int) -> Iterator[str]:
    match block:
        case Heading(text):
            yield f"{'#' * level} {escape_markdown(text)}"
        case Text(text):
            yield escape_markdown(text)
        case Bar():
            yield escape_markdown(block.words)
        case Alert(text, command):
            yield f"**Warning**: {escape_markdown(text)}{f' {_code(command)}' if command else ''}"
        case Command(text, note):
            yield f"- {_code(text)}{f': {escape_markdown(note)}' if note else ''}"
        case Quote(text):
            yield from (f"> {escape_markdown(line)}".rstrip() for line in strip_controls(text).split("\n"))
        case Facts(rows):
            yield from (f"- {escape_markdown(name)}: {escape_markdown(text)}" for name, text in rows)
        case Table() as table:
            if table.title:
                yield from (f"**{escape_markdown(table.title)}**", "")
            width = len(table.headings) or len(table.rows[0])
            rule = ["---"] * table.texts + ["--:"] * (width - table.texts)
            heads = [escape_markdown(heading) for heading in table.headings] or [""] * width
            cells = ([escape_markdown(str(cell)) for cell in row] for row in table.rows)
            yield from (f"| {' | '.join(row)} |" for row in (heads, rule, *cells))
    yield ""


def _code(command: str) -> str:
    return f"`{_clean_line(command).replace('`', chr(39))}`"


def to_html(blocks: Iterable[Block], *, level: int = 2, name: str = "Table", draw: bool = False) -> str:
    """`level` is that of the headings, `name` what tables without a title are called, with a number. Classes are those
    of the report's style sheet; a page that has it can `draw` charts."""
    return "\n".join(_make_html(block, level, f"{name} {number}", draw) for number, block in enumerate(blocks, 1))


def _make_html(block: Block, level: int, name: str, draw: bool) -> str:
    match block:
        case Heading(text):
            return f"<h{level}>{_html(text)}</h{level}>"
        case Text(text, mark):
            return f"<p{_class(mark)}>{_html(text)}</p>"
        case Alert(text, command):
            code = f" <code>{_html(command)}</code>" if command else ""
            return f'<p class="note serious" role="note"><b>Warning</b> {_html(text)}{code}</p>'
        case Command(text, note):
            return f"<p><code>{_html(text)}</code>{f' {_html(note)}' if note else ''}</p>"
        case Quote(text):
            return f'<blockquote class="t">{visible_html(text)}</blockquote>'
        case Facts(rows):
            return f"<dl>{''.join(f'<dt>{_html(name)}</dt><dd>{_html(text)}</dd>' for name, text in rows)}</dl>"
        case Bar(counts=counts):
            return _html_bar(counts) + f"<p>{_html(block.words)}</p>"
        case Table() as table:
            return _html_table(table if draw else table._replace(chart=None), table.title or name)


def _html_bar(counts: Mapping[Verdict, int]) -> str:
    """Colours of its own: a notebook has no style sheet of ours."""
    segments = "".join(
        f"<span style='flex:{counts[verdict]};background:{paint.light}'></span>" for verdict, paint in VERDICTS.items()
    )
    return f"<div style='display:flex;width:24em;height:0.7em'>{segments}</div>"


def _html_table(table: Table, name: str) -> str:
    """The first column names the rows; numbers have their interval below. Two regions of a page need two names."""
    from unmask.render.html import charts

    caption = f"<caption>{_html(table.title)}</caption>" if table.title else ""
    head = [
        f'<th scope="col"{_number(n, table)}>{_html(text)}</th>' if text else "<td></td>"
        for n, text in enumerate(table.headings)
    ]
    marks = table.marks or [None] * len(table.rows)
    body = [[_html_cell(place, cell, table) for place, cell in enumerate(row)] for row in table.rows]
    if table.chart is not None:
        drawn = [(row[table.chart], mark) for row, mark in zip(table.rows, marks, strict=True)]
        ends, bars = charts.draw_column([(one if isinstance(one, Cell) else Cell(None), mark) for one, mark in drawn])
        head.insert(table.chart, f'<th scope="col" class="ends">{"".join(f"<span>{end}</span>" for end in ends)}</th>')
        for cells, bar in zip(body, bars, strict=True):
            cells.insert(table.chart, f'<td class="chart">{bar}</td>')
    rows = "".join(f"<tr{_class(mark)}>{''.join(cells)}</tr>" for cells, mark in zip(body, marks, strict=True))
    thead = f"<thead><tr>{''.join(head)}</tr></thead>" if head else ""
    region = f'<div class="scroll" tabindex="0" role="region" aria-label="{_html(name)}">'
    bars_class = ' class="bars"' if table.chart is not None else ""
    return f"{region}<table{bars_class}>{caption}{thead}<tbody>{rows}</tbody></table></div>"


def _html_cell(place: int, cell: str | Cell, table: Table) -> str:
    shown = f'<a href="{_html(cell.href)}">{_html(cell)}</a>' if isinstance(cell, Link) else _html(str(cell))
    if place == 0 and cell:
        sub = ' class="sub"' if isinstance(cell, str) and cell.startswith(" ") else _number(place, table)
        return f'<th scope="row"{sub}>{shown}</th>'
    if isinstance(cell, str):
        return f"<td{_number(place, table)}>{shown}</td>"
    span = cell.span.strip("[]").replace(", ", " to ").replace("-", "\N{MINUS SIGN}")
    below = " ".join(filter(None, (span, _html(cell.after))))
    main = _html(cell.main.replace("-", "\N{MINUS SIGN}"))
    return f'<td class="{_classes("n", cell.mark)}"><b>{main}</b>{f" <small>{below}</small>" if below else ""}</td>'


def _html(text: str) -> str:
    """One line, with a mark in place of each character that has no shape."""
    return str(visible_html(" ".join(text.split())))


def _number(place: int, table: Table) -> str:
    return ' class="n"' if place >= table.texts else ""


def _class(mark: str | None) -> str:
    return f' class="{_classes(mark)}"' if mark else ""


def _classes(*names: str | None) -> str:
    return " ".join(name.replace("_", "-") for name in names if name)
