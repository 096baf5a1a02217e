"""`unmask label`."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unmask.cli import crash
from unmask.cli.options import LABEL, SectionedCommand, json_flag, option, print_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from unmask.analysis.label_sheets import Item
    from unmask.records import Label
    from unmask.runs.run import Run


EXAMPLES = """\
unmask label runs/gpt-4o --who me
unmask label runs/gpt-4o --export replies.csv
unmask label runs/gpt-4o --import replies.csv --who me"""


@click.command(cls=SectionedCommand, sections=LABEL, examples=EXAMPLES)
@click.argument("run", metavar="RUN")
@option("--who", metavar="NAME", help="Who labels; the labels are kept under this name.")
@option("--size", type=int, default=150, help="Stop after this many scenarios; 150 unless given.")
@option("--sample-seed", type=int, default=0, help="Decides which scenarios come first.")
@option("--probes", is_flag=True, help="Also label probe replies, to correct errors in beliefs.")
@option("--export", "to", type=click.Path(path_type=Path), metavar="FILE", help="Write the replies, .jsonl or .csv.")
@option("--import", "source", type=click.Path(path_type=Path), metavar="FILE", help="Take in labels from such a file.")
@json_flag
def label(run: str, who: str | None, to: Path | None, source: Path | None, as_json: bool, **wishes: Any) -> None:
    """Label replies by hand, in the browser or as a sheet.

    Without --export and --import it opens a page that shows one reply at a time, without model or judge. You can stop
    and go on later at any time; Ctrl-C ends the server behind the page.
    """
    from urllib.parse import urlencode

    from unmask.analysis.label_sheets import export_items
    from unmask.analysis.labels import load_labels
    from unmask.analysis.sampling import label as list_replies
    from unmask.cli.view import serve_pages
    from unmask.runs.run import open_run

    opened = open_run(run)
    if source is not None:
        _import_labels(opened, source, who, as_json=as_json)
        return
    items = list_replies(opened, **wishes)
    if to is not None:
        count = export_items(items, to, labels=load_labels(opened, who) if who else None)
        if as_json:
            print_json({"file": str(to), "replies": count, **_count_labels(opened, items)})
            return
        click.echo(f"{count} replies in {to}")
        click.echo(f"Fill in `letter` (A to D), or `lower` and `upper`, then: unmask label {opened.path} --import {to}")
    elif as_json:
        print_json(_count_labels(opened, items))
    else:
        click.echo(f"Without a browser: unmask label {opened.path} --export replies.csv", err=True)
        serve_pages([opened.path], page=f"/label?{urlencode({'who': who or ''})}&")


def _import_labels(run: Run, source: Path, who: str | None, *, as_json: bool) -> None:
    from msgspec.structs import replace

    from unmask.analysis.label_sheets import read_file
    from unmask.analysis.labels import bind_labels, check_labels, key_of, load_labels, open_writer
    from unmask.errors import UsageError

    read_labels = read_file(source)
    if not read_labels:
        raise UsageError(
            f"{source} has no label: every row is empty", advice="Fill in `letter`, or `lower` and `upper`."
        )
    check_labels(run, read_labels)
    grouped: dict[str, list[Label]] = {}
    for label in bind_labels(run, read_labels):
        grouped.setdefault(who or label.who, []).append(label)
    if "" in grouped:
        raise UsageError("the file does not say who gave the labels", advice="Add --who NAME.")
    added: dict[str, int] = {}
    for name, labels in grouped.items():
        with closing(open_writer(run, name)) as lines:
            stored = load_labels(run, name)
            for new_label in labels:
                label = replace(new_label, who=name)
                before = stored.get(key_of(label))
                if before is None or replace(before, at=None) != replace(label, at=None):
                    lines.append(label)
                    stored[key_of(label)] = label
                    added[name] = added.get(name, 0) + 1
    if as_json:
        print_json({"read": len(read_labels), "added": added})
    else:
        by = crash.clean_for_terminal(", ".join(added)) or "nobody"
        click.echo(f"{len(read_labels)} labels read, {sum(added.values())} new: {by}")


def _count_labels(run: Run, items: Sequence[Item]) -> dict[str, Any]:
    from unmask.analysis.labels import labellers, load_labels, load_skips

    keys = {item.key for item in items}
    people = labellers(run)
    return {
        "scenarios": len({item.scenario.id for item in items}),
        "replies": len(keys),
        "labelled": {who: sum(key in keys for key in load_labels(run, who)) for who in people},
        "skipped": {who: sum(key in keys for key in load_skips(run, who)) for who in people},
    }
