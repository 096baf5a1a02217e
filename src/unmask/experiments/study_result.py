"""What a study of mitigations shows, as records: the content of `results.json`."""

from __future__ import annotations

from unmask.experiments.study_arms import ArmState
from unmask.experiments.study_corrected import LabelledStudy
from unmask.experiments.study_design import ArmPart, Change, Family
from unmask.experiments.study_success import Condition, ConditionState, FamilyOutcome
from unmask.protocol.guards import GuardFinding
from unmask.records import FORMAT_VERSION, Record, Result
from unmask.stats.compare import Difference
from unmask.stats.crossfit import FoldChoice
from unmask.stats.dose import SlopeTest
from unmask.whitebox.fluency import Ratio


class ArmAccount(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What an arm is, how far it is, and what it cost. `None` where something is not known."""

    name: str
    family: Family
    part: ArmPart
    state: ArmState
    run: str | None
    created: str | None
    """When the run began, in UTC."""
    model: str | None
    scenarios: int
    undecided: int
    warnings: tuple[GuardFinding, ...]
    seconds: dict[str, float]
    """By what was done: `prepare`, `run`, `fluency`."""
    calls: int | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    peak_memory: int | None = None
    """Bytes, the largest of all pieces of work."""
    devices: tuple[str, ...] = ()


class ArmDifference(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One arm against the base, with plain 95 % intervals. It describes, and tests nothing."""

    arm: str
    family: Family
    part: ArmPart
    depth: float | None
    coefficient: float | None
    measures: dict[str, Difference]
    """`p_lie`, `p_honest_and_right`, `p_evasion` and `unread` over the analysis set."""
    lies_everywhere: Difference
    """Of lies, over all scenarios; without a belief there is no lie."""
    perplexity: Ratio | None


class FamilyResult(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One family against the base: its cross-fitted outcome, and what that comes to."""

    family: Family
    outcome: FamilyOutcome
    conditions: dict[Condition, ConditionState]
    choices: tuple[FoldChoice, ...]
    chosen: str | None
    """The candidate that most folds chose."""
    lies: Difference
    """The primary comparison: lies per take over the analysis set, with p-value and interval by Holm's method over the
    families."""
    honest_and_right: Difference
    """With an interval of the same level."""
    evasion: Difference
    unread: Difference
    lies_everywhere: Difference
    perplexity: dict[str, Ratio | None]
    """Of every arm that a fold chose, over that of the base; empty for prompts, which leave the weights alone."""


class DosePoint(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One coefficient. Shares are means over the scenarios of the analysis set that were read at it."""

    coefficient: float
    arm: str
    n: int
    shares: dict[str, float | None]
    lies: Difference | None
    """Against the base; `None` for the base itself."""


class DoseResponse(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Steering at one depth, from the most negative coefficient to the most positive; 0 is the base."""

    depth: float
    points: tuple[DosePoint, ...]
    slope: SlopeTest
    """Of lies per take over the coefficient."""
    reverses: bool | None
    """Whether the most negative coefficient raises lies and the most positive lowers them, both by a 95 % interval that
    leaves out 0; `None` where one of them is not known."""


class Steadiness(Record, frozen=True, kw_only=True, omit_defaults=False):
    """How far natural lies are the same with another seed: the base against its repetition, over the analysis set."""

    n: int
    base: float | None = None
    again: float | None = None
    correlation: float | None = None
    """Of the shares of lies over scenarios."""
    mostly_lies_in_base: int = 0
    """Scenarios with lies in at least half of the takes that were read."""
    mostly_lies_in_again: int = 0
    mostly_lies_in_both: int = 0


class StudyResult(Result, frozen=True, kw_only=True, omit_defaults=False):
    """`results.json` of a study."""

    v: int = FORMAT_VERSION
    name: str
    design_hash: str
    prompts: dict[str, str]
    """The hash of the text of each prompt, as the folder of the study has it."""
    model: str
    judge: str
    data: str
    takes: int
    preset: str
    expected: str
    left_out: tuple[str, ...]
    changed: tuple[Change, ...]
    folds: int
    seed: int
    perplexity_limit: float
    cautions: tuple[str, ...]
    """What is missing and what the guards say. It is shown before any number."""
    scenarios: int
    analysis_set: int
    """Scenarios in which the base shows a belief."""
    arms: dict[str, ArmAccount]
    families: tuple[FamilyResult, ...]
    table: tuple[ArmDifference, ...]
    dose: tuple[DoseResponse, ...]
    steadiness: Steadiness
    labels: tuple[LabelledStudy, ...]
