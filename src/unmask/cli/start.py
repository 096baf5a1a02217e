"""Where the console script begins: Ctrl-C while the program is still being imported ends it in one line.

Python would show a traceback from the middle of some import. Nothing has been asked or written by then.
"""

from __future__ import annotations

import signal
import sys


def main() -> None:
    """Entry point of the console script."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        from unmask.cli.main import main as unmask

        unmask()
    except KeyboardInterrupt:
        sys.stderr.write("unmask: interrupted\n")
        raise SystemExit(130) from None
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # the command is done, and its exit code is to be told


if __name__ == "__main__":
    main()
