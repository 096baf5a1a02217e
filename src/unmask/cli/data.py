"""`unmask data`: list, check, show and export scenario sets."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from unmask.cli.options import as_json, option

if TYPE_CHECKING:
    from unmask.data import Dataset
    from unmask.records import Scenario

_NOTES = ("yes_means", "unit", "tolerance", "pushes", "pressure", "motive", "domain", "evidence", "delivery", "canary")


@click.group()
def data() -> None:
    """List, check and look into scenario sets.

    A set is a folder in the reference or hub layout, a .jsonl file, cais/MASK, or the name of a bundled set.
    """


@data.command("list")
@as_json
def list_sets(*, as_json: bool) -> None:
    """The sets that ship with unmask, with their size."""
    from unmask.data import load
    from unmask.data.bundled import bundled

    sets = [load(name) for name in bundled()]
    if as_json:
        _print_json([_summary(dataset) for dataset in sets])
    else:
        _print_table(sets)


@data.command()
@click.argument("source", metavar="PATH")
@as_json
def check(source: str, *, as_json: bool) -> None:
    """Look for everything wrong with the set at PATH. Exits 2 if there is something."""
    from unmask.data.check import check_source
    from unmask.data.text import plain
    from unmask.errors import DataError

    checked = check_source(source)
    problems, good = checked.problems, len(checked.contents.scenarios)
    if as_json:
        _print_json({"source": source, "scenarios": good, "problems": problems})
        if problems:
            click.get_current_context().exit(DataError.exit_code)
    elif problems:
        raise DataError(f"{plain(source)} has problems ({len(problems)}):", problems=tuple(map(str, problems)))
    else:
        click.echo(f"{plain(source)}: {good} scenarios, no problems")


@data.command()
@click.argument("scenario_id", metavar="ID")
@option("--data", "source", metavar="PATH", help="The set to look in. Default: all bundled sets.")
@as_json
def show(scenario_id: str, *, source: str | None, as_json: bool) -> None:
    """Everything the scenario ID says: proposition, truth, probes and the pressured conversation."""
    scenario = _find(scenario_id, source)
    if as_json:
        _print_json(scenario)
    else:
        from unmask.data.text import escape

        click.echo(escape("\n".join(_lines(scenario))))


@data.command()
@click.argument("source", metavar="NAME")
@option("--layout", type=click.Choice(["reference"]), default="reference", help="What to write.")
@option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="A new or empty folder.")
@as_json
def export(source: str, *, layout: str, out: Path, as_json: bool) -> None:
    """Write the set NAME as the reference code's folder, one CSV per archetype, so that others can run it."""
    from unmask.data import load
    from unmask.data.export import export_reference

    dataset = load(source)
    files = [str(path) for path in export_reference(dataset, out_dir=out)]
    if as_json:
        _print_json({"layout": layout, "out": str(out), "files": files, **_summary(dataset)})
    else:
        click.echo("\n".join([*files, f"{len(dataset.scenarios)} scenarios; use them with --data {out}"]))


def _find(scenario_id: str, source: str | None) -> Scenario:
    """The scenario, looked for in one set or, without a source, in every bundled one."""
    from unmask.data import LoadOptions, load
    from unmask.data.bundled import bundled
    from unmask.data.text import plain
    from unmask.errors import UsageError

    if source is not None:
        # Bad rows elsewhere in the file are no reason not to show a good one.
        return load(source, options=LoadOptions(skip_bad_rows=True, ids=(scenario_id,))).scenarios[0]
    for name in bundled():
        for scenario in load(name).scenarios:
            if scenario.id == scenario_id:
                return scenario
    raise UsageError(
        f"no bundled scenario has the id {plain(scenario_id)!r}",
        advice="Name the set it is in: unmask data show ID --data PATH",
    )


def _lines(scenario: Scenario) -> Iterator[str]:
    yield f"{scenario.id}  ({scenario.archetype}, {scenario.kind})"
    yield f"proposition  {scenario.proposition}"
    yield f"truth        {_truth(scenario)}"
    yield from (f"{name:<12} {value}" for name in _NOTES if (value := getattr(scenario, name)) is not None)
    probes = [("direct", scenario.direct), ("check", scenario.check)]
    probes += [(f"indirect_{place}", text) for place, text in enumerate(scenario.indirect, start=1)]
    yield from _blocks((name, text) for name, text in probes if text is not None)
    yield from _blocks((f"pressured, {message.role}", message.content) for message in scenario.conversation)


def _truth(scenario: Scenario) -> str:
    from unmask.records import Interval

    match scenario.truth:
        case Interval() as truth:
            lower, upper = ("open" if bound is None else f"{bound:g}" for bound in (truth.lower, truth.upper))
            return f"{lower} to {upper}"
        case letter:
            return f"{letter}: {scenario.statements['AB'.index(letter)]}"


def _blocks(parts: Iterable[tuple[str, str]]) -> Iterator[str]:
    for title, text in parts:
        yield f"\n[{title}]"
        yield text


def _summary(dataset: Dataset) -> dict[str, Any]:
    counts = dataset.counts
    return {"name": dataset.name, "scenarios": len(dataset.scenarios), "hash": dataset.hash, "archetypes": counts}


def _print_json(value: Any) -> None:
    import msgspec

    click.echo(msgspec.json.format(msgspec.json.encode(value), indent=2).decode())


def _print_table(sets: Iterable[Dataset]) -> None:
    from rich.console import Console
    from rich.table import Table

    table = Table("set", "scenarios", "archetypes", "hash", box=None)
    for dataset in sets:
        counts = ", ".join(f"{archetype} {number}" for archetype, number in dataset.counts.items())
        table.add_row(dataset.name, str(len(dataset.scenarios)), counts, dataset.hash[:12])
    Console(soft_wrap=True).print(table)
