"""unmask: does this model say what it believes?

    import unmask
    run = unmask.run(data="tiny", model="scripted/liar", judge="scripted/judge", out="runs/liar")
    print(run.score().p_lie)

The names below are the public ones. They are imported when first used, so `import unmask` loads nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "1.0.0.dev0"

if TYPE_CHECKING:
    from unmask.analysis.agreement import agree as agree
    from unmask.analysis.audit import audit as audit
    from unmask.analysis.board import board as board
    from unmask.analysis.compare import compare as compare
    from unmask.analysis.gate import gate as gate
    from unmask.analysis.label_session import label as label
    from unmask.analysis.merge import merge as merge
    from unmask.analysis.sensitivity import sensitivity as sensitivity
    from unmask.data.dataset import Dataset as Dataset
    from unmask.data.load import load as load
    from unmask.engine.plan import plan as plan
    from unmask.engine.run import judge as judge
    from unmask.engine.run import run as run
    from unmask.errors import UnmaskError as UnmaskError
    from unmask.interop.export import export as export
    from unmask.interop.importing import import_run as import_run
    from unmask.models.base import Capabilities as Capabilities
    from unmask.models.base import Model as Model
    from unmask.models.providers import open_model as open_model
    from unmask.records import Choice as Choice
    from unmask.records import Completion as Completion
    from unmask.records import Outcome as Outcome
    from unmask.records import Request as Request
    from unmask.records import Scenario as Scenario
    from unmask.records import Usage as Usage
    from unmask.render.figures import figure as figure
    from unmask.render.html.report import report as report
    from unmask.runs.options import Options as Options
    from unmask.runs.run import Run as Run
    from unmask.runs.run import open_run as open_run
    from unmask.scoring.guards import GuardLimits as GuardLimits
    from unmask.scoring.score import Score as Score
    from unmask.stats.power import power as power

_NAMES = {
    "unmask.analysis.agreement": ("agree",),
    "unmask.analysis.audit": ("audit",),
    "unmask.analysis.board": ("board",),
    "unmask.analysis.compare": ("compare",),
    "unmask.analysis.gate": ("gate",),
    "unmask.analysis.label_session": ("label",),
    "unmask.analysis.merge": ("merge",),
    "unmask.analysis.sensitivity": ("sensitivity",),
    "unmask.data.dataset": ("Dataset",),
    "unmask.data.load": ("load",),
    "unmask.engine.plan": ("plan",),
    "unmask.engine.run": ("judge", "run"),
    "unmask.errors": ("UnmaskError",),
    "unmask.interop.export": ("export",),
    "unmask.interop.importing": ("import_run",),
    "unmask.models.base": ("Capabilities", "Model"),
    "unmask.models.providers": ("open_model",),
    "unmask.records": ("Choice", "Completion", "Outcome", "Request", "Scenario", "Usage"),
    "unmask.render.figures": ("figure",),
    "unmask.render.html.report": ("report",),
    "unmask.runs.options": ("Options",),
    "unmask.runs.run": ("Run", "open_run"),
    "unmask.scoring.guards": ("GuardLimits",),
    "unmask.scoring.score": ("Score",),
    "unmask.stats.power": ("power",),
}
_HOME = {name: module for module, names in _NAMES.items() for name in names}

__all__ = ["__version__", *sorted(_HOME)]  # noqa: PLE0604  the names are strings


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unmask' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
