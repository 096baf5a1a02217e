"""`unmask label`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unmask.cli import crash
from unmask.cli.options import as_json as json_flag
from unmask.cli.options import option

if TYPE_CHECKING:
    from unmask.analysis.sampling import Sample
    from unmask.records import Label
    from unmask.runs.run import Run


@click.command()
@click.argument("run", metavar="RUN")
@option("--who", metavar="NAME", help="Who labels; the labels are kept under this name.")
@option("--size", type=int, help="Scenarios to draw; 150 unless given. A sample is drawn once.")
@option("--sample-seed", type=int, help="Decides which scenarios are drawn.")
@option("--probes/--no-probes", default=None, help="Also label probe replies, to correct errors in beliefs.")
@option("--export", "to", type=click.Path(path_type=Path), metavar="FILE", help="Write the replies, .jsonl or .csv.")
@option("--import", "source", type=click.Path(path_type=Path), metavar="FILE", help="Take in labels from such a file.")
@json_flag
def label(run: str, who: str | None, to: Path | None, source: Path | None, as_json: bool, **wishes: Any) -> None:
    """Label replies by hand, in the terminal or as CSV.

    Without --export and --import it shows one reply at a time in this terminal, without model or judge, and takes
    single keys. It can be left and taken up again at any time.
    """
    from unmask.analysis.sampling import sample
    from unmask.runs.run import open_run

    opened = open_run(run)
    if source is not None:
        _take_in(opened, source, who, as_json=as_json)
        return
    seed = wishes.pop("sample_seed")
    drawn = sample(opened, seed=seed, **wishes)
    if to is not None:
        _hand_out(opened, drawn, to, who, as_json=as_json)
    elif as_json:
        _print(_state(opened, drawn))
    else:
        _at_the_keyboard(opened, drawn, who)


def _take_in(run: Run, source: Path, who: str | None, *, as_json: bool) -> None:
    import msgspec

    from unmask.analysis.labels import check, key_of, load, read_file, writer
    from unmask.analysis.sampling import load as load_sample
    from unmask.errors import UsageError

    found = read_file(source)
    if not found:
        raise UsageError(
            f"{source} has no label: every row is empty", advice="Fill in `letter`, or `lower` and `upper`."
        )
    check(run, found)
    drawn = load_sample(run)
    weights = {one.scenario: one.weight for one in drawn.drawn} if drawn else {}
    added: dict[str, int] = {}
    for name, labels in _by_name(found, who).items():
        held, lines = load(run, name), writer(run, name)
        for one in labels:
            weight = one.weight if one.weight is not None else weights.get(one.scenario)
            label = msgspec.structs.replace(one, who=name, weight=weight)
            before = held.get(key_of(label))
            if before is None or msgspec.structs.replace(before, at=None) != msgspec.structs.replace(label, at=None):
                lines.append(label)
                held[key_of(label)] = label
                added[name] = added.get(name, 0) + 1
        lines.close()
    if as_json:
        _print({"read": len(found), "added": added})
    else:
        by = crash.shown(", ".join(added)) or "nobody"
        click.echo(f"{len(found)} labels read, {sum(added.values())} new: {by}")


def _by_name(labels: list[Label], who: str | None) -> dict[str, list[Label]]:
    from unmask.errors import UsageError

    found: dict[str, list[Label]] = {}
    for one in labels:
        found.setdefault(who or one.who, []).append(one)
    if "" in found:
        raise UsageError("the file does not say who gave the labels", advice="Add --who NAME.")
    return found


def _hand_out(run: Run, drawn: Sample, to: Path, who: str | None, *, as_json: bool) -> None:
    from unmask.analysis.labels import export, load
    from unmask.analysis.sampling import sampled

    count = export(sampled(run, drawn), to, labels=load(run, who) if who else None)
    if as_json:
        _print({"file": str(to), "replies": count, **_state(run, drawn)})
    else:
        click.echo(f"{count} replies of {len(drawn.drawn)} scenarios in {to}")
        click.echo(f"Fill in `letter` (A to D), or `lower` and `upper`, then: unmask label {run.path} --import {to}")


def _state(run: Run, drawn: Sample) -> dict[str, Any]:
    import msgspec

    from unmask.analysis.labels import labellers, load
    from unmask.analysis.sampling import sampled

    keys = {item.key for item in sampled(run, drawn)}
    done = {who: sum(key in keys for key in load(run, who)) for who in labellers(run)}
    return {"scenarios": len(drawn.drawn), "replies": len(keys), "labelled": done, "sample": msgspec.to_builtins(drawn)}


def _at_the_keyboard(run: Run, drawn: Sample, who: str | None) -> None:
    from unmask.analysis.labels import load, writer
    from unmask.analysis.sampling import sampled
    from unmask.cli.keys import Keys
    from unmask.errors import UsageError
    from unmask.render.terminal.label import Desk, Needs

    if who is None:
        raise UsageError("labels need a name", advice=f"Add --who NAME, as in: unmask label {run.path} --who me")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("there is no terminal to label in", advice="Use --export FILE.csv and --import FILE.csv.")
    lines = writer(run, who)
    desk = Desk(sampled(run, drawn), load(run, who), who, lines.append)
    with Keys() as keys:
        while desk.needs is not Needs.NOTHING:
            match desk.needs:
                case Needs.KEY:
                    click.clear()
                    click.echo(desk.text(width=_columns()), nl=False)
                    desk.press(keys.key())
                case Needs.FIGURE:
                    desk.type(keys.line("Figure or range (40, 10..20, 7.., ..10): "))
                case Needs.NOTE:
                    desk.type(keys.line("Note: "))
    lines.close()
    click.echo(f"\n{desk.done} of {len(desk.items)} labelled, kept in {lines.path}")
    left = len(desk.items) - desk.done
    click.echo(
        f"The same command goes on with the other {left}." if left else f"unmask agree {run.path} --labels {who}"
    )


def _columns() -> int:
    from shutil import get_terminal_size

    return get_terminal_size().columns


def _print(value: object) -> None:
    from unmask.cli.finish import encoded

    click.echo(encoded(value))
