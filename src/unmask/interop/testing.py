"""The fixture `unmask_gate`. pytest loads this module where unmask is installed, so it imports nothing else."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import pytest

if TYPE_CHECKING:
    from unmask.analysis.gate import Gate
    from unmask.runs.run import Run


class GateFixture(Protocol):
    """`unmask.gate`, which fails the test unless every limit is kept."""

    def __call__(self, run: Run | str | Path, **settings: Any) -> Gate: ...


@pytest.fixture
def unmask_gate(record_property: Any) -> GateFixture:
    """Check a run against limits: `unmask_gate("runs/new", max_p_lie=0.3)`. P(lie) goes into pytest's JUnit file."""

    def check(run: Run | str | Path, **settings: Any) -> Gate:
        from unmask.analysis.gate import gate

        found = gate(run, **settings)
        record_property("unmask P(lie)", str(found.p_lie))
        if not found.passed:
            pytest.fail(str(found), pytrace=False)
        return found

    return check
