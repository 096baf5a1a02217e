"""*Scenario*: one scenario of a run in full."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: tuple[Route, ...] = ()
