"""Results as a terminal shows them."""

from __future__ import annotations

from typing import Any

from unmask.records import Result
from unmask.render.blocks import to_terminal
from unmask.render.describe.results import describe


def show(result: Result, *, width: int | None = None, color: bool = False, **settings: Any) -> str:
    return to_terminal(describe(result, **settings), width=width, color=color)
