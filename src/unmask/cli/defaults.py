"""What `unmask run MODEL` and `unmask plan MODEL` take for what was not given: the data, the folder and the judge.

One line names data and folder. A judge is proposed, and never picked without asking: it may cost money.
"""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from unmask.errors import MissingError, UsageError

if TYPE_CHECKING:
    from unmask.models.keys import Role

PUBLISHED_JUDGE = "openai/gpt-4o"
"""Read the statements of the published results."""
EMBEDDED_JUDGE = "embedded/judge-1.5b"


def name_subject(typed: str | None, flag: str | None) -> str:
    """The model, which may stand behind the command or behind `--model`. What is typed goes before a variable."""
    context = click.get_current_context()
    if typed and flag and context.get_parameter_source("model") is ParameterSource.COMMANDLINE:
        raise UsageError(f"the model is named twice: {typed} and --model {flag}", advice="Name it once.")
    model = typed or flag
    if not model:
        raise UsageError(
            "no model is named", advice=f"Name it behind the command: {context.command_path} openai/gpt-4o-mini"
        )
    return model


def default_folder(model: str, shard: str | None = None) -> str:
    """`runs/NAME`, where NAME is the last part of the model's name: `runs/gpt-4o`. Shards are kept apart from runs:
    `shards/gpt-4o/03-of-16`."""
    from unmask.models.providers import BY_PATH, provider_of
    from unmask.runs.definition import judge_file

    path = model.partition(":" if provider_of(model) in BY_PATH else "/")[2] or model
    path, plus, treatment = path.partition("+")
    name = path.rstrip("/").rpartition("/")[2].removesuffix(".gguf")
    folder = judge_file(f"{name}{plus}{treatment}")
    if shard is None:
        return str(Path("runs", folder))
    from unmask.data.shard import parse_shard

    number, of = parse_shard(shard)
    return str(Path("shards", folder, f"{number:0{len(str(of))}}-of-{of}"))


def say_defaults(*, data: str, folder: str | None) -> None:
    """One line with the data and the folder, as far as nobody gave them."""
    source = click.get_current_context().get_parameter_source("data")
    chosen = {"--data": f"data {data}"} if source is ParameterSource.DEFAULT else {}
    if folder is not None:
        chosen["--out"] = f"folder {folder}"
    if chosen:
        click.echo(f"{', '.join(chosen.values())} ({', '.join(chosen)} to change)", err=True)


def say_addresses(subject: str | None, judge: str, options: Mapping[str, Any]) -> None:
    """Print the addresses that are asked and what names them."""
    from unmask.cli.crash import clean_for_terminal
    from unmask.models.keys import FLAG_PREFIX
    from unmask.models.providers import AskedModel, describe_addresses

    names: dict[Role, str | None] = {
        "subject": subject,
        "judge": judge,
        "numeric_judge": options.get("numeric_judge"),
    }
    asked = [
        AskedModel(role, name, options.get(f"{FLAG_PREFIX[role].replace('-', '_')}base_url"))
        for role, name in names.items()
        if name
    ]
    for line in describe_addresses(asked):
        click.echo(clean_for_terminal(line), err=True)


def find_judge(folder: str | None) -> str | None:
    """The judge of the run that a folder holds, if it holds one."""
    from unmask.runs.folder import Folder

    if folder is None or not (run_folder := Folder(folder)).exists:
        return None
    definition = run_folder.definition()
    spec = definition.judges.get(definition.judge or "")
    return spec.model if spec else None


def propose_judge(model: str) -> str:
    """The published judge; for a model that costs nothing, one that costs nothing."""
    from unmask.models.providers import provider_of

    provider = provider_of(model)
    if provider == "scripted":
        return "scripted/judge"
    return EMBEDDED_JUDGE if provider in {"embedded", "gguf", "hf"} else PUBLISHED_JUDGE


def ask_for_judge(*, data: str, model: str, out: str, **options: Any) -> str:
    """The judge of the folder's own run, or the proposed one after a yes to what the run will cost. Where nobody can be
    asked, an error with the line to type."""
    from unmask.cli.finish import program_name
    from unmask.engine.forecast import plan
    from unmask.render.terminal.plan import format_cost, render

    if (judge := find_judge(out)) is not None:
        click.echo(f"judge {judge}, as {out} has it", err=True)
        say_addresses(model, judge, options)
        return judge
    judge = propose_judge(model)
    command = shlex.join([*shlex.split(program_name()), *sys.argv[1:], "--judge"])
    planned = plan(data=data, model=model, judge=judge, out=out, **options)
    missing = _find_missing(model, judge, options)
    why = {
        PUBLISHED_JUDGE: "the judge of the published results",
        EMBEDDED_JUDGE: "which costs nothing and is for trying, not for quoting",
    }.get(judge, "which costs nothing")
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        least, most = (format_cost(bound.cost_usd) for bound in (planned.least, planned.most))
        cost = f" The run costs {least} to {most}." if judge == PUBLISHED_JUDGE else ""
        lines = [f"To take {judge}, {why}, type this line.{cost}", f"  {command} {judge}"]
        raise UsageError("no judge is named", advice="\n".join([*lines, str(missing)] if missing else lines))
    click.echo(f"\n{render(planned)}", err=True)
    click.echo(f"Proposed judge: {judge}, {why}.", err=True)
    if judge == model:
        click.echo("Here it would read its own replies: another strong model is better.", err=True)
    if judge == PUBLISHED_JUDGE:
        click.echo(f"One that costs nothing, for trying: --judge {EMBEDDED_JUDGE}", err=True)
    if missing is not None:
        raise missing
    say_addresses(model, judge, options)
    try:
        agreed = click.confirm(f"Run it with {judge} as the judge?", default=judge != PUBLISHED_JUDGE, err=True)
    except click.Abort:
        click.echo(err=True)
        raise
    if not agreed:
        raise UsageError("no judge is named, and nothing was sent", advice=f"Name another one: {command} NAME")
    return judge


def _find_missing(model: str, judge: str, options: dict[str, Any]) -> MissingError | None:
    """What has to be there before model and judge can be asked: a key, a file, an extra."""
    from unmask.engine.define import judge_spec
    from unmask.engine.readers import open_judge, open_partner
    from unmask.engine.run import open_subject
    from unmask.runs.options import options_from

    checked = options_from({name: value for name, value in options.items() if name != "numeric_judge"})
    try:
        open_subject(model, checked)
        spec = judge_spec(open_judge(judge, checked), checked)
        open_partner(options.get("numeric_judge"), checked, folder=None, judge=spec)
    except MissingError as error:
        return error
    return None
