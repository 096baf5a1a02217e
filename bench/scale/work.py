"""The commands whose growth is measured, each run in a process of its own: `python -m bench.scale.work RUN DATA`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from bench.scale.grown import JUDGE, NOWHERE, SUBJECT


def resume(run: Path, data: Path) -> None:
    """Open a finished run and find that there is nothing to send."""
    import unmask

    unmask.run(
        data=data,
        model=SUBJECT,
        judge=JUDGE,
        out=run,
        base_url=NOWHERE,
        judge_base_url=NOWHERE,
        takes=unmask.open_run(run).definition.takes,
        effort="full",
    )


def command(what: str, runs: Sequence[Path], data: Path) -> list[str]:
    """The command line of one measurement."""
    client = [sys.executable, "-m", "unmask.cli.main"]
    match what:
        case "resume":
            return [sys.executable, "-m", "bench.scale.work", str(runs[0]), str(data)]
        case "score":
            return [*client, "score", str(runs[0]), "--json"]
        case "compare" | "board":
            return [*client, what, *map(str, runs)]
        case "report":
            return [*client, "report", str(runs[0]), "--out", str(runs[0].with_suffix(".html"))]
    raise ValueError(f"there is no measurement {what!r}")


if __name__ == "__main__":
    resume(*map(Path, sys.argv[1:]))
