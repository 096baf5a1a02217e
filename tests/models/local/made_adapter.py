"""A low-rank adapter as llama.cpp takes it, written by hand: one weight of one layer."""

from __future__ import annotations

import struct
from pathlib import Path

_TEXT, _FLOAT = 8, 6


def _string(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def adapter(path: Path, *, size: int, strength: float, weight: str = "blk.0.attn_q.weight") -> Path:
    """Rank one: `strength` times the sum of the inputs is added to every output of a square weight."""
    said = [
        _string(key) + struct.pack("<I", _TEXT) + _string(value)
        for key, value in (("general.architecture", "llama"), ("general.type", "adapter"), ("adapter.type", "lora"))
    ]
    said.append(_string("adapter.lora.alpha") + struct.pack("<If", _FLOAT, 1.0))
    ones, length = struct.pack(f"<{size}f", *[1.0] * size), 4 * size
    pushed = struct.pack(f"<{size}f", *[strength] * size)
    tensors = [
        _string(f"{weight}.lora_a") + struct.pack("<IQQIQ", 2, size, 1, 0, 0),
        _string(f"{weight}.lora_b") + struct.pack("<IQQIQ", 2, 1, size, 0, length),
    ]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(said)) + b"".join(said + tensors)
    path.write_bytes(head + bytes(-len(head) % 32) + ones + pushed)
    return path
