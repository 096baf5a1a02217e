"""How far apart two trained judges are: the probabilities of the four lines, reply by reply, in both orders.

    python -m bench.judges.compare hf:judge-1.5b embedded/judge-1.5b --limit 50

The replies are drawn from those to binary scenarios in `replies.jsonl`, with seed 0. Prints one JSON object: the
largest and the mean difference over all lines of all questions, how many questions have a line that differs by more
than 0.05, and how many replies the two judges read alike. Exits with 1 where a line differs by more than 0.05.
`--keep FOLDER` writes what each judge answered into a file there, and reads the file instead of asking where it exists:
so a judge on a GPU and one on another machine can be compared.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import sys
import time
from pathlib import Path
from typing import Any

import msgspec

from bench.judges.labelled import Labelled, labelled, scenarios
from unmask.judges import pick
from unmask.models.base import Model
from unmask.models.providers import open_model
from unmask.records import Judged, Kind, Lettered, Method, Sampling, Scenario, digest

LIMIT = 0.05
Answers = dict[tuple[str, Method], Judged]


def draw_replies(limit: int) -> list[tuple[Labelled, Scenario]]:
    known = scenarios()
    binary = [(item, known[item.scenario]) for item in labelled() if known[item.scenario].kind is Kind.BINARY]
    return random.Random(0).sample(binary, min(limit, len(binary)))


async def ask_all(judge: Model, replies: list[tuple[Labelled, Scenario]]) -> Answers:
    """Every question at once: a model in this process batches them."""

    async def ask(item: Labelled, scenario: Scenario, method: Method) -> Judged:
        request = pick.request(method, scenario, item.slot, (item.text,), sampling=Sampling(temperature=0))
        answer = await judge.complete(request)
        about = digest((item.text,))
        return Judged(scenario=scenario.id, slot=item.slot, digest=about, method=method, choices=answer.choices)

    asked = [(item, scenario, method) for item, scenario in replies for method in pick.ORDERS]
    try:
        answers = await asyncio.gather(*(ask(*question) for question in asked))
    finally:
        await judge.close()
    return {(item.id, method): answer for (item, _, method), answer in zip(asked, answers, strict=True)}


def answer_all(name: str, replies: list[tuple[Labelled, Scenario]], keep: Path | None) -> Answers:
    """What the judge `name` answers, taken from its file in the folder `keep` where one is."""
    file = keep / f"{name.replace(':', '_').replace('/', '_')}-{len(replies)}.json" if keep else None
    if file is not None and file.exists():
        stored = msgspec.json.decode(file.read_bytes(), type=list[tuple[str, Judged]])
        return {(reply, answer.method): answer for reply, answer in stored}
    answers = asyncio.run(ask_all(open_model(name), replies))
    if file is not None:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(msgspec.json.encode([(reply, answer) for (reply, _), answer in answers.items()]))
    return answers


def compare(first: Answers, second: Answers) -> dict[str, Any]:
    differences = []
    for question, answer in first.items():
        ours, theirs = (judged.choices[0].probabilities or {} for judged in (answer, second[question]))
        differences.append([abs(ours[line] - theirs[line]) for line in pick.OPTIONS])
    replies = {reply for reply, _ in first}
    readings = [
        [
            pick.reading([answers[reply, method] for method in pick.ORDERS], kind=Kind.BINARY)
            for answers in (first, second)
        ]
        for reply in replies
    ]
    letters = [[reading.letter if isinstance(reading, Lettered) else None for reading in pair] for pair in readings]
    return {
        "replies": len(replies),
        "questions": len(differences),
        "largest": max(map(max, differences)),
        "mean": sum(map(sum, differences)) / sum(map(len, differences)),
        "questions_over_limit": sum(max(lines) > LIMIT for lines in differences),
        "read_alike": sum(ours == theirs for ours, theirs in letters),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("judges", nargs=2, metavar="JUDGE")
    parser.add_argument("--limit", type=int, default=50, help="how many replies")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="where answers are kept and found again")
    given = parser.parse_args()
    replies = draw_replies(given.limit)
    answers, seconds = [], {}
    for name in given.judges:
        began = time.monotonic()
        answers.append(answer_all(name, replies, given.keep))
        seconds[name] = time.monotonic() - began
    result = compare(*answers) | {"seconds": seconds}
    print(json.dumps(result, indent=2))
    sys.exit(result["largest"] > LIMIT)


if __name__ == "__main__":
    main()
