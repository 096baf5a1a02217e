"""`unmask report`."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from unmask.cli import flags
from unmask.cli.options import option

if TYPE_CHECKING:
    from pathlib import Path

    from unmask.runs.run import Run


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@option("--out", metavar="FILE", help="Where to write the page; - prints it. In the folder of the run unless given.")
@option("--open", "opened", is_flag=True, help="Open the page in the browser.")
@option("--redact", is_flag=True, help="Leave out every text of scenarios, replies and judges.")
@option("--full-text", is_flag=True, help="Shorten no text, however large the page becomes.")
@flags.preset
@flags.judge
@flags.labels
def report(
    runs: tuple[str, ...],
    out: str | None,
    opened: bool,
    redact: bool,
    full_text: bool,
    preset: str | None,
    judge: str | None,
    labels: tuple[str, ...],
) -> None:
    """Write one HTML file that shows a run, or several: scores, warnings, comparison, every scenario.

    A folder of runs, such as a sweep's, counts as all of them. A report of the same runs is replaced; any other
    file stays.
    """
    from pathlib import Path

    from unmask.errors import UsageError
    from unmask.files import choose_by_ending, write_atomically
    from unmask.render.html.report import report as compose_report
    from unmask.runs.run import open_runs

    shown = open_runs(runs)
    out = out or str(Path(shown[0].path if len(shown) == 1 else "", "report.html"))
    target = Path(out)
    if out == "-":
        if opened:
            raise UsageError("--open needs a file, and --out - prints the page", advice="Give --out FILE.")
    else:
        choose_by_ending(target, {".html": True, ".htm": True})
        _refuse_other_page(target, shown)
    page = compose_report(shown, redact=redact, full_text=full_text, preset=preset, judge=judge, labels=labels).encode(
        "utf-8"
    )
    if out == "-":
        click.echo(page, nl=False)  # bytes: the page says that it is UTF-8, whatever the terminal takes
        return
    write_atomically(target, page)
    click.echo(f"{target}  {len(page) / 1e6:.2f} MB")
    if opened:
        import webbrowser

        address = target.resolve().as_uri()
        if not webbrowser.open(address):
            click.echo(f"unmask: no browser could be started here; open {address}", err=True)


_RUN_ID = re.compile(rb"<dt>run</dt><dd><bdi>(\w+)</bdi>")
"""Where a report says which run it shows."""


def _refuse_other_page(target: Path, runs: list[Run]) -> None:
    """An error where the file is there and shows other runs, or is no report."""
    from unmask.errors import UsageError

    if not target.exists():
        return
    if set(_RUN_ID.findall(target.read_bytes())) != {run.definition.id.encode() for run in runs}:
        raise UsageError(
            f"{target} is there already, and it is no report of {' and '.join(str(run.path) for run in runs)}",
            advice="Choose another --out, or delete that file.",
        )
