"""Where the console script begins: a signal that comes while the program is still being imported ends it in one line.

Python would show a traceback from the middle of some import. Nothing has been asked or written by then.
"""

from __future__ import annotations

import os
import signal
import sys


def send_again(lost: sys.UnraisableHookArgs) -> None:
    """Interrupt once more where Python has dropped an interrupt, as it does in callbacks, for instance of imports."""
    if not isinstance(lost.exc_value, KeyboardInterrupt):
        sys.__unraisablehook__(lost)
        return
    from threading import Timer

    again = Timer(0.01, os.kill, (os.getpid(), signal.SIGINT))  # this callback has ended by then
    again.daemon = True
    again.start()


def main() -> None:
    """Entry point of the console script."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    sys.unraisablehook = send_again
    try:
        from unmask.cli.main import main as unmask

        unmask()
    except (KeyboardInterrupt, RuntimeError) as error:
        # Python 3.11 makes a RuntimeError of a signal that comes while a class is being made.
        if not isinstance(error, KeyboardInterrupt) and not isinstance(error.__cause__, KeyboardInterrupt):
            raise
        sys.stderr.write("unmask: interrupted\n")
        raise SystemExit(130) from None
    finally:
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.SIG_IGN)  # the command is done, and its exit code is to be told


if __name__ == "__main__":
    main()
