"""`unmask report`."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from typing import Any

import click

from unmask.cli import flags
from unmask.cli.options import option


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@option("--out", metavar="FILE", help="Where to write the page; - prints it. In the folder of the run unless given.")
@option("--open", "opened", is_flag=True, help="Open the page in the browser.")
@option("--redact", is_flag=True, help="Leave out every text of scenarios, replies and judges.")
@option("--full-text", is_flag=True, help="Shorten no text, however large the page becomes.")
@flags.preset
@flags.judge
@flags.labels
def report(runs: tuple[str, ...], out: str | None, opened: bool, **settings: Any) -> None:
    """Write one HTML file that shows a run, or several: scores, warnings, comparison, every scenario.

    A folder of runs, such as a sweep's, counts as all of them. A file that is there is replaced.
    """
    from unmask.files import choose_by_ending, write_atomically
    from unmask.render.html.report import report as compose_report
    from unmask.runs.run import open_runs

    if out not in (None, "-"):
        choose_by_ending(Path(out), {".html": True, ".htm": True})
    shown = open_runs(runs)
    page = compose_report(shown, **settings).encode("utf-8")
    if out == "-":
        click.echo(page, nl=False)  # bytes: the page says that it is UTF-8, whatever the terminal takes
        return
    target = Path(out) if out else Path(shown[0].path if len(shown) == 1 else "", "report.html")
    write_atomically(target, page)
    click.echo(f"{target}  {len(page) / 1e6:.2f} MB")
    if opened and not webbrowser.open(target.resolve().as_uri()):
        click.echo(f"unmask: no browser could be started here; open {target.resolve().as_uri()}", err=True)
