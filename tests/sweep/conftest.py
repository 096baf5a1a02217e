from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.process import Served, serving
from tests.faults import served
from tests.sweep.sweeping import SCENARIOS


@pytest.fixture(scope="session")
def _endpoint() -> Iterator[Served]:
    with serving(scenarios=SCENARIOS, latency=0.01, profile="steady") as endpoint:
        yield endpoint


@pytest.fixture
def endpoint(_endpoint: Served) -> Served:
    """A planted endpoint that has counted nothing yet."""
    _endpoint.reset()
    return _endpoint


@pytest.fixture
def slow_endpoint() -> Iterator[served.Served]:
    """So slow that something can be taken away in the middle. It is in the process of the test: where that has to wait
    for a busy machine, the sweep waits too, and does not end before the test takes something away."""
    with served.serving(SCENARIOS, latency=0.05, profile="steady") as endpoint:
        yield endpoint
