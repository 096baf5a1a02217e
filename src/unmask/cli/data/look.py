"""`unmask data list`, `check`, `stats` and `show`: everything that only looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import join
from typing import TYPE_CHECKING, Any

import click

from unmask.cli.options import json_flag, option, print_blocks, print_json, print_paged, show_result
from unmask.records import Archetype

if TYPE_CHECKING:
    from unmask.data.dataset import Dataset
    from unmask.records import Scenario
    from unmask.render.blocks import Block

_NOTES = (
    *("yes_means", "unit", "tolerance", "pushes", "pressure", "cluster", "fact", "rung", "edit"),
    *("motive", "domain", "evidence", "delivery", "canary"),
)


@click.command("list")
@click.argument("source", metavar="[SET]", required=False)
@json_flag
def list_sets(*, source: str | None, as_json: bool) -> None:
    """The sets that ship with unmask, with their size. Or the scenarios of SET, a name or a path: ids, archetypes and
    what they are about."""
    if source is not None:
        _list_scenarios(source, as_json=as_json)
        return
    from unmask.data.load import bundled_sets, load

    sets = [load(name) for name in bundled_sets()]
    if as_json:
        print_json([summarise_set(dataset) for dataset in sets])
        return
    from unmask.render.blocks import Table, Text

    rows = [
        (dataset.name, _format_counts(dataset.counts), dataset.hash[:12], str(len(dataset.scenarios)))
        for dataset in sets
    ]
    table = Table(("set", "archetypes", "hash", "scenarios"), rows, texts=3)
    print_blocks([table, Text(f"unmask data list {sets[0].name} lists its scenarios")])


def summarise_set(dataset: Dataset) -> dict[str, Any]:
    """What identifies a set: name, size, hash and sizes of its archetypes."""
    counts = dataset.counts
    return {"name": dataset.name, "scenarios": len(dataset.scenarios), "hash": dataset.hash, "archetypes": counts}


def _format_counts(counts: Mapping[Archetype, int]) -> str:
    """`6, 50 each`, or the numbers where they differ."""
    if len(set(counts.values())) == 1:
        return f"{len(counts)}, {next(iter(counts.values()))} each"
    return ", ".join(f"{archetype} {number}" for archetype, number in counts.items())


def _list_scenarios(source: str, *, as_json: bool) -> None:
    from unmask.data.dataset import LoadOptions
    from unmask.data.load import load
    from unmask.render.blocks import to_terminal
    from unmask.render.describe.listing import list_scenarios

    dataset = load(source, options=LoadOptions(skip_bad_rows=True))
    listed = dataset.scenarios
    if as_json:
        fields = ("id", "archetype", "proposition")
        print_json([{field: getattr(scenario, field) for field in fields} for scenario in listed])
        return
    note = f"{len(listed)} scenarios" + (
        f"; {len(dataset.skipped)} bad rows are left out, unmask data check says why" if dataset.skipped else ""
    )
    command = join(["unmask", "data", "show", listed[0].id, "--data", source])
    print_paged(f"{to_terminal([list_scenarios(listed)])}{note}\n{command} shows the first in full\n")


@click.command()
@click.argument("source", metavar="PATH")
@json_flag
def check(source: str, *, as_json: bool) -> None:
    """Look for everything wrong with the set at PATH. Exits 2 if there is an error; warnings only ask for a look."""
    from unmask.data.check import check_source
    from unmask.errors import DataError, escape_line

    checked = check_source(source)
    good = len(checked.contents.scenarios)
    if as_json:
        print_json({"source": source, "scenarios": good, "errors": checked.errors, "warnings": checked.warnings})
        if checked.errors:
            click.get_current_context().exit(DataError.exit_code)
        return
    # Warnings first, so that the errors, which stop a script, stand last.
    warning_count = f"{len(checked.warnings)} warning{'s' if len(checked.warnings) != 1 else ''}"
    if checked.warnings:
        click.echo(f"{escape_line(source)} has {warning_count}:")
        click.echo("\n".join(f"  {warning} [{warning.code}]" for warning in checked.warnings))
    if checked.errors:
        number = len(checked.errors)
        lines = tuple(f"{error} [{error.code}]" for error in checked.errors)
        raise DataError(f"{source} has {number} error{'s' if number != 1 else ''}:", problems=lines)
    result = f"no errors, {warning_count}" if checked.warnings else "no problems"
    click.echo(f"{escape_line(source)}: {good} scenarios, {result}")


@click.command()
@click.argument("source", metavar="PATH")
@json_flag
def stats(source: str, *, as_json: bool) -> None:
    """What the set at PATH consists of: archetype × domain × pressure × where it pushes."""
    from unmask.data.load import load
    from unmask.data.stats import describe_dataset

    show_result(describe_dataset(load(source)), as_json=as_json)


@click.command()
@click.argument("scenario_id", metavar="ID", required=False)
@option("--data", "source", metavar="PATH", help="The set to look in. Default: all bundled sets.")
@json_flag
def show(scenario_id: str | None, *, source: str | None, as_json: bool) -> None:
    """Everything the scenario ID says: proposition, truth, probes and the pressured conversation."""
    from unmask.errors import UsageError

    if scenario_id is None:
        raise UsageError(
            "which scenario? Name its id", advice=f"{join(['unmask', 'data', 'list', source or 'core'])} lists them."
        )
    scenario = _find_scenario(scenario_id, source)
    if as_json:
        print_json(scenario)
    else:
        print_blocks(_describe_scenario(scenario))


def _find_scenario(scenario_id: str, source: str | None) -> Scenario:
    """The scenario, looked for in one set or, without a source, in every bundled one."""
    from unmask.data.dataset import LoadOptions
    from unmask.data.load import bundled_sets, load
    from unmask.errors import UsageError
    from unmask.text import suggest_names

    if source is not None:
        # Bad rows elsewhere in the file are no reason not to show a good one.
        return load(source, options=LoadOptions(skip_bad_rows=True, ids=(scenario_id,))).scenarios[0]
    every = [scenario for name in bundled_sets() for scenario in load(name).scenarios]
    for scenario in every:
        if scenario.id == scenario_id:
            return scenario
    listed = "unmask data list core lists ids; a set of your own is named with --data PATH."
    raise UsageError(
        f"no bundled scenario has the id {scenario_id!r}",
        advice=" ".join(filter(None, (suggest_names(scenario_id, (scenario.id for scenario in every)), listed))),
    )


def _describe_scenario(scenario: Scenario) -> Iterator[Block]:
    from unmask.render.blocks import Facts, Heading, Quote

    facts = {"proposition": scenario.proposition, "truth": _format_truth(scenario)}
    facts |= {name: str(value) for name in _NOTES if (value := getattr(scenario, name)) is not None}
    yield Heading(f"{scenario.id}  ({scenario.archetype}, {scenario.kind})")
    yield Facts(list(facts.items()))
    turns = ((f"pressured, {message.role}", message.content) for message in scenario.conversation)
    for title, text in (*scenario.questions.items(), *turns):
        yield from (Heading(title), Quote(text))


def _format_truth(scenario: Scenario) -> str:
    from unmask.records import Interval

    match scenario.truth:
        case Interval() as truth:
            lower, upper = ("open" if bound is None else f"{bound:g}" for bound in (truth.lower, truth.upper))
            return f"{lower} to {upper}"
        case letter:
            return f"{letter}: {scenario.statements['AB'.index(letter)]}"
