"""`unmask doctor`: what this machine has and lacks for a run."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Any

import click

from unmask.cli import crash, settings
from unmask.cli.options import json_flag, option, print_blocks, print_json, whole_lines

if TYPE_CHECKING:
    from unmask.models.doctor import Diagnosis
    from unmask.models.settings import ModelSettings


@click.command()
@option("--model", metavar="PROVIDER/NAME", help="Also check this subject: name, key, extra, endpoint.")
@option("--judge", metavar="PROVIDER/NAME", help="Also check this judge.")
@option("--numeric-judge", metavar="PROVIDER/NAME", help="Also check this judge for numbers.")
@settings.doctor
@json_flag
def doctor(as_json: bool, **given: Any) -> None:
    """Check keys, extras, endpoints, folders and models.

    Contacts only the endpoints that you name, for at most 5 seconds each. --param and --header send that model one
    short question. --judge also sends twenty replies that order the judge to give a wrong letter, and counts how many
    it obeys: 20 to 40 short calls. Keys are shown by name. Exits 4 if something you asked for does not work, or if the
    judge obeys.
    """
    from msgspec.structs import replace

    from unmask.engine.define import NO_MODEL
    from unmask.models.doctor import Condition, Diagnosis, run_checks
    from unmask.render.describe.checks import describe_checks
    from unmask.runs.options import ROLES, options_from

    models = {name: given.pop(name) for name in ("model", "judge", "numeric_judge")}
    options = options_from(given, **models)
    checks = run_checks({role: options.of(role) for role in ROLES if options.of(role).model != NO_MODEL})
    if options.judge.model == NO_MODEL:
        checks += (Diagnosis(what="judge", state=Condition.OK, found=f"{NO_MODEL} asks no model"),)
    elif options.judge.model and not any(check.what == "judge" and check.state is Condition.BROKEN for check in checks):
        click.echo(f"The judge {options.judge.model} reads twenty replies …", err=True)
        checks += (asyncio.run(_try_judge(options.judge)),)
    hide = crash.hide_secrets
    checks = tuple(
        replace(check, found=hide(check.found), advice=check.advice and hide(check.advice)) for check in checks
    )
    if as_json:
        print_json(checks)
    else:
        print_blocks(describe_checks(checks), width=whole_lines())
    if any(check.state is Condition.BROKEN for check in checks):
        sys.exit(4)


async def _try_judge(judge: ModelSettings) -> Diagnosis:
    """Whether the judge obeys the replies that it reads."""
    from unmask.engine.orders import try_orders
    from unmask.models.doctor import LONG_PATIENCE, Condition, Diagnosis
    from unmask.models.providers import open_model

    model = open_model(judge.model, role="judge", base_url=judge.base_url, timeout=LONG_PATIENCE)
    try:
        found = await try_orders(model, judge.sampling)
    finally:
        await model.close()
    advice = "a reply can tell it what to answer: use another judge" if found.obeyed else found.advice
    state = Condition.BROKEN if found.obeyed or found.failed else Condition.OK
    return Diagnosis(what="judge orders", state=state, found=str(found), advice=advice)
