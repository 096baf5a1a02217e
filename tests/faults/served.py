"""A misbehaving endpoint in a thread, runs against it, and what has to be true of a run whatever happened to it."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from bench.endpoint import Endpoint, listening
from bench.fault import Fault, Faults
from bench.faulty import to
from bench.planted import Plant, expected, plant, write_jsonl
from unmask.engine.run import run
from unmask.records import Verdict
from unmask.runs.run import Run

SUBJECT, JUDGE = "openai/mock", "openai/judge"


class Served:
    """A listening endpoint. `faults` may be replaced while it runs; what it counted is in `endpoint`."""

    def __init__(self, plants: tuple[Plant, ...], endpoint: Endpoint, port: int) -> None:
        self.plants = plants
        self.endpoint = endpoint
        self.root = f"http://127.0.0.1:{port}"
        self.url = f"{self.root}/v1"

    def stats(self) -> dict[str, Any]:
        return self.endpoint.stats()

    @property
    def answered(self) -> int:
        return self.endpoint.answered.total()

    @contextmanager
    def slowed(self, *, role: str | None = None, seconds: float = 2.0) -> Iterator[None]:
        """Answer what is asked meanwhile only after so many seconds: who asks is still at it when something is done to
        it, however long this machine takes for that."""
        usual = self.endpoint.faults
        self.endpoint.faults = to(lambda _: Fault(answer=True, delay=seconds), role=role)
        try:
            yield
        finally:
            self.endpoint.faults = usual


@contextmanager
def serving(
    scenarios: int,
    faults: Faults | None = None,
    *,
    takes: int = 1,
    latency: float = 0.0,
    profile: Any = "mixed",
    port: int = 0,
) -> Iterator[Served]:
    """The mock endpoint in a thread of its own, so that a schedule may be any function of the test."""
    plants = plant(scenarios, takes=takes, profile=profile)
    endpoint = Endpoint(plants, latency=latency, planned=(3, takes), faults=faults)
    with listening(endpoint, port=port) as chosen:
        yield Served(plants, endpoint, chosen)


def flags(served: Served, data: Path, out: Path, *more: str) -> tuple[str, ...]:
    """The command line of a run against this endpoint."""
    return (
        *("--data", str(data), SUBJECT, "--base-url", served.url),
        *("--judge", JUDGE, "--judge-base-url", served.url, "--out", str(out)),
        *more,
    )


def ran(served: Served, out: Path, **settings: Any) -> Run:
    """A whole run in this process."""
    data = write_jsonl(served.plants, out.with_name(f"{out.name}.data.jsonl"))
    return run(
        data=data,
        model=SUBJECT,
        judge=JUDGE,
        out=out,
        base_url=served.url,
        judge_base_url=served.url,
        **settings,
    )


def journal(out: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Every line of the journal: those of the subject, those of all judges."""
    asked = [json.loads(line) for line in (out / "replies.jsonl").open()]
    judged = [json.loads(line) for file in sorted((out / "readings").glob("*.jsonl")) for line in file.open()]
    return asked, judged


def kept_once(out: Path) -> int:
    """No take and no judge question has two answers. Returns how many answers there are."""
    asked, judged = ([line for line in lines if "error" not in line] for lines in journal(out))
    takes = [(line["scenario"], line["slot"], take, line.get("attempt")) for line in asked for take in line["takes"]]
    assert len(takes) == len(set(takes))
    questions = [tuple(line.get(key) for key in ("scenario", "slot", "digest", "method", "attempt")) for line in judged]
    assert len(questions) == len(set(questions))
    return len(asked) + len(judged)


def settled(served: Served, out: Path, *, takes: int = 1, named: Collection[str] = ()) -> None:
    """Nothing paid for was lost or bought twice, and every verdict is the planted one; scenarios in `named` may be
    unjudged instead, with a reason."""
    assert kept_once(out) == served.answered
    asked, judged = journal(out)
    # An answer that said nothing is asked for once more: that one request is a second attempt, written down as one.
    again = {
        "subject": sum(len(line["takes"]) for line in asked if line.get("attempt", 1) > 1),
        "judge": sum(line.get("attempt", 1) > 1 for line in judged),
    }
    bought_twice = served.stats()["duplicates"]
    assert all(bought_twice[role] <= again[role] for role in again), (bought_twice, again)
    judged_as_planted(served, out, takes=takes, named=named)


def judged_as_planted(served: Served, out: Path, *, takes: int = 1, named: Collection[str] = ()) -> None:
    rows = {row.id: row for row in Run(out).rows()}
    wanted = {one.scenario.id: expected(one, takes=takes) for one in served.plants}
    assert rows.keys() == wanted.keys()
    wrong = {
        name: (row.verdict, row.why, wanted[name])
        for name, row in rows.items()
        if (row.verdict, row.accuracy) != wanted[name]
        and not (name in named and row.verdict is Verdict.UNJUDGED and row.why)
    }
    assert not wrong


def unjudged(out: Path) -> dict[str, str]:
    """The unjudged scenarios of a run and what is said about each."""
    return {row.id: row.why or "" for row in Run(out).rows() if row.verdict is Verdict.UNJUDGED}
