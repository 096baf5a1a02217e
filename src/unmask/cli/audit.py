"""`unmask audit`."""

from __future__ import annotations

import sys

import click

from unmask.cli import flags
from unmask.cli.options import json_flag, print_blocks, print_json, show_result


@click.command()
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@flags.judge
@json_flag
def audit(runs: tuple[str, ...], judge: str | None, as_json: bool) -> None:
    """Check whether the numbers of a run can be trusted: is it complete and unchanged, who answered, who judged.

    ✓ is good, ✗ is a fault, · is something to know. Exit code 1: a check failed. Nothing is sent or written, so it
    is safe for a stranger's folder. Of several runs only what fails is listed.
    """
    from unmask.analysis.audit import audit as check
    from unmask.render.describe.audit import describe_audits
    from unmask.runs.folder import expand_runs

    audits = [check(run, judge=judge) for run in expand_runs(runs)]
    if len(audits) == 1:
        show_result(audits[0], as_json=as_json)
    elif as_json:
        print_json([result.to_json() for result in audits])
    else:
        print_blocks(describe_audits(audits))
    sys.exit(0 if all(result.passed for result in audits) else 1)
