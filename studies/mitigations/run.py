"""Every arm of a design: what it is treated with is made once, `unmask.run` asks it, and its perplexity is measured.

A study's folder holds `study.json`, `prepared/` with steer files and adapters, and `runs/` with one run folder for each
arm. The same call continues a study: a finished arm is not opened again, and `unmask.run` continues an unfinished one.
"""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

import msgspec

import unmask
from studies.mitigations.design import BASE, Arm, Design, Family, LorraArms, hash_design, list_arms, select_arms
from unmask import UnmaskError

FLUENCY = "fluency.json"
"""In a run folder, where `unmask mitigate report` looks for it too."""
Say = Callable[[str], None]


class StudyRecord(msgspec.Struct, frozen=True, kw_only=True):
    """`study.json`: written once, before the first arm."""

    name: str
    design_hash: str
    created: str
    unmask: str
    commit: str | None
    """The git commit that holds design and prompts as they are; `None` where there is none."""


class Study:
    """A study and its folder, which may still be empty."""

    def __init__(self, file: Path, design: Design, out: Path) -> None:
        self.file, self.design, self.out = file, design, out
        self.arms = list_arms(design, file.parent)
        self.hash = hash_design(design, file.parent)

    def run_path(self, arm: str) -> Path:
        return self.out / "runs" / arm

    @property
    def record(self) -> StudyRecord | None:
        """What was written before the first arm. Raises where the folder belongs to another design."""
        file = self.out / "study.json"
        if not file.is_file():
            return None
        record = msgspec.json.decode(file.read_bytes(), type=StudyRecord)
        if record.design_hash != self.hash:
            raise UnmaskError(
                f"{self.out} was begun with another design than {self.file}: {record.design_hash}, not {self.hash}",
                advice="Restore the file and its prompts, or give another --out. Only `left_out` and [[changed]] may "
                "be added to after the first arm has begun.",
            )
        return record

    def begin(self) -> None:
        """Write `study.json`, unless it is there."""
        if self.record is None:
            self.out.mkdir(parents=True, exist_ok=True)
            record = StudyRecord(
                name=self.design.name,
                design_hash=self.hash,
                created=datetime.now(UTC).isoformat(timespec="seconds"),
                unmask=unmask.__version__,
                commit=_find_commit(self.file, self.arms),
            )
            (self.out / "study.json").write_bytes(msgspec.json.format(msgspec.json.encode(record)) + b"\n")

    def is_complete(self, arm: str) -> bool:
        path = self.run_path(arm)
        return (path / "run.json").is_file() and unmask.open_run(path).score().missing is None


def run_study(study: Study, *, only: Sequence[str] = (), say: Say = print) -> None:
    """Run the arms, or those whose names match a pattern of `only`. Several processes may run different arms, once the
    base is finished."""
    wanted = select_arms(study.arms, only)
    study.begin()
    for arm in wanted:
        if not study.is_complete(arm.name):
            _run_arm(study, arm, say)
        if arm.name == BASE or arm.family in (Family.STEERING, Family.LORRA):
            _measure_fluency(study, arm, say)


def _run_arm(study: Study, arm: Arm, say: Say) -> None:
    """An arm with failures is not finished: the same command asks them again."""
    from unmask.whitebox.load import choose_device

    if arm.name != BASE and not study.is_complete(BASE):
        raise UnmaskError(
            f"the base in {study.out} is not finished, and {arm.name} borrows its beliefs",
            advice=f"Run it first: python -m studies.mitigations {study.file} --only {BASE}",
        )
    model = _treated_model(study, arm, say)
    say(f"{arm.name}: running")
    design = study.design
    finished = unmask.run(
        data=design.data,
        model=model,
        judge=design.judge,
        out=study.run_path(arm.name),
        progress=False,
        limit=design.limit,
        sample_seed=design.sample_seed,
        takes=design.takes,
        temperature=design.temperature,
        max_tokens=design.max_tokens,
        seed=arm.seed,
        developer_prompt=arm.prompt,
        beliefs_from=None if arm.name == BASE else str(study.run_path(BASE)),
        max_connections=50 if choose_device().startswith("cpu") else 256,  # as many rows as an hf: model writes at once
    )
    if (missing := finished.score().missing) is not None:
        raise UnmaskError(f"{arm.name} is not complete: {missing}", advice="Run the same command again.")


def _measure_fluency(study: Study, arm: Arm, say: Say) -> None:
    from unmask.models.local.inside import open_whitebox
    from unmask.whitebox.fluency import measure_perplexity

    file = study.run_path(arm.name) / FLUENCY
    if not file.is_file():
        say(f"{arm.name}: perplexity")
        with open_whitebox(_treated_model(study, arm, say)) as opened:
            fluency = measure_perplexity(opened.model, opened.chat, name=opened.recorded)
        file.write_bytes(msgspec.json.format(msgspec.json.encode(fluency)) + b"\n")


# --- what arms are treated with -----------------------------------------------------------------------------


def _treated_model(study: Study, arm: Arm, say: Say) -> str:
    """The model's name with the steer file or adapter of the arm, which is made now if it is not there."""
    model, prepared = study.design.model, study.out / "prepared"
    prepared.mkdir(parents=True, exist_ok=True)
    match arm.family:
        case Family.STEERING:
            file = prepared / (f"steer-{arm.depth:g}" if arm.random is None else f"random-{arm.random}")
            file = file.with_name(f"{file.name}.safetensors")
            if not file.is_file():
                _save_direction(study, arm, file, say)
            return f"{model}+steer={file}@{arm.coefficient:g}"
        case Family.LORRA:
            if not (prepared / arm.name).is_dir():
                _train_adapter(study, arm, prepared / arm.name, say)
            return f"{model}+adapter={prepared / arm.name}"
        case _:
            return model


def _save_direction(study: Study, arm: Arm, file: Path, say: Say) -> None:
    """The directions of all layers, centred on the layer at the arm's depth; or random ones of the same length."""
    from unmask.whitebox.directions import draw_random_steering
    from unmask.whitebox.steer import Steering, load_steering, save_steering

    honest = file.with_name("honest.safetensors")
    if not honest.is_file():
        _read_directions(study, honest, say)
    steering = load_steering(honest)
    if arm.random is not None:
        # Two studies with different seeds have different random directions, and so have two of one study.
        steering = draw_random_steering(steering, seed=1_000 * study.design.seed + arm.random)
    layer = centre_layer(arm.depth or 0.0, steering.metadata.layers)
    save_steering(Steering(msgspec.structs.replace(steering.metadata, layer=layer, sign=None), steering.vectors), file)


def _read_directions(study: Study, file: Path, say: Say) -> None:
    from unmask.models.local.inside import open_whitebox
    from unmask.whitebox.contrast import draw_facts, load_facts, refuse_shared
    from unmask.whitebox.directions import read_steering
    from unmask.whitebox.steer import save_steering

    design, facts = study.design, load_facts()
    refuse_shared(facts, [design.data])
    facts = draw_facts(facts, design.steering.facts if design.steering else None, seed=design.seed)
    say("steering: reading directions")
    with open_whitebox(design.model) as opened:
        steering = read_steering(opened.model, opened.chat, facts, name=opened.recorded, seed=design.seed)
        save_steering(steering, file)


def centre_layer(depth: float, layers: int) -> int:
    """The layer nearest to this share of the way from the first to the last; of two, the later."""
    return min(layers - 1, int(depth * (layers - 1) + 0.5))


def _train_adapter(study: Study, arm: Arm, folder: Path, say: Say) -> None:
    from unmask.models.local.inside import check_local_model
    from unmask.whitebox.contrast import load_facts, refuse_shared
    from unmask.whitebox.lorra import train
    from unmask.whitebox.lorra_trainer import LorraSettings

    design, wanted, facts = study.design, study.design.lorra or LorraArms(), load_facts()
    refuse_shared(facts, [design.data])
    settings = LorraSettings(
        strength=arm.strength or 0.0,
        steps=wanted.steps,
        batch=wanted.batch,
        rate=wanted.rate,
        seed=design.seed,
        shuffled=design.seed if arm.shuffled else msgspec.UNSET,
    )
    say(f"{arm.name}: training an adapter")
    train(check_local_model(design.model), facts, out=folder, settings=settings, evaluated=(design.data,))


def _find_commit(file: Path, arms: Sequence[Arm]) -> str | None:
    """The last commit of the design and its prompts, if git holds them as they are."""
    prompts = [Path(arm.prompt).name for arm in arms if arm.prompt and Path(arm.prompt).is_file()]
    names = [file.name, *prompts]

    def ask(*words: str) -> str | None:
        try:
            done = subprocess.run(
                ["git", *words, "--", *names], cwd=file.parent, capture_output=True, text=True, check=False
            )
        except OSError:
            return None
        return done.stdout.strip() if done.returncode == 0 else None

    unchanged = ask("status", "--porcelain", "--ignored") == ""
    return ask("log", "-1", "--format=%H %cI") or None if unchanged else None
