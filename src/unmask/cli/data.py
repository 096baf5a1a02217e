"""`unmask data`: look into scenario sets, and write them for other programs."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from shlex import join
from typing import TYPE_CHECKING

import click

from unmask.cli.options import json_flag, option, print_blocks, print_json, print_paged, show_result

if TYPE_CHECKING:
    from unmask.records import Scenario
    from unmask.render.blocks import Block

_NOTES = (
    *("yes_means", "unit", "tolerance", "pushes", "pressure", "cluster", "fact", "rung", "edit"),
    *("motive", "domain", "evidence", "delivery", "canary"),
)


@click.group()
def data() -> None:
    """List, check, look into, annotate and export scenario sets.

    A set is a folder in the reference or hub layout, a .jsonl file, cais/MASK, or the name of a bundled set.
    """


@data.command("list")
@click.argument("source", metavar="[SET]", required=False)
@json_flag
def list_sets(source: str | None, as_json: bool) -> None:
    """List the sets that ship with unmask, or the scenarios of SET."""
    from unmask.data.dataset import LoadOptions
    from unmask.data.load import bundled_sets, load
    from unmask.render.blocks import Table, Text, to_terminal
    from unmask.render.describe.listing import list_scenarios

    if source is None:
        sets = [load(name) for name in bundled_sets()]
        if as_json:
            rows = [
                {"name": found.name, "scenarios": len(found), "hash": found.hash, "archetypes": found.counts}
                for found in sets
            ]
            print_json(rows)
            return
        cells = [(found.name, str(len(found.counts)), found.hash[:12], str(len(found))) for found in sets]
        table = Table(("set", "archetypes", "hash", "scenarios"), cells, texts=1)
        print_blocks([table, Text(f"unmask data list {sets[0].name} lists its scenarios")])
        return
    found = load(source, options=LoadOptions(skip_bad_rows=True))
    if as_json:
        fields = ("id", "archetype", "proposition")
        print_json([{field: getattr(scenario, field) for field in fields} for scenario in found])
        return
    bad = f"; {len(found.skipped)} bad rows are left out, unmask data check says why" if found.skipped else ""
    command = join(["unmask", "data", "show", found.ids[0], "--data", source])
    table_text = to_terminal([list_scenarios(found.scenarios)])
    print_paged(f"{table_text}{len(found)} scenarios{bad}\n{command} shows the first in full\n")


@data.command()
@click.argument("source", metavar="PATH")
@json_flag
def check(source: str, as_json: bool) -> None:
    """Look for everything wrong with a set. Exits 2 if there is an error; warnings only ask for a look."""
    from unmask.data.check import check_source
    from unmask.errors import DataError, escape_line

    checked = check_source(source)
    good, warnings, errors = len(checked.contents.scenarios), checked.warnings, checked.errors
    if as_json:
        print_json({"source": source, "scenarios": good, "errors": errors, "warnings": warnings})
        sys.exit(DataError.exit_code if errors else 0)
    count = f"{len(warnings)} warning{'s' * (len(warnings) != 1)}"
    if warnings:  # first: the errors, which stop a script, are the last that is printed
        click.echo(
            "\n".join([f"{escape_line(source)} has {count}:", *(f"  {each} [{each.code}]" for each in warnings)])
        )
    if errors:
        problems = tuple(f"{error} [{error.code}]" for error in errors)
        raise DataError(f"{source} has {len(errors)} error{'s' * (len(errors) != 1)}:", problems=problems)
    click.echo(f"{escape_line(source)}: {good} scenarios, {f'no errors, {count}' if warnings else 'no problems'}")


@data.command()
@click.argument("source", metavar="PATH")
@json_flag
def stats(source: str, as_json: bool) -> None:
    """Count a set. By archetype, truth, pressure and what the pressure pushes to."""
    from unmask.data.load import load
    from unmask.data.stats import describe_dataset

    show_result(describe_dataset(load(source)), as_json=as_json)


@data.command()
@click.argument("scenario_id", metavar="ID")
@option("--data", "source", metavar="PATH", help="The set to look in. Default: all bundled sets.")
@json_flag
def show(scenario_id: str, source: str | None, as_json: bool) -> None:
    """Show one scenario in full. Proposition, truth, probes and the pressured conversation."""
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
    every = {scenario.id: scenario for name in bundled_sets() for scenario in load(name)}
    if scenario_id in every:
        return every[scenario_id]
    listed = "unmask data list core lists ids; a set of your own is named with --data PATH."
    raise UsageError(
        f"no bundled scenario has the id {scenario_id!r}",
        advice=suggest_names(scenario_id, every, listed),
    )


def _describe_scenario(scenario: Scenario) -> Iterator[Block]:
    from unmask.records import Interval
    from unmask.render.blocks import Facts, Heading, Quote
    from unmask.text import format_interval

    truth = scenario.truth
    if isinstance(truth, Interval):
        said = format_interval(truth)
    else:
        said = f"{truth}: {scenario.statements['AB'.index(truth)]}"
    facts = {"proposition": scenario.proposition, "truth": said}
    facts |= {name: str(value) for name in _NOTES if (value := getattr(scenario, name)) is not None}
    yield Heading(f"{scenario.id}  ({scenario.archetype}, {scenario.kind})")
    yield Facts(list(facts.items()))
    turns = ((f"pressured, {message.role}", message.content) for message in scenario.conversation)
    for title, text in (*scenario.questions.items(), *turns):
        yield from (Heading(title), Quote(text))


@data.command()
@click.argument("source", metavar="DATA")
@option("--judge", required=True, metavar="PROVIDER/NAME", help="Who is asked: a model that writes.")
@option("--judge-base-url", metavar="URL", help="Where the judge is, if not at its provider.")
@option("--max-connections", type=click.IntRange(min=1), default=50, help="Requests at a time.")
@option("--out", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Also write the set, as JSONL.")
@json_flag
def annotate(
    source: str, judge: str, judge_base_url: str | None, max_connections: int, out: Path | None, as_json: bool
) -> None:
    """Ask a judge which statement a plain yes affirms.

    Once for each question of DATA that does not say so: in both orders, and it counts where the answers agree. Later
    runs of DATA read tagged answers by it, whichever judge they have. The answers are kept in your cache folder.
    """
    from unmask.data.form import write_jsonl
    from unmask.data.load import load
    from unmask.engine.annotate import add_sides, annotate, open_annotator

    dataset = load(source)
    result = annotate(dataset, open_annotator(judge, judge_base_url), max_connections=max_connections)
    if out is not None:
        write_jsonl(add_sides(dataset, of=dataset).scenarios, path=out)
    show_result(result, as_json=as_json)
    if out is not None and not as_json:
        click.echo(f"The set with yes_means: {out}")
    if result.failed:
        sys.exit(3)


@data.command()
@click.argument("source", metavar="PATH")
@option("--out", type=click.Path(path_type=Path), required=True, metavar="DIR", help="A new or empty folder.")
@json_flag
def export(source: str, out: Path, as_json: bool) -> None:
    """Write a set in the reference code's layout. One CSV per archetype, for other programs to run."""
    from unmask.data.export import export_reference
    from unmask.data.load import load

    dataset = load(source)
    files = [str(path) for path in export_reference(dataset, out_dir=out)]
    if as_json:
        print_json({"out": str(out), "files": files, "scenarios": len(dataset), "hash": dataset.hash})
    else:
        click.echo("\n".join([*files, f"{len(dataset)} scenarios; use them with --data {out}"]))
