"""Brings the kept readings of figures to the present grammar, without asking a judge.

    python -m bench.judges.regrammar --judge hf:judge-1.5b

A judge that chooses is asked whether the figure that the grammar found is the one of the proposition. Where the grammar
became stricter, a reply that it leaves unread now was asked about before; every question that is still put is as it
was, so its answer stays. A grammar that finds other figures needs `python -m bench.judges --again`.
"""

from __future__ import annotations

import argparse

import msgspec

from bench.judges.labelled import labelled, scenarios
from bench.judges.sources import load_kept, save_kept
from bench.judges.whole import FOLDER, load_whole, save_lines, without_reasons
from unmask.errors import UsageError
from unmask.judges.base import FigureDoubt
from unmask.judges.stated import read_figure
from unmask.records import Kind, Pending, Ranged, ReadBy, Reading, Scenario, Slot


def regrammar(scenario: Scenario, slot: Slot, text: str, kept: Reading) -> Reading:
    """The reading of a figure under the present grammar, from the one that is kept."""
    if scenario.kind is not Kind.NUMERIC or not text or isinstance(kept, Pending):
        return kept
    found = read_figure(scenario, slot, text)
    if not isinstance(found, FigureDoubt):
        return without_reasons((found,))[0]
    by_judge = not isinstance(kept, Ranged) or kept.by is ReadBy.JUDGE
    if not by_judge or (isinstance(kept, Ranged) and kept.absolute != found.value and not kept.empty):
        raise UsageError(
            f"the judge was not asked about {found.value} in a reply to {scenario.id}",
            advice="python -m bench.judges --judge NAME --again asks it.",
        )
    return kept


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", required=True)
    judge = parser.parse_args().judge
    measured = load_kept(judge)
    if measured is None:
        raise UsageError(f"the readings of {judge!r} are not kept", advice=f"python -m bench.judges --judge {judge}")
    of = scenarios()
    items = [item for item in labelled() if item.id in measured.readings]
    fresh = {i.id: regrammar(of[i.scenario], i.slot, i.text, measured.readings[i.id]) for i in items}
    save_kept(judge, fresh)
    print(f"{sum(fresh[key] != measured.readings[key] for key in fresh)} of {len(fresh)} labelled replies changed")
    everything = load_whole()
    texts = {(row.scenario, row.slot, row.take): row.text or "" for row in everything.replies.values() if not row.again}
    rows = []
    for key, row in everything.judged.items():
        readings = {
            slot: tuple(
                regrammar(everything.scenarios[key], slot, texts.get((key, slot, take), ""), kept)
                for take, kept in enumerate(taken)
            )
            for slot, taken in row.readings.items()
        }
        rows.append(msgspec.structs.replace(row, readings=readings))
    save_lines(FOLDER / "readings.jsonl", rows)
    print(f"{sum(a != b for a, b in zip(rows, everything.judged.values(), strict=True))} whole scenarios changed")


if __name__ == "__main__":
    main()
