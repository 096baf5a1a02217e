"""What holds for every test."""

from __future__ import annotations

import signal
from collections import Counter

import pytest
from hypothesis import settings

# A shell without job control starts what it puts in the background with interrupts ignored, and every process of a test
# would inherit that. A caught signal becomes the default one again when a program is started.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# No test depends on how quick the machine is. `--hypothesis-profile=thorough` looks ten times as long for a failure.
settings.register_profile("usual", deadline=None)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("usual")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each reason why tests were skipped, however many files they stand in."""
    reasons = Counter(str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ()))
    for reason, tests in reasons.most_common():
        terminalreporter.write_line(f"{tests} skipped: {reason.removeprefix('Skipped: ')}")
