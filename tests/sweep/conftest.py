from __future__ import annotations

from collections.abc import Iterator

import pytest

from bench.process import Served, serving
from tests.sweep.sweeping import SCENARIOS


@pytest.fixture(scope="session")
def _endpoint() -> Iterator[Served]:
    with serving(scenarios=SCENARIOS, latency=0.01, profile="steady") as served:
        yield served


@pytest.fixture
def endpoint(_endpoint: Served) -> Served:
    """A planted endpoint that has counted nothing yet."""
    _endpoint.reset()
    return _endpoint


@pytest.fixture(scope="session")
def _slow_endpoint() -> Iterator[Served]:
    with serving(scenarios=SCENARIOS, latency=0.05, profile="steady") as served:
        yield served


@pytest.fixture
def slow_endpoint(_slow_endpoint: Served) -> Served:
    """The same, so slow that something can be taken away in the middle."""
    _slow_endpoint.reset()
    return _slow_endpoint
