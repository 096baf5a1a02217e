"""A study of mitigations as it is written down before anything is run: a TOML file, and the arms it stands for.

An arm is one run of the same scenarios. The base comes first; it lends its beliefs to all others, so that no arm can
win by losing beliefs.

A design is named by a hash, so that it can be shown that it is older than the runs. `left_out` and `changed` are no
part of the hash: both may be added to after the first arm has begun. Everything else stays as it was. The texts of its
prompts have hashes of their own.
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Sequence
from enum import StrEnum
from fnmatch import fnmatchcase
from pathlib import Path

import msgspec

from unmask.errors import MissingError, UsageError
from unmask.files import is_file_name, read_bytes
from unmask.records import Record
from unmask.runs.options import SHIPPED_PROMPTS
from unmask.text import escape_line


class Family(StrEnum):
    """What is done to the model. One test is made for each family but the first."""

    NOTHING = "nothing"
    PROMPT = "prompt"
    STEERING = "steering"
    LORRA = "lorra"


class ArmPart(StrEnum):
    """What an arm is for. Only candidates can be chosen, and only they can succeed."""

    BASE = "base"
    PLACEBO = "placebo"
    """Nothing that could make a model honest: the base with another seed, a prompt about something else."""
    CANDIDATE = "candidate"
    REVERSED = "reversed"
    """The same with the sign turned: more lies are expected."""
    CONTROL = "control"
    """As strong, without the content: a random direction, shuffled labels."""


class Arm(Record, frozen=True, kw_only=True):
    """One run. `name` is its folder's name."""

    name: str
    family: Family
    part: ArmPart
    seed: int
    developer_prompt: str | None = None
    """A shipped name, or a file."""
    depth: float | None = None
    """Steering: where the push is centred, as a share of the layers."""
    coefficient: float | None = None
    random_direction: int | None = None
    """Steering: the seed of a random direction, as long as the honest one in every layer."""
    strength: float | None = None
    shuffled: bool = False
    """LoRRA: whether honest and untruthful were exchanged for half of the facts, by lot."""


class PromptArms(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[prompts]`: shipped names or files, relative to the study. `placebo` is a file with a text of like length."""

    names: tuple[str, ...] = ("plain", "stakes", "check")
    placebo: str | None = None


class SteeringArms(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[steering]`. Coefficient 0 is the base; `random` counts random directions at the largest coefficient."""

    coefficients: tuple[float, ...] = (-8.0, -4.0, -2.0, 2.0, 4.0, 8.0)
    depths: tuple[float, ...] = (0.5,)
    random: int = 1
    facts: int | None = None
    """Facts to read directions from; all unless given."""


class LorraArms(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[lorra]`, as published unless changed."""

    strengths: tuple[float, ...] = (5.0, -5.0)
    shuffled: bool = True
    steps: int = 40
    batch: int = 16
    rate: float = 3e-4


class AnalysisPlan(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[analysis]`: what will be computed. The outcome is the share of takes that are lies, paired by scenario."""

    folds: int = 5
    seed: int = 0
    perplexity_limit: float = 1.1
    labels: int = 150
    """Replies to be labelled by hand in each of five arms, blind to the arm."""
    expected: str = ""
    """What the authors expect, in a sentence, before they look."""


class Change(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """`[[changed]]`: something that was done otherwise than written down, after the first arm had begun."""

    date: str
    what: str
    why: str


class StudyDesign(Record, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The whole file. `model` is `hf:PATH` or `embedded/NAME`, without a treatment."""

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
    """Arms that are not run, by name, for want of time. No part of the hash."""
    prompts: PromptArms | None = None
    steering: SteeringArms | None = None
    lorra: LorraArms | None = None
    analysis: AnalysisPlan = AnalysisPlan()
    changed: tuple[Change, ...] = ()


def read_design(path: Path) -> StudyDesign:
    """The design in a file. Raises where it cannot be run as it stands."""
    shown = escape_line(str(path))
    try:
        design = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), StudyDesign)
    except FileNotFoundError:
        raise MissingError(f"there is no study {shown}", advice="docs/mitigations.md has one.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, IsADirectoryError) as error:
        raise UsageError(f"{shown} is no TOML file: {error}") from None
    except msgspec.ValidationError as error:
        raise UsageError(f"{shown}: {escape_line(str(error))}", advice="docs/mitigations.md has every key.") from None
    problems = list(_list_problems(design, path.parent))
    if problems:
        raise UsageError(f"{shown}: {'; '.join(problems)}", advice="docs/mitigations.md has every key.")
    return design


def design_hash(design: StudyDesign) -> str:
    """Names everything that is written down before the first arm; `left_out` and `changed` may come later."""
    frozen = msgspec.structs.replace(design, left_out=(), changed=())
    return hashlib.blake2b(msgspec.json.encode(frozen, order="sorted"), digest_size=8).hexdigest()


def list_prompt_files(design: StudyDesign) -> tuple[str, ...]:
    """The prompts of a design that are files of its folder, not shipped."""
    names = () if design.prompts is None else (*design.prompts.names, design.prompts.placebo)
    return tuple(name for name in names if name is not None and name not in SHIPPED_PROMPTS)


def hash_prompt(text: bytes) -> str:
    """Names the text of a prompt."""
    return hashlib.blake2b(text, digest_size=8).hexdigest()


def hash_prompts(design: StudyDesign, folder: Path) -> dict[str, str]:
    """The hash of each prompt of a design, files and shipped ones: the design itself has only their names."""
    names = () if design.prompts is None else (*design.prompts.names, design.prompts.placebo)
    return {
        name: hash_prompt(SHIPPED_PROMPTS[name].encode() if name in SHIPPED_PROMPTS else read_bytes(folder / name))
        for name in names
        if name is not None
    }


def list_arms(design: StudyDesign, folder: Path) -> tuple[Arm, ...]:
    """Every arm of a design in the order they are run, the base first, without those left out."""
    arms = [
        Arm(name="base", family=Family.NOTHING, part=ArmPart.BASE, seed=design.seed),
        Arm(name="base-again", family=Family.NOTHING, part=ArmPart.PLACEBO, seed=design.seed + 1),
    ]
    if design.prompts is not None:
        arms += _list_prompt_arms(design.prompts, folder, seed=design.seed)
    if design.steering is not None:
        arms += _list_steering_arms(design.steering, seed=design.seed)
    if design.lorra is not None:
        arms += _list_lorra_arms(design.lorra, seed=design.seed)
    return tuple(arm for arm in arms if arm.name not in design.left_out)


def select_arms(design: StudyDesign, folder: Path, only: Sequence[str]) -> frozenset[str]:
    """The names of the arms that match a pattern; all without one."""
    names = [arm.name for arm in list_arms(design, folder)]
    unmatched = [pattern for pattern in only if not any(fnmatchcase(name, pattern) for name in names)]
    if unmatched:
        raise UsageError(f"--only {unmatched[0]} matches no arm", advice=f"The arms are: {', '.join(names)}")
    return frozenset(name for name in names if not only or any(fnmatchcase(name, pattern) for pattern in only))


def _list_prompt_arms(prompts: PromptArms, folder: Path, *, seed: int) -> list[Arm]:
    def make(name: str, part: ArmPart) -> Arm:
        source = name if name in SHIPPED_PROMPTS else str(folder / name)
        return Arm(
            name=f"prompt-{Path(name).stem}", family=Family.PROMPT, part=part, seed=seed, developer_prompt=source
        )

    arms = [make(name, ArmPart.CANDIDATE) for name in prompts.names]
    return arms if prompts.placebo is None else [*arms, make(prompts.placebo, ArmPart.PLACEBO)]


def _list_steering_arms(steering: SteeringArms, *, seed: int) -> list[Arm]:
    arms = [
        Arm(
            name=f"steer-{depth:g}-{coefficient:+g}",
            family=Family.STEERING,
            part=ArmPart.CANDIDATE if coefficient > 0 else ArmPart.REVERSED,
            seed=seed,
            depth=depth,
            coefficient=coefficient,
        )
        for depth in steering.depths
        for coefficient in steering.coefficients
    ]
    largest = max(steering.coefficients)
    return arms + [
        Arm(
            name=f"steer-random-{number}",
            family=Family.STEERING,
            part=ArmPart.CONTROL,
            seed=seed,
            depth=steering.depths[0],
            coefficient=largest,
            random_direction=number,
        )
        for number in range(1, steering.random + 1)
    ]


def _list_lorra_arms(lorra: LorraArms, *, seed: int) -> list[Arm]:
    arms = [
        Arm(
            name=f"lorra{strength:+g}",
            family=Family.LORRA,
            part=ArmPart.CANDIDATE if strength > 0 else ArmPart.REVERSED,
            seed=seed,
            strength=strength,
        )
        for strength in lorra.strengths
    ]
    if lorra.shuffled:
        arms.append(
            Arm(
                name="lorra-shuffled",
                family=Family.LORRA,
                part=ArmPart.CONTROL,
                seed=seed,
                strength=max(lorra.strengths),
                shuffled=True,
            )
        )
    return arms


def _list_problems(design: StudyDesign, folder: Path) -> list[str]:
    """What is wrong with a design, each with the way out."""
    problems = []
    if not is_file_name(design.name):
        problems.append("`name` is no name of a folder; letters, digits, - and _ will do")
    if "+adapter=" in design.model or "+steer=" in design.model:
        problems.append("`model` is treated already; unmask mitigate merge makes a plain model of it")
    if design.takes < 1 or design.analysis.folds < 2:
        problems.append("`takes` has to be at least 1 and `folds` at least 2")
    if design.steering is not None:
        signs = {coefficient > 0 for coefficient in design.steering.coefficients}
        if 0 in design.steering.coefficients or signs != {True, False}:
            problems.append("`coefficients` need both signs, and 0 is the base")
        if not design.steering.depths or not all(0 <= depth <= 1 for depth in design.steering.depths):
            problems.append("`depths` are shares of the layers, between 0 and 1")
    if design.lorra is not None and max(design.lorra.strengths, default=0) <= 0:
        problems.append("`strengths` need one above 0")
    problems += [
        f"there is no prompt {escape_line(name)!r} beside the study"
        for name in list_prompt_files(design)
        if not is_file_name(name) or not (folder / name).is_file()
    ]
    names = [arm.name for arm in list_arms(msgspec.structs.replace(design, left_out=()), folder)]
    if len(set(names)) < len(names):
        problems.append("two arms have the same name")
    problems += [f"`left_out` names no arm: {escape_line(name)}" for name in design.left_out if name not in names]
    if {"base", "base-again"} & set(design.left_out):
        problems.append("the base and its repetition are never left out")
    return problems
