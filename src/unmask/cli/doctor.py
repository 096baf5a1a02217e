"""`unmask doctor`: what this machine has and lacks for a run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from unmask.cli import crash
from unmask.cli.options import as_json, option

if TYPE_CHECKING:
    from unmask.models.doctor import Check


@click.command()
@option("--model", metavar="PROVIDER/NAME", help="Also check this subject: name, key, extra, endpoint.")
@option("--base-url", metavar="URL", help="Where the subject is, if not at its provider.")
@option("--judge", metavar="PROVIDER/NAME", help="Also check this judge.")
@option("--judge-base-url", metavar="URL", help="Where the judge is, if not at its provider.")
@as_json
def doctor(
    model: str | None, base_url: str | None, judge: str | None, judge_base_url: str | None, *, as_json: bool
) -> None:
    """Check keys, extras, endpoints and folders.

    Contacts only endpoints that a flag or a variable names, with one request of at most 5 seconds each. Keys are
    shown by name. Exits 4 if something you asked for does not work.
    """
    from unmask.models.doctor import State, Wanted, examine

    wanted = (Wanted("subject", model, base_url), Wanted("judge", judge, judge_base_url))
    checks = examine(tuple(one for one in wanted if one.model or one.base_url))
    if as_json:
        import msgspec

        click.echo(msgspec.json.encode([_scrubbed(check) for check in checks]).decode())
    else:
        width = max(len(check.what) for check in checks)
        for check in checks:
            _show(check, width=width)
    if any(check.state is State.BROKEN for check in checks):
        raise click.exceptions.Exit(4)


def _scrubbed(check: Check) -> Check:
    import msgspec

    advice = None if check.advice is None else crash.scrub(check.advice)
    return msgspec.structs.replace(check, found=crash.scrub(check.found), advice=advice)


def _show(check: Check, *, width: int) -> None:
    click.echo(crash.shown(f"{check.state:<8} {check.what:<{width}}  {check.found}"))
    if check.advice:
        click.echo(crash.shown(f"{'':<8} {'':<{width}}  → {check.advice}"))
