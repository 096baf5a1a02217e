"""*Live*: a run in progress, from its files."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: tuple[Route, ...] = ()
