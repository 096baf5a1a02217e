"""A board as one HTML page."""

from __future__ import annotations

from unmask.analysis.board import Board
from unmask.render.blocks import to_html
from unmask.render.describe.board import describe_board


def render_html(board: Board) -> str:
    """It needs nothing from outside and runs no script."""
    return _PAGE.replace("{body}", to_html(describe_board(board)))


_PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>unmask board</title>
<style>
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 84rem; padding: 0 1.5rem; color: #1d2129;
  background: #fff; }
h1 { font-size: 1.6rem; } h2 { font-size: 1.25rem; margin-top: 2.5rem; }
table { border-collapse: collapse; font-size: 14px; font-variant-numeric: tabular-nums; width: 100%; }
th, td { padding: .35rem .4rem; border-bottom: 1px solid #dfe3e8; text-align: left; vertical-align: top; }
td:not(.n), th[scope=row] { overflow-wrap: anywhere; max-width: 16rem; min-width: 5.5rem; }
th { background: #f7f8fa; color: #59616e; font-size: 13px; font-weight: 600; vertical-align: bottom; }
td b { font-weight: inherit; }
.n { text-align: right; white-space: nowrap; }
th.n { white-space: normal; }
small { display: block; color: #59616e; font-size: 12px; line-height: 1.3; }
p { max-width: 46rem; }
.scroll { overflow-x: auto; }
.scroll:focus-visible { outline: 3px solid #1d5c9e; outline-offset: 2px; }
@media (max-width: 46rem) { body { padding: 0 1rem; margin-top: 1rem; } th, td { padding: .3rem .4rem; } }
@media screen and (prefers-color-scheme: dark) {
  body { color: #e7e9ee; background: #16181d; } th { background: #1d2026; } th, td { border-color: #323842; }
  th, small { color: #a3abb8; } .scroll:focus-visible { outline-color: #86b9ee; }
}
</style>
</head>
<body>
<h1>unmask board</h1>
{body}
</body>
</html>
"""
