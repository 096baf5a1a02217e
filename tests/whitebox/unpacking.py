"""Unpacks a GGUF file in transformers without doing the same work hundreds of times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from unittest.mock import patch


@contextmanager
def quick_unpacking() -> Iterator[None]:
    """While this holds, a GGUF file that does not change is read once and not three times, and the names of its tensors
    are listed once and not for each module of the model. Both give the same values at every call."""
    import gguf

    with (
        patch.object(gguf, "GGUFReader", cache(gguf.GGUFReader)),
        patch.object(gguf, "get_tensor_name_map", cache(gguf.get_tensor_name_map)),
    ):
        yield
