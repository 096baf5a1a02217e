"""What a command prints and returns once a run can be scored."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeVar

import click

from unmask.cli import crash
from unmask.cli.options import in_colour, print_json

if TYPE_CHECKING:
    from unmask.analysis.equivalence import ReplyReader
    from unmask.analysis.gate import Gate
    from unmask.analysis.sensitivity import Sensitivity
    from unmask.protocol.score import Score
    from unmask.runs.run import Run

T = TypeVar("T", bound="Gate | ReplyReader | Sensitivity")


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
        count = len(score.undecided)
        click.echo(f"unmask: {count} scenario{' is' if count == 1 else 's are'} not finished", err=True)
        if score.complete_with:
            click.echo(f"  Finish with: {crash.clean_for_terminal(score.complete_with)}", err=True)
    elif share is None:
        click.echo("unmask: there is nothing to score", err=True)
    elif share > max_unjudged:
        click.echo(f"unmask: {share:.1%} of the scenarios are unjudged, more than {max_unjudged:.1%}", err=True)
        click.echo(f"  {_advise_on_unjudged(score)}; `unmask show RUN ID` shows why", err=True)


def _advise_on_unjudged(score: Score) -> str:
    """What can be done: only failures go away when the same command is typed again."""
    if score.other_judges is not None and score.other_judges.command is not None:
        return f"Another judge has read them: {crash.clean_for_terminal(score.other_judges.command)}"
    if score.unjudged_reasons.get("failed"):
        return "The same command tries what failed again"
    return "The same judge will not read them either. Read them with another: unmask judge RUN --judge PROVIDER/NAME"


def name_other_judges(runs: Iterable[Run | str], judge: str | None) -> None:
    """One line for each run that somebody else has read as well, where no judge was asked for."""
    from unmask.runs.run import open_run

    for run in runs if judge is None else ():
        opened = open_run(run) if isinstance(run, str) else run
        others = opened.other_judges()
        if others is not None:
            click.echo(crash.clean_for_terminal(f"{opened.path}: {others}"), err=True)


def with_typed_judge(result: T, run: str) -> T:
    """A result with its judge as somebody would type it, for a screen. JSON has the name of the file."""
    from msgspec.structs import replace

    from unmask.runs.run import open_run

    if result.judge is None:
        return result
    return replace(result, judge=open_run(run).definition.typed_judge(result.judge))


def encode_json(value: object) -> str:
    import msgspec

    from unmask.text import replace_surrogates_in_tree

    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:  # the name of a folder may hold bytes that are no text
        data = msgspec.json.encode(replace_surrogates_in_tree(msgspec.to_builtins(value)))
    return msgspec.json.format(data, indent=2).decode()
