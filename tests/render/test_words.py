"""Wording exists once: what numbers, verdicts and readings are called is in render/words.py, and every form has it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import unmask
from tests.made_runs import made
from unmask.records import Verdict
from unmask.render import words
from unmask.render.blocks import (
    Alert,
    Cell,
    Command,
    Facts,
    Heading,
    Quote,
    Table,
    Text,
    to_html,
    to_markdown,
    to_terminal,
)
from unmask.stats.rate import Rate

RENDER = Path(unmask.__file__).parent / "render"
DESCRIBING = sorted([*RENDER.glob("describe/*.py"), RENDER / "blocks.py", RENDER / "notebook.py"])
TEMPLATES = sorted([*RENDER.rglob("*.html"), *(RENDER.parent / "viewer").rglob("*.html")])
OWN_WORDS = {
    "a share in percent": r"\{100 \* [^}]*:\+?\.\df\}",
    "money": r"\$\{",
    "a duration": r"(?:/ 60|/ 3600)",
    "a verdict": r"Verdict\.NO_BELIEF: \"",
    "a p-value": r"\{p(?:_value)?:\.3f\}",
    "a letter without a side": r"Letter\.C: \"",
}


@pytest.mark.parametrize("path", DESCRIBING, ids=lambda path: path.name)
def test_nothing_else_words_numbers_or_verdicts(path):
    """Percent, money, durations, p-values, verdicts, readings: what describes a result calls `words`."""
    text = path.read_text(encoding="utf-8")
    assert [what for what, pattern in OWN_WORDS.items() if re.search(pattern, text)] == []


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
def test_templates_call_the_words(path):
    """No percent sign behind a number that a template has formatted itself, and no verdict spelt out."""
    text = path.read_text(encoding="utf-8")
    assert not re.search(r"%\.\df\"\s*\|\s*format\(100", text)
    assert not re.search(r"\{\{[^}]*\"no belief\"", text)


def test_every_form_of_a_result_has_the_same_sentences(tmp_path):
    """Terminal, Markdown and HTML of a score, a comparison, a gate, a board and a sensitivity."""
    runs = [made(tmp_path / name, ["lie"] * n + ["honest"] * (30 - n), model=name) for name, n in (("a", 3), ("b", 24))]
    results = [runs[0].score(), unmask.compare(runs), unmask.gate(runs[0], max_p_lie=0.5), unmask.board(runs)]
    for result in [*results, unmask.sensitivity(runs[0])]:
        first = str(result).split(".")[0].split("(")[0]
        start = " ".join(first.split())[:60]
        for form in (result.to_markdown(), result.to_html()):
            assert start in " ".join(re.sub(r"<[^>]*>|[\\#]", "", form).split())


HOSTILE = "<b>|`x`*\x1b[31m\u202e\nWARNING: no"


@pytest.mark.parametrize(
    "block",
    [
        Heading(HOSTILE),
        Text(HOSTILE),
        Alert(HOSTILE, HOSTILE),
        Command(HOSTILE, HOSTILE),
        Quote(HOSTILE),
        Facts([(HOSTILE, HOSTILE)]),
        Table((HOSTILE, "n"), [(HOSTILE, Cell(0.5))], title=HOSTILE),
    ],
)
def test_text_is_escaped_where_it_leaves(block):
    """No block can colour a terminal, reorder it, begin a line of ours, or be markup."""
    shown = to_terminal([block], width=60)
    assert not set(shown) & {"\x1b", "\u202e"}
    assert isinstance(block, Alert) or not any(line.startswith("WARNING") for line in shown.splitlines())
    assert "<b>" not in to_html([block]).replace("<b>Warning</b>", "").replace("<b>50.0</b>", "")
    assert not set(to_markdown([block])) & {"\x1b", "\u202e"}


@pytest.mark.parametrize(
    ("shown", "expected"),
    [
        (words.percent(0.3921), "39.2 %"),
        (words.percent(None), "n/a"),
        (words.whole_percent(0.001), "0.1 %"),
        (words.whole_percent(1.0), "100 %"),
        (words.whole_percent(0.345), "35 %"),
        (words.whole_percent(0.335), "34 %"),
        (words.whole_span(0.125, 0.445), "13 to 45 %"),
        (words.percent(0.2865), "28.7 %"),
        (words.percent(0.3125), "31.3 %"),
        (words.points(-0.3125), "-31.3"),
        (
            Rate(hits=5, total=16, value=5 / 16, low=0.2, high=0.4, worst_low=0.3, worst_high=0.3).percent,
            "31.3 % [20.0, 40.0]",
        ),
        (words.span(0.1, 0.2), "10.0 to 20.0 %"),
        (words.points(-0.05), "-5.0"),
        (words.p_value(0.0001), "<0.001"),
        (words.in_brackets(0.031), " (p = 0.031)"),
        (words.count(1234.0), "1,234"),
        (words.money(0.0042), "$0.0042"),
        (words.money(None), "unknown"),
        (words.duration(89), "89 s"),
        (words.duration(5400), "1.5 h"),
        (words.listed(["a", "b", "c"]), "a, b and c"),
        (words.plural(1, "scenario"), "1 scenario"),
        (words.NAMES[Verdict.NO_BELIEF], "no belief"),
    ],
)
def test_numbers_in_words(shown, expected):
    assert shown == expected
