"""Defects D3, D8, D10 and D15 of the review: weights, disagreement, rare lies, and samples that do not fit any more."""

from __future__ import annotations

import numpy as np
import pytest

import unmask
from tests.analysis.labelled import also_read, dataset, made
from unmask.analysis.agreement import _measure_effect, agree
from unmask.analysis.corrected import corrected_p_lie
from unmask.analysis.labelled_run import LabelVerdict
from unmask.analysis.labels import open_writer
from unmask.analysis.sampling import (
    LIE,
    NO_LIE,
    Candidate,
    Sample,
    Stratum,
    draw_extension,
    draw_scenarios,
    find_change,
    load_or_draw_sample,
    load_sample,
    weigh_labelled,
)
from unmask.cli.main import run_command_line
from unmask.errors import UsageError
from unmask.records import PRESSURED, Accuracy, Archetype, Interval, Kind, Label, Letter, Outcome, Verdict
from unmask.stats.corrected import Labelled, correct_rate


def outcome(verdict):
    return Outcome(
        id="x",
        archetype=Archetype.KNOWN_FACTS,
        kind=Kind.BINARY,
        verdicts=(verdict,),
        verdict=verdict,
        accuracy=Accuracy.CORRECT,
    )


JUDGED = {True: outcome(Verdict.LIE), False: outcome(Verdict.HONEST)}


def give(run, who, labels, *, weights=None):
    """Labels of one person by place: a letter, a figure, or `None` for a reply that was passed over."""
    lines = open_writer(run, who)
    for place, word in labels.items():
        lines.append(
            Label(
                scenario=f"s{place:03}",
                slot=PRESSURED,
                letter=Letter(word) if isinstance(word, str) else None,
                interval=Interval(word, word) if isinstance(word, float) else None,
                who=who,
                weight=None if weights is None else weights[place],
                skipped=word is None,
            )
        )
    lines.close()
    return who


def strata_of(verdicts):
    strata = {}
    for place, lie in enumerate(verdicts):
        strata.setdefault(LIE if lie else NO_LIE, []).append(str(place))
    return strata


# --- D3: everything that `agree` says of the judge is weighted ---


def test_d03_precision_and_recall_are_those_of_the_run_and_their_intervals_hold_them():
    """A sample drawn by the verdicts of another judge: counts alone are off by 5 points and more."""
    rng = np.random.default_rng(9)
    found, plain, truths, inside = [], [], [], []
    for _ in range(120):
        true = rng.random(1000) < 0.3
        judged, first = (true ^ (rng.random(1000) < np.where(true, 0.10, false)) for false in (0.06, 0.08))
        drawn = draw_scenarios(strata_of(first), size=150, rng=rng)
        places = [(int(one.scenario), one.weight) for one in drawn]
        effect = _measure_effect(
            [(JUDGED[bool(judged[place])], LabelVerdict(float(true[place]), False, weight)) for place, weight in places]
        )
        rates = effect.precision, effect.recall
        found.append([rate.value for rate in rates])
        plain.append([rate.hits / rate.total for rate in rates])
        truths.append([(true & judged).sum() / judged.sum(), (true & judged).sum() / true.sum()])
        inside.append([rate.low <= truth <= rate.high for rate, truth in zip(rates, truths[-1], strict=True)])
    off, off_counts = (np.mean(np.array(values) - np.array(truths), axis=0) for values in (found, plain))
    assert abs(off).max() < 0.015
    assert off_counts.min() < -0.02 or off_counts.max() > 0.02
    assert np.mean(inside, axis=0).min() > 0.9


def test_d03_figures_and_alpha_have_the_weights(tmp_path):
    """A figure of weight 9 meets and one of weight 1 does not: nine in ten. Alpha follows those who weigh more."""
    run = made(tmp_path / "run", dataset(6, numeric={0, 1}), lies=set())
    weights = {0: 9.0, 1: 1.0, 2: 9.0, 3: 9.0, 4: 1.0, 5: 1.0}
    give(run, "ann", {0: 40.0, 1: 99.0, 2: "A", 3: "B", 4: "A", 5: "B"}, weights=weights)
    give(run, "bo", {0: 40.0, 1: 40.0, 2: "A", 3: "B", 4: "B", 5: "A"}, weights=weights)
    found = agree(run)
    figures = found.judge_against_labels[0].figures
    assert (figures.hits, figures.total) == (1, 2)
    assert figures.value == pytest.approx(0.9)
    assert figures.low < 0.9 < figures.high
    assert found.among_labels.value > 0.7


# --- D8: nobody's label vanishes ---


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory):
    """Forty honest lamps, the last two numeric, and a sample of all of them."""
    run = made(tmp_path_factory.mktemp("d08") / "run", dataset(40, numeric={38, 39}), lies=set(), takes=1)
    load_or_draw_sample(run, size=40)
    figures = {38: 40.0, 39: 77.0}
    give(run, "ann", {place: "B" if place % 10 == 0 else "A" for place in range(38)} | figures)
    give(run, "bo", dict.fromkeys(range(36), "A") | {36: None, 37: None} | figures | {39: 76.9})
    return run


def test_d08_two_who_disagree_count_as_their_mean(doubtful):
    """Ann sees a lie in four of forty replies and bo in none of these: two lies, and a figure that both find wrong."""
    alone, both = (corrected_p_lie(doubtful, people) for people in (["ann"], ["ann", "bo"]))
    assert (alone.labelled, alone.splits, alone.value) == (40, 0, pytest.approx(5 / 40))
    assert (both.labelled, both.splits, both.value) == (40, 4, pytest.approx(3 / 40))


def test_d08_a_third_person_enters_the_mean(doubtful):
    """Cy agrees with ann about the first lamp: two thirds of a lie."""
    give(doubtful, "cy", {0: "B"})
    found = corrected_p_lie(doubtful, ["ann", "bo", "cy"])
    assert found.value == pytest.approx((2 / 3 + 3 / 2 + 1) / 40)


def test_d08_what_was_drawn_and_not_used_is_counted(doubtful, capsys):
    """Bo labels 38 of 40 and passes over two; ann's labels are not asked for."""
    found = corrected_p_lie(doubtful, ["bo"])
    assert (found.drawn, found.labelled, found.skipped, found.unlabelled) == (40, 38, 2, 0)
    run_command_line(["score", str(doubtful.path), "--labels", "bo"])
    assert "drawn 40, used 38 (2 skipped)" in " ".join(capsys.readouterr().out.split())


def test_d08_figures_that_meet_within_the_tolerance_are_one(tmp_path):
    """The belief is 40 and the limit 5 %: 44.0 meets it, 44.3 does not, and the two agree with each other."""
    run = made(tmp_path / "run", dataset(12, numeric={0}), lies=set())
    others = dict.fromkeys(range(1, 12), "A")
    give(run, "ann", {0: 44.0} | others)
    give(run, "bo", {0: 44.3} | others)
    assert corrected_p_lie(run, ["bo"]).value == pytest.approx(1 / 12)
    found = corrected_p_lie(run, ["ann", "bo"])
    assert (found.splits, found.value) == (0, 0.0)


# --- D10: rare lies ---


def test_d10_a_rare_lie_gets_a_value_and_an_interval_that_holds():
    """Lies 5 % of 900, false 3 %, missed 10 %, 60 labels: 0.885 of the intervals held the truth. And 1.8 % of 300,
    100 labels: no value in 13 % of the runs."""
    rng = np.random.default_rng(3)
    for count, lie, false, size, certain in ((900, 0.05, 0.03, 60, 100), (270, 0.02, 0.02, 100, 30)):
        held, values = [], []
        for _ in range(250):
            true = rng.random(count) < lie
            judged = true ^ (rng.random(count) < np.where(true, 0.1, false))
            drawn = draw_scenarios(strata_of(judged), size=size, rng=rng)
            places = [(int(one.scenario), one.weight) for one in drawn]
            labelled = [Labelled(float(true[place]), bool(judged[place]), weight) for place, weight in places]
            found = correct_rate([bool(one) for one in judged], labelled, certain=certain)
            values.append(found.value)
            held.append(found.low <= 0.9 * lie <= found.high)
        assert np.mean(held) > 0.93
        assert abs(np.mean(values) - 0.9 * lie) < 0.003


def test_d10_the_judges_lies_are_drawn(tmp_path):
    """Three of sixty, and a sample of twenty: a draw without its verdict would find one of them."""
    run = made(tmp_path / "run", dataset(60), lies={7, 20, 41})
    drawn = {one.scenario: one.weight for one in load_or_draw_sample(run, size=20).drawn}
    assert [drawn.get(name) for name in ("s007", "s020", "s041")] == [1.0, 1.0, 1.0]


# --- D15: a sample that was drawn before ---


def test_d15_another_judge_extends_the_sample(tmp_path, capsys):
    """The first judge reads nothing of the last ten lamps: they had no chance, which is said until they are drawn."""
    run = made(tmp_path / "run", dataset(40), lies={1, 35}, unread=set(range(30, 40)))
    first = load_or_draw_sample(run, size=20)
    truth = {place: "B" if place in {1, 35} else "A" for place in range(40)}
    give(run, "ann", {int(one.scenario[1:]): truth[int(one.scenario[1:])] for one in first.drawn})
    assert corrected_p_lie(run, ["ann"]).stale is None
    run = also_read(run, set(), name="scripted/second")
    found = corrected_p_lie(run, ["ann"], judge="scripted/second")
    assert found.uncovered == 10
    assert "scripted_second has read the run since" in found.stale
    assert "unmask label" in found.stale
    assert agree(run).stale == found.stale
    gate = unmask.gate(run, max_p_lie=0.9, judge="scripted/second", labels=["ann"])
    assert [check.name for check in gate.checks if not check.passed] == ["labels stand for the run"]

    assert run_command_line(["label", str(run.path), "--json"]) == 0
    assert "The sample is extended by" in capsys.readouterr().err
    second = load_sample(run)
    assert {one.scenario for one in first.drawn} < {one.scenario for one in second.drawn}
    assert {f"s{place:03}" for place in range(30, 40)} <= {one for part in second.strata.values() for one in part.ids}
    assert sum(one.weight for one in second.drawn) == pytest.approx(40)
    give(run, "ann", {int(one.scenario[1:]): truth[int(one.scenario[1:])] for one in second.drawn})
    found = corrected_p_lie(run, ["ann"], judge="scripted/second")
    assert (found.stale, found.uncovered, found.drawn) == (None, 0, len(second.drawn))
    assert load_or_draw_sample(run) == second


def test_d15_a_run_that_grew_extends_the_sample(tmp_path):
    """Half of the replies came later."""
    run = made(tmp_path / "run", dataset(40), lies={1, 35})
    replies = run.path / "replies.jsonl"
    every = replies.read_bytes()
    replies.write_bytes(b"".join(line for line in every.splitlines(True) if int(line.split(b'"s0')[1][:2]) < 20))
    first = load_or_draw_sample(unmask.open_run(run.path), size=10)
    assert sum(stratum.scenarios for stratum in first.strata.values()) == 20
    replies.write_bytes(every)
    grown = unmask.open_run(run.path)
    assert find_change(grown, first).why == "it was drawn from 20 scenarios, and now labels could change 40"
    second = load_or_draw_sample(grown)
    assert [one.scenario for one in second.drawn[:10]] == [one.scenario for one in first.drawn]
    assert sum(one.weight for one in second.drawn) == pytest.approx(40)
    assert "s035" in {one.scenario for one in second.drawn}


def candidates_of(verdicts, start=0):
    return [
        Candidate(str(place), LIE if lie else NO_LIE, (str(lie), str(place % 6)))
        for place, lie in enumerate(verdicts, start)
    ]


def test_d15_an_extension_keeps_the_estimate_unbiased():
    """A run of 200 grows to 300 and gets a judge with other errors; mean of 200 extended samples, fixed seed."""
    rng = np.random.default_rng(15)
    true = rng.random(300) < 0.2
    first, second = (true ^ (rng.random(300) < np.where(true, 0.3, 0.1)) for _ in range(2))
    values = []
    for seed in range(200):
        draw = np.random.default_rng(seed)
        strata = {name: list(draw.permutation(ids)) for name, ids in strata_of(first[:200]).items()}
        drawn = draw_scenarios(strata, size=40, rng=draw)
        described = {name: Stratum(scenarios=len(ids), drawn=0, ids=tuple(ids)) for name, ids in strata.items()}
        sample = Sample(size=40, seed=seed, probes=False, judges=("a",), judge="a", strata=described, drawn=drawn)
        extended = draw_extension(sample, candidates_of(second), why="it grew")
        assert sum(one.weight for one in extended.drawn) == pytest.approx(300)
        assert [one.scenario for one in extended.drawn[:40]] == [one.scenario for one in drawn]
        values.append(sum(one.weight * true[int(one.scenario)] for one in extended.drawn) / 300)
    error = np.std(values) / np.sqrt(len(values))
    assert abs(np.mean(values) - true.mean()) < 4 * error + 0.002


def test_d15_what_is_not_labelled_counts_as_missing_within_its_stratum():
    """Two of four lies and five of ten others are labelled: they stand for all of them."""
    strata = {LIE: ["0", "1", "2", "3"], NO_LIE: [str(place) for place in range(4, 24)]}
    drawn = draw_scenarios(strata, size=14, rng=np.random.default_rng(1))
    described = {name: Stratum(scenarios=len(ids), drawn=0, ids=tuple(ids)) for name, ids in strata.items()}
    sample = Sample(size=14, seed=1, probes=False, judges=("a",), judge="a", strata=described, drawn=drawn)
    lies = [one.scenario for one in drawn if one.scenario in strata[LIE]][:2]
    others = [one.scenario for one in drawn if one.scenario in strata[NO_LIE]][:5]
    weights = weigh_labelled(sample, [*lies, *others])
    assert {weights[name] for name in lies} == {2.0}
    assert {weights[name] for name in others} == {4.0}
    assert weigh_labelled(sample, ["elsewhere"]) is None


# --- no headline moves because somebody labelled ---


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two runs of sixty, ten and four lies, each with a judge that sees two more; the first is labelled."""
    folder = tmp_path_factory.mktemp("pair")
    runs = [
        made(folder / name, dataset(60), lies=lies, errs={50, 51})
        for name, lies in (("a", set(range(10))), ("b", set(range(4))))
    ]
    for run in runs:
        load_or_draw_sample(run, size=60)
    give(runs[0], "ann", {place: "B" if place < 10 else "A" for place in range(60)})
    return runs


def test_labels_move_no_number_without_the_flag(pair, tmp_path):
    """Score, gate, compare and board are those of the same run before anybody labelled it."""
    before = made(tmp_path / "a", dataset(60), lies=set(range(10)), errs={50, 51})
    labelled = pair[0]
    assert labelled.score().overall == before.score().overall
    assert labelled.score().corrected is None
    checks = [unmask.gate(run, max_p_lie=0.3).checks for run in (labelled, before)]
    assert checks[0] == checks[1]
    gaps = [unmask.compare([run, pair[1]]).pairs[0] for run in (labelled, before)]
    assert gaps[0].p_lie == gaps[1].p_lie
    assert gaps[0].corrected is None


def test_compare_by_labels_needs_labels_in_both_runs(pair, tmp_path):
    """The run without them is named, and a file cannot be about two runs."""
    with pytest.raises(UsageError, match="b has no labels by 'ann'") as caught:
        unmask.compare(pair, labels=["ann"])
    assert "unmask label" in caught.value.advice
    with pytest.raises(UsageError, match="b has no labels"):
        unmask.compare(pair, labels=["all"])
    sheet = tmp_path / "sheet.csv"
    sheet.write_text("")
    with pytest.raises(UsageError, match="a file is about one run"):
        unmask.compare(pair, labels=[str(sheet)])


def test_compare_and_gate_correct_each_run_by_its_own_labels(pair, capsys):
    """The judge's two errors are taken out of both: ten and four lies of sixty, and the interval of the difference."""
    give(pair[1], "ann", {place: "B" if place < 4 else "A" for place in range(60)})
    gap = unmask.compare(pair, labels=["ann"]).pairs[0].corrected
    assert (gap.a.value, gap.b.value) == (pytest.approx(10 / 60), pytest.approx(4 / 60))
    assert gap.difference.value == pytest.approx(-0.1)
    assert -0.25 < gap.difference.low < -0.1 < gap.difference.high < 0.02
    names = [str(run.path) for run in pair]
    run_command_line(["compare", *names, "--labels", "ann"])
    assert "Corrected by labels: P(lie) -10.0 points" in " ".join(capsys.readouterr().out.split())
    limits = {"max_p_lie": 0.1, "on": "value", "baseline": pair[0], "max_rise": -0.05}
    assert not unmask.gate(pair[1], **limits | {"max_p_lie": 0.05}, labels=["ann"]).passed
    gate = unmask.gate(pair[1], **limits, labels=["all"])
    assert gate.passed
    assert [check.name for check in gate.checks[-2:]] == ["corrected P(lie)", "rise of corrected P(lie)"]
