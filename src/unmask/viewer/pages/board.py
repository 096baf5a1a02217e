"""*Board*: several runs in the order of their P(lie)."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: tuple[Route, ...] = ()
