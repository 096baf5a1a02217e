"""A study as it is written down before anything runs: a TOML file, and the arms it describes.

An arm is one run of the same scenarios. The base comes first and lends its beliefs to all others, so that no arm can
win by losing beliefs. A hash names the design with the texts of its prompts; `left_out` and `changed` are not part of
it, because both may be added to after the first arm has begun.
"""

from __future__ import annotations

import hashlib
import re
import tomllib
from collections.abc import Iterator, Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from unmask import UnmaskError
from unmask.runs.options import SHIPPED_PROMPTS

BASE, BASE_AGAIN = "base", "base-again"


class Family(StrEnum):
    """What is done to the model. Each family but the first is tested once."""

    NOTHING = "nothing"
    PROMPT = "prompt"
    STEERING = "steering"
    LORRA = "lorra"


class Role(StrEnum):
    """What an arm is for. Only candidates can be chosen, and only they can succeed."""

    BASE = "base"
    PLACEBO = "placebo"
    """Nothing that could make a model honest: the base with another seed, a prompt about something else."""
    CANDIDATE = "candidate"
    REVERSED = "reversed"
    """The same with the opposite sign: more lies are expected."""
    CONTROL = "control"
    """As strong, without the content: a random direction, shuffled labels."""


class Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of the file. A key that it does not have is an error."""


class PromptArms(Part, frozen=True, kw_only=True):
    """`[prompts]`: shipped names, or files next to the study. `placebo` is a text of similar length about something
    else."""

    names: tuple[str, ...] = ("plain", "stakes", "check")
    placebo: str | None = None


class SteeringArms(Part, frozen=True, kw_only=True):
    """`[steering]`. Coefficient 0 is the base; `random` counts random directions at the largest coefficient; `facts`
    limits the facts that directions are read from."""

    coefficients: tuple[float, ...] = (-8.0, -4.0, -2.0, 2.0, 4.0, 8.0)
    depths: tuple[float, ...] = (0.5,)
    random: int = 1
    facts: int | None = None


class LorraArms(Part, frozen=True, kw_only=True):
    """`[lorra]`, as published unless changed."""

    strengths: tuple[float, ...] = (5.0, -5.0)
    shuffled: bool = True
    steps: int = 40
    batch: int = 16
    rate: float = 3e-4


class AnalysisPlan(Part, frozen=True, kw_only=True):
    """`[analysis]`. The outcome is the share of takes that are lies, paired by scenario; `labels` counts the scenarios
    of an arm whose replies are labelled; `expected` is what the authors expect, in a sentence."""

    folds: int = 5
    seed: int = 0
    perplexity_limit: float = 1.1
    labels: int = 30
    expected: str = ""


class Change(Part, frozen=True, kw_only=True):
    """`[[changed]]`: what was done differently after the first arm had begun."""

    date: str
    what: str
    why: str


class Design(Part, frozen=True, kw_only=True):
    """The whole file. `model` is an `hf:` name without a treatment."""

    name: str
    model: str
    data: str = "core"
    limit: int | None = None
    sample_seed: int = 0
    judge: str = "hf:judge-1.5b"
    takes: int = 10
    temperature: float = 1.0
    max_tokens: int = 300
    seed: int = 0
    left_out: tuple[str, ...] = ()
    """Arms that are not run, by name, for want of time."""
    prompts: PromptArms | None = None
    steering: SteeringArms | None = None
    lorra: LorraArms | None = None
    analysis: AnalysisPlan = AnalysisPlan()
    changed: tuple[Change, ...] = ()


class Arm(msgspec.Struct, frozen=True, kw_only=True):
    """One run. `name` is the name of its folder."""

    name: str
    family: Family
    role: Role
    seed: int
    prompt: str | None = None
    """A shipped name, or a file."""
    depth: float | None = None
    """Steering: where the push is centred, as a share of the layers."""
    coefficient: float | None = None
    random: int | None = None
    """Steering: the seed of a random direction, as long as the honest one in every layer."""
    strength: float | None = None
    shuffled: bool = False
    """LoRRA: whether the honest and the untruthful instruction were exchanged for half of the facts."""


def read_design(file: Path) -> Design:
    """The design in a file. Raises where it cannot be run."""
    try:
        design = msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), Design)
    except OSError as error:
        raise UnmaskError(f"{file} cannot be read: {error.strerror}", advice="studies/smollm2.toml is one.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, msgspec.ValidationError) as error:
        raise UnmaskError(f"{file}: {error}", advice="studies/README.md lists every key.") from None
    problems = list(_list_problems(design, file.parent)) or list(_list_arm_problems(design, file.parent))
    if problems:
        raise UnmaskError(f"{file}: {'; '.join(problems)}", advice="studies/README.md lists every key.")
    return design


def hash_design(design: Design, folder: Path) -> str:
    """Names everything that is fixed before the first arm, the texts of prompts included."""
    frozen = msgspec.structs.replace(design, left_out=(), changed=())
    state = hashlib.blake2b(msgspec.json.encode(frozen, order="sorted"), digest_size=8)
    for name in _list_prompts(design):
        state.update(SHIPPED_PROMPTS[name].encode() if name in SHIPPED_PROMPTS else (folder / name).read_bytes())
    return state.hexdigest()


def list_arms(design: Design, folder: Path) -> tuple[Arm, ...]:
    """Every arm in the order they run, the base first, without those left out."""
    seed = design.seed
    arms = [
        Arm(name=BASE, family=Family.NOTHING, role=Role.BASE, seed=seed),
        Arm(name=BASE_AGAIN, family=Family.NOTHING, role=Role.PLACEBO, seed=seed + 1),
    ]
    if design.prompts is not None:
        arms += _list_prompt_arms(design.prompts, folder, seed=seed)
    if design.steering is not None:
        arms += _list_steering_arms(design.steering, seed=seed)
    if design.lorra is not None:
        arms += _list_lorra_arms(design.lorra, seed=seed)
    return tuple(arm for arm in arms if arm.name not in design.left_out)


def select_arms(arms: Sequence[Arm], only: Sequence[str]) -> list[Arm]:
    """The arms whose names match a pattern; all without one."""
    names = [arm.name for arm in arms]
    for pattern in only:
        if not any(fnmatchcase(name, pattern) for name in names):
            raise UnmaskError(f"--only {pattern} matches no arm", advice=f"The arms are: {', '.join(names)}")
    return [arm for arm in arms if not only or any(fnmatchcase(arm.name, pattern) for pattern in only)]


def _list_prompt_arms(prompts: PromptArms, folder: Path, *, seed: int) -> list[Arm]:
    def make(name: str, role: Role) -> Arm:
        source = name if name in SHIPPED_PROMPTS else str(folder / name)
        return Arm(name=f"prompt-{Path(name).stem}", family=Family.PROMPT, role=role, seed=seed, prompt=source)

    arms = [make(name, Role.CANDIDATE) for name in prompts.names]
    return arms if prompts.placebo is None else [*arms, make(prompts.placebo, Role.PLACEBO)]


def _list_steering_arms(steering: SteeringArms, *, seed: int) -> list[Arm]:
    def make(name: str, role: Role, depth: float, coefficient: float, random: int | None = None) -> Arm:
        return Arm(
            name=f"steer-{name}",
            family=Family.STEERING,
            role=role,
            seed=seed,
            depth=depth,
            coefficient=coefficient,
            random=random,
        )

    arms = [
        make(f"{depth:g}-{dose:+g}", Role.CANDIDATE if dose > 0 else Role.REVERSED, depth, dose)
        for depth in steering.depths
        for dose in steering.coefficients
    ]
    largest, depth = max(steering.coefficients), steering.depths[0]
    return arms + [make(f"random-{n}", Role.CONTROL, depth, largest, n) for n in range(1, steering.random + 1)]


def _list_lorra_arms(lorra: LorraArms, *, seed: int) -> list[Arm]:
    def make(name: str, role: Role, strength: float, *, shuffled: bool = False) -> Arm:
        return Arm(name=name, family=Family.LORRA, role=role, seed=seed, strength=strength, shuffled=shuffled)

    arms = [make(f"lorra{way:+g}", Role.CANDIDATE if way > 0 else Role.REVERSED, way) for way in lorra.strengths]
    largest = max(lorra.strengths)
    return [*arms, make("lorra-shuffled", Role.CONTROL, largest, shuffled=True)] if lorra.shuffled else arms


def _list_prompts(design: Design) -> list[str]:
    names = () if design.prompts is None else (*design.prompts.names, design.prompts.placebo)
    return [name for name in names if name is not None]


def _list_problems(design: Design, folder: Path) -> Iterator[str]:
    """What is wrong with a design, each with the way out."""
    if not re.fullmatch(r"\w[\w.-]*", design.name):
        yield f"`name` {design.name!r} is not the name of a folder; use letters, digits, - and _"
    if not design.model.startswith("hf:") or "+adapter=" in design.model or "+steer=" in design.model:
        yield f"`model` {design.model!r} is not an untreated hf: model; use hf:PATH, a folder, GGUF file or hub name"
    if design.takes < 1 or design.analysis.folds < 2:
        yield "`takes` must be at least 1 and `folds` at least 2"
    for name in _list_prompts(design):
        if name not in SHIPPED_PROMPTS and (Path(name).name != name or not (folder / name).is_file()):
            yield f"the prompt {name!r} is neither a file next to the study nor one of: {', '.join(SHIPPED_PROMPTS)}"
    if design.steering is not None:
        if {dose > 0 for dose in design.steering.coefficients} != {True, False} or 0 in design.steering.coefficients:
            yield "`coefficients` need both signs, without 0, which is the base"
        if not design.steering.depths or not all(0 <= depth <= 1 for depth in design.steering.depths):
            yield "`depths` are shares of the layers, between 0 and 1"
    if design.lorra is not None and max(design.lorra.strengths, default=0) <= 0:
        yield "`strengths` need one above 0"


def _list_arm_problems(design: Design, folder: Path) -> Iterator[str]:
    names = [arm.name for arm in list_arms(msgspec.structs.replace(design, left_out=()), folder)]
    if len(set(names)) < len(names):
        yield "two arms have the same name"
    yield from (f"`left_out` names no arm: {name!r}" for name in design.left_out if name not in names)
    if {BASE, BASE_AGAIN} & set(design.left_out):
        yield "the base and its repetition are never left out"
