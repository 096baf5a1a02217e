"""Studies with planted verdicts: the arms are runs of the real pipeline by a subject that is told what to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tests.made_runs import Verdicts, made
from unmask.experiments.mitigation import FLUENCY_FILE
from unmask.experiments.study_design import (
    Arm,
    LorraArms,
    PromptArms,
    SteeringArms,
    StudyDesign,
    design_hash,
    list_arms,
)
from unmask.records import Record
from unmask.whitebox.fluency import Fluency, PassageLoss

DESIGN = StudyDesign(
    name="planted",
    model="hf:planted",
    judge="scripted/judge",
    takes=2,
    prompts=PromptArms(names=("plain", "stakes"), placebo="placebo.txt"),
    steering=SteeringArms(coefficients=(-4.0, 4.0), random=1),
    lorra=LorraArms(strengths=(5.0, -5.0)),
)


class PlantedCost(Record, frozen=True, kw_only=True):
    arm: str
    what: str
    seconds: float
    calls: int | None = 10
    input_tokens: int | None = 100
    output_tokens: int | None = 50
    peak_memory: int | None = None
    device: str | None = "cpu"


class PlantedStudy:
    """What the analysis needs of a study's folder."""

    def __init__(self, path: Path, design: StudyDesign = DESIGN, costs: Sequence[PlantedCost] = ()) -> None:
        self.path, self.design, self._costs = path, design, costs
        self.arms: tuple[Arm, ...] = list_arms(design, path)
        self.design_hash = design_hash(design)
        self.prompt_hashes: dict[str, str] = {}

    def run_path(self, arm_name: str) -> Path:
        return self.path / "runs" / arm_name

    def costs(self) -> Sequence[PlantedCost]:
        return self._costs


def make_study(
    path: Path,
    plans: Mapping[str, Sequence[Verdicts]],
    *,
    design: StudyDesign = DESIGN,
    borrow: bool = True,
) -> PlantedStudy:
    """A run for every arm that has a plan. All write like the base."""
    study = PlantedStudy(path, design)
    for arm in study.arms:
        if arm.name not in plans:
            continue
        settings = {} if arm.name == "base" or not borrow else {"beliefs_from": str(study.run_path("base"))}
        made(
            study.run_path(arm.name),
            plans[arm.name],
            model="secret",
            takes=design.takes,
            one_call=False,
            seed=arm.seed,
            **settings,
        )
        write_loss(study.run_path(arm.name), 3.0)
    return study


def write_loss(run: Path, loss: float) -> None:
    fluency = Fluency(model="m", text="t", passages=tuple(PassageLoss(100, loss * 100) for _ in range(10)))
    (run / FLUENCY_FILE).write_bytes(msgspec.json.encode(fluency))
