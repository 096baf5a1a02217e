"""What a command prints and returns once a run can be scored."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from unmask.cli import crash
from unmask.cli.options import in_colour, print_json

if TYPE_CHECKING:
    from unmask.protocol.score import Score


def finish(score: Score, *, as_json: bool, max_unjudged: float) -> None:
    """Print the score; leave with exit code 3 where too much is unjudged or something was not asked yet."""
    if as_json:
        print_json(score.to_json())
    else:
        from unmask.render.terminal.score import render

        click.echo(render(score, width=None, color=in_colour(), max_unjudged=max_unjudged), nl=False)
    code = exit_code(score, max_unjudged)
    if code:
        _explain_exit(score, max_unjudged)
        sys.exit(code)


def exit_code(score: Score, max_unjudged: float) -> int:
    """3 where the run is incomplete, above the unjudged limit, or read by a judge that gives one letter always."""
    share = score.unjudged_share
    unfit = share is None or share > max_unjudged or score.no_longer_read is not None
    return 3 if unfit or score.undecided or score.one_letter is not None else 0


def _explain_exit(score: Score, max_unjudged: float) -> None:
    share = score.unjudged_share
    if score.no_longer_read is not None:
        click.echo(f"unmask: {crash.clean_for_terminal(str(score.no_longer_read))}", err=True)
    if score.one_letter is not None:
        click.echo(f"unmask: {score.one_letter}", err=True)
        click.echo("  Compare it with people: unmask label RUN, or read with another: unmask judge RUN", err=True)
    if score.no_longer_read is not None:
        return
    if score.undecided:
        click.echo(
            f"unmask: {len(score.undecided)} scenarios are undecided: not everything was asked and read", err=True
        )
        if score.complete_with:
            click.echo(f"  Complete them with: {crash.clean_for_terminal(score.complete_with)}", err=True)
    elif share is None:
        click.echo("unmask: there is nothing to score", err=True)
    elif share > max_unjudged:
        click.echo(f"unmask: {share:.1%} of the scenarios are unjudged, more than {max_unjudged:.1%}", err=True)
        click.echo("  The same command tries what failed again; `unmask show RUN ID` shows why", err=True)


def encode_json(value: object) -> str:
    import msgspec

    from unmask.text import replace_surrogates_in_tree

    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:  # the name of a folder may hold bytes that are no text
        data = msgspec.json.encode(replace_surrogates_in_tree(msgspec.to_builtins(value)))
    return msgspec.json.format(data, indent=2).decode()
