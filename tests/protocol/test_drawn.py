"""Random scenarios with unread readings, figures among them, against the oracle."""

from __future__ import annotations

from bench.drawn import find_differences
from tests.thorough import THOROUGH


def test_random_scenarios_have_the_verdicts_of_the_oracle():
    """Verdict, accuracy and the verdict of each take, under every preset, whatever was not read."""
    assert not list(find_differences(60_000 if THOROUGH else 1_500))
