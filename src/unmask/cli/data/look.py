"""`unmask data list`, `check`, `stats` and `show`: everything that only looks."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from unmask.cli.data.printing import print_table, summarise_set
from unmask.cli.options import json_flag, option, print_json

if TYPE_CHECKING:
    from unmask.records import Scenario

_NOTES = ("yes_means", "unit", "tolerance", "pushes", "pressure", "motive", "domain", "evidence", "delivery", "canary")


@click.command("list")
@json_flag
def list_sets(*, as_json: bool) -> None:
    """The sets that ship with unmask, with their size."""
    from unmask.data.bundled import bundled_sets
    from unmask.data.load import load

    sets = [load(name) for name in bundled_sets()]
    if as_json:
        print_json([summarise_set(dataset) for dataset in sets])
        return
    rows = [
        (
            dataset.name,
            str(len(dataset.scenarios)),
            ", ".join(f"{archetype} {number}" for archetype, number in dataset.counts.items()),
            dataset.hash[:12],
        )
        for dataset in sets
    ]
    print_table((("set", "scenarios", "archetypes", "hash"), *rows))


@click.command()
@click.argument("source", metavar="PATH")
@json_flag
def check(source: str, *, as_json: bool) -> None:
    """Look for everything wrong with the set at PATH. Exits 2 if there is an error; warnings only ask for a look."""
    from unmask.data.check import check_source
    from unmask.errors import DataError
    from unmask.text import escape_controls, escape_line

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
        click.echo("\n".join(f"  {escape_controls(str(warning))} [{warning.code}]" for warning in checked.warnings))
    if checked.errors:
        number = len(checked.errors)
        lines = tuple(f"{error} [{error.code}]" for error in checked.errors)
        raise DataError(f"{escape_line(source)} has {number} error{'s' if number != 1 else ''}:", problems=lines)
    result = f"no errors, {warning_count}" if checked.warnings else "no problems"
    click.echo(f"{escape_line(source)}: {good} scenarios, {result}")


@click.command()
@click.argument("source", metavar="PATH")
@option("--format", "layout", type=click.Choice(["table", "markdown"]), default="table", help="Markdown is for a card.")
@json_flag
def stats(source: str, *, layout: str, as_json: bool) -> None:
    """What the set at PATH consists of: archetype × domain × pressure × where it pushes, motives, lengths."""
    from unmask.data import stats as counted
    from unmask.data.load import load

    set_stats = counted.describe_dataset(load(source))
    if as_json:
        print_json(set_stats)
        return
    for table in counted.make_tables(set_stats):
        if layout == "markdown":
            click.echo(counted.format_markdown(table) + "\n")
        else:
            print_table(table)
            click.echo()


@click.command()
@click.argument("scenario_id", metavar="ID")
@option("--data", "source", metavar="PATH", help="The set to look in. Default: all bundled sets.")
@json_flag
def show(scenario_id: str, *, source: str | None, as_json: bool) -> None:
    """Everything the scenario ID says: proposition, truth, probes and the pressured conversation."""
    scenario = _find_scenario(scenario_id, source)
    if as_json:
        print_json(scenario)
    else:
        from unmask.text import escape_controls

        click.echo(escape_controls("\n".join(_scenario_lines(scenario))))


def _find_scenario(scenario_id: str, source: str | None) -> Scenario:
    """The scenario, looked for in one set or, without a source, in every bundled one."""
    from unmask.data.bundled import bundled_sets
    from unmask.data.dataset import LoadOptions
    from unmask.data.load import load
    from unmask.errors import UsageError
    from unmask.text import escape_line

    if source is not None:
        # Bad rows elsewhere in the file are no reason not to show a good one.
        return load(source, options=LoadOptions(skip_bad_rows=True, ids=(scenario_id,))).scenarios[0]
    for name in bundled_sets():
        for scenario in load(name).scenarios:
            if scenario.id == scenario_id:
                return scenario
    raise UsageError(
        f"no bundled scenario has the id {escape_line(scenario_id)!r}",
        advice="Name the set it is in: unmask data show ID --data PATH",
    )


def _scenario_lines(scenario: Scenario) -> Iterator[str]:
    yield f"{scenario.id}  ({scenario.archetype}, {scenario.kind})"
    yield f"proposition  {scenario.proposition}"
    yield f"truth        {_format_truth(scenario)}"
    yield from (f"{name:<12} {value}" for name in _NOTES if (value := getattr(scenario, name)) is not None)
    turns = ((f"pressured, {message.role}", message.content) for message in scenario.conversation)
    yield from (f"\n[{title}]\n{text}" for title, text in (*scenario.questions.items(), *turns))


def _format_truth(scenario: Scenario) -> str:
    from unmask.records import Interval

    match scenario.truth:
        case Interval() as truth:
            lower, upper = ("open" if bound is None else f"{bound:g}" for bound in (truth.lower, truth.upper))
            return f"{lower} to {upper}"
        case letter:
            return f"{letter}: {scenario.statements['AB'.index(letter)]}"
