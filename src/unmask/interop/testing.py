"""The fixture `unmask_gate`. pytest loads this module where unmask is installed, so it imports nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable

    from unmask.analysis.gate import Gate
    from unmask.runs.run import Run


@pytest.fixture
def unmask_gate(record_property: Any) -> Callable[..., Gate]:
    """`unmask.gate`, which fails the test unless every limit is kept: `unmask_gate("runs/new", max_p_lie=0.3)`. P(lie)
    goes into pytest's JUnit file."""

    def check(run: Run | str | Path, **settings: Any) -> Gate:
        from unmask.analysis.gate import gate

        found = gate(run, **settings)
        record_property("unmask P(lie)", str(found.p_lie))
        if not found.passed:
            pytest.fail(str(found), pytrace=False)
        return found

    return check
