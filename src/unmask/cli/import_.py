"""`unmask import`."""

from __future__ import annotations

import click

from unmask.cli import crash, settings
from unmask.cli.options import in_colour, json_flag, option, print_json


@click.command("import")
@click.argument("source", metavar="LOG|FOLDER")
@option("--out", required=True, metavar="DIR", help="The run folder to make.")
@option("--preset", type=settings.PRESETS, help="The rules of the new run; those nearest to the harness unless given.")
@option("--model", metavar="NAME", help="Which model, where a folder holds files of several.")
@json_flag
def import_(source: str, out: str, preset: str | None, model: str | None, as_json: bool) -> None:
    """Make a run folder of an Inspect log or of a folder of evaluated CSV files, without a model call.

    Where the other harness left verdicts, they are shown beside ours with the reason for each difference.
    """
    from unmask.interop.against import compare_with_harness
    from unmask.interop.importing import import_harness_run

    run, imported = import_harness_run(source, out=out, preset=preset, model=model)
    comparison = compare_with_harness(run, imported)
    if as_json:
        import msgspec

        print_json({"run": str(run.path), "against": msgspec.to_builtins(comparison)})
        return
    click.echo(
        f"{len(imported.cases)} scenarios of {crash.clean_for_terminal(imported.about.harness)} are in {run.path}"
    )
    from unmask.render.terminal.against import explain_missing, render

    click.echo()
    if comparison is None:
        click.echo(explain_missing(imported.about.harness))
    else:
        click.echo(render(comparison, color=in_colour()), nl=False)
    click.echo(f"unmask score {run.path} prints the measures.")
