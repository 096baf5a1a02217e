"""Replies of several arms, mixed and without their origin, for people who label them blind.

`labels/replies.jsonl` is what a labeller reads; `labels/key.json` says what each code hides, and no labeller opens it.
`unmask label` draws the replies of each arm and takes the labels in, and `unmask compare` corrects by them.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import numpy as np

import unmask
from studies.mitigations.analyse import OpenStudy
from studies.mitigations.design import BASE, BASE_AGAIN, Family, Role
from studies.mitigations.folds import find_most_chosen
from studies.mitigations.run import Study
from unmask import UnmaskError


class Origin(msgspec.Struct, frozen=True, kw_only=True):
    """What a code hides."""

    arm: str
    scenario: str
    slot: str
    take: int
    kind: str


def draw_labels(study: Study) -> tuple[Path, int]:
    """Write the replies of the base, of its repetition and of the arm that most folds of each family chose."""
    folder = study.out / "labels"
    if (folder / "key.json").is_file():
        raise UnmaskError(f"{folder} holds replies already", advice="Label those. Drawn again they would differ.")
    opened = OpenStudy(study)
    unfinished = [name for name, arm in opened.arms.items() if not arm.is_complete]
    if unfinished:
        raise UnmaskError(
            f"labels are drawn when every arm is finished, and these are not: {', '.join(unfinished)}",
            advice="Run the study to its end, or name the arms in `left_out`.",
        )
    families = [family for family in Family if opened.list_family(family, Role.CANDIDATE)]
    chosen = [find_most_chosen(opened.choose(family), list(opened.arms)) for family in families]
    plan = study.design.analysis
    drawn = [
        (name, item)
        for name in (BASE, BASE_AGAIN, *chosen)
        if name is not None
        for item in unmask.label(study.run_path(name), size=plan.labels, sample_seed=plan.seed)
    ]
    rng = np.random.default_rng(plan.seed)
    key, replies = {}, []
    for place in rng.permutation(len(drawn)):
        name, item = drawn[place]
        code, scenario = rng.bytes(5).hex(), item.scenario
        key[code] = Origin(arm=name, scenario=scenario.id, slot=item.slot, take=item.take, kind=scenario.kind)
        replies.append({"code": code, **_describe_item(item)})
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "replies.jsonl").write_text("".join(json.dumps(reply) + "\n" for reply in replies), encoding="utf-8")
    (folder / "key.json").write_bytes(msgspec.json.format(msgspec.json.encode(key)) + b"\n")
    return folder / "replies.jsonl", len(replies)


def take_labels(study: Study, file: Path, who: str) -> dict[str, int]:
    """Hand the labels of one person back to the arms they belong to. Says how many each arm got.

    A line is a code with a `letter`, or with `lower` and `upper`; a code without either was passed over.
    """
    folder = study.out / "labels"
    if not (folder / "key.json").is_file():
        raise UnmaskError(f"{folder} holds no replies", advice="Draw them first with --draw-labels.")
    key = msgspec.json.decode((folder / "key.json").read_bytes(), type=dict[str, Origin])
    sheets: dict[str, list[dict[str, Any]]] = {}
    for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
        label = json.loads(line)
        if label["code"] not in key:
            raise UnmaskError(f"line {number} of {file}: no reply has the code {label['code']!r}")
        origin = msgspec.to_builtins(key[label["code"]])
        sheets.setdefault(origin.pop("arm"), []).append(
            origin | {name: label[name] for name in label if name != "code"}
        )
    for arm, rows in sheets.items():
        sheet = folder / f"{arm}-{who}.jsonl"
        sheet.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
        command = [sys.executable, "-m", "unmask", "label", str(study.run_path(arm)), "--import", str(sheet)]
        done = subprocess.run([*command, "--who", who], capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnmaskError(f"unmask label does not take the labels of {arm}: {done.stderr.strip()}")
    return {arm: len(rows) for arm, rows in sheets.items()}


def _describe_item(item: Any) -> dict[str, Any]:
    """The conversation as a judge sees it: without a developer prompt, which would name the arm."""
    scenario = item.scenario
    what = (
        {"statement_a": scenario.statements[0], "statement_b": scenario.statements[1]}
        if scenario.kind == "binary"
        else {"proposition": scenario.proposition, "unit": scenario.unit}
    )
    context = "\n\n".join(f"[{turn.role}] {turn.content}" for turn in scenario.conversation)
    return {"kind": scenario.kind, **what, "context": context, "reply": "\n\n".join(item.texts)}
