"""`unmask run --plan`: what a run will cost, as one record."""

from __future__ import annotations

from pathlib import Path
from typing import Unpack

import msgspec

from unmask.data.dataset import Dataset
from unmask.engine.batch_plan import plan_batches
from unmask.engine.estimate import PilotMeasure, estimate_order, propose_more_room, to_json
from unmask.engine.prepare import prepare_run
from unmask.models.own import AnyModel
from unmask.models.reasoning import MoreRoom
from unmask.records import Record, Result
from unmask.runs.folder import Folder
from unmask.runs.options import RunSettings


class PlannedRole(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Calls, tokens and money of the subject or the judge. A price that nobody knows is `None`."""

    calls: int
    input: int
    output: int
    cost_usd: float | None


class PlannedAmount(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Calls, tokens and money of all roles. Money is `None` where it is unknown."""

    subject: PlannedRole
    judge: PlannedRole
    calls: int
    cost_usd: float | None
    numeric_judge: PlannedRole | msgspec.UnsetType = msgspec.UNSET
    """A second judge, which reads figures; absent where there is none."""


class PlannedBound(PlannedAmount, frozen=True, kw_only=True, omit_defaults=False):
    """One end of the estimate. Time is `None` where it is unknown."""

    seconds: float | None


class PlannedRange(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Both ends of something besides the estimate itself."""

    least: PlannedAmount
    most: PlannedAmount


class PlannedBatches(PlannedRange, frozen=True, kw_only=True, omit_defaults=False):
    """A run in batches: how many rounds one after another, hours that these usually take, and the bill."""

    rounds: int
    hours: tuple[float, float]


class RunPlan(Result, frozen=True, kw_only=True, omit_defaults=False):
    """What a run would still send."""

    scenarios: int
    data: str
    model: str
    judge: str
    least: PlannedBound
    """For a subject without beliefs and short replies; after a pilot the lower end of what that leaves."""
    most: PlannedBound
    """For a subject that believes everything and long replies; after a pilot the upper end."""
    connections: int
    pace_measured: bool
    tokens_per_second: float
    more_room: tuple[MoreRoom, ...] = ()
    flex: PlannedRange | None = None
    """The same calls with all of them at the tier flex, where their providers have it; `None` where none has."""
    pilot: PilotMeasure | None = None
    """The scenarios of the run folder that are done, where the range is made from what they took."""
    numeric_judge: str | msgspec.UnsetType = msgspec.UNSET
    """The judge that reads figures in the place of the other; absent where there is none."""
    left_out: str | None = None
    """Which scenarios are left out because the judge reads no figures."""
    annotating_saves: int = 0
    """Questions to the judge that `unmask data annotate` would save this run at most."""
    batch: dict[str, PlannedBatches] = msgspec.field(default_factory=dict)
    """The same calls with `--batch judge` and `--batch all`, for those that the providers have."""


def plan(
    *,
    data: str | Path | Dataset | None = None,
    model: str | AnyModel | None = None,
    judge: str | AnyModel | None = None,
    out: str | Path | None = None,
    numeric_judge: str | AnyModel | None = None,
    **settings: Unpack[RunSettings],
) -> RunPlan:
    """What `run` with the same arguments would cost, in calls, tokens, money and time. Nothing is sent, and no key is
    needed. Of a run folder `out` that exists, only what is missing is counted."""
    models = {"model": model, "judge": judge, "numeric_judge": numeric_judge}
    order = prepare_run(None if out is None else Folder(out), data, models, dict(settings), asks_for_key=False)
    estimate, terms = estimate_order(order)
    rows = to_json(estimate, terms) | {"batch": plan_batches(estimate, terms)}
    return msgspec.convert(rows | {"more_room": msgspec.to_builtins(propose_more_room(order))}, RunPlan)
