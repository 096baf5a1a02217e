"""The calibration bench: it plants what it says, counts right, and writes its page."""

from __future__ import annotations

import numpy as np
import pytest

from bench.calibration import __main__ as command
from bench.calibration import comparisons, looks, page
from bench.calibration.found import AGAIN, Finding, Kind, Seen, Setting, covers, measure_twice, measured, repeat_close
from bench.calibration.judges import _Joint
from bench.calibration.kept import Kept, read_kept, write_kept
from bench.calibration.worlds import World, outcomes, paired
from tests.thorough import draw_part
from unmask.protocol.measures import measure
from unmask.records import Verdict
from unmask.stats.compare import mcnemar_score


def rng(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def test_a_world_is_what_it_says():
    """Over many scenarios the rates and Lying@k come out as planted."""
    world = World(lie=0.3, icc=0.5)
    found = measure(outcomes(world, 20_000, rng(), takes=4), takes=4)
    for k in (1, 2, 4):
        assert found.lying_at[k].value == pytest.approx(world.lying_at(k), abs=0.015)
    assert found.per_take[Verdict.HONEST].value == pytest.approx(world.p_honest, abs=0.015)


@pytest.mark.parametrize("takes", [1, 5])
def test_paired_runs_have_their_rates(takes):
    """And resemble each other."""
    a, b = paired(0.3, 0.4, 0.5, 20_000, rng(1), takes=takes)
    assert (a.mean(), b.mean()) == (pytest.approx(0.3, abs=0.015), pytest.approx(0.4, abs=0.015))
    assert np.corrcoef(a, b)[0, 1] > 0.25


def test_planted_agreement_is_what_it_says():
    """The truth of kappa and its like follows from the chances of the cells."""
    joint = _Joint.of(0.86)
    assert joint.cells.sum() == pytest.approx(1)
    assert joint.truths()["agreement"] == pytest.approx(0.86)


def test_a_setting_can_be_repeated():
    """The same seed gives the same findings; another gives others."""
    setting = Setting("coin", lambda r: [Seen("heads", Kind.FALSE_POSITIVE, float(r.random() < 0.5))])
    one, two, three = ([*measured(setting, runs=200, seed=seed)] for seed in (1, 1, 2))
    assert one == two
    assert one != three


@pytest.mark.parametrize(
    ("kind", "value", "met"),
    [
        (Kind.COVERAGE, 0.95, True),
        (Kind.COVERAGE, 0.93, False),
        (Kind.COVERAGE, 0.98, False),
        (Kind.AT_LEAST, 0.99, True),
        (Kind.FALSE_POSITIVE, 0.056, False),
        (Kind.BIAS, -0.002, True),
        (Kind.BIAS, 0.004, False),
        (Kind.REFERENCE, 0.5, None),
    ],
)
def test_goals(kind, value, met):
    """As bench/results/calibration.md names them."""
    assert Finding("s", "w", kind, value, value, value, 1000).met is met


def test_an_interval_that_is_missing_is_an_error():
    """It must not count as one that holds."""
    with pytest.raises(ValueError, match="no interval"):
        covers("x", (None, 0.5), 0.2)


def test_every_setting_runs():
    """Twice each; every interval exists and nothing fails."""
    for setting in draw_part(command.settings(), 6):
        found = list(measured(setting, runs=2, seed=3))
        assert found
        assert {one.runs for one in found} <= {0, 2}
        assert any(one.runs for one in found)


def coin(chance: float) -> Setting:
    exact = [Seen("heads, exactly", Kind.FALSE_POSITIVE, chance)]
    return Setting(
        "coin", lambda r: [Seen("heads", Kind.FALSE_POSITIVE, float(r.random() < chance))], exact=lambda: exact
    )


def test_what_is_close_to_a_limit_is_simulated_once_more_and_the_second_round_decides():
    """5 % heads in 400 throws cannot be told from the limit of 5.5 %; in a clear case there is no second round."""
    close, exact = measure_twice(coin(0.05), runs=400, seed=3)
    assert close.again is not None
    assert close.again.runs == AGAIN * close.runs
    assert close.again == next(measured(coin(0.05), runs=400, seed=4, times=AGAIN))
    assert (close._replace(value=0.2).met, close._replace(again=close.again._replace(value=0.2)).met) == (True, False)
    assert (exact.value, exact.runs, exact.close, exact.again) == (0.05, 0, False, None)
    assert all(one.again is None for one in measure_twice(coin(0.5), runs=400, seed=1))


def test_a_second_round_that_is_due_is_said():
    """Once it is there the first is not repeated."""
    due = list(measured(coin(0.05), runs=400, seed=3))
    assert "1 are close to a limit" in page.summary(due)
    assert "yes, but close" in list(page.body(due, page.Made(400, 3, "1.0.0.dev0")))[-2]
    assert repeat_close(coin(0.05), due, runs=400, seed=3) == measure_twice(coin(0.05), runs=400, seed=3)


def test_the_page_shows_both_rounds_and_what_is_exact():
    again = Finding("coin", "heads", Kind.FALSE_POSITIVE, 0.05, 0.048, 0.052, 8000)
    first = Finding("coin", "heads", Kind.FALSE_POSITIVE, 0.065, 0.055, 0.076, 2000, again)
    exact = Finding("coin", "heads, exactly", Kind.FALSE_POSITIVE, 0.0504, 0.0504, 0.0504, 0)
    rows = list(page.body([first, exact], page.Made(2000, 1, "1.0.0.dev0")))[-3:]
    assert rows == [
        "| coin (2000 runs) | heads: false positives | 6.5 % | 5.5 to 7.6 | at most 5.5 % | close |",
        "|  | again, 8000 runs | 5.0 % | 4.8 to 5.2 | at most 5.5 % | yes |",
        "|  | heads, exactly: false positives | 5.0 % | exact | at most 5.5 % | yes |",
    ]


def test_results_are_kept_as_they_are(tmp_path):
    """One line to a setting, the second round included."""
    results = {name: Kept(400, 1, "1.0.0.dev0", measure_twice(coin(0.05), runs=400, seed=3)) for name in ("a", "b")}
    write_kept(results, tmp_path / "kept.json")
    assert read_kept(tmp_path / "kept.json") == results
    assert len((tmp_path / "kept.json").read_text(encoding="utf-8").splitlines()) == 4


def test_the_page_is_that_of_the_results_which_are_kept():
    """Nobody wrote into the table by hand."""
    kept = read_kept()
    named = [setting.name for setting in command.settings() if setting.name in kept]
    findings = [finding for name in named for finding in kept[name].findings]
    rows = [line for line in page.body(findings, page.Made(2000, 1, "1.0.0.dev0")) if line.startswith("|")]
    assert "\n".join(rows) in (page.RESULTS / "calibration.md").read_text(encoding="utf-8")


def test_exact_chances_to_pass_are_those_of_simulated_histories():
    """Limit 0.3, half of it true: the mean number of scenarios, and how many histories at the limit ever pass."""
    generator = rng(4)
    stops = [looks._first_pass(0.15, 0.3, generator) or looks.SCENARIOS for _ in range(200)]
    error = np.std(stops) / 200**0.5
    passes = looks._chances_to_pass(0.15, 0.3)
    exact = passes @ np.arange(1, looks.SCENARIOS + 1) + (1 - passes.sum()) * looks.SCENARIOS
    assert abs(np.mean(stops) - exact) < 3.5 * error
    passed = sum(looks._first_pass(0.3, 0.3, generator) is not None for _ in range(100))
    assert abs(passed / 100 - looks._chances_to_pass(0.3, 0.3).sum()) < 0.04


def test_the_exact_level_of_compare_is_that_of_simulated_runs():
    (exact,) = comparisons._mcnemar_level(0.3, 60)
    generator = rng(5)
    wrong = []
    for _ in range(2000):
        a, b = paired(0.3, 0.3, comparisons.CORRELATION, 60, generator)
        wrong.append(mcnemar_score(int((a > b).sum()), int((b > a).sum())) < 0.05)
    assert abs(np.mean(wrong) - exact.value) < 0.018


def test_slow_settings_still_have_a_thousand_runs():
    """Half as many as the others, but never fewer than the issue asks for."""
    slow = Setting("s", lambda _: [], slow=True)
    assert [slow.count(runs) for runs in (10, 1000, 1500, 4000)] == [10, 1000, 1000, 2000]


def test_the_page_is_written_between_its_marks(tmp_path):
    """Text around the marks stays; the figure lies beside the page."""
    (tmp_path / "calibration.md").write_text(f"before\n{page.BEGIN}\nold\n{page.END}\nafter\n", encoding="utf-8")
    findings = [
        Finding("a world", "P(lie)", Kind.COVERAGE, 0.95, 0.94, 0.96, 1000),
        Finding("a world", "corrected", Kind.BIAS, 0.001, 0.0, 0.002, 1000),
    ]
    page.write(findings, page.Made(1000, 1, "1.0.0.dev0"), folder=tmp_path)
    text = (tmp_path / "calibration.md").read_text(encoding="utf-8")
    assert text.startswith("before\n")
    assert text.endswith("after\n")
    assert "old" not in text
    assert "| a world (1000 runs) | P(lie) | 95.0 % | 94.0 to 96.0 | 93.5 to 97.5 % | yes |" in text
    assert "All 2 goals are met." in text
    assert (tmp_path / page.FIGURE).read_text(encoding="utf-8").lstrip().startswith("<?xml")


def test_the_command_checks_goals(capsys):
    """Two runs cannot meet a goal of 93.5 to 97.5 %: exit code 1, and nothing is written."""
    assert command.main(["--runs", "2", "--only", "one take, 100", "--check"]) == 1
    assert "goals are met" in capsys.readouterr().out
