"""*Label*: one reply at a time, blind to model and judge."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: tuple[Route, ...] = ()
