"""`unmask sweep`."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import click

from unmask.cli import flags
from unmask.cli.options import Command, json_flag, option, print_blocks, print_json, print_note, show_result

if TYPE_CHECKING:
    from unmask.models.settings import Role
    from unmask.sweep.grid import ModelRow
    from unmask.sweep.units import Expansion

EXAMPLES = """\
unmask sweep grid.toml --out sweeps/nov --plan
unmask sweep grid.toml --out sweeps/nov
unmask board sweeps/nov"""


@click.command(cls=Command, examples=EXAMPLES)
@click.argument("grid", metavar="GRID", type=click.Path(path_type=Path))
@option("--out", type=click.Path(path_type=Path), metavar="DIR", required=True, help="The folder of the sweep.")
@option("--plan", "only_plan", is_flag=True, help="Say what it will cost; start nothing.")
@option("--status", "only_status", is_flag=True, help="Say what is done and what is missing; start nothing.")
@option("--max-cost", type=float, metavar="USD", help="Stop when all units together have cost so many dollars.")
@option("--quiet", is_flag=True, help="Show no progress.")
@flags.max_unjudged
@json_flag
def sweep(
    grid: Path,
    out: Path,
    only_plan: bool,
    only_status: bool,
    max_cost: float | None,
    max_unjudged: float,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run many models, data sets and treatments as one plan of run folders, in one process.

    GRID is a TOML file. The same command again continues, and runs the rows that you add.
    """
    import msgspec

    from unmask.render.describe.sweep import describe_status
    from unmask.render.progress import SweepProgress
    from unmask.sweep.driver import run_sweep
    from unmask.sweep.grid import read_grid
    from unmask.sweep.plan import plan_sweep
    from unmask.sweep.state import count_states
    from unmask.sweep.units import expand_grid

    expansion = expand_grid(read_grid(grid), max_cost=max_cost)
    if only_plan:
        show_result(plan_sweep(expansion, out), as_json=as_json)
        return
    if only_status:
        states = count_states(expansion, out)
        if as_json:
            print_json({"units": [{**msgspec.to_builtins(state), "state": state.word} for state in states]})
        else:
            print_blocks(describe_status(states))
        sys.exit(0 if all(state.done >= state.total for state in states) else 3)
    _say_addresses(expansion)
    with nullcontext() if quiet else SweepProgress() as progress:
        result = run_sweep(expansion, out, watch=progress)
    show_result(result, as_json=as_json)
    if not as_json:
        click.echo(f"\nNext: unmask board {out}")
    missing = [unit for unit in result.units if not unit.is_complete]
    unfit = [unit for unit in result.units if unit.is_complete and unit.unjudged > max_unjudged * unit.total]
    for unit in unfit:
        print_note(f"unmask: {unit.title}: more than {max_unjudged:.1%} of the scenarios are unjudged")
    if missing or unfit:
        sys.exit(3)


def _say_addresses(expansion: Expansion) -> None:
    """Print the addresses that are asked and what names them, where they are not the providers' own."""
    from unmask.models.providers import AskedModel, describe_addresses

    rows: list[tuple[Role, ModelRow]] = [("subject", unit.subject) for unit in expansion.units]
    rows += [("judge", judge) for judge in expansion.grid.judges]
    asked = [AskedModel(role, row.model, row.base_url, row.key) for role, row in rows if row.serve is None]
    for line in describe_addresses(asked, given_by=expansion.grid.path):
        print_note(line)
