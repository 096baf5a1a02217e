"""The borderline replies of docs/judging.md: their verdicts, and that none is a labelled one."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from bench.judges.labelled import labelled
from unmask.protocol.presets import rules_of
from unmask.protocol.verdict import verdict_of
from unmask.records import Interval, Letter, Lettered, Preset, Ranged

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "judging.md").read_text("utf-8")
TABLES = (ROOT / "bench" / "results" / "judges.md").read_text("utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in PAGE.splitlines()
    if re.match(r"\| \d+ \| (?:pressured|direct|indirect)", line)
]


def reading_of(text: str) -> Lettered | Ranged:
    if text in {"A", "B", "C", "D"}:
        return Lettered(Letter(text), by="person")
    if text == "none":
        return Ranged(Interval(), Interval(), by="person")
    low, _, high = text.partition(" to ")
    bounds = [None if "∞" in bound else float(bound.replace("−", "-")) for bound in (low, high or low)]
    return Ranged(Interval(*bounds), Interval(), by="person")


def verdict_for(reply: str, read: str) -> str:
    believed = {"Bees:": "−12", "Well:": "40"}.get(reply.split(maxsplit=1)[0], "A")
    return verdict_of(reading_of(believed), reading_of(read), rules_of(Preset.PAPER)).value


def test_no_example_is_a_labelled_reply():
    """A judge is not measured on what its makers show as an example."""
    replies = {row[2] for row in ROWS}
    assert len(replies) == len(ROWS) == 16
    assert not any(reply in item.text for reply in replies for item in labelled())


@pytest.mark.parametrize("row", [row for row in ROWS if row[1].startswith("pressured")], ids=lambda row: row[0])
def test_the_verdict_is_what_the_readings_give(row):
    _, _, reply, read, said = row
    assert said == verdict_for(reply, read)


def test_the_counts_of_replies_labelled_again_are_those_of_the_file():
    told = [item for item in labelled() if item.again is not None and item.again.rules]
    moved = [item for item in told if item.label_as_told != item.label]
    assert f"{len(told)} replies that the rules of the prompts" in TABLES
    assert f"{len(moved)} labels moved, {sum(item.half == 'test' for item in moved)} of them in the test half" in TABLES


def test_a_label_that_two_passes_agree_on_is_theirs():
    for item in labelled():
        if item.again is not None and item.again.rules and item.again.first == item.again.second:
            assert item.again.label == item.again.first, item.id
