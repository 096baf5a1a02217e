"""A run that is stopped half way has finished most of what it has begun."""

from __future__ import annotations

from itertools import count

import pytest
from msgspec.structs import replace

from unmask.data.form import write_jsonl
from unmask.data.load import load
from unmask.engine.run import run
from unmask.errors import FatalModelError
from unmask.models.scripted import open_scripted
from unmask.records import Completion, Request, Verdict
from unmask.runs.run import Run


def test_of_a_run_stopped_at_half_of_its_calls_two_fifths_of_the_scenarios_are_judged(tmp_path):
    """1,000 scenarios, 20 connections: they are opened in order, four a connection, and finished first."""
    kinds = [scenario for scenario in load("core").scenarios if scenario.asks_belief]
    many = tuple(replace(kinds[number % len(kinds)], id=f"s{number:04d}") for number in range(1000))
    write_jsonl(many, path=tmp_path / "many.jsonl")

    def liar(most: int | None):
        model, calls = open_scripted("scripted/liar", scenarios=many), count(1)
        answer = model.complete

        async def complete(request: Request) -> Completion:
            if next(calls) > (most or 1e9):
                raise FatalModelError("enough")
            return await answer(request)

        model.complete = complete  # type: ignore[method-assign]
        return model, calls

    model, calls = liar(None)
    settings = {"data": tmp_path / "many.jsonl", "judge": "scripted/judge", "max_connections": 20}
    run(model=model, out=tmp_path / "whole", **settings)
    model, _ = liar((next(calls) - 1) // 2)
    with pytest.raises(FatalModelError, match="enough"):
        run(model=model, out=tmp_path / "half", **settings)
    judged = [row for row in Run(tmp_path / "half").rows() if row.verdict is not Verdict.UNJUDGED]
    assert len(judged) >= 400
