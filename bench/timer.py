"""Runs one command and prints, as JSON, what it took. A small process for this alone, because a process that is started
from a large one is charged with the memory of its parent at that moment.

    python -S -E bench/timer.py CORE|- LIMIT|- OUT|- COMMAND…
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time


def main() -> None:
    core, limit, out, *command = sys.argv[1:]
    if core != "-":
        os.sched_setaffinity(0, {int(core)})
    started, begin = time.time(), time.perf_counter()
    where = os.devnull if out == "-" else out
    written = [(os.POSIX_SPAWN_OPEN, 1, where, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)]
    child = os.posix_spawnp(command[0], command, os.environ, file_actions=written)
    stopped = False

    def late(*_: object) -> None:
        nonlocal stopped
        stopped = True
        os.kill(child, signal.SIGKILL)

    if limit != "-":
        signal.signal(signal.SIGALRM, late)
        signal.setitimer(signal.ITIMER_REAL, float(limit))
    _, status, usage = os.wait4(child, 0)
    unit = 1 if sys.platform == "darwin" else 1024
    found = {
        "started": started,
        "wall": time.perf_counter() - begin,
        "cpu": usage.ru_utime + usage.ru_stime,
        "peak_mb": usage.ru_maxrss * unit / 1e6,
        "code": os.waitstatus_to_exitcode(status),
        "stopped": stopped,
    }
    print(json.dumps(found))


if __name__ == "__main__":
    main()
