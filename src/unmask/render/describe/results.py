"""What each result says, as blocks: one function a result, found by the name of its class."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from unmask.records import Result
from unmask.render.blocks import Block, Quote

DESCRIBED = {
    "Agreed": "unmask.render.describe.agree:describe_agreement",
    "Audit": "unmask.render.describe.audit:describe_audit",
    "Board": "unmask.render.describe.board:describe_board",
    "Comparison": "unmask.render.describe.compare:describe_comparison",
    "Gate": "unmask.render.describe.gate:describe_gate",
    "MitigationReport": "unmask.render.describe.mitigate:describe_mitigations",
    "Plan": "unmask.render.describe.power:describe_power",
    "Score": "unmask.render.describe.score:describe_score",
    "Sensitivity": "unmask.render.describe.sensitivity:describe_sensitivity",
    "SweepPlan": "unmask.render.terminal.sweep:describe_plan",
    "SweepResult": "unmask.render.terminal.sweep:describe_result",
}
"""The function that describes each result, imported when it is asked for."""

TEXTS = {
    "RunPlan": "unmask.render.terminal.plan:render",
}
"""Plans and sweeps are text."""


def describe(result: Result, **settings: Any) -> list[Block]:
    """What a result says. `settings` are those of the function that describes it."""
    kind = type(result).__name__
    if kind in DESCRIBED:
        return list(_load(DESCRIBED[kind])(result, **settings))
    return [Quote(print_text(result))]


def print_text(result: Result) -> str:
    return str(_load(TEXTS[type(result).__name__])(result))


def _load(name: str) -> Any:
    module, _, function = name.partition(":")
    return getattr(import_module(module), function)
