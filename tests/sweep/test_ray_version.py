"""Which versions of Ray a sweep takes. Ray itself is not needed: a stand-in says which version it is."""

from __future__ import annotations

import sys
from types import SimpleNamespace

import pytest

from unmask.errors import MissingError
from unmask.sweep.servers.ray import RayPool


@pytest.fixture
def started(monkeypatch) -> list[str]:
    """The addresses at which the stand-in was started."""
    found: list[str] = []
    for name in ("RAY_AUTH_MODE", "RAY_USAGE_STATS_ENABLED", "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"):
        monkeypatch.setenv(name, "kept")
    ray = SimpleNamespace(__version__="", init=lambda *, address, **_: found.append(address))
    monkeypatch.setitem(sys.modules, "ray", ray)
    return found


@pytest.mark.parametrize("version", ["2.9.3", "2.50.0", "2.51.2", "1.13.0", "unknown"])
def test_a_ray_that_cannot_ask_for_a_token_is_refused_before_it_is_started(started, version):
    """It would run the code of everybody who reaches its ports."""
    sys.modules["ray"].__version__ = version
    with pytest.raises(MissingError, match=rf"needs Ray 2\.52 or later.*; {version} is installed") as refused:
        RayPool()
    assert "pip install --upgrade 'unmask[ray]'" in refused.value.advice
    assert started == []


@pytest.mark.parametrize("version", ["2.52.0", "2.60.0", "2.100.1", "3.0.0.dev0"])
def test_a_ray_that_can_ask_for_a_token_is_started(started, version):
    sys.modules["ray"].__version__ = version
    RayPool()
    assert started == ["local"]
