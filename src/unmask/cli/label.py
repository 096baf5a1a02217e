"""`unmask label`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unmask.cli.options import Command, json_flag, option, print_json, print_note

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unmask.analysis.label_session import Replies

EXAMPLES = """\
unmask label runs/gpt-4o --who me
unmask label sweeps/nov --size 150 --in-all --export replies.html
unmask label sweeps/nov --import replies-labels.jsonl"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("runs", metavar="RUN…", nargs=-1, required=True)
@option("--who", metavar="NAME", help="Who labels; the labels are kept under this name.")
@option("--size", type=int, default=150, help="Stop after this many scenarios of each run; 150 unless given.")
@option("--in-all", is_flag=True, help="--size counts the scenarios of all runs together.")
@option("--sample-seed", type=int, default=0, help="Decides which scenarios come first.")
@option("--probes", is_flag=True, help="Also label probe replies, to correct errors in beliefs.")
@option(
    "--export",
    "to",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Write the replies: .html, a page to label in; .csv or .jsonl, a sheet.",
)
@option("--import", "source", type=click.Path(path_type=Path), metavar="FILE", help="Take in labels from such a file.")
@json_flag
def label(
    runs: tuple[str, ...], who: str | None, to: Path | None, source: Path | None, as_json: bool, **wishes: Any
) -> None:
    """Label replies by hand: in the browser, in a page that you can send to others, or in a sheet.

    Replies come one at a time, without model or judge, those of several runs mixed. Stop with Ctrl-C and continue at
    any time.
    """
    from urllib.parse import urlencode

    from unmask.analysis.label_session import count_people, draw_replies, find_name, import_labels
    from unmask.cli.view import serve_pages
    from unmask.runs.run import open_runs

    opened = open_runs(runs)
    if source is not None:
        read, added = import_labels(opened, source, who=who)
        if as_json:
            print_json({"read": read, "added": added})
            return
        by = ", ".join(f"{count} by {name}" for name, count in added.items())
        click.echo(f"{read} labels read, {sum(added.values())} new{by and f': {by}'}")
        click.echo(f"How often judge and people agree:\n  {shlex.join(['unmask', 'agree', *runs])}")
        return
    if who:
        who = find_name(who, count_people(opened))
    replies = draw_replies(opened, **wishes)
    if to is not None:
        _export(replies, to, who)
    if as_json:
        scenarios = len({(run.path, item.scenario.id) for run, item in replies})
        counts = {"scenarios": scenarios, "replies": len(replies), "labelled": count_people(opened)}
        print_json(({"file": str(to)} if to else {}) | counts)
    elif to is not None:
        click.echo(f"{len(replies):,} replies in {to}\n{_name_next_step(runs, to, who)}")
    else:
        of = f" of {len(opened)} runs, mixed" if len(opened) > 1 else ""
        print_note(f"{len(replies):,} replies to label{of}. Without a browser here: add --export replies.html")
        chosen = {"who": who or "", "every": 1, "size": wishes["size"], "seed": wishes["sample_seed"]}
        chosen |= {name: 1 for name in ("in_all", "probes") if wishes[name]}
        serve_pages([run.path for run in opened], page=f"/label?{urlencode(chosen)}&")


def _name_next_step(runs: Sequence[str], to: Path, who: str | None) -> str:
    from getpass import getuser

    command = ["unmask", "label", *runs, "--import"]
    if to.suffix.lower() == ".html":
        saved = to.with_name(f"{to.stem}-labels.jsonl")
        line = shlex.join([*command, str(saved)])
        return f"Label in a browser, and save {saved.name} next to it. Then:\n  {line}"
    line = shlex.join([*command, str(to), *([] if who else ["--who", getuser()])])
    return f"Fill in `letter` (A to D), or `lower` and `upper`. Then:\n  {line}"


def _export(replies: Replies, to: Path, who: str | None) -> None:
    """Nothing is replaced: a file that is there may be a sheet that somebody has filled in."""
    from unmask.analysis.label_sheets import format_items
    from unmask.errors import UsageError
    from unmask.files import choose_by_ending, write_atomically
    from unmask.render.html.label import join_labels, render_label_file

    choose_by_ending(to, dict.fromkeys((".html", ".csv", ".jsonl"), True))
    if os.path.lexists(to):
        raise UsageError(f"{to} is there already", advice="It may hold labels. Choose another file for --export.")
    labelled, ending = join_labels(replies, who), to.suffix.lower()
    if ending == ".html":
        page = render_label_file(labelled, who=who or "", save=f"{to.stem}-labels.jsonl")
        write_atomically(to, page.encode("utf-8", "backslashreplace"))
    else:
        write_atomically(to, format_items(labelled, ending, who=who))
