"""What holds for every test."""

from __future__ import annotations

import signal

# A shell without job control starts what it puts in the background with interrupts ignored, and every process of a test
# would inherit that. A caught signal becomes the default one again when a program is started.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)
