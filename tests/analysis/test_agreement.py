"""How wrong is the judge: errors that were planted come out, with the words and numbers they should."""

from __future__ import annotations

import re

import pytest
from msgspec.structs import replace

import unmask
from tests.analysis.labelled import also_read, dataset, give, made, reader, subject
from tests.analysis.two_arms import lamps
from unmask.analysis.agreement import agree
from unmask.analysis.corrected import corrected_p_lie
from unmask.analysis.label_session import label
from unmask.analysis.labels import open_writer
from unmask.cli.main import run_command_line
from unmask.data.dataset import content_hash
from unmask.engine.run import run as make_run
from unmask.errors import UsageError
from unmask.models.scripted import Scripted
from unmask.records import PRESSURED, Archetype, Label, Letter, Verdict
from unmask.runs.run import LeftOutWarning

LIES = set(range(0, 40, 4))
FALSE, MISSED = {1, 2, 3}, {0, 4}


@pytest.fixture(scope="module")
def erring(tmp_path_factory):
    """Forty scenarios, ten lies, three false ones, two missed, four without belief, and two further judges."""
    kinds = (Archetype.KNOWN_FACTS, Archetype.CONTINUATIONS)
    data = dataset(40, archetypes=kinds, numeric={20, 21})
    folder = tmp_path_factory.mktemp("agreement") / "run"
    done = made(folder, data, lies=LIES, errs=FALSE | MISSED, beliefless={36, 37, 38, 39})
    done = also_read(done, {1, 5}, name="scripted/second")
    return also_read(done, {1, 2, 6}, name="scripted/third")


def tell(run, who, places, *, wrong=frozenset()):
    """Labels that are right, but for `wrong`."""
    dark = {place: (place in LIES) ^ (place in wrong) for place in places}
    figures, letters = {False: 40.0, True: 90.0}, {False: "A", True: "B"}
    return give(run, who, {place: (figures if place in {20, 21} else letters)[lie] for place, lie in dark.items()})


def side(run, who, **more):
    return agree(run, labels=[who], judges=["scripted/reads"], **more).judge_against_labels[0]


def test_planted_errors_are_counted(erring):
    """False and missed lies, shares, and the shift of P(lie) they make."""
    found = side(erring, tell(erring, "all", range(36)))
    effect = found.effect
    assert (effect.scenarios, effect.false_lies, effect.missed_lies) == (36, 3, 2)
    assert (effect.judge_p_lie, effect.labels_p_lie) == (pytest.approx(10 / 36), pytest.approx(9 / 36))
    assert effect.shift.value == pytest.approx(1 / 36)
    assert effect.shift.low < 0 < effect.shift.high
    assert (effect.precision.hits, effect.precision.total) == (7, 10)
    assert (effect.recall.hits, effect.recall.total) == (7, 9)


def test_archetypes_add_up(erring):
    """Each labelled scenario is in one archetype."""
    found = side(erring, tell(erring, "all", range(36)))
    parts = {name: part.n for name, part in found.groups.items() if name in tuple(Archetype)}
    assert sum(parts.values()) == found.verdicts.n
    assert parts.keys() == {Archetype.KNOWN_FACTS, Archetype.CONTINUATIONS, Archetype.STATISTICS}


def test_what_biases_a_judge_is_shown_by_length_and_polarity(tmp_path, capsys):
    """It turns every long reply round, and of the short ones those whose truth is *no*."""
    plain = lamps(24)
    own = [replace(one, truth=Letter.B if place % 4 == 3 else Letter.A) for place, one in enumerate(plain.scenarios)]
    data = replace(plain, scenarios=tuple(own), hash=content_hash(own), full_hash=content_hash(own))

    def reply(request):
        if "final_answer" in request.messages[-1].content:
            return "<final_answer>yes</final_answer>"
        place = int(re.search(r"lamp (\d+)", request.messages[-1].content)[1])
        return f"lamp {place} is lit.{' Well.' * {0: 1, 1: 150, 2: 400}[place % 3]}"

    def read(request):
        place, padding = re.findall(r"lamp (\d+) is lit.((?: Well.)+)", request.messages[-1].content)[-1]
        return f"Answer: {'B' if len(padding) > 1500 or int(place) % 4 == 3 else 'A'}"

    run = unmask.run(
        data=data,
        model=Scripted(reply, name="scripted/wordy"),
        judge=Scripted(read, name="scripted/reads"),
        out=tmp_path / "run",
        progress=False,
    )
    give(run, "ann", dict.fromkeys(range(24), "A"))
    found = side(run, "ann")
    sizes = {"known_facts": 24, "short": 8, "middle": 8, "long": 8, "yes": 18, "no": 6}
    assert {name: part.n for name, part in found.groups.items()} == sizes
    assert found.groups["long"].agreement.value == 0
    assert found.groups["short"].agreement.value == found.groups["middle"].agreement.value == pytest.approx(0.75)
    assert (found.groups["yes"].agreement.value, found.groups["no"].agreement.value) == (pytest.approx(2 / 3), 0)
    assert run_command_line(["agree", str(run.path)]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "up to 1,500 8 75.0" in said
    assert "truth is no 6 0.0" in said


def test_people_are_held_against_people(erring):
    """Two who differ on two of five replies. One counts for the judge's ten lies, four for its 26 others."""
    first, second = tell(erring, "ann", range(10)), tell(erring, "bo", range(5, 15), wrong={5, 6})
    found = agree(erring, labels=[first, second], judges=["scripted/reads"])
    (pair,) = found.labels_against_labels
    assert (pair.a, pair.b, pair.letters.n) == ("ann", "bo", 5)
    assert pair.letters.agreement.value == pytest.approx((10 + 2 * 26 / 4) / 36)
    assert found.among_labels.value == pytest.approx(pair.letters.alpha.value)


def test_runs_that_one_judge_read_are_pooled(tmp_path):
    """Two checkpoints of twelve: one false lie in one of them and one missed in the other."""
    runs = [
        made(tmp_path / name, dataset(12), lies=LIES, errs=errs, extra=lambda _, name=name: name)
        for name, errs in (("a", {1}), ("b", {4}))
    ]
    for run in runs:
        tell(run, "ann", range(12))
    found = agree(runs)
    assert (found.runs, found.labels) == (tuple(str(run.path) for run in runs), {"ann": 24})
    (one,) = found.judge_against_labels
    assert (one.letters.n, one.letters.clusters) == (24, 12)
    assert (one.effect.scenarios, one.effect.false_lies, one.effect.missed_lies) == (24, 1, 1)
    assert one.effect.shift.value == pytest.approx(0)
    assert agree(tmp_path).judge_against_labels == (one,)


@pytest.mark.parametrize("judges", [(), ("scripted/reads",)])
def test_a_run_that_another_judge_read_is_left_out(tmp_path, judges):
    """The judge of most runs decides, whichever comes first."""
    make_run(data=dataset(12), model=subject(LIES), judge=reader(name="scripted/other"), out=tmp_path / "a")
    for name in ("b", "c"):
        tell(made(tmp_path / name, dataset(12), lies=LIES, extra=lambda _, name=name: name), "ann", range(12))
    with pytest.warns(LeftOutWarning, match=r"left out: .*a (cannot be pooled|has no readings by)"):
        found = agree(tmp_path, judges=judges)
    assert (found.runs, found.judges) == ((str(tmp_path / "b"), str(tmp_path / "c")), ("scripted_reads",))
    assert found.judge_against_labels[0].letters.n == 24


def test_judges_have_a_matrix(erring):
    """Every pair of judges, on whole scenarios."""
    found = agree(erring)
    assert len(found.among_judges) == 3
    pair = next(one for one in found.among_judges if {"scripted_second", "scripted_third"} == {one.a, one.b})
    assert pair.verdicts.n == 40
    assert pair.verdicts.agreement.value == pytest.approx(37 / 40)


def test_a_panel_is_a_judge_of_its_own(erring):
    """Majority of three: only the error that two of them share is left."""
    panel = "panel:scripted/reads,scripted/second,scripted/third"
    wrong = [row.id for row, true in zip(erring.rows(judge=panel), range(40), strict=True) if _wrong(row, true)]
    assert wrong == ["s001", "s002"]
    found = agree(erring, labels=[tell(erring, "all", range(36))], judges=[panel])
    assert found.judge_against_labels[0].effect.false_lies == 2
    assert found.judges == ("panel:scripted_reads,scripted_second,scripted_third",)


def _wrong(row, place):
    return row.verdict is not Verdict.NO_BELIEF and (row.verdict is Verdict.LIE) != (place in LIES)


@pytest.mark.parametrize("panel", ["panel:scripted/reads", "panel:scripted/reads,scripted_reads"])
def test_a_panel_needs_two_different_judges(erring, panel):
    """Named with those there are."""
    with pytest.raises(UsageError, match="at least two different judges") as caught:
        erring.rows(judge=panel)
    assert "scripted_second" in caught.value.advice


def test_one_reader_only_is_a_named_error(tmp_path):
    """There is nothing to compare."""
    run = made(tmp_path / "run", dataset(3), lies={1})
    with pytest.raises(UsageError, match="only one judge or labeller"):
        agree(run)


def test_one_label_only_is_no_number(erring):
    """Null with the reason, for agreement and for the effect."""
    found = side(erring, tell(erring, "one", [7]))
    assert found.letters.n == 1
    assert found.letters.kappa.value is None
    assert "one item only" in found.letters.agreement.why
    assert "one labelled scenario" in found.effect.shift.why
    assert (found.effect.judge_p_lie, found.effect.labels_p_lie) == (None, None)


def test_a_run_in_which_nothing_was_judged_gives_no_number(tmp_path):
    """Zero judged: agreement and correction are null, and say so."""
    run = made(tmp_path / "run", dataset(12), lies={1, 2, 3}, unread=set(range(12)))
    tell(run, "all", range(12))
    found = agree(run, labels=["all"]).judge_against_labels[0]
    assert found.letters.agreement.value is None
    assert found.effect.judge_p_lie is None
    fixed = corrected_p_lie(run, ["all"])
    assert (fixed.value, fixed.raw, fixed.left_out) == (None, None, 12)
    assert "has read no reply" in fixed.why


# --- score --labels ---


def test_full_labels_correct_p_lie_to_the_truth(erring):
    """All 36 that can be lies are labelled: nine of forty are."""
    found = corrected_p_lie(erring, [tell(erring, "all", range(36))], judge="scripted/reads")
    assert (found.raw, found.value) == (pytest.approx(10 / 40), pytest.approx(9 / 40))
    assert (found.labelled, found.scenarios) == (36, 40)
    assert (found.false_lies, found.missed_lies, found.splits) == (3, 2, 0)
    assert found.low < 9 / 40 < found.high


def test_silent_replies_are_no_lies_and_no_label_stands_for_them(tmp_path):
    """Of 80 lamps 40 are not spoken of, and ten of the others lied about: labels of twenty, five of them lies, stand
    for forty, whose quarter is an eighth of all."""
    run = made(tmp_path / "run", dataset(80), lies=LIES, mute=set(range(40, 80)))
    found = corrected_p_lie(run, [tell(run, "half", range(20))])
    assert (found.raw, found.value) == pytest.approx((1 / 8, 1 / 8))
    assert (found.labelled, found.scenarios) == (20, 80)


def test_what_people_are_asked_to_read_corrects_the_rate(erring):
    tell(erring, "drawn", [int(item.scenario.id[1:]) for item in label(erring, size=24)])
    found = corrected_p_lie(erring, ["drawn"], judge="scripted/reads")
    assert found.labelled == 24
    assert found.low < 9 / 40 < found.high


def test_somebody_who_took_all_labels_back_corrects_nothing(tmp_path):
    """With an unlabelled run the judge's errors cannot be known."""
    run = made(tmp_path / "run", dataset(12), lies={1})
    lines = open_writer(run, "ann")
    lines.append(Label(scenario="s001", slot=PRESSURED, who="ann", taken_back=True))
    lines.close()
    found = corrected_p_lie(run, ["ann"])
    assert found.value is None
    assert "no scenario of this run is labelled" in found.why
