"""Fits the one number of the judge of small models, on the tuning half only, and writes `choose.json`.

    python -m bench.judges --judge embedded/qwen2.5-coder-1.5b --half tuning --runs DIR
    python -m bench.judges.fit DIR --judge embedded/qwen2.5-coder-1.5b [--write]

Taken is the middle of the range in which the judge agrees with at least as many labels as at its best, less two: a
single best value would follow single replies.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.judges.labelled import Labelled, labelled
from bench.judges.labelled import scenarios as labelled_scenarios
from unmask.judges import choose
from unmask.judges.base import Reader
from unmask.records import Choice, Kind, Letter, digest
from unmask.runs.folder import Folder
from unmask.runs.run import Run

FILE = Path(choose.__file__).with_name("choose.json")
TRIED = [round(0.05 * step, 2) for step in range(-20, 61)]
SLACK = 2

Scored = tuple[dict[Letter, float], Letter]


def scored(items: Sequence[Labelled], folder: Path, judge: str) -> list[Scored]:
    """Of every reply that is left to the model, the score of each line, and the label."""
    run, known = Run(folder), labelled_scenarios()
    by_id = {scenario.id: state for scenario, state in Folder(folder).each_state(run.judge_file(judge))}
    found: list[Scored] = []
    for item in items:
        scenario = known[item.scenario]
        if scenario.kind is not Kind.BINARY or item.label.letter is None:
            continue
        yes_means = scenario.yes_means or Letter.C
        if choose.by_rule(scenario, item.slot, item.text, yes_means=yes_means, reader=Reader.AUTO) is not None:
            continue
        calls = by_id[item.id].calls(item.slot, digest((Choice(item.text).answer,)))
        scores = choose.score_lines(calls)
        if isinstance(scores, dict):
            found.append((scores, item.label.letter))
    return found


def agreeing(found: Sequence[Scored], neither: float) -> int:
    return sum(choose.likeliest_line(scores, neither=neither).letter is label for scores, label in found)


def fit(found: Sequence[Scored], *, model: str) -> choose.FittedBias:
    hits = {value: agreeing(found, value) for value in TRIED}
    good = [value for value, count in hits.items() if count >= max(hits.values()) - SLACK]
    middle = round((good[0] + good[-1]) / 2, 2)
    return choose.FittedBias(neither=middle, replies=len(found), agrees=agreeing(found, middle), model=model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", type=Path, help="as given to bench.judges --runs")
    parser.add_argument("--judge", required=True)
    parser.add_argument("--write", action="store_true", help=f"write {FILE.name}")
    given = parser.parse_args()
    items = [item for item in labelled() if item.half == "tuning"]
    found = scored(items, given.runs / "tuning", given.judge)
    best = fit(found, model=given.judge.rpartition("/")[2])
    print("\n".join(f"{value:5.2f} {agreeing(found, value)}" for value in TRIED if 0 <= value <= 1.5))
    print(msgspec.json.encode(best).decode())
    if given.write:
        FILE.write_bytes(msgspec.json.encode(best) + b"\n")


if __name__ == "__main__":
    main()
