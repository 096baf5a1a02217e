"""Rates, their Wilson interval and their worst-case bounds."""

from __future__ import annotations

import subprocess
import sys

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.outcomes import rate
from unmask.stats.rate import wilson_interval

TOTALS = st.integers(1, 500)


@st.composite
def counts(draw: st.DrawFn) -> tuple[int, int]:
    total = draw(TOTALS)
    return draw(st.integers(0, total)), total


@given(counts())
def test_the_interval_is_scipys_wilson_interval(counted):
    """The closed form against the library."""
    from scipy.stats import binomtest

    hits, total = counted
    theirs = binomtest(hits, total).proportion_ci(method="wilson")
    assert wilson_interval(hits, total) == pytest.approx((theirs.low, theirs.high), abs=1e-12)


def test_worst_case_bounds_count_the_unjudged_as_none_and_as_all_of_them():
    """10 of 80 with 20 unjudged: between 10 and 30 of 100."""
    found = rate(10, 80, unjudged=20)
    assert (found.worst_low, found.worst_high) == (0.1, 0.3)


def test_a_rate_of_nothing_has_no_value():
    """Unknown is null, not 0."""
    found = msgspec.to_builtins(rate(0, 0))
    assert found == {
        "hits": 0,
        "total": 0,
        "value": None,
        "low": None,
        "high": None,
        "worst_low": None,
        "worst_high": None,
        "unjudged": 0,
        "few": True,
    }


@pytest.mark.parametrize(
    ("found", "printed"),
    [
        (rate(377, 962, unjudged=38), "39.2 % [36.2, 42.3] of 962; 38 unjudged"),
        (rate(377, 962), "39.2 % [36.2, 42.3] of 962"),
        (rate(0, 0, unjudged=4), "n/a of 0; 4 unjudged"),
        (rate(5, 5), "100.0 % [56.6, 100.0] of 5"),
    ],
)
def test_a_rate_prints_with_interval_denominator_and_what_was_left_out(found, printed):
    """One line that cannot be misread."""
    assert str(found) == printed


def test_scoring_does_not_load_scipy():
    """It takes most of a second to import, and no measure needs it."""
    code = "import sys, unmask.scoring.score; sys.exit('scipy' in sys.modules or 'numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
