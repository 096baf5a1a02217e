"""`unmask doctor`: what this machine has and lacks for a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from unmask.cli import crash, settings
from unmask.cli.options import json_flag, option, print_blocks, print_json, screen_width

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
    from unmask.models.doctor import Condition, run_checks
    from unmask.render.describe.checks import describe_checks
    from unmask.runs.options import ROLES, options_from

    models = {name: given.pop(name) for name in ("model", "judge", "numeric_judge")}
    options = options_from(given, **models)
    checks = run_checks({role: options.of(role) for role in ROLES})
    if options.judge.model and not any(check.what == "judge" and check.state is Condition.BROKEN for check in checks):
        checks += (_try_judge(options.judge),)
    checks = tuple(_hide_secrets(check) for check in checks)
    if as_json:
        print_json(checks)
    else:
        print_blocks(describe_checks(checks), width=screen_width())
    if any(check.state is Condition.BROKEN for check in checks):
        raise click.exceptions.Exit(4)


def _try_judge(judge: ModelSettings) -> Diagnosis:
    """Whether the judge obeys the replies that it reads."""
    import asyncio

    from unmask.engine.orders import OrdersTried, try_orders
    from unmask.models.doctor import LONG_PATIENCE, Condition, Diagnosis
    from unmask.models.providers import open_model

    click.echo(f"The judge {judge.model} reads twenty replies …", err=True)

    async def tried() -> OrdersTried:
        model = open_model(judge.model, role="judge", base_url=judge.base_url, timeout=LONG_PATIENCE)
        try:
            return await try_orders(model, judge.sampling)
        finally:
            await model.close()

    found = asyncio.run(tried())
    advice = "a reply can tell it what to answer: use another judge" if found.obeyed else None
    state = Condition.BROKEN if found.obeyed or found.failed else Condition.OK
    return Diagnosis(what="judge orders", state=state, found=str(found), advice=advice)


def _hide_secrets(check: Diagnosis) -> Diagnosis:
    import msgspec

    advice = None if check.advice is None else crash.hide_secrets(check.advice)
    return msgspec.structs.replace(check, found=crash.hide_secrets(check.found), advice=advice)
