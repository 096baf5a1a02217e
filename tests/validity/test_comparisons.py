"""Defects of comparisons and plans: treatments (D7), power of takes (D9), few models (D13), the unjudged (V10)."""

from __future__ import annotations

import re
from functools import partial

import numpy as np
import pytest

from tests.made_runs import made
from tests.shown import show
from tests.thorough import THOROUGH
from unmask.analysis.compare import compare
from unmask.analysis.gate import gate
from unmask.analysis.mitigation import correct_together, report_mitigations
from unmask.records import Accuracy, Letter, Outcome, Verdict
from unmask.render.blocks import to_html
from unmask.render.describe.compare import describe_comparison
from unmask.scoring.measures import Where, list_measures, list_values
from unmask.stats.effect import Effect, Fluent, Move, classify_effect, classify_move
from unmask.stats.family import depends_on_unjudged, is_significant
from unmask.stats.values import compare_values

TAKES = {
    Verdict.HONEST: Accuracy.CORRECT,
    Verdict.LIE: Accuracy.CORRECT,
    Verdict.EVASION: Accuracy.CORRECT,
    Verdict.NO_BELIEF: Accuracy.NO_BELIEF,
}
SHARES = (0.5, 0.16, 0.14, 0.2)


def test_d07_treatments_that_do_nothing_seldom_get_a_name():
    """Eight of them in a report: chance names one in at most one report of twenty; no interval contradicts a name."""
    names, rng = list_measures(Where.MITIGATION), np.random.default_rng(4)
    outcomes = [
        Outcome(id="", archetype="known_facts", kind="binary", verdicts=(verdict,), verdict=verdict, accuracy=accuracy)
        for verdict, accuracy in TAKES.items()
    ]

    def values(drawn, name):
        return list_values([outcomes[place] for place in drawn], name, takes=1)

    def test(base, arm, name, level):
        return compare_values(values(base, name), values(arm, name), level=level)

    named = 0
    for _ in range(count := 40 if THOROUGH else 20):
        base = rng.choice(4, size=300, p=SHARES)
        arms = [np.where(rng.random(300) < 0.2, rng.choice(4, size=300, p=SHARES), base) for _ in range(8)]
        found = correct_together([partial(test, base, arm, name) for arm in arms for name in names])
        effects = [
            classify_effect(
                dict(zip(names, map(classify_move, found[place : place + 6]), strict=True)), Fluent.NOT_MEASURED
            )
            for place in range(0, len(found), 6)
        ]
        named += any(effect is not Effect.NO_EFFECT for effect in effects)
        assert all((one.low > 0 or one.high < 0) == (one.p_adjusted < 0.05) for one in found)
    assert named <= 0.05 * count


def test_d07_a_report_names_by_the_corrected_p_value_and_shows_its_interval(tmp_path):
    """Four lost beliefs of 28 are no cost once six measures were tested, and the interval says so too."""
    base = made(tmp_path / "base", ["honest"] * 42)
    asked = [place for place in range(42) if place % 3 != 1]  # the scenarios that ask for a belief
    treated = made(tmp_path / "t", ["no_belief" if place in asked[:4] else "honest" for place in range(42)])
    found = report_mitigations([base, treated]).treated[0]
    belief = found.measures["belief"]
    assert belief.value == pytest.approx(-4 / 42)
    assert belief.p_value < 0.05 < belief.p_adjusted
    assert (found.effect, found.moves["belief"]) == (Effect.NO_EFFECT, Move.FLAT)
    assert belief.low < 0 < belief.high


def test_d07_colours_follow_the_corrected_p_value(tmp_path):
    """A difference that only looks large before the correction has no colour, on the page or in the terminal."""
    runs = [
        made(tmp_path / name, plan) for name, plan in (("a", ["honest"] * 30), ("b", ["lie"] * 6 + ["honest"] * 24))
    ]
    page = to_html(describe_comparison(compare(runs)), draw=True)
    archetypes = re.findall(r'<th scope="row" class="sub">.*?</tr>', page)
    assert [("f-muted" in row, "f-lie" in row) for row in archetypes] == [(True, False)] * 3
    assert 'class="f-lie"' in page
    rows = {line.split()[0]: line for line in show(compare(runs), width=120, color=True).splitlines() if line.strip()}
    first = next(line for line in rows.values() if "P(lie)" in line and "0.014" in line)
    assert "\x1b[31m" in first  # 6:0, p = 0.014 and one primary comparison: red
    assert not any("\x1b[31m" in line for name, line in rows.items() if "facts" in name)  # 2:0 in each archetype


def test_d09_several_takes_are_compared_and_gated_by_their_share_of_lies(tmp_path):
    """The comparison that `power` plans stands first, is tested without the others, and decides the gate."""
    one = made(tmp_path / "a", [("lie", "honest", "honest")] * 20 + ["honest"] * 10, takes=3)
    two = made(tmp_path / "b", [("lie", "lie", "lie")] * 20 + ["honest"] * 10, takes=3)
    pair = compare([one, two]).pairs[0]
    assert pair.difference.value == pytest.approx(40 / 90)
    assert pair.difference.p_adjusted == pair.difference.p_value
    assert "over 30 scenarios known in both: +44.4 points" in show(compare([one, two]), width=200)
    rise = gate(two, baseline=one, max_rise=0.2).checks[-1]
    assert (rise.name, rise.passed, rise.value) == ("rise of P(lie)", False, pair.difference.value)


def test_v10_equal_runs_are_not_called_different_by_what_is_not_judged():
    """P(lie) 10 % in both of 1,000 scenarios, 30 % of the second's lies and 0.5 % of the rest are not judged: 3.5 %,
    below the limit. By what was judged, more than a quarter of the pairs would differ by more than chance."""
    rng, runs = np.random.default_rng(10), 400 if THOROUGH else 150
    lie, honest, unread = (
        Outcome(
            id="",
            archetype="known_facts",
            kind="binary",
            verdicts=(verdict,),
            verdict=verdict,
            accuracy=Accuracy.CORRECT,
            belief=Letter.A,
        )
        for verdict in (Verdict.LIE, Verdict.HONEST, Verdict.UNJUDGED)
    )
    found = []
    for _ in range(runs):
        first, second = rng.random((2, 1000)) < 0.1
        gone = rng.random(1000) < np.where(second, 0.3, 0.005)
        a = [lie if one else honest for one in first]
        b = [unread if lost else lie if one else honest for one, lost in zip(second, gone, strict=True)]
        found.append(compare_values(*(list_values(rows, "p_lie", takes=1) for rows in (a, b))))
    assert sum(is_significant(one) for one in found) <= 0.055 * runs
    assert sum(depends_on_unjudged(one) for one in found) > 0.25 * runs
