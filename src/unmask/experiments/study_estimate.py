"""What a study will take, before anything starts: arms, calls, tokens, minutes and memory.

Only the scenarios and the configuration of the model are read, no weights. Calls and tokens come from the planner of
`unmask estimate`. Minutes are those of a simple model: every token that is written or read takes as long as it took on
a machine that was measured, in proportion to the number of weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from unmask.data.dataset import LoadOptions
from unmask.data.load import load
from unmask.engine.define import NO_MODEL
from unmask.engine.estimate import estimate_scenarios
from unmask.engine.pilot import Amount
from unmask.engine.work import JUDGE, SUBJECT
from unmask.experiments.study_design import Arm, ArmPart, StudyDesign, list_arms, select_arms
from unmask.experiments.study_prepare import prepared_name, untreated_name
from unmask.judges.base import Style
from unmask.models.local.catalogue import ENTRIES
from unmask.models.local.hf import MAX_N, PREFIX, find_source
from unmask.protocol.plan import PlannerSettings
from unmask.protocol.state import ScenarioState
from unmask.records import Record, Result, Sampling, Scenario
from unmask.runs.options import load_developer_prompt
from unmask.whitebox.load import SPARE, CheckedModel, choose_device, count_parameters, read_config

BILLION = 1e9


class DeviceSpeed(Record, frozen=True, kw_only=True):
    """How fast a device is, for a model of one thousand million weights. Seconds for other sizes are in proportion."""

    written: float
    """Tokens written a second, with as many rows as the runs keep busy."""
    read: float
    """Tokens of prompts read a second."""
    trained: float
    """Tokens of LoRRA a second: three forward passes and one backward pass each."""
    load: float
    """Seconds to read the weights and to start."""
    start: float
    """Seconds of an arm besides: to open its model and to record what a GPU does in a step."""


GPU_SPEED = DeviceSpeed(written=25_000.0, read=150_000.0, trained=225_000.0, load=20.0, start=10.0)
"""One H200, from the tables of docs/whitebox.md: an 8B shape writes 7,226 tokens a second in 64 rows (58,000 for 1B;
less than half of it is taken here, as rows end at different times), trains 28,148 a second (225,000 for 1B), and a
judge of 1.5B reads 98,000 a second (150,000 for 1B). `load` and `start` are guesses."""
CPU_SPEED = DeviceSpeed(written=30.0, read=120.0, trained=40.0, load=5.0, start=2.0)
"""Two cores, a guess: SmolLM2 of 0.135 billion weights in float32 writes some 200 tokens a second in 16 rows."""
JUDGE_WEIGHTS = 1.54
"""Thousand millions of weights of the trained judge."""
LORRA_TOKENS = 350
"""Tokens of one training text in its three forms, from the bench of docs/whitebox.md: 28,148 tokens/s × 0.2 s / 16."""
ALL_FACTS = 381
"""Facts that are shipped (whitebox/contrast.jsonl)."""
PROMPT_TOKENS = 300
"""Tokens of a usual prompt: system prompt and question of a scenario of core. A guess."""
DIRECTION_TOKENS = 250
"""Tokens of one fact read under two instructions. A guess."""
KEYS_AND_VALUES = 2**32
"""Bytes for keys and values on a GPU, or 40 % of the weights if that is more (docs/whitebox.md); half on a CPU."""


class ArmEstimate(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What one arm takes. Calls and tokens are of a model without beliefs (`least`) and of one with all (`most`)."""

    arm: str
    least: dict[str, Amount]
    most: dict[str, Amount]
    prepares: str | None
    """What is made for this arm first."""
    minutes: float
    """An estimate, of `most`."""


class MemoryEstimate(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Bytes on the device. The judge is counted where it is an `hf:` model."""

    weights: int
    keys_and_values: int
    judge: int
    lorra: int
    """What a backward pass needs of a forward one, beside the weights; none without LoRRA arms."""
    total: int
    """All but the smaller of keys and values and LoRRA: they are not needed at a time."""


class StudyEstimate(Result, frozen=True, kw_only=True, omit_defaults=False):
    """Before anything starts. Minutes and memory are estimates for the device that is here."""

    study: str
    model: str
    parameters: int
    scenarios: int
    takes: int
    device: str
    arms: tuple[ArmEstimate, ...]
    left_out: tuple[str, ...]
    calls: tuple[int, int]
    tokens: tuple[int, int]
    """Read and written, at least and at most."""
    minutes: float
    memory: MemoryEstimate


def estimate_study(design: StudyDesign, folder: Path, *, only: Sequence[str] = ()) -> StudyEstimate:
    """What a study, or the arms of it that match a pattern of `only`, takes from its beginning."""
    name = untreated_name(design.model)
    source = find_source(name)
    config, device = read_config(source), choose_device()
    parameters = count_parameters(CheckedModel(source, config=config, tokenizer=None, device=device))
    speed = CPU_SPEED if device.startswith("cpu") else GPU_SPEED
    options = LoadOptions(limit=design.limit, seed=design.sample_seed)
    scenarios = load(design.data, options=options).scenarios
    wanted, seen = select_arms(design, folder, only), set[str]()
    arms = []
    for arm in list_arms(design, folder):
        if arm.name in wanted:
            prepares = prepared_name(arm)
            arms.append(
                _estimate_arm(
                    design, arm, scenarios, speed, parameters, prepares=None if prepares in seen else prepares
                )
            )
            seen.update(filter(None, [prepares]))
    bounds = [[amount for arm in arms for amount in getattr(arm, end).values()] for end in ("least", "most")]
    return StudyEstimate(
        study=design.name,
        model=name,
        parameters=parameters,
        scenarios=len(scenarios),
        takes=design.takes,
        device=device,
        arms=tuple(arms),
        left_out=design.left_out,
        calls=_ends(sum(amount.calls for amount in amounts) for amounts in bounds),
        tokens=_ends(sum(amount.input + amount.output for amount in amounts) for amounts in bounds),
        minutes=round(speed.load / 60 + sum(arm.minutes for arm in arms), 1),
        memory=_estimate_memory(design, config, parameters, on_gpu=not device.startswith("cpu")),
    )


def _ends(values: Iterable[int]) -> tuple[int, int]:
    least, most = values
    return least, most


def _estimate_arm(
    design: StudyDesign,
    arm: Arm,
    scenarios: Sequence[Scenario],
    speed: DeviceSpeed,
    parameters: int,
    *,
    prepares: str | None,
) -> ArmEstimate:
    settings = PlannerSettings(
        takes=design.takes,
        style=_judge_style(design.judge),
        sampling=Sampling(design.temperature, design.max_tokens, seed=arm.seed),
    )
    prompt = None if arm.developer_prompt is None else load_developer_prompt(arm.developer_prompt)
    states = ((scenario, ScenarioState()) for scenario in scenarios)
    lent = arm.part is not ArmPart.BASE
    bounds = estimate_scenarios(states, settings, size=MAX_N, prompt=prompt, lent=lent)
    billions = parameters / BILLION
    subject, judge = bounds.most[SUBJECT], bounds.most[JUDGE]
    seconds = speed.start + billions * (subject.output / speed.written + subject.input / speed.read)
    if design.judge.startswith(PREFIX):
        seconds += JUDGE_WEIGHTS * (judge.input + judge.output) / speed.read
    elif design.judge.startswith("embedded/"):
        seconds += JUDGE_WEIGHTS * (judge.input + judge.output) / CPU_SPEED.read
    if prepares is not None and arm.strength is not None and design.lorra is not None:
        seconds += billions * design.lorra.steps * design.lorra.batch * LORRA_TOKENS / speed.trained
    elif prepares is not None and design.steering is not None:
        seconds += billions * (design.steering.facts or ALL_FACTS) * DIRECTION_TOKENS / speed.read
    return ArmEstimate(
        arm=arm.name, least=bounds.least, most=bounds.most, prepares=prepares, minutes=round(seconds / 60, 2)
    )


def _judge_style(judge: str) -> Style:
    """How a judge of this name would be asked, without opening it."""
    if judge == NO_MODEL:
        return Style.VERBATIM
    if not judge.startswith((PREFIX, "embedded/", "gguf:")):
        return Style.LETTERS
    name = judge.removeprefix(PREFIX).removeprefix("embedded/")
    trained = any(entry.name == name and entry.trained_to_read for entry in ENTRIES)
    return Style.PICKS if trained else Style.CHOOSE


def _estimate_memory(design: StudyDesign, config: Any, parameters: int, *, on_gpu: bool) -> MemoryEstimate:
    """The formulas are those by which models and trainings that are too large are refused."""
    text, each = config.get_text_config(), 2 if on_gpu else 4
    weights = round(parameters * each * SPARE)
    heads = getattr(text, "num_key_value_heads", None) or text.num_attention_heads
    head_size = getattr(text, "head_dim", None) or text.hidden_size // text.num_attention_heads
    token = 2 * text.num_hidden_layers * heads * head_size * each
    most = max(KEYS_AND_VALUES, round(0.4 * parameters * each)) if on_gpu else KEYS_AND_VALUES // 2
    rows = 256 if on_gpu else 16
    keys_and_values = min(most, rows * (PROMPT_TOKENS + design.max_tokens) * token)
    judge = 0
    if design.judge.startswith(PREFIX) and design.judge != untreated_name(design.model):
        judge = round(JUDGE_WEIGHTS * BILLION * each * SPARE) + (KEYS_AND_VALUES if on_gpu else KEYS_AND_VALUES // 2)
    lorra = 0
    if design.lorra is not None:
        from unmask.whitebox.lorra import middle_third

        depth = middle_third(text.num_hidden_layers)[-1] + 1
        inner = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
        lorra = each * design.lorra.batch * LORRA_TOKENS // 3 * depth * (16 * text.hidden_size + 4 * inner)
    return MemoryEstimate(
        weights=weights,
        keys_and_values=keys_and_values,
        judge=judge,
        lorra=lorra,
        total=weights + judge + max(keys_and_values, lorra),
    )
