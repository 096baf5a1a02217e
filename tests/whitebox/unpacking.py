"""Unpacks a GGUF file in transformers without doing the same work hundreds of times."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch


def _remember_values(parse: Any) -> Any:
    """`parse` for parts of files that stay in memory: each of the 150,000 entries of a header is worked out once."""
    values: dict[int, tuple[Any, Any]] = {}

    def parse_once(part: Any, types: Any) -> Any:
        if id(part) not in values:
            values[id(part)] = (part, parse(part, types))  # the part is kept, so that no other gets its id
        return values[id(part)][1]

    return parse_once


@contextmanager
def quick_unpacking() -> Iterator[None]:
    """While this holds, a GGUF file that does not change is read once and not three times, into memory and not through
    a map of the file, and the names of its tensors are listed once and not for each module of the model. Every call
    gives the same values as without it."""
    import gguf
    import numpy
    from transformers import modeling_gguf_pytorch_utils as unpacking

    in_memory = SimpleNamespace(**vars(numpy))
    in_memory.memmap = lambda path, mode: numpy.fromfile(path, dtype=numpy.uint8)
    with (
        patch.object(gguf.gguf_reader, "np", in_memory),
        patch.object(gguf, "GGUFReader", cache(gguf.GGUFReader)),
        patch.object(gguf, "get_tensor_name_map", cache(gguf.get_tensor_name_map)),
        patch.object(unpacking, "_gguf_parse_value", _remember_values(unpacking._gguf_parse_value)),
    ):
        yield
