"""What a study will take, before anything starts: arms, calls, tokens, minutes and memory.

Only the scenarios and the configuration of the model, or the header of its file, are read: no weights, no tokenizer.
Calls and tokens come from the planner of `unmask estimate`. Minutes are those of a simple model: every token that is
written or read takes as long as it took on a machine that was measured, in proportion to the number of weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from unmask.engine.define import NO_MODEL, select_letters
from unmask.engine.estimate import estimate_scenarios
from unmask.engine.pilot import Amount
from unmask.engine.run import load_whole, select_data
from unmask.engine.simulation import CHARACTERS_PER_TOKEN
from unmask.engine.work import JUDGE, SUBJECT
from unmask.experiments.study_design import Arm, ArmPart, StudyDesign, list_arms, select_arms
from unmask.experiments.study_prepare import prepared_name, untreated_name
from unmask.experiments.study_shape import ModelShape, read_model_shape
from unmask.judges.base import Style
from unmask.models.local.catalogue import is_trained_judge
from unmask.models.local.hf import MAX_N, PREFIX, find_source
from unmask.protocol.plan import PlannerSettings
from unmask.protocol.state import ScenarioState
from unmask.records import Record, Result, Sampling, Scenario
from unmask.runs.options import Options, load_developer_prompt
from unmask.whitebox.load import SPARE, choose_device

BILLION = 1e9


class DeviceSpeed(Record, frozen=True, kw_only=True):
    """How fast a device is, for a model of one thousand million weights. Seconds for other sizes are in proportion, but
    for `load` and `start`."""

    written: float
    """Tokens written a second, with as many rows as the runs keep busy."""
    read: float
    """Tokens of prompts read a second."""
    directed: float
    """Tokens a second from which directions are read."""
    trained: float
    """Tokens of LoRRA a second: three forward passes and one backward pass each."""
    load: float
    """Seconds to read and unpack the weights, once in a process."""
    start: float
    """Seconds of an arm besides: to open its model, to record what a GPU does in a step, and its perplexity."""


GPU_SPEED = DeviceSpeed(written=9_700.0, read=72_000.0, directed=34_000.0, trained=50_000.0, load=100.0, start=6.5)
"""One H200, from `arms.jsonl` of E1 (1.78 billion weights in bfloat16, and a judge of the same size). Four processes
shared the GPU. `written` and `read` are fitted to the base (209,000 tokens written by the model and 1,412,000 read by
the judge in 78 s) and to the six steering arms that were not the first of their process (49 to 56 s); all seven are met
within 1.1 s. Directions took 5 s, LoRRA 8 s, perplexities 1.1 to 1.6 s, loading 100 s of CPU time. A process that has
the GPU to itself should be quicker; that was not measured."""
CPU_SPEED = DeviceSpeed(written=5.0, read=120.0, directed=25.0, trained=8.0, load=20.0, start=12.0)
"""Two cores that others used as well, from `make study`: SmolLM2 of 0.135 billion weights in float32 wrote 1,600 to
1,800 tokens of an arm in 53 to 118 s, read directions from 64 facts in 90 s, and took 113 s for five steps of LoRRA at
batch 4. `read` is a guess. Quiet cores are quicker."""
JUDGE_WEIGHTS = 1.78
"""Thousand millions of weights of the trained judge."""
LORRA_TOKENS = 350
"""Tokens of one training text in its three forms, from the bench of docs/whitebox.md: 28,148 tokens/s × 0.2 s / 16."""
ALL_FACTS = 381
"""Facts that are shipped (whitebox/contrast.jsonl)."""
PROMPT_TOKENS = 300
"""Tokens of a usual prompt: system prompt and question of a scenario of core. A guess."""
DIRECTION_TOKENS = 250
"""Tokens of one fact read under two instructions. A guess, with which `directed` was computed."""
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
    shape, device = read_model_shape(source), choose_device()
    speed = CPU_SPEED if device.startswith("cpu") else GPU_SPEED
    options = Options(limit=design.limit, sample_seed=design.sample_seed)
    whole = load_whole(design.data, options)
    if is_trained_judge(design.judge):
        options, _ = select_letters(whole, options, judge=design.judge)
    scenarios = select_data(whole, options).scenarios
    planner = _ArmPlanner(design, scenarios, speed, shape.parameters)
    wanted, seen = select_arms(design, folder, only), set[str]()
    arms = []
    for arm in list_arms(design, folder):
        if arm.name in wanted:
            prepares = prepared_name(arm)
            arms.append(planner.estimate_arm(arm, prepares=None if prepares in seen else prepares))
            seen.update(filter(None, [prepares]))
    bounds = [[amount for arm in arms for amount in getattr(arm, end).values()] for end in ("least", "most")]
    return StudyEstimate(
        study=design.name,
        model=name,
        parameters=shape.parameters,
        scenarios=len(scenarios),
        takes=design.takes,
        device=device,
        arms=tuple(arms),
        left_out=design.left_out,
        calls=_ends(sum(amount.calls for amount in amounts) for amounts in bounds),
        tokens=_ends(sum(amount.input + amount.output for amount in amounts) for amounts in bounds),
        minutes=round(speed.load / 60 + sum(arm.minutes for arm in arms), 1),
        memory=_estimate_memory(design, shape, on_gpu=not device.startswith("cpu")),
    )


def _ends(values: Iterable[int]) -> tuple[int, int]:
    least, most = values
    return least, most


class _ArmPlanner:
    """Runs the planner once for an arm that asks all probes and once for one that borrows them: nothing else about an
    arm changes what is sent, but for a developer prompt in front of it."""

    def __init__(self, design: StudyDesign, scenarios: Sequence[Scenario], speed: DeviceSpeed, parameters: int) -> None:
        self._design, self._scenarios, self._speed = design, scenarios, speed
        self._billions = parameters / BILLION
        self._bounds: dict[bool, tuple[dict[str, Amount], dict[str, Amount]]] = {}

    def estimate_arm(self, arm: Arm, *, prepares: str | None) -> ArmEstimate:
        lent = arm.part is not ArmPart.BASE
        if lent not in self._bounds:
            self._bounds[lent] = self._count_calls(lent=lent)
        least, most = (_add_prompt(amounts, arm.developer_prompt) for amounts in self._bounds[lent])
        seconds = self._ask_seconds(most) + (0.0 if prepares is None else self._prepare_seconds(arm))
        return ArmEstimate(arm=arm.name, least=least, most=most, prepares=prepares, minutes=round(seconds / 60, 2))

    def _count_calls(self, *, lent: bool) -> tuple[dict[str, Amount], dict[str, Amount]]:
        design = self._design
        settings = PlannerSettings(
            takes=design.takes,
            style=_judge_style(design.judge),
            sampling=Sampling(design.temperature, design.max_tokens, seed=design.seed),
        )
        states = ((scenario, ScenarioState()) for scenario in self._scenarios)
        bounds = estimate_scenarios(states, settings, size=MAX_N, lent=lent)
        if settings.style is not Style.PICKS:
            return bounds.least, bounds.most
        least, most = ({**end, JUDGE: _answer_briefly(end[JUDGE])} for end in (bounds.least, bounds.most))
        return least, most

    def _ask_seconds(self, amounts: Mapping[str, Amount]) -> float:
        speed, subject, judge = self._speed, amounts[SUBJECT], amounts[JUDGE]
        seconds = speed.start + self._billions * (subject.output / speed.written + subject.input / speed.read)
        if self._design.judge.startswith(PREFIX):
            seconds += JUDGE_WEIGHTS * (judge.input + judge.output) / speed.read
        elif self._design.judge.startswith("embedded/"):
            seconds += JUDGE_WEIGHTS * (judge.input + judge.output) / CPU_SPEED.read
        return seconds

    def _prepare_seconds(self, arm: Arm) -> float:
        """A random direction is drawn, and takes nothing."""
        lorra, steering = self._design.lorra, self._design.steering
        if arm.strength is not None and lorra is not None:
            return self._billions * lorra.steps * lorra.batch * LORRA_TOKENS / self._speed.trained
        if arm.random_direction is None and steering is not None:
            return self._billions * (steering.facts or ALL_FACTS) * DIRECTION_TOKENS / self._speed.directed
        return 0.0


def _answer_briefly(amount: Amount) -> Amount:
    """The trained judge picks among the answers that are possible, and writes one token."""
    return Amount(amount.calls, amount.input, amount.calls)


def _add_prompt(amounts: Mapping[str, Amount], developer_prompt: str | None) -> dict[str, Amount]:
    """With the developer prompt in every request: an arm with one borrows its probes, so all requests are pressured."""
    if developer_prompt is None:
        return dict(amounts)
    prompt, subject = load_developer_prompt(developer_prompt), amounts[SUBJECT]
    tokens = round(subject.calls * len(prompt.text) / CHARACTERS_PER_TOKEN)
    return {**amounts, SUBJECT: subject.plus(Amount(input=tokens))}


def _judge_style(judge: str) -> Style:
    """How a judge of this name would be asked, without opening it."""
    if judge == NO_MODEL:
        return Style.VERBATIM
    return Style.PICKS if is_trained_judge(judge) else Style.LETTERS


def _estimate_memory(design: StudyDesign, shape: ModelShape, *, on_gpu: bool) -> MemoryEstimate:
    """The formulas are those by which models and trainings that are too large are refused."""
    each = 2 if on_gpu else 4
    weights = round(shape.parameters * each * SPARE)
    token = 2 * shape.layers * shape.key_width * each
    most = max(KEYS_AND_VALUES, round(0.4 * shape.parameters * each)) if on_gpu else KEYS_AND_VALUES // 2
    rows = 256 if on_gpu else 16
    keys_and_values = min(most, rows * (PROMPT_TOKENS + design.max_tokens) * token)
    judge = 0
    if design.judge.startswith(PREFIX) and design.judge != untreated_name(design.model):
        judge = round(JUDGE_WEIGHTS * BILLION * each * SPARE) + (KEYS_AND_VALUES if on_gpu else KEYS_AND_VALUES // 2)
    lorra = 0
    if design.lorra is not None:
        from unmask.whitebox.lorra_trainer import middle_third

        depth = middle_third(shape.layers)[-1] + 1
        lorra = each * design.lorra.batch * LORRA_TOKENS // 3 * depth * (16 * shape.width + 4 * shape.inner)
    return MemoryEstimate(
        weights=weights,
        keys_and_values=keys_and_values,
        judge=judge,
        lorra=lorra,
        total=weights + judge + max(keys_and_values, lorra),
    )
