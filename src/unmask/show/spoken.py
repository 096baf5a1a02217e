"""Intervals and figures in words."""

from __future__ import annotations

from unmask.records import Interval, Ranged


def interval(found: Interval) -> str:
    match found.lower, found.upper:
        case None, None:
            return "no figure"
        case None, upper:
            return f"at most {upper:g}"
        case lower, None:
            return f"at least {lower:g}"
        case lower, upper if lower == upper:
            return f"{lower:g}"
        case lower, upper:
            return f"{lower:g} to {upper:g}"


def figures(reading: Ranged) -> str:
    if reading.empty:
        return "no figure"
    parts = [] if reading.absolute.empty else [interval(reading.absolute)]
    return " and ".join(parts if reading.relative.empty else [*parts, f"relative {interval(reading.relative)}"])
