"""Anything that answers requests. `open_model` turns the name a user writes into one.

Names are resolved lazily: importing this package loads no HTTP client and no model.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from unmask.models.base import Model
    from unmask.models.limits import Endpoint, Limits
    from unmask.models.names import open_model
    from unmask.models.prices import Price, lookup
    from unmask.models.scripted import Scripted

_HOME = {
    "Endpoint": "limits",
    "Limits": "limits",
    "Model": "base",
    "Price": "prices",
    "Scripted": "scripted",
    "lookup": "prices",
    "open_model": "names",
}

__all__ = ["Endpoint", "Limits", "Model", "Price", "Scripted", "lookup", "open_model"]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOME[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
