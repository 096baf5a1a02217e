"""What a sweep will cost, unit by unit, before anything is started."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec

from unmask.engine.estimate import Estimate
from unmask.engine.imagine import Amount
from unmask.engine.plan import Terms, estimate_run, estimate_seconds
from unmask.engine.work import JUDGE, SUBJECT
from unmask.models.providers import provider_of
from unmask.records import Record, Result
from unmask.runs.folder import Folder
from unmask.sweep.fleets import make_spec
from unmask.sweep.grid import ModelRow
from unmask.sweep.state import choose_lenders, locate_units
from unmask.sweep.units import Expansion, Unit, make_settings

SAMPLE = 12
"""Scenarios by which units are put in order."""


class SweepAmount(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One end of an estimate. Money is `None` where a price is not known; hours are those of placed servers."""

    subject_calls: int = 0
    judge_calls: int = 0
    input: int = 0
    output: int = 0
    cost_usd: float | None = 0.0
    gpu_hours: float = 0.0

    def plus(self, amount: SweepAmount) -> SweepAmount:
        is_priced = self.cost_usd is not None and amount.cost_usd is not None
        return SweepAmount(
            subject_calls=self.subject_calls + amount.subject_calls,
            judge_calls=self.judge_calls + amount.judge_calls,
            input=self.input + amount.input,
            output=self.output + amount.output,
            cost_usd=round((self.cost_usd or 0.0) + (amount.cost_usd or 0.0), 6) if is_priced else None,
            gpu_hours=round(self.gpu_hours + amount.gpu_hours, 6),
        )


class PlannedUnit(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What one unit would still send, to its subject and to all judges."""

    folder: str
    title: str
    scenarios: int
    lender: str | None
    """The folder of the unit that lends its probes."""
    least: SweepAmount
    most: SweepAmount


class SweepPlan(Result, frozen=True, kw_only=True, omit_defaults=False):
    """What a sweep would still send."""

    units: tuple[PlannedUnit, ...]
    least: SweepAmount
    """For subjects without beliefs."""
    most: SweepAmount
    """For subjects that believe everything."""
    servers: int
    """Servers that a fleet would place, each once."""
    max_cost: float | None = None
    changes: tuple[str, ...] = ()
    """What the grid changes against the last start."""
    notes: tuple[str, ...] = ()


def plan_sweep(expansion: Expansion, out: Path, changes: Iterable[str] = ()) -> SweepPlan:
    """Nothing is started, and no key is needed."""
    folders = locate_units(expansion, out)
    lenders = choose_lenders(expansion, folders)
    estimator = UnitEstimator(expansion)
    units = []
    least, most = SweepAmount(), SweepAmount()
    for unit in expansion.units:
        lender = lenders.get(unit.digest)
        bounds = [SweepAmount(), SweepAmount()]
        for place, judge in enumerate(expansion.grid.judges):
            estimate, terms = estimator.estimate(unit, judge, folders, lender)
            for number, bound in enumerate((estimate.least, estimate.most)):
                roles = (SUBJECT, JUDGE) if place == 0 else (JUDGE,)
                part = {role: bound[role] for role in roles}
                bounds[number] = bounds[number].plus(_estimate_amount(part, terms, unit.subject, judge))
        units.append(
            PlannedUnit(
                folder=folders[unit.digest].name,
                title=unit.title,
                scenarios=len(expansion.datasets[unit.data]),
                lender=None if lender is None else folders[lender].name,
                least=bounds[0],
                most=bounds[1],
            )
        )
        least, most = least.plus(bounds[0]), most.plus(bounds[1])
    rows = [row for row in (*expansion.grid.subjects, *expansion.grid.judges) if row.serve is not None]
    return SweepPlan(
        units=tuple(units),
        least=least,
        most=most,
        servers=len({make_spec([row]).name: row for row in rows}),
        max_cost=expansion.grid.sweep.max_cost,
        changes=tuple(changes),
        notes=expansion.notes,
    )


class UnitEstimator:
    """Estimates units. Those that have no folder yet and differ in nothing that matters are estimated once."""

    def __init__(self, expansion: Expansion, *, sample: int | None = None) -> None:
        self._expansion = expansion
        self._sample = sample
        self._estimates: dict[object, Estimate] = {}
        self._terms: dict[object, Terms] = {}

    def estimate(
        self, unit: Unit, judge: ModelRow, folders: dict[str, Path], lender: str | None
    ) -> tuple[Estimate, Terms]:
        path = folders[unit.digest]
        dataset = self._expansion.datasets[unit.data]
        settings: dict[str, Any] = make_settings(self._expansion.grid, unit, judge)
        if self._sample is None and Folder(path).exists:
            if lender is not None and Folder(folders[lender]).exists:
                settings["beliefs_from"] = str(folders[lender])
            return estimate_run(data=dataset, model=unit.subject.model, judge=judge.model, out=path, **settings)
        settings |= {
            "archetype": (),
            "ids": (),
            "limit": None,
        }  # the data is selected already, and a part of it follows
        if self._sample is not None:
            step = -(-len(dataset.scenarios) // self._sample) or 1
            dataset = msgspec.structs.replace(dataset, scenarios=dataset.scenarios[::step])
        asks = (
            unit.data,
            unit.takes,
            unit.developer_prompt,
            provider_of(unit.subject.model),
            unit.subject.batch,
            judge.name,
            lender is not None,
        )
        pays = (unit.subject.model, unit.subject.settings.get("price"), unit.subject.base_url, judge.name)
        if asks not in self._estimates or pays not in self._terms:
            # Who pays what needs no more than one scenario.
            part = dataset.scenarios[: 1 if asks in self._estimates else None]
            estimate, self._terms[pays] = estimate_run(
                data=msgspec.structs.replace(dataset, scenarios=part),
                model=unit.subject.model,
                judge=judge.model,
                out=None,
                lent=lender is not None,
                **settings,
            )
            self._estimates.setdefault(asks, estimate)
        return self._estimates[asks], self._terms[pays]


def _estimate_amount(bound: dict[str, Amount], terms: Terms, subject: ModelRow, judge: ModelRow) -> SweepAmount:
    costs = [amount.priced(terms.prices.get(role)).cost_usd for role, amount in bound.items()]
    hours = 0.0
    for role, row in ((SUBJECT, subject), (JUDGE, judge)):
        if row.serve is not None and role in bound:
            seconds = estimate_seconds({role: bound[role]}, terms) or 0.0
            hours += make_spec([row]).gpus * seconds / 3600
    return SweepAmount(
        subject_calls=bound[SUBJECT].calls if SUBJECT in bound else 0,
        judge_calls=bound[JUDGE].calls,
        input=sum(amount.input for amount in bound.values()),
        output=sum(amount.output for amount in bound.values()),
        cost_usd=None if any(cost is None for cost in costs) else round(sum(cost or 0.0 for cost in costs), 6),
        gpu_hours=round(hours, 6),
    )
