"""The board in a real Chromium: every table has room at 1280 px, and the page itself at 400."""

from __future__ import annotations

from tests.made_runs import made
from unmask.analysis.board import board
from unmask.render.html.report import render_board

WIDTHS = """() => [document.documentElement.scrollWidth,
  ...[...document.querySelectorAll('.scroll')].map((one) => one.scrollWidth - one.clientWidth)]"""


def test_every_table_of_the_board_has_room(browser, tmp_path):
    """With long names, a run that is not ranked, and what others published."""
    names = ("openrouter/meta-llama/llama-3.1-70b-instruct-turbo", "anthropic/claude-sonnet-4-20250514", "qwen")
    runs = [
        made(tmp_path / str(number), ["lie"] * 10 * number + ["honest"] * (30 - 10 * number), model=name)
        for number, name in enumerate(names)
    ]
    runs.append(made(tmp_path / "takes", ["honest"] * 30, model=names[0], takes=2))
    page = tmp_path / "board.html"
    page.write_text(render_board(board(runs, with_published=True)), encoding="utf-8")
    for width in (1280, 400):
        shown = browser.new_page(viewport={"width": width, "height": 900})
        shown.goto(page.as_uri())
        whole, *tables = shown.evaluate(WIDTHS)
        assert whole == width
        assert len(tables) == 3
        if width == 1280:
            assert tables == [0, 0, 0]
