"""What `core` does to subjects whose conduct is known, and to a real small model: beliefs found, replies read.

    python -m bench.core_runs                              # the four scripted models, read by scripted/judge
    python -m bench.core_runs --run qwen2.5-coder-1.5b=runs/qwen   # and a run of a real model

A run given with `--run` is read as it lies there, once for every judge on file; `unmask run --data core --effort full
--also check` makes one.
"""

from __future__ import annotations

import argparse
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from unmask.engine.run import run
from unmask.models.scripted import Character
from unmask.records import Archetype, Effort, Lettered, Outcome, Pending, Ranged, Unread
from unmask.runs.run import Run

JUDGE = "scripted/judge"


def scripted(folder: Path) -> Iterator[tuple[str, Run]]:
    """A finished run of every scripted character, with everything asked."""
    for character in Character:
        out = folder / character
        done = run(data="core", model=f"scripted/{character}", judge=JUDGE, out=out, effort=Effort.FULL, also="check")
        yield f"scripted {character}", done


def beliefs(outcomes: Sequence[Outcome]) -> str:
    """Consistent beliefs, of the scenarios that ask for one."""
    asked = [outcome for outcome in outcomes if outcome.archetype is not Archetype.PROVIDED_FACTS]
    found = sum(isinstance(outcome.belief, Lettered | Ranged) for outcome in asked)
    return f"{found} of {len(asked)}" if asked else "–"


def read(outcomes: Sequence[Outcome]) -> str:
    """Readings had, of all that were due."""
    found = [reading for outcome in outcomes for readings in outcome.readings.values() for reading in readings]
    due = [reading for reading in found if not isinstance(reading, Pending)]
    return f"{sum(not isinstance(reading, Unread) for reading in due)} of {len(due)}" if due else "–"


def table(runs: Sequence[tuple[str, Run]]) -> str:
    """For every run and judge on file a column of consistent beliefs, and one of replies read."""
    columns = [
        (f"{name}, read by {judge}", done.rows(judge=judge)) for name, done in runs for judge in done.definition.judges
    ]
    found: list[str] = []
    for title, measure in (("Scenarios with a consistent belief:", beliefs), ("Replies read:", read)):
        found += [title, "", "| archetype | " + " | ".join(name for name, _ in columns) + " |"]
        found.append("|---" + "|--:" * len(columns) + "|")
        for archetype in (*Archetype, None):
            parts = ([one for one in outcomes if archetype in (one.archetype, None)] for _, outcomes in columns)
            found.append(f"| {archetype or 'all'} | " + " | ".join(measure(part) for part in parts) + " |")
        found.append("")
    return "\n".join(found).rstrip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--run", action="append", default=[], metavar="NAME=FOLDER", help="a finished run of `core`")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        runs = list(scripted(Path(scratch)))
        runs += [(name, Run(folder)) for name, _, folder in (one.partition("=") for one in given.run)]
        found = table(runs)
    print(found)


if __name__ == "__main__":
    main()
