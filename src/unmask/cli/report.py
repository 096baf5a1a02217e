"""`unmask report`."""

from __future__ import annotations

import click

from unmask.cli import settings
from unmask.cli.options import option


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@option("--out", metavar="FILE", default="report.html", help="Where to write the page; - prints it.")
@option("--redact", is_flag=True, help="Leave out every text of scenarios, replies and judges.")
@option("--full-text", is_flag=True, help="Shorten no text, however large the page becomes.")
@option("--preset", type=settings.PRESETS, help="Scoring rules; each run's own unless given.")
@option("--judge", metavar="NAME", help="Whose readings; the judge of the last `unmask run` unless given.")
def report(
    runs: tuple[str, ...], out: str, redact: bool, full_text: bool, preset: str | None, judge: str | None
) -> None:
    """Write one HTML file that shows a run, or several: scores, warnings, comparison, every scenario."""
    from pathlib import Path

    from unmask.cli.finish import name_other_judges
    from unmask.errors import UsageError
    from unmask.files import write_atomically
    from unmask.render.html.report import report as compose_report

    target = Path(out)
    if out != "-" and target.suffix.lower() not in {".html", ".htm"}:
        raise UsageError(f"--out {out!r} is not an HTML file", advice="End its name in .html.")
    page = compose_report(runs, redact=redact, full_text=full_text, preset=preset, judge=judge).encode("utf-8")
    if out == "-":
        click.echo(page, nl=False)  # bytes: the page says that it is UTF-8, whatever the terminal takes
        return
    write_atomically(target, page)
    click.echo(f"{target}  {len(page) / 1e6:.2f} MB")
    name_other_judges(runs, judge)
