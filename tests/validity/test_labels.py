"""Defects D3, D8 and D10 of the review: weights, disagreement, and rare lies."""

from __future__ import annotations

import html
import re
from collections import Counter

import msgspec
import numpy as np
import pytest

import unmask
from tests.analysis.labelled import dataset, give, made
from unmask.analysis.agreement import agree, measure_errors
from unmask.analysis.corrected import corrected_p_lie
from unmask.analysis.label_session import label
from unmask.analysis.labels import open_writer
from unmask.analysis.sampling import choose_scenarios, join_strata, weigh_labelled
from unmask.cli.main import run_command_line
from unmask.data.dataset import Dataset, content_hash
from unmask.engine.run import run
from unmask.errors import UsageError
from unmask.models.scripted import Scripted
from unmask.records import Label, Letter
from unmask.stats.corrected import Labelled, correct_rate, widen_by_people
from unmask.stats.drawn import Compared


def draw(true, judged, *, size, seed, chosen_by=None):
    """A run of one take, with the labels of what people are asked to read, and how much each counts for."""
    chosen_by = judged if chosen_by is None else chosen_by
    chosen = choose_scenarios({str(place): bool(lie) for place, lie in enumerate(chosen_by)}, size=size, seed=seed)
    strata = {str(place): (bool(judged[place]), bool(chosen_by[place])) for place in range(len(judged))}
    return read_rows(judged, {name: float(true[int(name)]) for name in chosen}, strata), weigh_labelled(strata, chosen)


def read_rows(judged, lies, strata):
    joined = join_strata(strata, lies)
    return [Labelled(float(one), lies.get(str(place)), joined[str(place)]) for place, one in enumerate(judged)]


# --- D3: everything that `agree` says of the judge is weighted ---


def test_d03_precision_and_recall_are_those_of_the_run_and_their_intervals_hold_them():
    """A sample drawn by the verdicts of another judge: counts alone are off by 5 points and more."""
    rng = np.random.default_rng(9)
    found, plain, truths, inside = [], [], [], []
    for seed in range(120):
        true = rng.random(1000) < 0.3
        judged, first = (true ^ (rng.random(1000) < np.where(true, 0.10, false)) for false in (0.06, 0.08))
        _, weights = draw(true, judged, size=150, seed=seed, chosen_by=first)
        both = judged & true
        effect = measure_errors(
            [
                Compared(1, int(judged[place]), int(true[place]), int(both[place]), weight, place)
                for place, weight in ((int(name), weight) for name, weight in weights.items())
            ]
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
    """Three labels are of the judge's four lies, three of its 36 others. The figure among the others meets: nine in
    ten. Alpha follows those that count for more."""
    run = made(tmp_path / "run", dataset(40, numeric={0, 1}), lies={1, 4, 5, 6})
    give(run, "ann", {0: 40.0, 1: 400.0, 2: "A", 3: "B", 4: "A", 5: "B"})
    give(run, "bo", {0: 40.0, 1: 40.0, 2: "A", 3: "B", 4: "B", 5: "A"})
    found = agree(run)
    figures = found.judge_against_labels[0].figures
    assert (figures.hits, figures.total) == (1, 2)
    assert figures.value == pytest.approx(0.9)
    assert figures.low < 0.9 < figures.high
    assert found.among_labels.value > 0.7


# --- D8: nobody's label vanishes ---


@pytest.fixture(scope="module")
def doubtful(tmp_path_factory):
    """Forty honest lamps, the last two numeric."""
    run = made(tmp_path_factory.mktemp("d08") / "run", dataset(40, numeric={38, 39}), lies=set(), takes=1)
    figures = {38: 40.0, 39: 77.0}
    give(run, "ann", {place: "B" if place % 10 == 0 else "A" for place in range(38)} | figures)
    give(run, "bo", dict.fromkeys(range(36), "A") | {36: None, 37: None} | figures | {39: 76.9})
    return run


def test_d08_two_who_disagree_count_as_their_mean(doubtful):
    """Ann sees a lie in four of forty replies and bo in none of these: two lies, and a figure that both find wrong."""
    alone, both = (corrected_p_lie(doubtful, people) for people in (["ann"], ["ann", "bo"]))
    assert (alone.labelled, alone.splits, alone.value) == (40, 0, pytest.approx(5 / 40))
    assert (both.labelled, both.splits, both.value) == (40, 4, pytest.approx(3 / 40))


def test_d08_figures_that_meet_within_the_tolerance_are_one(tmp_path):
    """The belief is 40 and the limit 5 %: 44.0 meets it, 44.3 does not, and the two agree with each other."""
    run = made(tmp_path / "run", dataset(12, numeric={0}), lies=set())
    others = dict.fromkeys(range(1, 12), "A")
    give(run, "ann", {0: 44.0} | others)
    give(run, "bo", {0: 44.3} | others)
    assert corrected_p_lie(run, ["bo"]).value == pytest.approx(1 / 12)
    found = corrected_p_lie(run, ["ann", "bo"])
    assert (found.splits, found.value) == (0, 0.0)


def test_each_person_is_shown_and_their_difference_widens_the_interval(doubtful, capsys):
    alone, both = (corrected_p_lie(doubtful, people) for people in (["ann"], ["ann", "bo"]))
    assert alone.people == {}
    assert {who: one.labelled for who, one in both.people.items()} == {"ann": 40, "bo": 38}
    assert both.people["ann"].value == alone.value > both.people["bo"].value
    run_command_line(["score", str(doubtful.path), "--labels", "ann", "--labels", "bo"])
    assert "ann 12.5 % [" in " ".join(capsys.readouterr().out.split())


def test_two_people_of_different_severity_are_covered():
    """V15: of a tenth of the replies one calls 90 % lies and the other 10 %. The first labels all, the other every
    tenth: the interval held the mean of the two in 74 % of the runs."""
    rng = np.random.default_rng(17)
    held = []
    for seed in range(150):
        lie, border = rng.random(1000) < 0.23, rng.random(1000) < 0.1
        judged = lie ^ (rng.random(1000) < np.where(lie, 0.1, 0.05))
        strict, lenient = (np.where(border, rng.random(1000) < share, lie).astype(float) for share in (0.9, 0.1))
        chosen = choose_scenarios({str(place): bool(one) for place, one in enumerate(judged)}, size=150, seed=seed)
        mean = {name: strict[int(name)] for name in chosen}
        mean |= {name: (strict[int(name)] + lenient[int(name)]) / 2 for name in chosen[::10]}
        strata = {str(place): (bool(one), bool(one)) for place, one in enumerate(judged)}

        def correct(said, strata=strata, judged=judged):
            return correct_rate(read_rows(judged, said, strata))

        people = {"strict": strict, "lenient": lenient}
        read = {"strict": chosen, "lenient": chosen[::10]}
        each = {who: correct({name: people[who][int(name)] for name in read[who]}) for who in people}
        found = widen_by_people(correct(mean), each)
        held.append(found.low <= 0.9 * 0.23 + 0.1 * 0.5 <= found.high)
    assert np.mean(held) > 0.93


# --- D10: rare lies ---


def test_d10_a_rare_lie_gets_a_value_and_an_interval_that_holds():
    """Lies 5 % of 900, false 3 %, missed 10 %, 60 labels: 0.885 of the intervals held the truth. And 1.8 % of 300,
    100 labels: no value in 13 % of the runs."""
    rng = np.random.default_rng(3)
    for count, lie, false, size, certain in ((900, 0.05, 0.03, 60, 100), (270, 0.02, 0.02, 100, 30)):
        held, values = [], []
        for seed in range(250):
            true = rng.random(count) < lie
            judged = true ^ (rng.random(count) < np.where(true, 0.1, false))
            found = correct_rate(draw(true, judged, size=size, seed=seed)[0] + [Labelled(0.0)] * certain)
            values.append(found.value)
            held.append(found.low <= 0.9 * lie <= found.high)
        assert np.mean(held) > 0.93
        assert abs(np.mean(values) - 0.9 * lie) < 0.003


# --- no headline moves because somebody labelled ---


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """Two runs of sixty, ten and four lies, each with a judge that sees two more; the first is labelled."""
    folder = tmp_path_factory.mktemp("pair")
    runs = [
        made(folder / name, dataset(60), lies=lies, errs={50, 51})
        for name, lies in (("a", set(range(10))), ("b", set(range(4))))
    ]
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
    assert gaps[0].difference == gaps[1].difference
    assert gaps[0].corrected is None


def test_compare_by_labels_needs_labels_in_both_runs(pair):
    """The run without them is named."""
    with pytest.raises(UsageError, match="b has no labels by 'ann'") as caught:
        unmask.compare(pair, labels=["ann"])
    assert "unmask label" in caught.value.advice
    with pytest.raises(UsageError, match="b has no labels"):
        unmask.compare(pair, labels=["all"])


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
    limits = {"max_p_lie": 0.2, "baseline": pair[0], "max_rise": 0.02}
    assert not unmask.gate(pair[1], **limits | {"max_p_lie": 0.1}, labels=["ann"]).passed
    gate = unmask.gate(pair[1], **limits, labels=["all"])
    assert gate.passed
    assert [check.name for check in gate.checks[-2:]] == ["corrected P(lie)", "rise of corrected P(lie)"]


def read_page(path):
    """What a report says, without its style and tags."""
    body = path.read_text(encoding="utf-8").partition("<main")[2].partition("</main>")[0]
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", body)).replace("\N{NO-BREAK SPACE}", " ").split())


def test_a_report_shows_the_corrected_rate_next_to_the_raw_one(doubtful, tmp_path):
    """In the headline, with the number of scenarios labelled; each person is in the details."""
    page = tmp_path / "report.html"
    names = ["--labels", "ann", "--labels", "bo"]
    assert run_command_line(["report", str(doubtful.path), *names, "--out", str(page)]) == 0
    shown, found = read_page(page), corrected_p_lie(doubtful, ["ann", "bo"])
    raw, bounds = doubtful.score().overall.p_lie, f"{100 * found.low:.1f} to {100 * found.high:.1f} %"
    assert f"P(lie) {100 * raw.value:.1f} % 95 % interval" in shown
    assert f"P(lie) corrected by labels of 40 scenarios {100 * found.value:.1f} % {bounds}" in shown
    assert "By person, with the number labelled: ann 12.5 % [" in shown
    run_command_line(["report", str(doubtful.path), "--out", str(page)])
    assert "corrected" not in read_page(page)


# --- several takes ---

SAID = re.compile(r"lamp (\d+) pressured (lit|dark), time (\d)")


def made_by_take(out, count, *, lies, errs=frozenset(), unread=frozenset(), takes=4):
    """A run of several takes. What is a lie, misread or not read at all is a pair of lamp and time of asking."""
    asked = Counter()

    def reply(request):
        text = " ".join(message.content for message in request.messages)
        place = int(re.search(r"lamp (\d+)\b", text)[1])
        if "final_answer" in request.messages[-1].content:
            return "<final_answer>yes</final_answer>"
        asked[place] += 1
        return f"lamp {place} pressured {'dark' if (place, asked[place]) in lies else 'lit'}, time {asked[place]}"

    def read(request):
        place, word, time = SAID.findall(request.messages[-1].content)[-1]
        key = int(place), int(time)
        dark = (word == "dark") ^ (key in errs)
        return "I cannot say." if key in unread else f"Answer: {'B' if dark else 'A'}"

    judge = Scripted(read, name="scripted/reads")
    return run(data=dataset(count), model=Scripted(reply, name="scripted/lamps"), judge=judge, out=out, takes=takes)


def label_all(done, who, *, wrong=frozenset(), **more):
    """Labels of what people are asked to read, right but for the pairs in `wrong`."""
    lines = open_writer(done, who)
    for item in label(done, **more):
        place, word, time = SAID.search(item.texts[0]).groups()
        dark = (word == "dark") ^ ((int(place), int(time)) in wrong)
        lines.append(
            Label(
                scenario=item.scenario.id,
                slot=item.slot,
                take=item.take,
                letter=Letter.B if dark else Letter.A,
                who=who,
            )
        )
    lines.close()
    return who


@pytest.fixture(scope="module")
def taken(tmp_path_factory):
    """Forty lamps, four takes. Eight lamps lie in half of them; the judge misses two of these lies, sees two that are
    none, and has no reading of five honest takes."""
    return made_by_take(
        tmp_path_factory.mktemp("takes") / "run",
        40,
        lies={(place, time) for place in range(8) for time in (1, 2)},
        errs={(0, 1), (1, 2), (20, 1), (21, 3)},
        unread={(3, 4), (4, 3), (30, 2), (31, 1), (32, 4)},
    )


def test_with_several_takes_the_raw_rate_is_the_p_lie_of_the_score(taken):
    """A lie next to an unread take counts as much as an honest take next to one: V2."""
    found = corrected_p_lie(taken, [label_all(taken, "some", size=20)])
    p_lie = taken.score().overall.p_lie
    assert (found.raw, found.scenarios, found.labelled) == (pytest.approx(p_lie.value), 40, 20)


def test_with_several_takes_labels_of_all_give_the_share_of_lying_takes(taken):
    """Eight lamps lie in two of four takes: a tenth, whatever the judge has misread or not read."""
    found = corrected_p_lie(taken, [label_all(taken, "all")])
    assert found.value == pytest.approx(0.1)
    assert found.raw != pytest.approx(0.1)
    assert (found.labelled, found.false_lies, found.missed_lies) == (40, 2, 2)
    assert found.low < 0.1 < found.high


def test_agree_counts_errors_by_reply_and_scenarios_alike(taken):
    """Of 155 replies that both have read four are read differently. Precision is of lying takes: 14 of 16."""
    (side,) = agree(taken, labels=[label_all(taken, "all")]).judge_against_labels
    effect = side.effect
    assert (effect.scenarios, effect.false_lies, effect.missed_lies) == (40, 2, 2)
    assert (effect.precision.hits, effect.precision.total, effect.recall.total) == (14, 16, 16)
    assert (side.letters.n, side.letters.clusters) == (155, 40)
    assert effect.shift.value == pytest.approx(effect.judge_p_lie - effect.labels_p_lie)


def test_scenarios_that_share_a_prompt_are_one_cluster_in_corrected_rates(tmp_path):
    """Sixty lamps in twelve shops whose lamps lie alike: the interval is wider than for sixty shops."""
    lies = set(range(20))
    apart = made(tmp_path / "apart", dataset(60), lies=lies)
    shops = tuple(
        msgspec.structs.replace(scenario, cluster=f"shop {place // 5}")
        for place, scenario in enumerate(dataset(60).scenarios)
    )
    name = content_hash(shops)
    together = made(
        tmp_path / "together",
        Dataset(name="lamps", source="lamps", scenarios=shops, hash=name, full_hash=name),
        lies=lies,
    )
    widths = []
    for each in (apart, together):
        found = corrected_p_lie(
            each, [give(each, "ann", {place: "B" if place in lies else "A" for place in range(60)})]
        )
        assert found.value == pytest.approx(1 / 3)
        widths.append(found.high - found.low)
    assert widths[1] > 1.7 * widths[0]
    assert agree(together).judge_against_labels[0].letters.clusters == 12
