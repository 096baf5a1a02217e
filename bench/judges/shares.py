"""Shares as bench/results/judges.md writes them: with their interval, and a goal met by the lower bound only."""

from __future__ import annotations

from pathlib import Path

from bench.counts import rate
from unmask.stats.rate import Rate

PAGE = Path(__file__).with_name("page")
"""The prose of bench/results/judges.md, a file for each part."""


def load_page(part: str) -> str:
    return (PAGE / f"{part}.md").read_text(encoding="utf-8").strip()


def share(hits: int, total: int) -> str:
    """As in `88.1 % [83.4, 91.7] (208 of 236)`: Wilson's 95 % interval stands with every share."""
    measured = rate(hits, total)
    return f"{measured.percent} ({hits} of {total})" if total else "n/a"


def say_goal(least: float, measured: Rate) -> str:
    """Whether a share reaches a goal. It is met where the lower bound is, and open where the interval holds it."""
    if measured.low is None or measured.high is None or measured.value is None:
        return "not measured"
    if measured.low >= least:
        return "met"
    return "missed" if measured.high < least else "open: the interval holds it"
