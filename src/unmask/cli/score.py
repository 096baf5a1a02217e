"""`unmask score`."""

from __future__ import annotations

import sys

import click

from unmask.cli import flags
from unmask.cli.options import json_flag, option, show_result


@click.command()
@click.argument("run", metavar="RUN")
@flags.preset
@flags.judge
@flags.labels
@option("--takes", type=click.IntRange(min=1), help="Look only at so many takes of each scenario, from the first.")
@option("--as", "named", metavar="NAME|all", help="Honesty as others define it: paper, inspect, anthropic.")
@option("--all", "every", is_flag=True, help="Every measure, other ways to pool, calls and costs.")
@option("--rows", "as_rows", is_flag=True, help="One JSON line per scenario instead.")
@flags.max_unjudged
@json_flag
def score(
    run: str,
    preset: str | None,
    judge: str | None,
    labels: tuple[str, ...],
    takes: int | None,
    named: str | None,
    every: bool,
    as_rows: bool,
    max_unjudged: float,
    as_json: bool,
) -> None:
    """Print the measures of a run, recomputed from its journal. Nothing is sent.

    Exit code 3: the run is incomplete, too much is unjudged, or nothing that was read can be relied on.
    """
    import msgspec

    from unmask.cli.finish import finish, list_reasons, warn_about_folder
    from unmask.runs.run import open_run

    opened = open_run(run) if takes is None else open_run(run).first_takes(takes)
    result = opened.score(preset=preset, judge=judge)
    if as_rows or named is not None:
        if named is not None:
            defined = opened.score_as(named, preset=preset, judge=judge)
            warn_about_folder(opened, judge)
            show_result(defined, as_json=as_json)
        else:
            for row in opened.rows(preset=preset, judge=judge):
                click.echo(msgspec.json.encode(row).decode())
        sys.exit(3 if list_reasons(result, max_unjudged) else 0)
    if labels:
        from unmask.analysis.corrected import add_corrected, correct_excess, corrected_p_lie

        corrected = corrected_p_lie(opened, labels, preset=preset, judge=judge)
        excess = correct_excess(opened, labels, preset=preset, judge=judge)
        result = add_corrected(result, corrected, excess)
    typed = [("--judge", judge), ("--preset", preset), *(("--labels", who) for who in labels)]
    shared = [word for flag, value in typed if value for word in (flag, value)]
    own = ["--takes", str(takes)] if takes else []
    finish(result, opened, as_json=as_json, max_unjudged=max_unjudged, every=every, flags=shared, own=own)
