"""*Compare*: runs side by side, scenario by scenario."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: tuple[Route, ...] = ()
