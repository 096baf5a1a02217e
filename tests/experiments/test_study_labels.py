"""Blind labels of a study: what a labeller sees, what comes back, and how it corrects the judge."""

from __future__ import annotations

import json
import shutil
from itertools import pairwise

import msgspec
import numpy as np
import pytest

from tests.analysis import labelled
from tests.experiments.planted_studies import PlantedStudy
from tests.outcomes import outcome
from unmask.cli.main import run_command_line
from unmask.errors import DataError, UsageError
from unmask.experiments.study_analysis import analyse_study
from unmask.experiments.study_corrected import ArmLabels, bound_share, correct_share
from unmask.experiments.study_design import AnalysisPlan, PromptArms, StudyDesign
from unmask.experiments.study_folder import begin_study, open_study
from unmask.experiments.study_labels import (
    KEY,
    REPLIES,
    LabellerKind,
    LabelStratum,
    draw_evenly,
    draw_labels,
    read_labels,
    share_out,
)
from unmask.records import PRESSURED, Letter, Lettered, Verdict
from unmask.render.terminal.study import render
from unmask.runs.options import SHIPPED_PROMPTS

DESIGN = StudyDesign(
    name="lamps",
    model="scripted/lamps",
    judge="scripted/reads",
    takes=2,
    prompts=PromptArms(names=("plain",)),
    analysis=AnalysisPlan(labels=60),
)
COUNT, NUMERIC = 40, range(30, 40)
LIES = {"base": set(range(20)), "base-again": set(range(20)), "prompt-plain": set(range(5, 25))}
MISSED = set(range(5, 20))
"""Lies of the treated arm that the judge takes for honest: what looks like an effect is none."""


def make_lamps(path, design=DESIGN):
    """Three arms that lie as often. The judge errs in the treated one only."""
    study = PlantedStudy(path, design)
    data = labelled.dataset(COUNT, numeric=NUMERIC)
    for arm in study.arms:
        settings = {} if arm.name == "base" else {"beliefs_from": str(study.run_path("base"))}
        if arm.developer_prompt is not None:
            settings["developer_prompt"] = arm.developer_prompt
        errs = MISSED if arm.name == "prompt-plain" else set()
        labelled.made(study.run_path(arm.name), data, lies=LIES[arm.name], errs=errs, takes=2, **settings)
    return study


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    made_study = make_lamps(tmp_path_factory.mktemp("lamps"))
    draw_labels(made_study)
    return made_study


def read_replies(study):
    return [json.loads(line) for line in (study.path / "labels" / REPLIES).read_text().splitlines()]


def read_truly(line):
    """The label of somebody who reads what is written."""
    dark = "pressured dark" in line["reply"]
    if line["kind"] == "numeric":
        return {"code": line["code"], "lower": 90 if dark else 40, "upper": 90 if dark else 40}
    return {"code": line["code"], "letter": "B" if dark else "A"}


def write_labels(study, labels, *, who="reader", header=True):
    first = [{"who": who, "kind": "language model"}] if header else []
    file = study.path / "labels" / f"{who}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in [*first, *labels]))
    return file


def test_no_byte_says_where_a_reply_is_from(study):
    """Neither arm nor model, judge, scenario, take or developer prompt stands in the file."""
    text = (study.path / "labels" / REPLIES).read_text()
    prompt = SHIPPED_PROMPTS["plain"]
    hidden = [arm.name for arm in study.arms] + ["scripted", "reads", "weight", "stratum", "take", "arm", "plain"]
    hidden += [f"s{number:03}" for number in range(COUNT)] + [prompt, prompt[:20], prompt[-20:], study.design_hash]
    assert [word for word in hidden if word in text] == []
    fields = {"code", "kind", "statement_a", "statement_b", "proposition", "unit", "context", "reply"}
    assert all(line.keys() <= fields for line in read_replies(study))


def test_arms_are_mixed_and_codes_say_nothing(study):
    """Neighbours are of different arms about as often as chance has it, and codes are in no order."""
    key = draw_labels(study)
    codes = [line["code"] for line in read_replies(study)]
    assert list(key.codes) == codes
    arms = [key.codes[code].arm for code in codes]
    same = sum(a == b for a, b in pairwise(arms)) / len(arms)
    assert 0.2 < same < 0.5
    assert codes != sorted(codes)
    assert len(set(codes)) == len(codes) == 180


def test_numeric_replies_show_a_hole_in_place_of_statements(study):
    """As the judge is asked about them."""
    numeric = [line for line in read_replies(study) if line["kind"] == "numeric"]
    assert numeric
    assert all("<value>" in line["proposition"] and "statement_a" not in line for line in numeric)


def test_half_are_lies_and_weights_add_up_to_all_takes(study):
    """Within every arm."""
    key = draw_labels(study)
    for arm in key.arms:
        own = [keyed for keyed in key.codes.values() if keyed.arm == arm]
        assert sum(keyed.weight for keyed in own) == pytest.approx(2 * COUNT)
    base = [keyed.stratum for keyed in key.codes.values() if keyed.arm == "base"]
    assert base.count(LabelStratum.LIE) == 30


def test_labels_remove_the_bias_of_the_judge(study):
    """The judge sees an effect of a prompt that has none; labels take it away, and the raw one stands beside."""
    file = write_labels(study, map(read_truly, read_replies(study)))
    shown = analyse_study(study)
    file.unlink()
    (labels,) = shown.labels
    assert (labels.who, labels.kind) == ("reader", LabellerKind.LANGUAGE_MODEL)
    prompt = next(arm for arm in labels.arms if arm.arm == "prompt-plain")
    assert prompt.raw_difference.value == pytest.approx(-15 / 40)
    assert prompt.corrected_difference.low < 0 < prompt.corrected_difference.high
    assert prompt.corrected_difference.value == pytest.approx(0, abs=0.1)
    assert (prompt.used, prompt.drawn, prompt.skipped) == (60, 60, 0)
    base = next(arm for arm in labels.arms if arm.arm == "base")
    assert (base.agreement.value, base.corrected.value) == (1, pytest.approx(0.5))
    assert base.corrected.low < 0.5 < base.corrected.high
    assert prompt.agreement.value < 0.9
    text = " ".join(render(shown, width=80).split())
    assert "Corrected by reader (labels given by language models)" in text


def test_skips_and_missing_labels_are_counted(study):
    """They are no labels, and the others stand for them."""
    lines = read_replies(study)
    labels = [{"code": line["code"], "skip": True} for line in lines[:20]]
    file = write_labels(study, [*labels, *map(read_truly, lines[30:])], who="some", header=False)
    (shown,) = analyse_study(study).labels
    file.unlink()
    assert (shown.who, shown.kind) == ("some", None)
    assert sum(arm.skipped for arm in shown.arms) == 20
    assert sum(arm.unlabelled for arm in shown.arms) == 10
    assert sum(arm.used for arm in shown.arms) == 150


@pytest.mark.parametrize(
    ("label", "problem"),
    [
        ({"code": "nobody", "letter": "A"}, "no reply has the code 'nobody'"),
        ({"code": "BINARY"}, "takes a letter from A to D"),
        ({"code": "BINARY", "lower": 3, "upper": 3}, "takes a letter from A to D"),
        ({"code": "BINARY", "letter": "E"}, "Invalid enum value 'E'"),
        ({"code": "NUMERIC", "letter": "A"}, "takes a figure, or C for none"),
        ({"code": "NUMERIC"}, "takes a figure: lower, upper or both"),
        ({"code": "NUMERIC", "lower": 4, "upper": 3}, "the lower bound is above the upper"),
        ({"code": "BINARY", "letter": "A", "skip": True}, "has no letter and no figure"),
        ({"code": "BINARY", "arm": "base", "letter": "A"}, "unknown field `arm`"),
    ],
)
def test_wrong_labels_are_named(study, label, problem):
    """With the line they stand in."""
    for kind in ("binary", "numeric"):
        code = next(line["code"] for line in read_replies(study) if line["kind"] == kind)
        label = {key: code if value == kind.upper() else value for key, value in label.items()}
    file = write_labels(study, [label], who="wrong")
    with pytest.raises(DataError) as caught:
        read_labels(study)
    file.unlink()
    assert "line 2" in str(caught.value)
    assert problem in str(caught.value)


def test_the_last_label_of_a_reply_counts(study):
    """A labeller may change their mind."""
    code = next(line["code"] for line in read_replies(study) if line["kind"] == "binary")
    file = write_labels(study, [{"code": code, "letter": "A"}, {"code": code, "letter": "B", "note": "on reflection"}])
    (labeller,) = read_labels(study)
    file.unlink()
    assert labeller.labels[code].letter is Letter.B


def test_labels_that_were_given_keep_their_replies(study):
    """A second draw changes nothing; without labels it draws the same again."""
    file = study.path / "labels" / REPLIES
    before = file.read_bytes()
    draw_labels(study)
    assert file.read_bytes() == before
    labels = write_labels(study, [])
    file.write_bytes(b"")
    draw_labels(study)
    assert file.read_bytes() == b""
    labels.unlink()
    draw_labels(study)
    assert file.read_bytes() == before


def test_a_key_of_another_design_is_refused(study):
    """Labels belong to the study they were drawn from."""
    other_design = msgspec.structs.replace(DESIGN, takes=3)
    with pytest.raises(DataError, match="another design"):
        read_labels(PlantedStudy(study.path, other_design))


def test_labels_are_drawn_of_a_study_that_was_run(tmp_path):
    """What is chosen could change with the arms that are missing."""
    data = labelled.dataset(6)
    study = PlantedStudy(tmp_path, DESIGN)
    labelled.made(study.run_path("base"), data, lies={1}, takes=2)
    with pytest.raises(UsageError, match="these are not: base-again, prompt-plain"):
        draw_labels(study)
    assert not (tmp_path / "labels" / KEY).exists()


@pytest.mark.parametrize(
    ("lies", "others", "drawn"), [(100, 100, (75, 75)), (20, 500, (20, 130)), (500, 20, (130, 20)), (10, 10, (10, 10))]
)
def test_what_a_stratum_lacks_the_other_gives(lies, others, drawn):
    """Half lies, or all of them."""
    sizes = {LabelStratum.LIE: lies, LabelStratum.NO_LIE: others}
    assert tuple(share_out(sizes, 150).values()) == drawn


def test_takes_are_drawn_from_different_scenarios_where_possible():
    """And each take has the same chance."""
    scenarios = [[(number, take) for take in range(1 + number % 4)] for number in range(40)]
    counts = dict.fromkeys([place for scenario in scenarios for place in scenario], 0)
    rng = np.random.default_rng(0)
    for _ in range(2000):
        drawn = draw_evenly(scenarios, 20, rng)
        assert len({number for number, _ in drawn}) == 20
        for place in drawn:
            counts[place] += 1
    assert all(abs(count / 2000 - 0.2) < 0.05 for count in counts.values())


def make_rows(truth, judged):
    """Outcomes whose verdicts are the judge's."""
    rows = {}
    for number, lies in enumerate(judged):
        verdicts = tuple(Verdict.LIE if lie else Verdict.HONEST for lie in lies)
        readings = {PRESSURED: tuple(Lettered(Letter.B if lie else Letter.A, by="judge") for lie in lies)}
        rows[f"s{number}"] = outcome("lie", id=f"s{number}", verdicts=verdicts, readings=readings)
    return rows


def label_some(rng, truth, judged, count):
    """Labels of takes drawn as the study draws them: half of the judge's lies, half of the others."""
    lies = {}
    strata = {}
    for lie, stratum in ((True, LabelStratum.LIE), (False, LabelStratum.NO_LIE)):
        places = np.argwhere(judged == lie)
        for number, take in places[rng.permutation(len(places))[:count]]:
            lies[f"s{number}", int(take)] = bool(truth[number, take])
            strata[f"s{number}", int(take)] = stratum
    return ArmLabels(lies, strata)


def test_corrected_differences_cover_the_truth():
    """A judge that misses a third of the lies in one arm only: 95 % intervals hold the true difference that often."""
    rng, hits, raw, studies, values = np.random.default_rng(2), 0, [], 200, []
    for _ in range(studies):
        chance = rng.beta(1, 2, size=80)
        sides = []
        for shift, misses in ((1.0, 0.0), (0.7, 1 / 3)):
            truth = rng.random((80, 4)) < (shift * chance)[:, None]
            judged = (truth & (rng.random(truth.shape) >= misses)) | (~truth & (rng.random(truth.shape) < 0.05))
            rows = make_rows(truth, judged)
            sides.append((judged, correct_share(rows, list(rows), label_some(rng, truth, judged, 40))))
        (judged_a, a), (judged_b, b) = sides
        moved = [b.influences[id_] - a.influences[id_] for id_ in a.influences]
        difference = bound_share(80, b.value - a.value, moved, a.extra + b.extra)
        values.append(difference.value)
        raw.append(judged_b.mean() - judged_a.mean())
        hits += difference.low <= -0.3 / 3 <= difference.high
    assert np.mean(values) == pytest.approx(-0.1, abs=0.01)
    assert np.mean(raw) < -0.15
    assert hits / studies >= 0.92


def test_labels_that_all_agree_leave_an_interval():
    """Forty labels without an error do not prove that there is none."""
    judged = np.arange(80).reshape(20, 4) % 2 == 0
    rows = make_rows(judged, judged)
    parts = correct_share(rows, list(rows), label_some(np.random.default_rng(0), judged, judged, 20))
    shown = bound_share(20, parts.value, parts.influences.values(), parts.extra)
    assert shown.value == pytest.approx(0.5)
    assert shown.high - shown.low > 0.05


def test_a_part_without_labels_has_no_corrected_value():
    """The judge's lies were labelled, the others not."""
    judged = np.array([[True, False]])
    labels = ArmLabels({("s0", 0): True}, {("s0", 0): LabelStratum.LIE})
    assert correct_share(make_rows(judged, judged), ["s0"], labels) is None


# --- the command

TOML = """
name = "lamps"
model = "scripted/lamps"
judge = "scripted/reads"
takes = 2

[prompts]
names = ["plain"]

[analysis]
labels = 60
"""


def test_the_command_draws_replies_and_analyse_reads_their_labels(study, tmp_path, capsys):
    """What is printed says where the replies lie and what a line of labels looks like."""
    file, out = tmp_path / "lamps.toml", tmp_path / "out"
    file.write_text(TOML)
    begin_study(file, out=out, model="scripted/lamps", model_hash="00")
    shutil.copytree(study.path / "runs", out / "runs")
    command = ["mitigate", "study", str(file), "--out", str(out)]
    assert run_command_line([*command, "--draw-labels"]) == 0
    printed = capsys.readouterr().out
    assert f"{out / 'labels' / REPLIES}: 180 replies" in printed
    assert '{"code": "…", "letter": "A"}' in printed
    begun = open_study(out)
    write_labels(begun, map(read_truly, read_replies(begun)), who="anna")

    assert run_command_line([*command, "--draw-labels", "--json"]) == 0
    drawn = json.loads(capsys.readouterr().out)
    assert drawn["arms"] == {"base": 60, "base-again": 60, "prompt-plain": 60}
    assert drawn["labelled"] == ["anna.jsonl"]
    assert run_command_line([*command, "--analyse", "--json"]) == 0
    (labels,) = json.loads(capsys.readouterr().out)["labels"]
    assert labels["who"] == "anna"


def test_labels_are_not_drawn_before_the_last_arm_is_finished(study, tmp_path):
    """The chosen arms are not known before."""
    begun = PlantedStudy(tmp_path, DESIGN)
    shutil.copytree(study.path / "runs", tmp_path / "runs")
    replies = begun.run_path("prompt-plain") / "replies.jsonl"
    replies.write_bytes(b"".join(replies.read_bytes().splitlines(keepends=True)[:-5]))
    with pytest.raises(UsageError, match="these are not: prompt-plain"):
        draw_labels(begun)
