"""Results as a terminal shows them."""

from __future__ import annotations

from typing import Any

from unmask.render.blocks import to_terminal
from unmask.render.describe.score import describe_score
from unmask.scoring.score import Score


def show_score(score: Score, *, width: int | None = None, color: bool = False, **settings: Any) -> str:
    return to_terminal(describe_score(score, **settings), width=width, color=color)
