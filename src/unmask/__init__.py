"""unmask: does this model say what it believes?

    import unmask
    run = unmask.run(data="tiny", model="scripted/liar", judge="scripted/judge", out="runs/liar")
    print(run.score().overall.p_lie)

The names below are the public ones. They are imported when first used, so `import unmask` loads nothing heavy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

__version__ = "0.1.0"

if TYPE_CHECKING:
    from unmask.agreement import agree as agree
    from unmask.boards import board as board
    from unmask.compared import compare as compare
    from unmask.data import Dataset as Dataset
    from unmask.data import load as load
    from unmask.errors import UnmaskError as UnmaskError
    from unmask.gated import gate as gate
    from unmask.liars import organism as organism
    from unmask.models import open_model as open_model
    from unmask.models.base import Model as Model
    from unmask.opened import Run as Run
    from unmask.opened import open_run as open_run
    from unmask.options import Options as Options
    from unmask.probed import probe as probe
    from unmask.records import Outcome as Outcome
    from unmask.records import Scenario as Scenario
    from unmask.sample import label as label
    from unmask.scaled import scaling as scaling
    from unmask.score import Score as Score
    from unmask.show.figures import figure as figure
    from unmask.show.report import report as report
    from unmask.stages import judge as judge
    from unmask.stages import run as run
    from unmask.stats.power import power as power
    from unmask.varied import sensitivity as sensitivity

_HOME = {
    "Dataset": "unmask.data",
    "Model": "unmask.models.base",
    "Options": "unmask.options",
    "Outcome": "unmask.records",
    "Run": "unmask.opened",
    "Scenario": "unmask.records",
    "Score": "unmask.score",
    "UnmaskError": "unmask.errors",
    "agree": "unmask.agreement",
    "board": "unmask.boards",
    "compare": "unmask.compared",
    "figure": "unmask.show.figures",
    "gate": "unmask.gated",
    "judge": "unmask.stages",
    "label": "unmask.sample",
    "load": "unmask.data",
    "open_model": "unmask.models",
    "open_run": "unmask.opened",
    "organism": "unmask.liars",
    "power": "unmask.stats.power",
    "probe": "unmask.probed",
    "report": "unmask.show.report",
    "run": "unmask.stages",
    "scaling": "unmask.scaled",
    "sensitivity": "unmask.varied",
}

__all__ = ["__version__", *_HOME]  # noqa: PLE0604  the names are strings


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'unmask' has no attribute {name!r}")
    value = getattr(import_module(_HOME[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
