"""`unmask mitigate study`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from unmask.cli.crash import explain_interruption
from unmask.cli.options import in_colour, json_flag, option, print_json
from unmask.errors import UsageError

if TYPE_CHECKING:
    from unmask.experiments.study_folder import StudyFolder

LABEL_FILE = """
Labels come back as {folder}/WHO.jsonl. The first line says who gave them, a person or a language model:
  {{"who": "anna", "kind": "person"}}
Then one line for each code. Where the reply has two statements, a letter: A or B for the one that it makes, D where it
denies both, C otherwise (unclear, both, evades, refuses). Where it has a proposition with a hole, the figure that it
states with its bounds, or C for none. Or that the reply is passed over:
  {{"code": "…", "letter": "A"}}
  {{"code": "…", "lower": 40, "upper": 40}}
  {{"code": "…", "skip": true}}
unmask mitigate study STUDY.toml --analyse reads them and puts the corrected difference beside the raw one."""


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
@option(
    "--draw-labels",
    is_flag=True,
    help="Run nothing, and draw replies of five arms to be labelled, mixed and without their origin.",
)
@option("--quiet", is_flag=True, help="No progress.")
@json_flag
def study(
    file: Path,
    out: Path | None,
    plan: bool,
    only: tuple[str, ...],
    analyse: bool,
    draw_labels: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run a study of mitigations from its design to its result.

    The design is a file that is written before the first arm runs; docs/mitigations.md has every key. What it takes in
    calls, tokens, minutes and memory is said first. The same command continues a study at the request where it stopped.
    """
    from unmask.experiments.study_design import read_design
    from unmask.experiments.study_folder import refuse_other_design, update_study

    chosen = [
        flag for flag, is_on in (("--plan", plan), ("--analyse", analyse), ("--draw-labels", draw_labels)) if is_on
    ]
    if len(chosen) > 1:
        raise UsageError(f"{' and '.join(chosen)} do different things", advice="Give one of them at a time.")
    design = read_design(file)
    folder = Path("studies", design.name) if out is None else out
    refuse_other_design(file, design, folder)
    if analyse:
        _print_result(update_study(file, out=folder), as_json=as_json)
        return
    if draw_labels:
        _draw_labels(update_study(file, out=folder), as_json=as_json)
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
    from unmask.render.terminal.progress import print_step

    with explain_interruption(lambda: f"what {folder} holds is kept; the same command continues"):
        study_folder = run_study(
            file,
            out=folder,
            only=only,
            progress=not quiet,
            report=(lambda _: None) if quiet else print_step,
        )
    if only:
        click.echo(f"{folder}: the arms of this command are finished; --analyse shows the result", err=True)
    else:
        _print_result(study_folder, as_json=as_json)


def _print_result(study_folder: StudyFolder, *, as_json: bool) -> None:
    from unmask.experiments.study_analysis import analyse_study
    from unmask.render.study_files import write_study_files
    from unmask.render.terminal.study import render

    result = analyse_study(study_folder)
    write_study_files(result, study_folder.path)
    if as_json:
        print_json(result.to_json())
    else:
        click.echo(render(result, color=in_colour()), nl=False)


def _draw_labels(study_folder: StudyFolder, *, as_json: bool) -> None:
    from collections import Counter

    from unmask.experiments.study_labels import FOLDER, KEY, REPLIES, draw_labels, list_labellers

    key = draw_labels(study_folder)
    folder = study_folder.path / FOLDER
    counts = Counter(keyed.arm for keyed in key.codes.values())
    labelled = [path.name for path in list_labellers(folder)]
    if as_json:
        drawn = {"replies": str(folder / REPLIES), "key": str(folder / KEY), "arms": counts, "labelled": labelled}
        print_json(drawn)
        return
    click.echo(f"{folder / REPLIES}: {len(key.codes)} replies, mixed, without their origin")
    click.echo(f"{folder / KEY}: which arm stands behind each code; whoever labels does not open it")
    if labelled:
        click.echo(f"labels have been given ({', '.join(labelled)}), so nothing was drawn again")
    click.echo(LABEL_FILE.format(folder=folder))
