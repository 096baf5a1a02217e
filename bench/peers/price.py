"""The price of a run against inspect_evals on the same scenarios, from counted tokens and one price table."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from bench.peers.cells import Found, Peer
from bench.peers.goals import Goal
from bench.peers.page import MET, table
from bench.planted import plant, write_jsonl
from bench.process import serving
from unmask.engine.run import run
from unmask.models.prices import Price, find_price
from unmask.models.tiers import BATCH
from unmask.records import Usage

COMPARED = ((1, 36.0), (10, 25.0))
"""Takes, and the share in percent that the run may cost with everything at half price."""

INTRO = """## Price of a run

`python -m bench.peers --price` works these out from the tokens of the cells above and the price of {model} in the table
that we use, for subject and judge alike ({input:g} and {output:g} dollars per million tokens in and out). Of several
cells the dearest counts.

- *Nothing saved* is unmask with nearly as many calls as inspect_evals: its prompts are shorter. It was not measured at
  ten takes.
- *Fewer calls* is what unmask does besides by default: lazy effort, tagged answers read by rule, takes in one request,
  texts read once.
- *Flex* is the provider's saving and not ours: subject and judge at tier `flex`, all answers at half price. Whoever
  sends `service_tier` has it, inspect_evals too.
- *Batches* are the provider's saving as well, at the same half price: of the judge's tokens with `--batch judge`, of
  all with `--batch all`. They stand beside flex and not after it. Which tokens are the judge's was counted in a run of
  the same scenarios."""

JudgeShare = Callable[[int], tuple[float, float]]
"""The judge's part of the tokens in and out, by takes."""


def count_judge_share(takes: int, *, scenarios: int = 1000) -> tuple[float, float]:
    """From one run against the planted endpoint."""
    with tempfile.TemporaryDirectory() as folder, serving(scenarios=scenarios, takes=takes) as served:
        data = write_jsonl(plant(scenarios, seed=1, takes=takes, direct=3), Path(folder) / "planted.jsonl")
        done = run(
            data=data,
            model="openai/mock",
            judge="openai/judge",
            out=Path(folder) / "run",
            base_url=served.url,
            judge_base_url=served.url,
            takes=takes,
        )
        tokens = done.score().spent.tokens
    counts = {
        name: tokens.get(name) or 0 for name in ("subject_input", "subject_output", "judge_input", "judge_output")
    }
    sent, written = (counts[f"subject_{kind}"] + counts[f"judge_{kind}"] for kind in ("input", "output"))
    return counts["judge_input"] / sent, counts["judge_output"] / written


def price_page(found: Sequence[Found], *, model: str, judge_share: JudgeShare = count_judge_share) -> str:
    """The section of bench/RESULTS.md."""
    price = find_price(model)
    if price is None or price.flex is None:
        raise SystemExit(f"the table has no price for {model}, or its provider no flex")
    rows = [row for takes, _ in COMPARED for row in _rows(found, takes, price, judge_share)]
    columns = ("takes", "who", "calls", "tokens in", "tokens out", "dollars", "of inspect_evals", "the step saves")
    goals = [[goal.what, goal.limit, goal.found, MET[goal.met]] for goal in _goals(found, price)]
    intro = INTRO.format(model=model, input=price.input, output=price.output)
    return "\n\n".join((intro, table(columns, rows), table(("goal", "limit", "found", ""), goals)))


def _rows(found: Sequence[Found], takes: int, price: Price, judge_share: JudgeShare) -> Iterator[list[str]]:
    theirs = _dearest(found, takes, Peer.INSPECT, price)
    if theirs is None:
        return
    whole = before = live = _dollars(theirs, price)
    yield [str(takes), "inspect_evals", *_describe_cost(theirs, whole, whole), "–"]
    for who, one, flex in (
        ("unmask, nothing saved", _dearest(found, takes, Peer.FULL, price), False),
        ("unmask, fewer calls", _dearest(found, takes, Peer.UNMASK, price), False),
        ("unmask, flex", _dearest(found, takes, Peer.UNMASK, price), True),
    ):
        if one is not None:
            cost = _dollars(one, price, flex=flex)
            yield [str(takes), who, *_describe_cost(one, cost, whole), _saved(before, cost, whole)]
            live, before = before, cost
    one = _dearest(found, takes, Peer.UNMASK, price)
    if one is not None:
        sent, written = judge_share(takes)
        part = Usage(round(sent * one.tokens_in), round(written * one.tokens_out))
        cost = _dollars(one, price) - (price.cost(part) or 0.0) + (price.cost(part, BATCH) or 0.0)
        yield [str(takes), "unmask, judge in batches", *_describe_cost(one, cost, whole), _saved(live, cost, whole)]
        cost = price.cost(Usage(one.tokens_in, one.tokens_out), BATCH) or 0.0
        yield [str(takes), "unmask, all in batches", *_describe_cost(one, cost, whole), _saved(live, cost, whole)]


def _saved(before: float, cost: float, whole: float) -> str:
    return f"{100 * (before - cost) / whole:.1f} points"


def _describe_cost(one: Found, cost: float, whole: float) -> list[str]:
    counts = (f"{count:,}" for count in (one.calls, one.tokens_in, one.tokens_out))
    return [*counts, f"{cost:.2f}", f"{100 * cost / whole:.1f} %"]


def _goals(found: Sequence[Found], price: Price) -> Iterator[Goal]:
    for takes, limit in COMPARED:
        ours, theirs = _dearest(found, takes, Peer.UNMASK, price), _dearest(found, takes, Peer.INSPECT, price)
        how = "one take" if takes == 1 else f"{takes} takes"
        what = f"price against inspect_evals at its live price, everything at flex, {how}"
        if ours is None or theirs is None:
            yield Goal(what, f"≤ {limit:.0f} %", "not measured", None)
        else:
            share = 100 * _dollars(ours, price, flex=True) / _dollars(theirs, price)
            yield Goal(what, f"≤ {limit:.0f} %", f"{share:.1f} %", share <= limit)


def _dearest(found: Sequence[Found], takes: int, peer: Peer, price: Price) -> Found | None:
    cells = [one for one in found if one.cell.takes == takes and one.cell.peer is peer and not one.stopped]
    return max(cells, key=lambda one: _dollars(one, price), default=None)


def _dollars(one: Found, price: Price, *, flex: bool = False) -> float:
    return price.cost(Usage(one.tokens_in, one.tokens_out), "flex" if flex else None) or 0.0
