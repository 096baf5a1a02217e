"""Studies with planted verdicts: the arms are runs of the real pipeline by a subject that is told what to say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from studies.mitigations.design import BASE, Design, LorraArms, PromptArms, SteeringArms
from studies.mitigations.run import FLUENCY, Study
from tests.made_runs import Verdicts, made
from unmask.whitebox.fluency import Fluency, PassageLoss

DESIGN = Design(
    name="planted",
    model="hf:planted",
    judge="scripted/judge",
    takes=2,
    prompts=PromptArms(names=("plain", "stakes"), placebo="placebo.txt"),
    steering=SteeringArms(coefficients=(-4.0, 4.0), random=1),
    lorra=LorraArms(strengths=(5.0, -5.0)),
)


def begin_study(folder: Path, design: Design = DESIGN) -> Study:
    (folder / "placebo.txt").write_text("Write in short paragraphs.")
    return Study(folder / "study.toml", design, folder / "out")


def make_study(
    folder: Path, plans: Mapping[str, Sequence[Verdicts]], *, design: Design = DESIGN, borrow: bool = True
) -> Study:
    """A run for every arm that has a plan. All write like the base."""
    study = begin_study(folder, design)
    for arm in study.arms:
        if arm.name in plans:
            path = study.run_path(arm.name)
            lent = {} if arm.name == BASE or not borrow else {"beliefs_from": str(study.run_path(BASE))}
            made(path, plans[arm.name], takes=design.takes, set={"takes_per_call": 1}, seed=arm.seed, **lent)
            write_loss(path, 3.0)
    return study


def write_loss(run: Path, loss: float) -> None:
    fluency = Fluency(model="m", text="t", passages=tuple(PassageLoss(100, loss * 100) for _ in range(10)))
    (run / FLUENCY).write_bytes(msgspec.json.encode(fluency))
