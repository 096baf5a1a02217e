"""What a test needs of the machine besides Python: a browser, a pseudo-terminal, the right to mount.

Where it is missing the test is skipped, with one line that says how to get it: `make test` promises to need nothing but
Python and make. `.ci/run` sets UNMASK_SKIP_NOTHING, and then the same line is a failure.
"""

from __future__ import annotations

import os
from typing import NoReturn

import pytest


def give_up(what: str, *, advice: str) -> NoReturn:
    """Skip the test that called this, or fail it where nothing may be skipped."""
    reason = f"this machine has no {what}. {advice}"
    if os.environ.get("UNMASK_SKIP_NOTHING"):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)
