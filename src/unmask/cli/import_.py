"""`unmask import`."""

from __future__ import annotations

import click

from unmask.cli.options import json_flag, option, print_blocks, print_json


@click.command("import")
@click.argument("source", metavar="LOG|FOLDER")
@option("--out", required=True, metavar="DIR", help="The run folder to make.")
@option("--model", metavar="NAME", help="Which model, where a folder holds files of several.")
@json_flag
def import_(source: str, out: str, model: str | None, as_json: bool) -> None:
    """Make a run folder of an Inspect log or of a folder of evaluated CSV files, without a model call.

    Where a log holds verdicts of inspect_evals, they are shown next to ours with the reason for each difference.
    """
    from unmask.interop.importing import import_run
    from unmask.render.blocks import Text
    from unmask.render.describe.imported import describe_import
    from unmask.runs.imported import read_import_file

    run = import_run(source, out=out, model=model)
    about = read_import_file(run.path)
    assert about is not None
    if as_json:
        print_json({"run": str(run.path), "against": about.against})
        return
    made = Text(f"{len(run.scenarios)} scenarios of {about.harness} are in {run.path}")
    following = f"unmask score {run.path} prints the measures, unmask audit {run.path} says what to trust."
    print_blocks([made, *describe_import(about), Text(following)])
