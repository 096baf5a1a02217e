"""What a sweep will cost, unit by unit, before anything is started."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from unmask.engine.estimate import Amount, Estimate
from unmask.engine.plan import Terms, estimate_run, estimate_seconds
from unmask.engine.work import JUDGE, SUBJECT
from unmask.models.providers import provider_of
from unmask.records import Record, Result
from unmask.runs.folder import Folder
from unmask.sweep.grid import JudgeRow, ModelRow
from unmask.sweep.specs import key_of_server, make_spec
from unmask.sweep.state import choose_lenders, describe_changes, locate_units
from unmask.sweep.units import Expansion, Unit, make_settings


class SweepAmount(Record, frozen=True, kw_only=True, omit_defaults=False):
    """One end of an estimate, or its likely value. Money is `None` where a price is not known; hours are those of
    servers that the sweep starts."""

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
    likely: SweepAmount
    most: SweepAmount


class SweepPlan(Result, frozen=True, kw_only=True, omit_defaults=False):
    """What a sweep would still send. `least`, `likely` and `most` are as in the plan of a run."""

    units: tuple[PlannedUnit, ...]
    least: SweepAmount
    likely: SweepAmount
    most: SweepAmount
    servers: int
    """Servers that the sweep would start, each once."""
    max_cost: float | None = None
    changes: tuple[str, ...] = ()
    """Units without a folder where others have one, and folders without a unit."""
    notes: tuple[str, ...] = ()


ENDS = ("least", "likely", "most")


def plan_sweep(expansion: Expansion, out: Path) -> SweepPlan:
    """Nothing is started, and no key is needed."""
    grid, folders = expansion.grid, locate_units(expansion, out)
    lenders = choose_lenders(expansion, folders)
    estimator = UnitEstimator(expansion, folders)
    units = []
    total = dict.fromkeys(ENDS, SweepAmount())
    for unit in expansion.units:
        lender = lenders.get(unit.digest)
        own = dict.fromkeys(ENDS, SweepAmount())
        for place, judge in enumerate(grid.judges):
            estimate, terms = estimator.estimate(unit, judge, lender)
            rows: dict[str, ModelRow] = {JUDGE: judge} if place else {SUBJECT: unit.subject, JUDGE: judge}
            gpus = {role: make_spec([row], grid.folder).gpus if row.serve else 0 for role, row in rows.items()}
            for end in ENDS:
                own[end] = own[end].plus(_add_up(getattr(estimate, end), terms, gpus))
        units.append(
            PlannedUnit(
                folder=folders[unit.digest].name,
                title=unit.title,
                scenarios=len(expansion.datasets[unit.data]),
                lender=None if lender is None else folders[lender].name,
                **own,
            )
        )
        total = {end: amount.plus(own[end]) for end, amount in total.items()}
    return SweepPlan(
        units=tuple(units),
        **total,
        servers=len({key_of_server(row) for row in (*grid.subjects, *grid.judges) if row.serve is not None}),
        max_cost=grid.sweep.max_cost,
        changes=tuple(describe_changes(expansion, out)),
        notes=expansion.notes,
    )


class UnitEstimator:
    """Estimates units. Those that have no folder yet and differ in nothing that matters are estimated once."""

    def __init__(self, expansion: Expansion, folders: dict[str, Path]) -> None:
        self._expansion, self._folders = expansion, folders
        self._estimates: dict[object, Estimate] = {}
        self._terms: dict[object, Terms] = {}

    def estimate(self, unit: Unit, judge: JudgeRow, lender: str | None) -> tuple[Estimate, Terms]:
        path, subject = self._folders[unit.digest], unit.subject
        dataset = self._expansion.datasets[unit.data]
        settings: dict[str, Any] = make_settings(self._expansion.grid, unit, judge)
        settings |= {"data": dataset, "model": subject.model, "judge": judge.model}
        if Folder(path).exists:
            if lender is not None and Folder(self._folders[lender]).exists:
                settings["beliefs_from"] = str(self._folders[lender])
            return estimate_run(out=path, **settings)
        settings |= {"archetype": (), "ids": (), "limit": None}  # the data is selected already
        treatment = (unit.data, unit.takes, unit.developer_prompt, lender is not None)
        asks = (*treatment, provider_of(subject.model), subject.batch, judge.name)
        pays = (subject.model, subject.price, subject.base_url, judge.name)
        if asks not in self._estimates or pays not in self._terms:
            # Who pays what needs no more than one scenario.
            part = dataset.scenarios[: 1 if asks in self._estimates else None]
            settings["data"] = msgspec.structs.replace(dataset, scenarios=part)
            estimate, self._terms[pays] = estimate_run(out=None, lent=lender is not None, **settings)
            self._estimates.setdefault(asks, estimate)
        return self._estimates[asks], self._terms[pays]


def _add_up(of_roles: Mapping[str, Amount], terms: Terms, gpus: Mapping[str, int]) -> SweepAmount:
    """What the roles that are asked now cost; of further judges the subject is not asked again."""
    amounts = {role: of_roles[role].priced(terms.prices.get(role)) for role in gpus}
    costs = [amount.cost_usd for amount in amounts.values()]
    hours = [gpus[role] * (estimate_seconds({role: amounts[role]}, terms) or 0.0) / 3600 for role in gpus if gpus[role]]
    return SweepAmount(
        subject_calls=amounts[SUBJECT].calls if SUBJECT in amounts else 0,
        judge_calls=amounts[JUDGE].calls,
        input=sum(amount.input for amount in amounts.values()),
        output=sum(amount.output for amount in amounts.values()),
        cost_usd=None if None in costs else round(sum(cost or 0.0 for cost in costs), 6),
        gpu_hours=round(sum(hours), 6),
    )
