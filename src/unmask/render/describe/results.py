"""What each result says, as blocks: one function a result, found by the name of its class."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from unmask.records import Result
from unmask.render.blocks import Block

DESCRIBED = {
    "Agreed": "unmask.render.describe.agree:describe_agreement",
    "Annotation": "unmask.render.describe.annotate:describe_annotation",
    "Audit": "unmask.render.describe.audit:describe_audit",
    "Board": "unmask.render.describe.board:describe_board",
    "Comparison": "unmask.render.describe.compare:describe_comparison",
    "DefinedScore": "unmask.render.describe.definitions:describe_definitions",
    "Gate": "unmask.render.describe.gate:describe_gate",
    "MitigationReport": "unmask.render.describe.mitigate:describe_mitigations",
    "Plan": "unmask.render.describe.power:describe_power",
    "PublishedGap": "unmask.render.describe.definitions:describe_gap",
    "RunPlan": "unmask.render.describe.plan:describe_plan",
    "Score": "unmask.render.describe.score:describe_score",
    "Sensitivity": "unmask.render.describe.sensitivity:describe_sensitivity",
    "Stats": "unmask.render.describe.stats:describe_stats",
    "SweepPlan": "unmask.render.describe.sweep:describe_plan",
    "SweepResult": "unmask.render.describe.sweep:describe_result",
}
"""The function that describes each result, imported when it is asked for."""


def describe(result: Result, **settings: Any) -> list[Block]:
    """What a result says. `settings` are those of the function that describes it."""
    module, _, function = DESCRIBED[type(result).__name__].partition(":")
    return list(getattr(import_module(module), function)(result, **settings))
