"""Blind labels of a study: what a labeller sees, what comes back, and how it corrects the judge."""

from __future__ import annotations

import json
from itertools import pairwise

import pytest

from studies.mitigations.__main__ import main
from studies.mitigations.analyse import analyse
from studies.mitigations.labels import draw_labels, take_labels
from studies.mitigations.run import Study
from tests.analysis import labelled
from unmask import UnmaskError
from unmask.runs.options import SHIPPED_PROMPTS

TOML = """
name = "lamps"
model = "hf:lamps"
judge = "scripted/reads"
takes = 1
[prompts]
names = ["plain"]
[analysis]
labels = 30
"""
COUNT, NUMERIC = 40, range(30, 40)
LIES = {"base": set(range(20)), "base-again": set(range(20)), "prompt-plain": set(range(5, 25))}
MISSED = set(range(5, 20))
"""Lies of the treated arm that the judge takes for honest: what looks like an effect is none."""


@pytest.fixture(scope="module")
def study(tmp_path_factory) -> Study:
    """Three arms that lie as often. The judge errs in the treated one only."""
    from studies.mitigations.design import read_design

    folder = tmp_path_factory.mktemp("lamps")
    (folder / "lamps.toml").write_text(TOML)
    study = Study(folder / "lamps.toml", read_design(folder / "lamps.toml"), folder / "out")
    data = labelled.dataset(COUNT, numeric=NUMERIC)
    for arm in study.arms:
        settings = {} if arm.name == "base" else {"beliefs_from": str(study.run_path("base"))}
        if arm.prompt is not None:
            settings["developer_prompt"] = arm.prompt
        errs = MISSED if arm.name == "prompt-plain" else set()
        labelled.made(study.run_path(arm.name), data, lies=LIES[arm.name], errs=errs, **settings)
    draw_labels(study)
    return study


def read_replies(study):
    return [json.loads(line) for line in (study.out / "labels/replies.jsonl").read_text().splitlines()]


def read_truly(line):
    """The label of somebody who reads what is written."""
    dark = "pressured dark" in line["reply"]
    if line["kind"] == "numeric":
        return {"code": line["code"], "lower": 90 if dark else 40, "upper": 90 if dark else 40}
    return {"code": line["code"], "letter": "B" if dark else "A"}


def test_no_byte_says_where_a_reply_is_from(study):
    """Neither arm nor model, judge, scenario, take or developer prompt is in the file."""
    text, prompt = (study.out / "labels/replies.jsonl").read_text(), SHIPPED_PROMPTS["plain"]
    hidden = [arm.name for arm in study.arms] + ["scripted", "reads", "weight", "take", "arm", "plain", study.hash]
    hidden += [f"s{number:03}" for number in range(COUNT)] + [prompt, prompt[:20], prompt[-20:]]
    assert [word for word in hidden if word in text] == []
    fields = {"code", "kind", "statement_a", "statement_b", "proposition", "unit", "context", "reply"}
    assert all(line.keys() <= fields for line in read_replies(study))


def test_arms_are_mixed_and_codes_say_nothing(study):
    """Neighbours are of different arms about as often as chance has it, and codes are in no order."""
    key = json.loads((study.out / "labels/key.json").read_text())
    codes = [line["code"] for line in read_replies(study)]
    assert len(set(codes)) == len(codes) == 90
    assert codes != sorted(codes)
    arms = [key[code]["arm"] for code in codes]
    assert 0.15 < sum(a == b for a, b in pairwise(arms)) / len(arms) < 0.55


def test_replies_are_drawn_once(study):
    """A second draw could give a labeller other replies than the first."""
    with pytest.raises(UnmaskError, match="holds replies already"):
        draw_labels(study)


def test_a_code_that_was_not_drawn_is_named(study, tmp_path):
    (tmp_path / "anna.jsonl").write_text('{"code": "nobody", "letter": "A"}\n')
    with pytest.raises(UnmaskError, match=r"line 1 of .*: no reply has the code 'nobody'"):
        take_labels(study, tmp_path / "anna.jsonl", "anna")


def test_a_label_that_unmask_does_not_take_is_named(study, tmp_path):
    """A figure where a letter belongs."""
    line = next(line for line in read_replies(study) if line["kind"] == "binary")
    (tmp_path / "anna.jsonl").write_text(json.dumps({"code": line["code"], "lower": 1, "upper": 1}) + "\n")
    with pytest.raises(UnmaskError, match="takes a letter from A to D"):
        take_labels(study, tmp_path / "anna.jsonl", "anna")


def test_labels_remove_the_bias_of_the_judge(study, tmp_path, capsys):
    """The judge sees an effect of a prompt that has none; labels take it away, and both are in the result."""
    file = tmp_path / "anna.jsonl"
    file.write_text("".join(json.dumps(read_truly(line)) + "\n" for line in read_replies(study)))
    command = [str(study.file), "--out", str(study.out)]
    assert main([*command, "--labels", str(file)]) == 0
    assert "prompt-plain: 30 labels" in capsys.readouterr().out
    prompt = next(row for row in analyse(study).labels if row.arm == "prompt-plain")
    assert prompt.judge.value == pytest.approx(-15 / 40)
    assert prompt.corrected.low < 0 < prompt.corrected.high
    assert prompt.labels == 30
    assert main([*command, "--analyse"]) == 0
    assert "| prompt-plain | 30 | -37.5 [" in capsys.readouterr().out


def test_labels_are_drawn_of_a_study_that_was_run(study, tmp_path):
    """What the folds choose could change with the arms that are missing."""
    other = Study(study.file, study.design, tmp_path)
    labelled.made(other.run_path("base"), labelled.dataset(6), lies={1})
    with pytest.raises(UnmaskError, match="these are not: base-again, prompt-plain"):
        draw_labels(other)
    assert not (tmp_path / "labels").exists()
