"""Real servers under the real supervisor, and what is left of their processes."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path

from tests.patience import PATIENCE
from unmask.sweep.servers.base import ServerSpec

ROOT = Path(__file__).resolve().parents[2]


def vllm_like(name: str = "tiny", *arguments: object, **settings: object) -> ServerSpec:
    """A server of `tests.sweep.vllm_like`, to be placed."""
    # By its path: started in any folder, without the tests on its path.
    command = (sys.executable, str(ROOT / "tests/sweep/vllm_like.py"), "--host", "{host}", "--port", "{port}")
    return ServerSpec(name=name, command=(*command, "--name", "{name}", *map(str, arguments)), **settings)  # type: ignore[arg-type]


def await_true(claim: Callable[[], bool], *, within: float = PATIENCE) -> bool:
    """Whether the claim became true in time."""
    deadline = time.monotonic() + within
    while not claim():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def read_pids(file: Path) -> list[int]:
    assert await_true(lambda: file.exists() and len(file.read_text().split()) == 3)
    return [int(pid) for pid in file.read_text().split()]


def alive(pids: Iterable[int]) -> list[int]:
    """Those that run; one that has ended and waits for its parent to notice does not."""
    return [pid for pid in pids if _state(pid) not in ("", "Z", "X")]


def _state(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except OSError:
        return ""


def children_of(pid: int) -> list[int]:
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
