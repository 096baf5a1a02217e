"""A program of a user, for mypy: `make type` checks it with --strict. Nothing runs it.

Each `type: ignore` names a mistake that mypy has to find; one that it does not find is an error too.
"""

from __future__ import annotations

from pathlib import Path

import unmask


def answer(messages: list[dict[str, str]]) -> str:
    return messages[-1]["content"]


async def answer_later(messages: list[dict[str, str]]) -> str:
    return messages[-1]["content"]


class Mine:
    """A model with one method."""

    def complete(self, request: unmask.Request) -> str:
        return request.messages[-1].content


class Counted:
    """The same with tokens, so that it can be priced."""

    async def complete(self, request: unmask.Request) -> unmask.Completion:
        return unmask.Completion((unmask.Choice("Yes."),), usage=unmask.Usage(input=10, output=2))


data = unmask.load("tiny")
first: unmask.Scenario = data[0]
named: unmask.Scenario = data["tiny-known-facts-1"]
ids: list[str] = [scenario.id for scenario in data]

run = unmask.run(data=data, model=answer, judge="scripted/judge", out="runs/a", takes=3, archetype="statistics")
unmask.run(data="tiny", model=answer_later, judge=answer, out="runs/b", archetype=["statistics"], progress=False)
unmask.run(data="tiny", model=Mine(), judge=Counted(), out=Path("runs/c"), ids="tiny-known-facts-1", progress=True)
unmask.judge("runs/a", judge=answer)
share: float | None = run.score().p_lie.value
lies: list[unmask.Outcome] = run.lies()
outcome: unmask.Outcome = run["tiny-known-facts-1"]

unmask.compare(run, "runs/b")
unmask.compare([run, "runs/b"], preset="strict")
unmask.board("runs/a")
written: Path | None = unmask.figure("outcomes", run, "outcomes.svg").path
picture: bytes = unmask.figure("outcomes", [run]).content
cost: float | None = unmask.plan(data="tiny", model=answer, judge=answer).most.cost_usd
exported: Path = unmask.export(run, format="csv", out="rows.csv")
imported: unmask.Run = unmask.import_run("log.eval", out="runs/theirs")

unmask.run(data="tiny", model=answer, judge=answer, out="runs/d", temprature=0)  # type: ignore[call-arg]
unmask.run(data="tiny", model=answer, judge=answer, out="runs/d", takes="three")  # type: ignore[arg-type]
unmask.run(data="tiny", model=len, judge=answer, out="runs/d")  # type: ignore[arg-type]
