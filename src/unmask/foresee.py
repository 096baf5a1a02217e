"""The estimate of a whole command: data, models, prices and an existing folder, but no request."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from unmask.course import JUDGE, SUBJECT
from unmask.data import Dataset
from unmask.definition import Definition, same_run
from unmask.estimate import Estimate, estimate
from unmask.folder import Folder, load_seen
from unmask.models.base import Model
from unmask.models.prices import Price, lookup
from unmask.options import given
from unmask.prepare import check_baseline, define, judge_spec, lent, with_polarity
from unmask.seen import Seen
from unmask.stages import load_data, opened, reading


def foresee(
    *, data: str | Path | Dataset, model: str | Model, judge: str | Model, out: str | Path | None, **settings: Any
) -> tuple[Estimate, dict[str, Price | None]]:
    """What `run` with the same arguments would still send, and the prices it would pay."""
    options = given(settings)
    dataset = load_data(data, options)
    subject, reader = opened(model, options), reading(judge, options)
    wanted = define(dataset, subject, judge_spec(reader, options), options)
    if out is not None and Folder(out).exists:
        folder = Folder(out)
        same_run(folder.definition(), wanted, moved=options.moved)
        scenarios = folder.scenarios()
        seen = load_seen(folder, wanted.judge, scenarios)
    else:
        check_baseline(wanted, dataset)
        scenarios = with_polarity(dataset)
        seen = [Seen() for _ in scenarios]
    _borrow(wanted, {scenario.id: held for scenario, held in zip(scenarios, seen, strict=True)})
    for held in seen:
        held.forget_errors()
    size = subject.max_n if options.one_call else 1
    found = estimate(scenarios, wanted.settings(), seen=seen, size=size, prompt=wanted.developer_prompt)
    return found, {SUBJECT: _price(subject, options.price), JUDGE: _price(reader, options.judge_price)}


def _borrow(wanted: Definition, have: dict[str, Seen]) -> None:
    """What the run would copy from its baseline before it asks anything."""
    replies, readings = lent(wanted, have)
    asked, judged = list(replies), list(readings)
    for reply in asked:
        have[reply.scenario].add_asked(reply)
    for read in judged:
        have[read.scenario].add_judged(read)


def _price(model: Model | str, given: str | None) -> Price | None:
    if given:
        return Price.parse(given)
    return Price(0.0, 0.0) if isinstance(model, str) else lookup(model.name, endpoint=model.endpoint)
