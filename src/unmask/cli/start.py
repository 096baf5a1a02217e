"""Where the console script begins: a signal that comes while the program is still being imported ends it in one line.

Python would show a traceback from the middle of some import. Nothing has been asked or written by then.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import signal
import sys


def main() -> None:
    """Entry point of the console script."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    from unmask.cli.main import main as unmask

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        unmask()
    except SystemExit as end:
        _end(end.code if isinstance(end.code, int) else int(end.code is not None))


def _end(code: int) -> None:
    """Leave without taking a run's hundred thousand records apart one by one, which nobody would see."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _leave(number: int, frame: object) -> None:
    os.write(2, b"unmask: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
