"""*Run*: one run, its figures and its scenarios."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: tuple[Route, ...] = ()
