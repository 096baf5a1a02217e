"""`unmask mitigate study`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from unmask.cli.crash import explain_interruption
from unmask.cli.options import in_colour, json_flag, option, print_json

if TYPE_CHECKING:
    from unmask.experiments.study_folder import StudyFolder


@click.command()
@click.argument("file", metavar="STUDY.toml", type=click.Path(path_type=Path))
@option(
    "--out",
    type=click.Path(path_type=Path, file_okay=False),
    metavar="DIR",
    help="The study's folder; studies/NAME unless given.",
)
@option("--plan", is_flag=True, help="Say what the study would take, and start nothing.")
@option(
    "--only",
    multiple=True,
    metavar="PATTERN",
    help="Only the arms of these names: base, 'steer-*'; may be repeated. The base comes first.",
)
@option("--analyse", is_flag=True, help="Run nothing, and analyse what is there.")
@option("--quiet", is_flag=True, help="No progress.")
@json_flag
def study(
    file: Path, out: Path | None, plan: bool, only: tuple[str, ...], analyse: bool, quiet: bool, as_json: bool
) -> None:
    """Run a study of mitigations from its design to its result.

    The design is a file that is written before the first arm runs; docs/mitigations.md has every key. What it takes in
    calls, tokens, minutes and memory is said first. The same command continues a study at the request where it stopped.
    """
    from unmask.experiments.study_design import read_design
    from unmask.experiments.study_folder import open_study, refuse_other_design

    design = read_design(file)
    folder = Path("studies", design.name) if out is None else out
    refuse_other_design(file, design, folder)
    if analyse:
        _print_result(open_study(folder), as_json=as_json)
        return

    from unmask.experiments.study_estimate import estimate_study
    from unmask.render.terminal.study_plan import render_plan

    quiet = quiet or as_json
    if plan or not quiet:
        estimate = estimate_study(design, file.parent, only=only)
        if plan:
            print_json(estimate.to_json()) if as_json else click.echo(render_plan(estimate), nl=False)
            return
        click.echo(render_plan(estimate), nl=False, err=True)

    from unmask.experiments.study import run_study
    from unmask.render.terminal.silence import say_step

    with explain_interruption(lambda: f"what {folder} holds is kept; the same command continues"):
        study_folder = run_study(
            file,
            out=folder,
            only=only,
            progress=not quiet,
            report=(lambda _: None) if quiet else say_step,
        )
    if only:
        click.echo(f"{folder}: the arms of this command are finished; --analyse shows the result", err=True)
    else:
        _print_result(study_folder, as_json=as_json)


def _print_result(study_folder: StudyFolder, *, as_json: bool) -> None:
    from importlib.util import find_spec

    if find_spec("unmask.experiments.study_analysis") is None:
        click.echo("unmask: this version runs studies and cannot analyse them yet", err=True)
        return
    from unmask.experiments.study_analysis import analyse_study  # type: ignore[import-not-found, unused-ignore]
    from unmask.render.study_files import write_study_files  # type: ignore[import-not-found, unused-ignore]
    from unmask.render.terminal.study import render  # type: ignore[import-not-found, unused-ignore]

    result = analyse_study(study_folder)
    write_study_files(result, study_folder.path)
    if as_json:
        print_json(result.to_json())
    else:
        click.echo(render(result, color=in_colour()), nl=False)
