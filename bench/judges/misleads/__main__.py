"""How well a judge answers `--also misleads`, on replies without a side and on planted ones.

    python -m bench.judges.misleads                                  # the answers that are kept
    python -m bench.judges.misleads --judge openai/gpt-4o --ask      # asks a judge, in both orders

`replies.jsonl` has 240 replies that `judge-1.5b` read C or D, half of them without the role, with the labels of two
blind passes of a language model and a third where these differ; and 240 that a language model wrote: true facts that
point the wrong way (palter), the one fact left out (omit), open hedges and plain refusals. No person labelled any.
"""

from __future__ import annotations

import argparse
import asyncio
import json
from collections import Counter
from pathlib import Path

from bench.judges import kappa, share
from unmask.data.load import load
from unmask.judges.answers import find_letter
from unmask.judges.letters import request as write_request
from unmask.models.base import Model
from unmask.models.providers import open_model
from unmask.records import PRESSURED, Letter, Method, Sampling, Scenario
from unmask.stats.agree import Pair

HERE = Path(__file__).parent
EXCHANGED = {"A": "B", "B": "A"}
OPEN, UNREAD = "open", "unread"
CLASSES = ["A", "B", OPEN]


def side_of(both: list[str | None]) -> str:
    """What the two orders agree on, the second one turned back."""
    if None in both:
        return UNREAD
    sides = {OPEN if letter in {"C", "D"} else str(letter) for letter in both}
    return sides.pop() if len(sides) == 1 else UNREAD


async def ask(model: Model, scenario: Scenario, text: str, *, exchanged: bool) -> str | None:
    for attempt in (1, 2):
        method, sampling = Method.MISLEADS_BA if exchanged else Method.MISLEADS_AB, Sampling(0.0, 1000)
        request = write_request(method, scenario, PRESSURED, (text,), sampling=sampling, attempt=attempt)
        found = find_letter((await model.complete(request)).choices[0])
        if found is not None:
            return EXCHANGED.get(found.letter, found.letter.value) if exchanged else found.letter.value
    return None


async def ask_all(name: str, replies: list[dict[str, str]], known: dict[str, Scenario]) -> dict[str, list[str | None]]:
    model, gate = open_model(name), asyncio.Semaphore(20)

    async def both(reply: dict[str, str]) -> list[str | None]:
        async with gate:
            scenario = known[reply["scenario"]]
            return [await ask(model, scenario, reply["text"], exchanged=exchanged) for exchanged in (False, True)]

    found = await asyncio.gather(*map(both, replies))
    await model.close()
    return {reply["id"]: answers for reply, answers in zip(replies, found, strict=True)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", default="hf:qwen2.5-coder-1.5b")
    parser.add_argument("--ask", action="store_true", help="ask the judge and keep its answers")
    given = parser.parse_args()
    replies = [json.loads(line) for line in (HERE / "replies.jsonl").read_text(encoding="utf-8").splitlines()]
    known = {scenario.id: scenario for name in ("core", "ladder") for scenario in load(name).scenarios}
    kept = HERE / f"{given.judge.replace('/', '_').replace(':', '_')}.json"
    if given.ask:
        kept.write_text(json.dumps(asyncio.run(ask_all(given.judge, replies, known)), indent=0), encoding="utf-8")
    answers = json.loads(kept.read_text(encoding="utf-8"))
    labelled = [reply for reply in replies if "label" in reply]
    labels = {reply["id"]: OPEN if reply["label"] in {"C", "D"} else reply["label"] for reply in labelled}
    passes = [Pair(side_of([one["first"]] * 2), side_of([one["second"]] * 2), one["scenario"]) for one in labelled]
    alike = share(sum(one.a == one.b for one in passes), len(passes))
    print(f"the two passes agree on {alike}; kappa {kappa(passes, CLASSES)}")
    read = [one for one in labelled if side_of(answers[one["id"]]) != UNREAD]
    pairs = [Pair(labels[one["id"]], side_of(answers[one["id"]]), one["scenario"]) for one in read]
    right = sum(pair.a == pair.b for pair in pairs)
    reads, agrees = share(len(read), len(labelled)), share(right, len(read))
    print(f"{given.judge} reads {reads}, as labelled {agrees}; kappa {kappa(pairs, CLASSES)}\n")
    print("| planted | against the truth | for it | open | unread |\n|---|--:|--:|--:|--:|")
    for made in ("palter", "omit", "hedge", "refuse"):
        count: Counter[str] = Counter()
        for one in replies:
            if one["made"] == made:
                side = side_of(answers[one["id"]])
                truth = known[one["scenario"]].truth
                count[side if side in {OPEN, UNREAD} else "for" if Letter(side) == truth else "against"] += 1
        print(f"| {made} | {count['against']} | {count['for']} | {count[OPEN]} | {count[UNREAD]} |")


if __name__ == "__main__":
    main()
