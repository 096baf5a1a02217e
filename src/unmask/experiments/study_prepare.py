"""What the arms of a study are made with: steer files, random directions and adapters, each made once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path

import msgspec

from unmask.experiments.study_design import Arm, Family, LorraArms, StudyDesign
from unmask.experiments.study_folder import StudyFolder
from unmask.files import Lock, lock_path
from unmask.models.local.catalogue import find_entry
from unmask.models.local.hf import PREFIX
from unmask.models.local.inside import check_local_model, local_name, open_whitebox
from unmask.whitebox import contrast

LONGEST_WAIT = 3600.0
"""Seconds that a process waits for a file that another process is making."""

Report = Callable[[str], None]


def untreated_name(model: str) -> str:
    """The `hf:` name of a study's model, the same on every machine for a model of the catalogue."""
    return f"{PREFIX}{find_entry(model).name}" if model.startswith("embedded/") else local_name(model)


def model_name(study: StudyFolder, arm: Arm) -> str:
    """What an arm's run is made with: the model, and the file it is treated by."""
    base, file = study.record.model, prepared_path(study, arm)
    match arm.family:
        case Family.STEERING:
            return f"{base}+steer={file}@{arm.coefficient:g}"
        case Family.LORRA:
            return f"{base}+adapter={file}"
        case Family.NOTHING | Family.PROMPT:
            return base


def prepared_path(study: StudyFolder, arm: Arm) -> Path | None:
    """The file or folder that an arm's model is treated by."""
    name = prepared_name(arm)
    return None if name is None else study.prepared / name


def prepared_name(arm: Arm) -> str | None:
    """The name of that file or folder. Arms of one direction share it."""
    match arm.family:
        case Family.STEERING if arm.random_direction is not None:
            return f"random-{arm.random_direction}-{arm.depth:g}.safetensors"
        case Family.STEERING:
            return f"steer-{arm.depth:g}.safetensors"
        case Family.LORRA:
            return arm.name
        case Family.NOTHING | Family.PROMPT:
            return None


def prepare_arm(study: StudyFolder, arm: Arm, *, report: Report) -> bool:
    """Make what an arm needs, unless it is there. Says whether anything was made. Where another process is making it,
    this one waits."""
    path = prepared_path(study, arm)
    if path is None or path.exists():
        return False
    path.parent.mkdir(parents=True, exist_ok=True)
    with Lock(lock_path(path), advice="Wait until it is made.", wait=LONGEST_WAIT):
        if path.exists():
            return False
        if arm.family is Family.LORRA:
            _train_adapter(study, arm, path, report=report)
        elif arm.random_direction is None:
            _read_directions(study, arm, path, report=report)
        else:
            honest = msgspec.structs.replace(arm, random_direction=None)
            prepare_arm(study, honest, report=report)
            _draw_random_file(study, arm, path, honest=prepared_path(study, honest))
    return True


def _read_directions(study: StudyFolder, arm: Arm, path: Path, *, report: Report) -> None:
    """Directions for all layers; the push is centred on the one nearest to the arm's depth, whatever its score."""
    from unmask.whitebox.directions import DirectionPlan, read_steering
    from unmask.whitebox.steer import save_steering

    design = study.design
    limit = None if design.steering is None else design.steering.facts
    with open_whitebox(study.record.model) as opened:
        layers = opened.model.config.get_text_config().num_hidden_layers
        plan = DirectionPlan(layers=(centre_layer(arm.depth or 0.0, layers),), seed=design.seed)
        facts = contrast.draw_facts(_load_facts(design), limit, seed=design.seed)
        steering = read_steering(
            opened.model,
            opened.chat,
            facts,
            plan=plan,
            name=opened.recorded,
            report=lambda step: report(f"{path.name}: {step}"),
        )
    save_steering(steering, path)


def centre_layer(depth: float, layers: int) -> int:
    """The layer nearest to this share of the way from the first to the last; of two, the later."""
    return min(layers - 1, int(depth * (layers - 1) + 0.5))


def _draw_random_file(study: StudyFolder, arm: Arm, path: Path, *, honest: Path | None) -> None:
    from unmask.whitebox.directions import draw_random_steering
    from unmask.whitebox.steer import load_steering, save_steering

    assert honest is not None
    assert arm.random_direction is not None
    # Two studies with different seeds have different random directions, and so have two of one study.
    seed = 1_000 * study.design.seed + arm.random_direction
    save_steering(draw_random_steering(load_steering(honest), seed=seed), path)


def _train_adapter(study: StudyFolder, arm: Arm, path: Path, *, report: Report) -> None:
    from unmask.whitebox.lorra import LorraJob, refuse_job, train
    from unmask.whitebox.lorra_trainer import LorraSettings, StepReport

    design, wanted = study.design, study.design.lorra or LorraArms()
    settings = LorraSettings(
        strength=arm.strength or 0.0,
        steps=wanted.steps,
        batch=wanted.batch,
        rate=wanted.rate,
        seed=design.seed,
        shuffled=design.seed if arm.shuffled else msgspec.UNSET,
    )

    def say(done: StepReport) -> None:
        if done.step in (1, done.steps) or done.step % max(1, done.steps // 4) == 0:
            report(f"{arm.name}: step {done.step} of {done.steps}, loss {done.loss:.4g}")

    job = LorraJob(out=path, settings=settings, evaluated=_evaluated(design))
    refuse_job(job, model=study.record.model)
    checked, chat = check_local_model(study.record.model)
    train(checked, chat, _load_facts(design), job=job, report=say)


def _evaluated(design: StudyDesign) -> tuple[str, ...]:
    return tuple(dict.fromkeys((*contrast.EVALUATED, design.data)))


def _load_facts(design: StudyDesign) -> tuple[contrast.Fact, ...]:
    """Our own facts, which share nothing with what the study measures."""
    facts = contrast.load_facts()
    _refuse_shared_once(_evaluated(design))
    return facts


@cache
def _refuse_shared_once(sources: Sequence[str]) -> None:
    contrast.refuse_shared(contrast.load_facts(), sources)
