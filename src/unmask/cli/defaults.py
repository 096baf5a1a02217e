"""What `unmask run MODEL` takes for what was not given: the data, the folder and the judge.

One line names data and folder. A judge is proposed, and never picked without asking: it may cost money.
"""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click
from click.core import ParameterSource

from unmask.cli.finish import program_name
from unmask.cli.options import print_note
from unmask.errors import MissingError, UsageError

PUBLISHED_JUDGE = "openai/gpt-4o"
"""Read the statements of the published results."""
EMBEDDED_JUDGE = "embedded/judge-1.5b"

_NO_SETTINGS = ("model", "out", "run", "only_plan", "quiet", "as_json")
_MODELS = ("model", "judge", "numeric_judge")


def given_flags() -> dict[str, Any]:
    """The settings of this command that somebody gave, by a flag or a variable, as keyword arguments."""
    context = click.get_current_context()
    return {
        name: value
        for name, value in context.params.items()
        if name not in _NO_SETTINGS and context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def say_variables() -> None:
    """One line with the settings that come from variables."""
    context = click.get_current_context()
    names = [
        str(parameter.envvar)
        for parameter in context.command.params
        if context.get_parameter_source(parameter.name or "") is ParameterSource.ENVIRONMENT
    ]
    # Addresses are printed with what names them, and may hold a password.
    if found := [f"{name}={os.environ[name]}" for name in names if not name.endswith("_URL")]:
        print_note(f"From the environment: {' '.join(found)}")


def complete_new_run(model: str | None, flags: Mapping[str, Any], out: str | None) -> dict[str, Any]:
    """Model, data and folder of a new run; the last two are printed where you gave none."""
    if not model:
        raise UsageError(
            "no model is named",
            advice="Name it: unmask run openai/gpt-4o-mini\nTo continue a run, name its folder with --out.",
        )
    chosen = {"model": model, "data": flags["data"], "out": out or default_folder(model, flags["shard"])}
    source = click.get_current_context().get_parameter_source("data")
    said = {"--data": f"data {chosen['data']}"} if source is ParameterSource.DEFAULT else {}
    if not out:
        said["--out"] = f"folder {chosen['out']}"
    if said:
        click.echo(f"{', '.join(said.values())} ({', '.join(said)} to change)", err=True)
    return chosen


def default_folder(model: str, shard: str | None = None) -> str:
    """`runs/NAME`, where NAME is the last part of the model's name: `runs/gpt-4o`. Shards are kept apart from runs:
    `shards/gpt-4o/03-of-16`."""
    from unmask.data.shard import parse_shard
    from unmask.models.providers import BY_PATH, provider_of
    from unmask.runs.definition import judge_file

    path = model.partition(":" if provider_of(model) in BY_PATH else "/")[2] or model
    path, plus, treatment = path.partition("+")
    name = path.rstrip("/").rpartition("/")[2].removesuffix(".gguf")
    folder = judge_file(f"{name}{plus}{treatment}")
    if shard is None:
        return str(Path("runs", folder))
    number, of = parse_shard(shard)
    return str(Path("shards", folder, f"{number:0{len(str(of))}}-of-{of}"))


def say_addresses(chosen: Mapping[str, Any]) -> None:
    """Print the addresses that are asked and what names them. `path` is the folder of `unmask judge`."""
    from unmask.models.providers import AskedModel, describe_addresses
    from unmask.runs.commands import complete, recall_judge, recall_run
    from unmask.runs.definition import judge_file
    from unmask.runs.folder import Folder
    from unmask.runs.options import ROLES, options_from

    again = "path" in chosen
    folder = Folder(chosen["path" if again else "out"])
    named = {name: value for name, value in chosen.items() if name not in ("path", "out", "data")}
    if "model" not in chosen and folder.exists:
        file = judge_file(chosen["judge"]) if "judge" in chosen else None
        definition = folder.definition()
        recorded = recall_judge(definition, file) if again else recall_run(definition, judge=file)
        named = complete({name: value for name, value in recorded.items() if name != "data"}, named)
    models = {name: named.pop(name) for name in _MODELS if name in named}
    options = options_from(named, **models)
    settings = [(role, options.of(role)) for role in ROLES if isinstance(options.of(role).model, str)]
    for line in describe_addresses(AskedModel(role, each.model, each.base_url) for role, each in settings):
        print_note(line)


def find_judge(folder: str) -> str | None:
    """The judge of the run that a folder holds, if it holds one."""
    from unmask.runs.folder import Folder

    if not (run_folder := Folder(folder)).exists:
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


def ask_for_judge(chosen: Mapping[str, Any]) -> str:
    """The judge of the folder's own run, or the proposed one after a yes to what the run will cost. Where nobody can be
    asked, an error with the line to type."""
    from unmask.engine.plan import plan
    from unmask.render.describe.plan import state_cost

    model, out = chosen["model"], chosen["out"]
    if (judge := find_judge(out)) is not None:
        click.echo(f"judge {judge}, as {out} has it", err=True)
        say_addresses({**chosen, "judge": judge})
        return judge
    judge = propose_judge(model)
    planned = plan(**chosen, judge=judge)
    missing = _find_missing({**chosen, "judge": judge})
    why = {
        PUBLISHED_JUDGE: "the judge in the paper",
        EMBEDDED_JUDGE: "which costs nothing and is for trials only",
    }.get(judge, "which costs nothing")
    command = shlex.join([*shlex.split(program_name()), *sys.argv[1:], "--judge"])
    if not _can_ask():
        cost = f" {state_cost(planned)}" if judge == PUBLISHED_JUDGE else ""
        lines = [f"To use {judge}, {why}, run this.{cost}", f"  {command} {judge}"]
        raise UsageError("no judge is named", advice="\n".join([*lines, str(missing)] if missing else lines))
    click.echo(f"\n{planned}\n\nProposed judge: {judge}, {why}.", err=True)
    if judge == model:
        click.echo("Here it would read its own replies: another strong model is better.", err=True)
    if judge == PUBLISHED_JUDGE:
        click.echo(f"One that costs nothing, for trials: --judge {EMBEDDED_JUDGE}", err=True)
    if missing is not None:
        raise missing
    say_addresses({**chosen, "judge": judge})
    if not click.confirm(f"Run it with {judge} as the judge?", default=judge != PUBLISHED_JUDGE, err=True):
        raise UsageError("no judge is named, and nothing was sent", advice=f"Name another one: {command} NAME")
    return judge


def announce_growth(chosen: Mapping[str, Any]) -> None:
    """Where the command makes an existing run larger: what that costs, and the way back. At a terminal it takes a
    yes."""
    from unmask.engine.plan import plan_growth
    from unmask.render.describe.plan import state_cost
    from unmask.runs.folder import Folder

    out = str(chosen["out"])
    grows = plan_growth(**chosen) if Folder(out).exists else None
    if grows is None:
        return
    growth, planned = grows
    print_note(f"{out} is to grow {growth}. {state_cost(planned)}")
    if " takes" in growth:
        takes = Folder(out).definition().takes
        command = shlex.join([*shlex.split(program_name()), "score", out, "--takes", str(takes)])
        print_note(f"The score of now stays at hand: {command}")
    if _can_ask() and not click.confirm("Go on?", default=True, err=True):
        raise UsageError("nothing was sent", advice="For a run of its own name another folder: --out.")


def _can_ask() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def _find_missing(chosen: Mapping[str, Any]) -> MissingError | None:
    """What has to be there before model and judge can be asked: a key, a file, an extra."""
    from unmask.engine.prepare import open_asked, open_judges
    from unmask.runs.options import options_from

    plain = {name: value for name, value in chosen.items() if name not in (*_MODELS, "data", "out")}
    options = options_from(plain, **{name: chosen.get(name) for name in _MODELS})
    try:
        open_asked(options.subject, "subject")
        open_judges(options)
    except MissingError as error:
        return error
    return None
