"""Whether the bill lies in the range that `unmask run --plan` gives: `python -m bench.plan --check`.

A planted world is a data set, a subject and a judge on loopback: how many scenarios the subject has a belief about (0
to 100 %), how long it writes (a third to three times as long as usual), how often an answer has to be asked for again,
what a token is, what the judge's provider has in its cache, and the tier. In each world `plan` speaks twice: before
anything was sent about the bill of the whole run, and after a pilot of 20 scenarios about the bill of what is left. The
bill is what `score` says.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import msgspec

from bench.endpoint import Asked, Endpoint, listening
from bench.fault import Fault, Seen
from bench.planted import Plant, plant, write_jsonl
from bench.prose import TOKEN
from bench.replies import POOL
from unmask.records import Interval, Letter, Ranged

WORLDS = 50
FIRST_SEED = 7701
"""No world with such a seed was looked at while the range was tuned."""
PILOT = 20
WIDEST = 3.0
CLOSE = 1.5
"""The likely value is off by at most this factor, in `MOST_CLOSE` of all worlds."""
MOST_CLOSE = 0.9
MOST_CONTAINED = 0.96
PRICES = {"price": "2.5/10/1.25/0", "judge.price": "2.5/10/1.25/0"}
"""Of input, output, cache reads and cache writes, for a million tokens."""


class World(NamedTuple):
    """What is planted. Shares are of 1."""

    seed: int
    scenarios: int
    takes: int
    belief: float
    """Scenarios that the subject believes something about."""
    length: float
    """Of replies, over the usual."""
    scatter: float
    """Of the length from scenario to scenario: the standard deviation of its logarithm."""
    characters: float
    """Of one token."""
    unread: float
    """Answers of the judge that nobody can read, at the first try."""
    cut: float
    """Replies that are cut off before they say anything, at the first try."""
    failing: float
    """Requests that meet an error 500 first, which costs nothing."""
    cached: float
    """The part of the judge's input that its provider has in its cache."""
    flex: bool


class Outcome(NamedTuple):
    """Ranges and bills of one world, in dollars."""

    world: World
    before: tuple[float, float, float]
    """Least, likely and most."""
    bill: float
    after: tuple[float, float, float]
    left: float
    """The bill without the pilot."""
    seconds: float

    @property
    def contained(self) -> tuple[bool, bool]:
        """Whether each range contains its bill."""
        return self.before[0] <= self.bill <= self.before[2], self.after[0] <= self.left <= self.after[2]

    @property
    def width(self) -> float:
        return self.after[2] / self.after[0]

    @property
    def factor(self) -> float:
        """By which the likely value after the pilot is off."""
        return max(self.after[1] / self.left, self.left / self.after[1])


def draw_world(seed: int) -> World:
    """The world of a seed. Every tenth has no beliefs at all and every tenth has all of them."""
    dice = random.Random(f"world {seed}")
    return World(
        seed=seed,
        scenarios=dice.choice((100, 150, 200)),
        takes=dice.choice((1, 3)),
        belief={0: 0.0, 5: 1.0}.get(seed % 10, dice.random()),
        length=3 ** dice.uniform(-1, 1),
        scatter=dice.uniform(0.0, 0.4),
        characters=dice.uniform(3.5, 4.7),
        unread=dice.choice((0.0, 0.05, 0.15)),
        cut=dice.choice((0.0, 0.0, 0.05)),
        failing=dice.choice((0.0, 0.0, 0.01)),
        cached=dice.choice((0.0, 0.0, 0.4)),
        flex=seed % 2 == 1,
    )


def plant_world(world: World) -> tuple[Plant, ...]:
    """Scenarios of which the subject believes the planned part. Those without a belief differ in how it shows: the
    direct takes do not agree, or an indirect one contradicts them."""
    plants = plant(world.scenarios, seed=world.seed, takes=world.takes)
    return tuple(_plant_belief(item, world) for item in plants)


def _plant_belief(item: Plant, world: World) -> Plant:
    if not item.scenario.asks_belief:
        return item
    dice = random.Random(f"{world.seed} belief {item.scenario.id}")
    believes = dice.random() < world.belief
    if item.joint is not None:
        joint = Ranged(Interval(40.0, 42.0)) if believes else Ranged()
        return msgspec.structs.replace(item, joint=joint, readings=item.readings | {"direct": (joint,)})
    side, rival = dice.sample((Letter.A, Letter.B), 2)
    contradicted = "none" if believes else dice.choices(("direct", "indirect_1", "indirect_2"), (70, 20, 10))[0]
    readings = item.readings | {"direct": (side, side, rival, side) if contradicted == "direct" else (side,)}
    for slot in ("indirect_1", "indirect_2"):
        readings[slot] = (rival,) if slot == contradicted else (dice.choice((side, side, Letter.C)),)
    return msgspec.structs.replace(item, readings=readings)


class WorldEndpoint(Endpoint):
    """Answers as the world has it, and says what it bills."""

    def __init__(self, world: World) -> None:
        super().__init__(plant_world(world), latency=0.0, planned=(3, world.takes), faults=self.fail)
        self.world = world

    def fail(self, seen: Seen) -> Fault | None:
        is_first = seen.repeat == 0
        return Fault(500) if is_first and self._draws(f"500 {seen.number}", self.world.failing) else None

    def answer(self, asked: Asked) -> bytes:
        is_first = asked.role == "subject" or not self.judged[asked.digest]
        body: dict[str, Any] = json.loads(super().answer(asked))
        written = 0
        for number, choice in enumerate(body["choices"]):
            message = choice["message"]
            if asked.role == "subject":
                part = random.Random(f"{self.world.seed} {asked.key[0]}").lognormvariate(0.0, self.world.scatter)
                message["content"] = _stretch(message["content"], self.world.length * part)
                if self._draws(f"cut {asked.key} {self.takes[asked.key]} {number}", self.world.cut):
                    choice["finish_reason"], message["content"] = "length", f"<think>{message['content']}"
            elif is_first and self._draws(f"unread {asked.digest!r}", self.world.unread):
                message["content"] = "The text can be taken in more than one way, and I would not like to choose."
            written += self._count(len(message["content"]) + len(message.get("reasoning_content") or ""))
        sent = self._count(asked.size)
        cached = round(sent * self.world.cached) if asked.role == "judge" else 0
        body["usage"] = {
            "prompt_tokens": sent,
            "completion_tokens": written,
            "prompt_tokens_details": {"cached_tokens": cached},
        }
        body["service_tier"] = "flex" if self.world.flex else "default"
        return msgspec.json.encode(body)

    def _draws(self, what: str, part: float) -> bool:
        return crc32(f"{self.world.seed} {what}".encode()) < part * 2**32

    def _count(self, characters: int) -> int:
        return round(characters / self.world.characters)


def _stretch(text: str, factor: float) -> str:
    """The text with its filler so many times as long. What it asserts comes after the filler and stays."""
    place = TOKEN.search(text.encode())
    start = max(0, text.rfind("\n\n", 0, place.start())) if place else 0
    filler, end = text[start : place.start() if place else 0], text[place.start() if place else 0 :]
    wanted = round(len(filler) * factor)
    longer = filler + "".join(f"{more} " for more in POOL[:12])
    return f"{text[:start]}{longer[:wanted].rstrip()} {end}"


def try_world(world: World) -> Outcome:
    """Plan, pilot, plan, run."""
    import unmask

    started = time.monotonic()
    with tempfile.TemporaryDirectory() as place, listening(WorldEndpoint(world)) as port:
        url = f"http://127.0.0.1:{port}/v1"
        settings: dict[str, Any] = {
            "data": write_jsonl(plant_world(world), Path(place) / "world.jsonl"),
            "model": "openai/mock",
            "judge": "openai/judge",
            "base_url": url,
            "judge_base_url": url,
            "out": Path(place) / "run",
            "takes": world.takes,
            "set": PRICES,
        }
        asked = settings | ({"set": PRICES | {"tier": "flex", "judge.tier": "flex"}} if world.flex else {})
        before = unmask.plan(**settings)
        spent = unmask.run(**asked, limit=PILOT).score().spent.cost_usd
        after = unmask.plan(**settings)
        bill = unmask.run(**asked).score().spent.cost_usd
    assert spent is not None
    assert bill is not None
    return Outcome(
        world,
        _read_range(before, world),
        bill,
        _read_range(after, world),
        bill - spent,
        time.monotonic() - started,
    )


def _read_range(planned: Any, world: World) -> tuple[float, float, float]:
    bounds = planned.flex if world.flex else planned
    return bounds.least.cost_usd, bounds.likely.cost_usd, bounds.most.cost_usd


def try_worlds(seeds: Sequence[int], *, processes: int = 2) -> Iterator[Outcome]:
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(try_world, map(draw_world, seeds))


def print_check(seeds: Sequence[int]) -> bool:
    """Prints a line for each world. True if nearly all ranges contain their bill, none after a pilot is wider than
    threefold, and most likely values are close."""
    print(
        "  seed belief length takes tier before a pilot (likely), bill, in | after it (likely), left, in, width, off by"
    )
    done = []
    for one in try_worlds(seeds):
        done.append(one)
        world, verdicts = one.world, ["yes" if each else "NO" for each in one.contained]
        tier, takes = "flex" if world.flex else "live", world.takes
        before, after = (f"{low:>7.3f} to {high:>7.3f} ({mid:>7.3f})" for low, mid, high in (one.before, one.after))
        print(
            f"{world.seed:>6} {world.belief:>6.0%} {world.length:>6.2f} {takes:>5} {tier} {before} {one.bill:>7.3f}"
            f" {verdicts[0]:>3} |{after} {one.left:>7.3f} {verdicts[1]:>3} {one.width:>6.2f} {one.factor:>5.2f}",
            flush=True,
        )
    first, second = (sum(one.contained[number] for one in done) for number in (0, 1))
    narrow, close = sum(one.width <= WIDEST for one in done), sum(one.factor <= CLOSE for one in done)
    print(
        f"{len(done)} worlds: before a pilot {first} ranges contain the bill; after it {second} do, {narrow} are at"
        f" most {WIDEST:g} times as high as low (the widest {max(one.width for one in done):.2f}), and {close} likely"
        f" values are right within a factor of {CLOSE:g} (the worst {max(one.factor for one in done):.2f})"
    )
    return min(first, second) >= MOST_CONTAINED * len(done) and narrow == len(done) and close >= MOST_CLOSE * len(done)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="exit 1 if the ranges are not as promised")
    parser.add_argument("--worlds", type=int, default=WORLDS)
    parser.add_argument("--seed", type=int, default=FIRST_SEED, help="of the first world")
    given = parser.parse_args()
    passed = print_check(range(given.seed, given.seed + given.worlds))
    raise SystemExit(0 if passed or not given.check else 1)


if __name__ == "__main__":
    main()
