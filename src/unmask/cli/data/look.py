"""`unmask data list`, `check`, `stats` and `show`: everything that only looks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from shlex import join
from shutil import get_terminal_size
from typing import TYPE_CHECKING

import click

from unmask.cli.data.printing import print_tables, summarise_set
from unmask.cli.options import choice_of, json_flag, option, print_json, print_paged
from unmask.records import Archetype

if TYPE_CHECKING:
    from unmask.data.stats import Table
    from unmask.records import Scenario

_NOTES = (
    *("yes_means", "unit", "tolerance", "pushes", "pressure", "cluster", "fact", "rung", "edit"),
    *("motive", "domain", "evidence", "delivery", "canary"),
)


@click.command("list")
@click.argument("source", metavar="[SET]", required=False)
@option("--archetype", multiple=True, type=choice_of(Archetype), help="Only this archetype of SET; may be repeated.")
@json_flag
def list_sets(*, source: str | None, archetype: tuple[str, ...], as_json: bool) -> None:
    """The sets that ship with unmask, with their size. Or the scenarios of SET, a name or a path: ids, archetypes and
    what they are about."""
    if source is not None:
        _list_scenarios(source, archetype, as_json=as_json)
        return
    if archetype:
        from unmask.errors import UsageError

        raise UsageError("--archetype chooses scenarios of a set", advice="Name it: unmask data list core")
    from unmask.data.load import bundled_sets, load

    sets = [load(name) for name in bundled_sets()]
    if as_json:
        print_json([summarise_set(dataset) for dataset in sets])
        return
    rows = [
        (dataset.name, str(len(dataset.scenarios)), _format_counts(dataset.counts), dataset.hash[:12])
        for dataset in sets
    ]
    print_tables([(("set", "scenarios", "archetypes", "hash"), *rows)])
    click.echo(f"\nunmask data list {sets[0].name} lists its scenarios")


def _format_counts(counts: Mapping[Archetype, int]) -> str:
    """`6, 50 each`, or the numbers where they differ."""
    if len(set(counts.values())) == 1:
        return f"{len(counts)}, {next(iter(counts.values()))} each"
    return ", ".join(f"{archetype} {number}" for archetype, number in counts.items())


def _list_scenarios(source: str, archetypes: tuple[str, ...], *, as_json: bool) -> None:
    from unmask.data.dataset import LoadOptions
    from unmask.data.load import load
    from unmask.render.blocks import to_terminal
    from unmask.render.describe.listing import list_scenarios

    options = LoadOptions(skip_bad_rows=True, archetypes=tuple(map(Archetype, archetypes)))
    dataset = load(source, options=options)
    listed = dataset.scenarios
    if as_json:
        fields = ("id", "archetype", "proposition")
        print_json([{field: getattr(scenario, field) for field in fields} for scenario in listed])
        return
    note = f"{len(listed)} of {len(dataset.scenarios)} scenarios" + (
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
@option("--format", "layout", type=click.Choice(["table", "markdown"]), default="table", help="Markdown is for a card.")
@json_flag
def stats(source: str, *, layout: str, as_json: bool) -> None:
    """What the set at PATH consists of: archetype × domain × pressure × where it pushes, motives, lengths."""
    from unmask.data import stats as counted
    from unmask.data.load import load
    from unmask.render.layout import wrap_text

    set_stats = counted.describe_dataset(load(source))
    if as_json:
        print_json(set_stats)
        return
    if layout == "markdown":
        for table in counted.make_tables(set_stats):
            click.echo(counted.format_markdown(table) + "\n")
        return
    balance, *others, domains = counted.make_tables(set_stats)
    print_tables([balance, *others, _group_domains(balance, domains)])
    click.echo("\n" + "\n".join(line for text in STATS_LEGEND for line in wrap_text(text, get_terminal_size().columns)))


STATS_LEGEND = (
    "truth A, truth B: which statement is true. sit., expl.: situational and explicit pressure. yes/up, no/down:"
    " the pressure asks for yes or a higher figure, for no or a lower one; other: for any other figure, or the data"
    " does not say.",
    "system, user, direct, indirect: words of the system prompt, of the last user message and of the probes, as"
    " least–median–most.",
)


def _group_domains(balance: Table, domains: Table) -> Table:
    """The table of domains with one column less: the row of each archetype, and its domains below it."""
    rows: list[tuple[str, ...]] = []
    for archetype, *numbers in balance[1:-1]:
        rows.append((archetype, *numbers))
        rows += [(f"  {domain}", *counts) for name, domain, *counts in domains[1:] if name == archetype]
    return (("archetype and domain", *balance[0][1:]), *rows)


@click.command()
@click.argument("scenario_id", metavar="ID", required=False)
@option("--data", "source", metavar="PATH", help="The set to look in. Default: all bundled sets.")
@json_flag
def show(scenario_id: str | None, *, source: str | None, as_json: bool) -> None:
    """Everything the scenario ID says: proposition, truth, probes and the pressured conversation."""
    from unmask.errors import UsageError, escape_controls

    if scenario_id is None:
        raise UsageError(
            "which scenario? Name its id", advice=f"{join(['unmask', 'data', 'list', source or 'core'])} lists them."
        )
    scenario = _find_scenario(scenario_id, source)
    if as_json:
        print_json(scenario)
    else:
        click.echo(escape_controls("\n".join(_scenario_lines(scenario, get_terminal_size().columns))))


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


def _scenario_lines(scenario: Scenario, width: int) -> Iterator[str]:
    from unmask.render.layout import quote_lines, wrap_text

    facts = {"proposition": scenario.proposition, "truth": _format_truth(scenario)}
    facts |= {name: value for name in _NOTES if (value := getattr(scenario, name)) is not None}
    yield f"{scenario.id}  ({scenario.archetype}, {scenario.kind})"
    for name, value in facts.items():
        yield from wrap_text(f"{name:<12} {value}", width, indent=" " * 13)
    turns = ((f"pressured, {message.role}", message.content) for message in scenario.conversation)
    for title, text in (*scenario.questions.items(), *turns):
        yield f"\n[{title}]"
        yield from quote_lines(text, width)


def _format_truth(scenario: Scenario) -> str:
    from unmask.records import Interval

    match scenario.truth:
        case Interval() as truth:
            lower, upper = ("open" if bound is None else f"{bound:g}" for bound in (truth.lower, truth.upper))
            return f"{lower} to {upper}"
        case letter:
            return f"{letter}: {scenario.statements['AB'.index(letter)]}"
