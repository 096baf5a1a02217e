"""`unmask mitigate report`."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from unmask.cli import flags
from unmask.cli.options import json_flag, option, show_result

if TYPE_CHECKING:
    from pathlib import Path

    from unmask.analysis.mitigation import MitigationReport


@click.command()
@click.argument("runs", metavar="BASE TREATED…", nargs=-1, required=True)
@option(
    "--out",
    multiple=True,
    metavar="FILE",
    help="Also write it: .md or .json for the tables, .svg, .png or .pdf for the figure; may be repeated.",
)
@option("--fluency", is_flag=True, help="Load the hf: models whose perplexity is not known yet, and measure it.")
@flags.preset
@flags.judge
@option("--drop-changed", is_flag=True, help="Leave out scenarios whose content differs between the runs.")
@json_flag
def report(
    runs: tuple[str, ...],
    out: tuple[str, ...],
    fluency: bool,
    preset: str | None,
    judge: str | None,
    drop_changed: bool,
    as_json: bool,
) -> None:
    """What treatments gain and what they cost, against a base run on the same scenarios.

    A treatment that only makes the model evade, lose its beliefs or get facts wrong is named as such.
    """
    from pathlib import Path

    from unmask.analysis.mitigation import measure_fluency, report_mitigations
    from unmask.render.terminal.progress import print_step

    targets = [_check_target(Path(name)) for name in out]
    if fluency:
        for name in measure_fluency(runs):
            print_step(f"perplexity of {name}")
    result = report_mitigations(runs, preset=preset, judge=judge, drop_changed=drop_changed)
    for target in targets:
        _write_file(result, target, runs, preset, judge)
    show_result(result, as_json=as_json)
    unfit = [run.name for run in (result.base, *result.runs) if run.undecided]
    if unfit:
        click.echo(f"unmask: {', '.join(unfit)}: incomplete", err=True)
        sys.exit(3)


def _check_target(path: Path) -> Path:
    """A file name that can be written to, or an error before anything is loaded."""
    from unmask.files import choose_by_ending
    from unmask.render.figures import FORMATS

    choose_by_ending(path, dict.fromkeys((".md", ".json", *FORMATS), True))
    return path


def _write_file(
    result: MitigationReport, target: Path, runs: tuple[str, ...], preset: str | None, judge: str | None
) -> None:
    from unmask.cli.finish import encode_json
    from unmask.files import write_atomically

    match target.suffix.lower():
        case ".md":
            write_atomically(target, result.to_markdown().encode())
        case ".json":
            write_atomically(target, encode_json(result.to_json()).encode() + b"\n")
        case _:
            from unmask.render.figures import figure

            figure("mitigations", runs, target, preset=preset, judge=judge)
