"""*Agreement*: judge against people, and people against each other."""

from __future__ import annotations

from starlette.routing import Route

ROUTES: tuple[Route, ...] = ()
