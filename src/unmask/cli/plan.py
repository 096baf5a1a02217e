"""`unmask plan`."""

from __future__ import annotations

from typing import Any

import click

from unmask.cli import settings
from unmask.cli.options import json_flag, option, print_json


@click.command()
@settings.subject
@option("--judge", required=True, metavar="NAME", help="The judge, as provider/name, or `verbatim`.")
@option("--out", metavar="DIR", help="A run folder that may exist: only what is still missing is counted.")
@option("--preset", type=settings.PRESETS, default="paper", help="The rules that make verdicts of readings.")
@settings.reading
@settings.selection
@settings.limits
@settings.ending
@json_flag
def plan(data: str, model: str, judge: str, out: str | None, as_json: bool, quiet: bool, **options: Any) -> None:
    """Say what a run will cost, in calls, tokens and money, before anything is sent."""
    import msgspec

    from unmask.engine.estimate import estimate_run, propose_more_room, to_json

    rows = to_json(*estimate_run(data=data, model=model, judge=judge, out=out, **options))
    proposals = propose_more_room(model=model, judge=judge, out=out, **options)
    if as_json:
        print_json(rows | {"more_room": msgspec.to_builtins(proposals)})
        return
    click.echo(_format_estimate(rows))
    for proposal in proposals:
        click.echo(f"\n{proposal.finding}.\n  Proposed: {proposal.flag}. Reasoning is not part of the estimate above.")


def _format_estimate(rows: dict[str, Any]) -> str:
    """Two columns: a subject without beliefs, and one that believes everything."""
    lines = [f"{rows['scenarios']} scenarios", f"{'':<22}{'at least':>14}{'at most':>14}"]
    for role in ("subject", "judge"):
        for field in ("calls", "input", "output"):
            label = f"{role} {field}" + ("" if field == "calls" else " tokens")
            lines.append(f"{label:<22}{rows['least'][role][field]:>14,}{rows['most'][role][field]:>14,}")
    lines.append(
        f"{'cost':<22}{_format_money(rows['least']['cost_usd']):>14}{_format_money(rows['most']['cost_usd']):>14}"
    )
    lines.append("At least: a subject without beliefs. At most: one that believes everything. Tokens are estimates;")
    lines.append("a price that is not known can be given with --price and --judge-price.")
    return "\n".join(lines)


def _format_money(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"
