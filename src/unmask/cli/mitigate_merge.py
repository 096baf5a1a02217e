"""`unmask mitigate merge`."""

from __future__ import annotations

from pathlib import Path

import click

from unmask.cli.options import json_flag, option


@click.command()
@option("--model", required=True, metavar="hf:PATH+adapter=DIR", help="The model, and the adapter to put into it.")
@option("--out", required=True, type=click.Path(path_type=Path), metavar="FOLDER", help="The new model's folder.")
@json_flag
def merge(model: str, out: Path, as_json: bool) -> None:
    """Write a model with an adapter as a model folder of its own, in float32.

    Steering and LoRRA are made for bare models. hf:FOLDER is one, so mitigations can be tried on a model that an
    adapter has changed, for example on a known liar made by `unmask organism`.
    """
    import msgspec

    from unmask.models.local.inside import check_local_model
    from unmask.whitebox.load import ModelSource, require_extra

    require_extra(ModelSource(model))
    from unmask.whitebox.merge import merge as merge_into
    from unmask.whitebox.merge import refuse_merge

    refuse_merge(out, model=model)
    checked, chat = check_local_model(model)
    merged = merge_into(checked, chat, out=out)
    if as_json:
        click.echo(msgspec.json.encode({"folder": str(out), **msgspec.to_builtins(merged)}).decode())
        return
    click.echo(f"{merged.model}: weights {merged.before_hash} became {merged.model_hash}")
    click.echo(f"{out}\nuse it with --model hf:{out}")
