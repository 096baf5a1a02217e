"""A board as one HTML page."""

from __future__ import annotations

from unmask.analysis.board import Board
from unmask.render.describe.board import describe_board
from unmask.render.html.page import render_page


def render_html(board: Board) -> str:
    """A file that needs nothing from outside."""
    return render_page("ranks.html", described=describe_board(board))
