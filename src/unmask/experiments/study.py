"""`unmask mitigate study`: every arm of a design, from the preparation to the perplexity. The same call continues it.

The base is run first and lends its beliefs to all others. Each piece of work is written down when it is finished, and
what was in flight when the process was killed is all that is done again.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from unmask.engine.loop import run_blocking
from unmask.engine.run import run
from unmask.engine.session import Progress
from unmask.errors import IncompleteError, MissingError
from unmask.experiments.mitigation import FLUENCY_FILE, measure_fluency, read_fluency
from unmask.experiments.study_design import Arm, ArmPart, read_design, select_arms
from unmask.experiments.study_folder import ArmCost, ArmWork, StudyFolder, begin_study, is_begun, refuse_other_design
from unmask.experiments.study_prepare import model_name, prepare_arm, prepared_path, untreated_name
from unmask.files import read_bytes, write_atomically
from unmask.models.local.hf import HF, PREFIX, open_hf
from unmask.models.local.inside import open_whitebox
from unmask.protocol.score import Spending
from unmask.runs.run import Run
from unmask.whitebox.load import choose_device, model_hash, shared_weights

GPU_CONNECTIONS = 256
"""Requests at a time on a GPU: as many rows as `hf:` models write at once there (docs/whitebox.md)."""
CPU_CONNECTIONS = 50

Report = Callable[[str], None]


def run_study(
    file: Path,
    *,
    out: Path,
    only: Sequence[str] = (),
    progress: Progress | bool | None = None,
    report: Report = lambda _: None,
) -> StudyFolder:
    """Run the arms of a design, or those whose names match a pattern of `only`, and continue what was begun.

    Several processes may run different arms of one study at a time, once its base is finished.
    """
    design = read_design(file)
    refuse_other_design(file, design, out)
    wanted = select_arms(design, file.parent, only)
    base = untreated_name(design.model)
    if is_begun(out):
        study = begin_study(file, out=out, model=base)
        if all(study.is_finished(name) and study.is_finished(name, ArmWork.FLUENCY) for name in wanted):
            return study
    with shared_weights(), contextlib.ExitStack() as exits:
        judge = exits.enter_context(_HeldModel())
        subject = exits.enter_context(_HeldModel())
        with open_whitebox(base) as opened:
            study = begin_study(file, out=out, model=base, model_hash=model_hash(opened.model))
        del opened
        if design.judge.startswith(PREFIX):
            judge.hold(design.judge)
        for arm in study.arms:
            if arm.name in wanted:
                _run_arm(study, arm, subject=subject, progress=progress, report=report)
    return study


def _run_arm(
    study: StudyFolder, arm: Arm, *, subject: _HeldModel, progress: Progress | bool | None, report: Report
) -> None:
    if arm.part is not ArmPart.BASE and not study.is_finished("base"):
        raise MissingError(
            f"the base of {study.path} is not finished, and {arm.name} borrows its beliefs",
            advice="Run it first: unmask mitigate study STUDY.toml --only base",
        )
    if not study.is_finished(arm.name):
        meter = CostMeter(study, arm, ArmWork.PREPARE)
        if prepared_path(study, arm) is not None:
            report(f"{arm.name}: preparing")
        if prepare_arm(study, arm, report=report):
            meter.finish()
        report(f"{arm.name}: running")
        _ask_arm(study, arm, subject=subject, progress=progress)
    if not study.is_finished(arm.name, ArmWork.FLUENCY):
        report(f"{arm.name}: perplexity")
        _measure_arm(study, arm)


def _ask_arm(study: StudyFolder, arm: Arm, *, subject: _HeldModel, progress: Progress | bool | None) -> None:
    """Ask and read everything of an arm. An arm with failures is not finished: the same command asks them again."""
    design, name, out = study.design, model_name(study, arm), study.run_path(arm.name)
    subject.hold(name)
    meter = CostMeter(study, arm, ArmWork.RUN, continued=(out / "run.json").is_file())
    finished = run(
        data=design.data,
        model=name,
        judge=design.judge,
        out=out,
        progress=progress,
        limit=design.limit,
        sample_seed=design.sample_seed,
        takes=design.takes,
        temperature=design.temperature,
        max_tokens=design.max_tokens,
        seed=arm.seed,
        developer_prompt=arm.developer_prompt,
        beliefs_from=None if arm.part is ArmPart.BASE else str(study.run_path("base")),
        max_connections=CPU_CONNECTIONS if choose_device().startswith("cpu") else GPU_CONNECTIONS,
    )
    score = finished.score()
    if score.missing is not None:
        raise IncompleteError(
            f"the arm {arm.name} is not complete: {score.missing}",
            advice="Run the same command again: it asks what failed.",
        )
    meter.finish(score.spent)


def _measure_arm(study: StudyFolder, arm: Arm) -> None:
    """The perplexity of an arm's model. Arms without a treatment have the base's."""
    meter = CostMeter(study, arm, ArmWork.FLUENCY)
    target, base = study.run_path(arm.name), Run(study.run_path("base"))
    if prepared_path(study, arm) is None and arm.part is not ArmPart.BASE and read_fluency(base) is not None:
        write_atomically(target / FLUENCY_FILE, read_bytes(base.path / FLUENCY_FILE))
    else:
        for _ in measure_fluency([target]):
            pass
    meter.finish()


class CostMeter:
    """What a piece of work takes, from where this is made to `finish`, which writes it down."""

    def __init__(self, study: StudyFolder, arm: Arm, work: ArmWork, *, continued: bool = False) -> None:
        import torch

        self._study, self._arm, self._work, self._continued = study, arm, work, continued
        self._gpu = torch.device(choose_device()).type == "cuda"
        if self._gpu:
            torch.cuda.reset_peak_memory_stats()
        self._began = time.monotonic()

    def finish(self, spent: Spending | None = None) -> None:
        import torch

        seconds, calls = time.monotonic() - self._began, 0
        tokens: dict[str, int | None] = {"input": None, "output": None}
        if spent is not None:
            calls = (spent.subject or 0) + (spent.judge or 0)
            for kind in tokens:
                counts = [count for name, count in spent.tokens.items() if name.endswith(f"_{kind}")]
                reported = [count for count in counts if count is not None]
                tokens[kind] = sum(reported) if len(reported) == len(counts) else None
        self._study.add_cost(
            ArmCost(
                arm=self._arm.name,
                what=self._work,
                seconds=round(seconds, 3),
                calls=calls,
                input_tokens=tokens["input"],
                output_tokens=tokens["output"],
                peak_memory=torch.cuda.max_memory_allocated() if self._gpu else None,
                device=torch.cuda.get_device_name() if self._gpu else "cpu",
                at=datetime.now(UTC).isoformat(timespec="seconds"),
                continued=self._continued,
            )
        )


class _HeldModel:
    """An `hf:` model that stays open between runs, so that its weights, and what a GPU has recorded, stay too."""

    def __init__(self) -> None:
        self._name: str | None = None
        self._model: HF | None = None

    def hold(self, name: str) -> None:
        """Open this model and let go of the one before, unless it is the same."""
        if name != self._name:
            self.release()
            self._name, self._model = name, open_hf(name)

    def release(self) -> None:
        if self._model is not None:
            run_blocking(self._model.close)
        self._name = self._model = None

    def __enter__(self) -> _HeldModel:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()
