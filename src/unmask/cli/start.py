"""Where the console script begins: a signal that comes while the program is still being imported ends it in one line.

Python would show a traceback from the middle of some import. Nothing has been asked or written by then.
"""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import threading


def main() -> None:
    """Entry point of the console script."""
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, _leave)
    from unmask.cli.main import main as unmask

    signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        unmask()
    except KeyboardInterrupt:
        _leave(signal.SIGINT, None)
    except SystemExit as end:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # the command is done, and its exit code is to be told
        _leave_computing_threads(end.code if isinstance(end.code, int) else int(end.code is not None))
        raise


def _leave_computing_threads(code: int) -> None:
    """End the process here if a thread still works on an answer that nobody waits for. Python would wait for it, and
    llama.cpp works through a long prompt for half a minute before it hears that it should stop."""
    main_thread = threading.main_thread()
    if not any(thread is not main_thread and not thread.daemon for thread in threading.enumerate()):
        return
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _leave(number: int, frame: object) -> None:
    os.write(2, b"unmask: interrupted\n")
    os._exit(130)


if __name__ == "__main__":
    main()
