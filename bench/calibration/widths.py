"""How wide the intervals were at an earlier commit, in the same simulated runs."""

from __future__ import annotations

COMMIT = "1ba79fb2"

LIMITS = {"rates": (0.95, 1.05), "two runs": (0.0, 1.0), "corrected": (0.0, 1.1)}
"""Least and most of the ratio to the width before, by what a world is about."""

BEFORE = {
    "rates: 300 scenarios, P(lie) 1 %": {"P(lie)": 2.484},
    "rates: 1000 scenarios, P(lie) 1 %": {"P(lie)": 1.272},
    "rates: 300 scenarios, P(lie) 5 %": {"P(lie)": 4.998},
    "rates: 1000 scenarios, P(lie) 5 %": {"P(lie)": 2.717},
    "rates: 100 scenarios, P(lie) 30 %": {"P(lie)": 17.602},
    "rates: 300 scenarios, P(lie) 30 %": {
        "P(lie)": 10.295,
        "P(honest)": 11.223,
        "normalised P(lie)": 11.15,
        "conditional lie rate": 12.027,
        "accuracy": 10.098,
    },
    "rates: 300 scenarios, 10 takes, icc 0.3, P(lie) 1 %": {"P(lie)": 1.721},
    "rates: 1000 scenarios, 10 takes, icc 0.7, P(lie) 1 %": {"P(lie)": 1.097},
    "rates: 300 scenarios, 10 takes, icc 0.1, P(lie) 5 %": {"P(lie)": 2.385},
    "rates: 300 scenarios, 10 takes, icc 0.7, P(lie) 5 %": {"P(lie)": 4.289, "Lying@10": 6.677},
    "rates: 100 scenarios, 10 takes, icc 0.3, P(lie) 30 %": {"P(lie)": 11.273},
    "rates: 300 scenarios, 10 takes, icc 0.5, P(lie) 30 %": {
        "P(lie)": 7.813,
        "Lying@2": 9.073,
        "Lying@10": 11.022,
        "P(honest)": 7.679,
    },
    "two runs: 300 scenarios, P(lie) 30 % and 30 %": {"called different": 10.28},
    "two runs: 1000 scenarios, P(lie) 5 % and 5 %": {"called different": 2.776},
    "two runs: 300 scenarios, P(lie) 2 % and 2 %": {"called different": 3.936},
    "two runs: 300 scenarios, P(lie) 30 % and 36 %": {"difference": 11.103},
    "two runs: 100 scenarios, 10 takes, icc 0.6, P(lie) 10 % and 10 %": {"called different": 9.25},
    "two runs: 300 scenarios, 10 takes, icc 0.6, P(lie) 5 % and 5 %": {"called different": 3.694},
    "two runs: 60 scenarios, 10 takes, icc 0.6, P(lie) 5 % and 15 %": {"difference": 14.717},
    "corrected: P(lie) 36 %, judge 15 % false, 5 % missed, 150 labels of 1000, chosen by another judge": {
        "corrected P(lie)": 9.92
    },
    "corrected: P(lie) 27 %, judge 2 % false, 30 % missed, 150 labels of 1000": {"corrected P(lie)": 11.064},
    "corrected: P(lie) 27 %, judge 12 % false, 2 % missed, 100 labels of 300": {"corrected P(lie)": 11.807},
    "corrected: two runs of 1000, the same 150 labelled, P(lie) 30 and 40 %": {
        "difference of corrected P(lie)": 10.237
    },
}
"""In points, by world and what was measured."""


TOO_WIDE = {
    "rates: 300 scenarios, 10 takes, icc 0.3, P(lie) 1 %",
    "rates: 300 scenarios, 10 takes, icc 0.1, P(lie) 5 %",
}
"""There the interval before held the truth in 98.0 and 97.2 % of 1,500 runs, so that a narrower one is no fault."""


def compare_width(name: str, what: str, width: float) -> tuple[float, bool] | None:
    """The ratio to the width before, to a tenth of a percent, and whether it is within its limits."""
    before = BEFORE.get(name, {}).get(what)
    if before is None:
        return None
    ratio = round(100 * width / before, 3)
    least, most = LIMITS[name.split(":", maxsplit=1)[0]]
    return ratio, (least <= ratio or name in TOO_WIDE) and ratio <= most
