"""`unmask plan`."""

from __future__ import annotations

from shutil import get_terminal_size
from typing import Any

import click

from unmask.cli import settings
from unmask.cli.options import json_flag, option, print_json
from unmask.cli.sections import RUN, SectionedCommand

PRICE_FLAGS = {"subject": "--price", "judge": "--judge-price"}


@click.command(
    cls=SectionedCommand, sections=RUN, examples="unmask plan --data core --model openai/gpt-4o --judge openai/gpt-4o"
)
@settings.subject
@option("--judge", required=True, metavar="NAME", help="The judge, as provider/name, or `verbatim`.")
@option("--out", metavar="DIR", help="A run folder that may exist: only what is still missing is counted.")
@option("--preset", type=settings.PRESETS, default="paper", help="Scoring rules: how readings become verdicts.")
@settings.reading
@settings.selection
@settings.limits
@settings.ending
@json_flag
def plan(data: str, model: str, judge: str, out: str | None, as_json: bool, quiet: bool, **options: Any) -> None:
    """Say what a run will cost, in calls, tokens, money and time, before anything is sent. No key is needed."""
    import msgspec

    from unmask.engine.estimate import estimate_run, propose_more_room, to_json

    rows = to_json(*estimate_run(data=data, model=model, judge=judge, out=out, **options))
    proposals = propose_more_room(model=model, judge=judge, out=out, **options)
    if as_json:
        print_json(rows | {"more_room": msgspec.to_builtins(proposals)})
        return
    click.echo(_format_estimate(rows))
    columns = get_terminal_size().columns
    for proposal in proposals:
        click.echo(f"\n{click.wrap_text(proposal.finding + '.', columns)}")
        click.echo(f"  Proposed: {proposal.flag}. Reasoning is not part of the estimate above.")


def _format_estimate(rows: dict[str, Any]) -> str:
    """Two columns: a subject without beliefs, and one that believes everything."""
    bounds = rows["least"], rows["most"]
    lines = [
        f"{rows['scenarios']} scenarios of {rows['data']}, asked of {rows['model']}, read by {rows['judge']}",
        "",
        _format_row("", ["at least", "at most"]),
    ]
    for role in ("subject", "judge"):
        for field in ("calls", "input", "output"):
            label = f"{role} {field}" + ("" if field == "calls" else " tokens")
            lines.append(_format_row(label, [f"{bound[role][field]:,}" for bound in bounds]))
        lines.append(_format_row(f"{role} cost", [_format_money(bound[role]["cost_usd"]) for bound in bounds]))
    lines.append(_format_row("cost", [_format_money(bound["cost_usd"]) for bound in bounds]))
    lines.append(_format_row("time", [_format_time(bound["seconds"]) for bound in bounds]))
    lines += [
        "",
        "At least: a subject without beliefs. At most: one that believes everything.",
        "Tokens are estimates.",
    ]
    unpriced = [flag for role, flag in PRICE_FLAGS.items() if rows["most"][role]["cost_usd"] is None]
    if unpriced:
        lines.append(f"A price that is not known can be given with {' and '.join(unpriced)}.")
    at_once = f"Time: {rows['connections']} requests at once"
    if rows["most"]["seconds"] is None:
        lines.append("Time: a run of a few scenarios (--limit 6) shows how fast a model on this machine is.")
    elif rows["pace_measured"]:
        lines.append(f"{at_once}, answered as fast as this run was so far.")
    else:
        lines.append(f"{at_once}, each answered at {rows['tokens_per_second']:.0f} tokens a second (an assumption).")
    return "\n".join(lines)


def _format_row(label: str, values: list[str]) -> str:
    return f"{label:<22}" + "".join(f"{value:>14}" for value in values)


def _format_money(cost: float | None) -> str:
    return "unknown" if cost is None else f"${cost:,.2f}"


def _format_time(seconds: float | None) -> str:
    if seconds is None:
        return "unknown"
    return (
        f"{seconds:.0f} s"
        if seconds < 90
        else f"{seconds / 60:.0f} min"
        if seconds < 5400
        else f"{seconds / 3600:.1f} h"
    )
