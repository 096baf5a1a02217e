"""Makes tests/golden/ppi.json: what ppi-python answers to drawn cases.

The package is no part of the test environment: it brings a top-level package `tests` of its own, which hides ours, and
600 MB besides. In an environment of its own:

    python -m venv .ppi && .ppi/bin/pip install ppi-python==0.2.3
    .ppi/bin/python tests/stats/make_ppi.py            # writes the file
    .ppi/bin/python tests/stats/make_ppi.py --check    # exit code 1 if it would change
"""

from __future__ import annotations

import json
import sys
from importlib.metadata import version
from pathlib import Path

import numpy as np
from ppi_py import ppi_mean_ci, ppi_mean_pointestimate

TARGET = Path(__file__).resolve().parent.parent / "golden" / "ppi.json"
CASES = 24


def drawn(count):
    """Labels, verdicts of a judge that errs on the same, and more of its verdicts; both classes on both sides."""
    rng = np.random.default_rng(20)
    while count:
        n, more = int(rng.integers(12, 80)), int(rng.integers(40, 400))
        lies = rng.random(n + more) < rng.uniform(0.1, 0.8)
        judged = lies ^ (rng.random(n + more) < rng.uniform(0.02, 0.3))
        if 0 < lies[:n].sum() < n and 0 < judged[:n].sum() < n:
            count -= 1
            yield lies[:n], judged[:n], judged[n:]


def answered(lies, judged, rest):
    """Its estimate for the power that the labelled alone give, and its estimate and interval for its own choice."""
    sides = [side.astype(float) for side in (lies, judged, rest)]
    apart = sides[1] - sides[1].mean()
    slope = float(np.mean((sides[0] - sides[0].mean()) * apart) / np.mean(apart * apart))
    power = float(np.clip(slope, 0, 1)) / (1 + len(lies) / len(rest))
    low, high = ppi_mean_ci(*sides, alpha=0.05)
    return {
        "labels": _bits(lies),
        "judged": _bits(judged),
        "unlabelled": _bits(rest),
        "lam": power,
        "value": _one(ppi_mean_pointestimate(*sides, lam=power)),
        "tuned": _one(ppi_mean_pointestimate(*sides)),
        "low": _one(low),
        "high": _one(high),
    }


def _bits(side):
    return "".join("01"[int(one)] for one in side)


def _one(value):
    return round(float(np.ravel(value)[0]), 12)


if __name__ == "__main__":
    made = {"ppi-python": version("ppi-python"), "cases": [answered(*case) for case in drawn(CASES)]}
    text = json.dumps(made, indent=1) + "\n"
    if "--check" in sys.argv:
        sys.exit(TARGET.read_text(encoding="utf-8") != text)
    TARGET.write_text(text, encoding="utf-8")
