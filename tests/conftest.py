"""What holds for every test."""

from __future__ import annotations

import atexit
import gc
import os
import shutil
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from itertools import groupby, islice
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import settings

from tests.thorough import THOROUGH
from unmask.files import user_cache_folder

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# A shell without job control starts what it puts in the background with interrupts ignored, and every process of a test
# would inherit that. A caught signal becomes the default one again when a program is started.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# The matrices of the tests are small, and several tests run at once: threads of numpy and llama.cpp would mostly wait
# for each other, at full speed. Read when these are loaded, also in the processes that tests start.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("UNMASK_EMBEDDED_THREADS", "1")

# What judges said about *yes* is kept in the cache folder, where tests would take it over from each other and from your
# own runs. Models that were pulled stay where they are.
CACHE = Path(tempfile.mkdtemp(prefix="unmask-cache-"))
atexit.register(shutil.rmtree, CACHE, ignore_errors=True)
(models := user_cache_folder() / "models").mkdir(parents=True, exist_ok=True)
(CACHE / "models").symlink_to(models.resolve())
os.environ["UNMASK_CACHE"] = str(CACHE)

# Each process imports every test and all that they use. What is imported stays: looking through it for garbage again
# and again, at first while it grows and later in each test, would take a twentieth of the time of a run.
gc.disable()

# No test depends on how quick the machine is. A thorough run looks thirty times as long for a failure.
settings.register_profile("usual", deadline=None, max_examples=30)
settings.register_profile("thorough", deadline=None, max_examples=1000)
settings.load_profile("thorough" if THOROUGH else "usual")


EARLY = (
    *("e2e/test_first_minutes", "faults/test_waiting", "models/local/test_hf"),
    *(
        "viewer/test_every_page",
        "demo/test_demo",
        "whitebox/test_steer",
        "engine/test_batches",
        "cli/test_doctor",
    ),
    *("browser", "faults", "sweep", "models/local/test_embedded", "viewer", "render/test_report", "e2e"),
)
"""Where the longest tests stand, and then those that mostly wait."""


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """What takes or waits long comes first: begun last it would keep one process busy while the others are done."""
    named = [(item.nodeid.removeprefix("tests/"), item) for item in items]
    early = [[item for name, item in named if name.startswith(beginning)] for beginning in EARLY]
    files = [list(tests) for group in early for _, tests in groupby(group, key=lambda item: item.path)]
    first = list(dict.fromkeys(item for tests in files for item in tests))
    come_first = set(first)
    later = iter([item for _, item in named if item not in come_first])
    worker = getattr(config, "workerinput", {})
    if "worksteal" not in worker.get("mainargv", ()):
        items[:] = [*first, *later]
        return
    # Each process gets an equal part of the list. Half of the parts begin with what takes or waits long, so that the
    # other half has work for the cores meanwhile.
    dealt: list[list[pytest.Item]] = [[] for _ in range(worker["workercount"])]
    long = dealt[len(dealt) // 2 :]
    seen: set[pytest.Item] = set()
    for number, tests in enumerate(files):
        long[number % len(long)] += [item for item in tests if item not in seen]
        seen.update(tests)
    left = len(items)
    for number, part in enumerate(dealt):
        part.extend(islice(later, max(0, left // (len(dealt) - number) - len(part))))
        left -= len(part)
    items[:] = [*(item for part in dealt for item in part), *later]


WITH_BROWSER: set[Path] = set()
"""Files with a test that looks at pages in a browser."""


def pytest_collection_finish(session: pytest.Session) -> None:
    """From now on garbage is looked for, among what the tests themselves make. Seldom: a test makes little of it, and
    looking after each 700 new objects took a fourteenth of the time of tests that start no process."""
    WITH_BROWSER.update(item.path for item in session.items if "browser" in getattr(item, "fixturenames", ()))
    gc.freeze()
    gc.set_threshold(50_000, 20, 20)
    gc.enable()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A real Chromium. One process of tests starts it once for all files that follow each other."""
    from tests.browser.chromium import shared_browser

    with shared_browser() as found:
        yield found


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    """A browser that waits for its next use does not wait for files that need none: they may run event loops."""
    if item.path not in WITH_BROWSER:
        _close_waiting_browser()


def pytest_sessionfinish() -> None:
    _close_waiting_browser()


def _close_waiting_browser() -> None:
    module = sys.modules.get("tests.browser.chromium")
    if module is not None:
        module.close_waiting()


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line for each reason why tests were skipped, however many files they stand in."""
    reasons = Counter(str(report.longrepr[2]) for report in terminalreporter.stats.get("skipped", ()))
    for reason, tests in reasons.most_common():
        terminalreporter.write_line(f"{tests} skipped: {reason.removeprefix('Skipped: ')}")
