"""`unmask mitigate lorra`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from unmask.cli.crash import explain_interruption
from unmask.cli.options import TRAINING, SectionedCommand, json_flag, option

if TYPE_CHECKING:
    from unmask.whitebox.lorra import LorraRecord
    from unmask.whitebox.lorra_trainer import StepReport


@click.command(
    cls=SectionedCommand,
    sections=TRAINING,
    examples="unmask mitigate lorra --model hf:Qwen/Qwen2.5-0.5B-Instruct --out adapters/honest",
)
@option("--model", required=True, metavar="hf:PATH", help="The model to train an adapter for.")
@option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="The adapter's folder.")
@option(
    "--layers", metavar="FROM-TO", help="Move the activations of these layers, from 0; the middle third unless given."
)
@option(
    "--set",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="Another setting: strength 5, rank 8, lora_alpha 16, dropout 0.05, rate 3e-4, steps 40, batch 16,"
    " answer_tokens 64; may be repeated.",
)
@option("--facts", metavar="FILE", help="Train on facts of your own, as JSONL.")
@option(
    "--evaluated", multiple=True, metavar="PATH", help="Sets no training fact may be in; the bundled ones unless given."
)
@option("--seed", type=int, default=0, help="Decides the order of the facts, which are held out, and the start.")
@json_flag
def lorra(
    model: str,
    out: Path,
    facts: str | None,
    evaluated: tuple[str, ...],
    layers: str | None,
    pairs: tuple[str, ...],
    seed: int,
    as_json: bool,
) -> None:
    """Train an adapter that moves a local model towards honesty, from the inside.

    Low-rank representation adaptation. hf:PATH+adapter=DIR applies it. The defaults are those published for
    representation engineering.
    """
    from unmask.cli.mitigate import parse_layers, parse_settings
    from unmask.models.local.inside import check_local_model
    from unmask.render.terminal.progress import print_step
    from unmask.whitebox import contrast
    from unmask.whitebox.load import ModelSource, require_extra

    require_extra(ModelSource(model))
    from unmask.whitebox.lorra import LorraJob, refuse_job, train
    from unmask.whitebox.lorra_trainer import LorraSettings

    against = evaluated or contrast.EVALUATED
    wishes = parse_settings(pairs, LorraSettings, layers=parse_layers(layers) or (), seed=seed)
    job = LorraJob(out=out, settings=wishes, evaluated=tuple(map(str, against)))
    refuse_job(job, model=model)
    training_facts = contrast.load_facts(facts)
    contrast.refuse_shared(training_facts, against)
    with explain_interruption(lambda: f"before {out} was written; the steps so far are lost"):
        checked, chat = check_local_model(model)
        report = (lambda _: None) if as_json else _print_step
        if not as_json:
            print_step(f"loading {model}")
        result = train(checked, chat, training_facts, job=job, report=report)
    _print_result(result, model=model, out=out, as_json=as_json)


def _print_step(done: StepReport) -> None:
    """A line for every tenth of the way."""
    every = max(1, done.steps // 10)
    if done.step % every == 0 or done.step in (1, done.steps):
        click.echo(f"step {done.step} of {done.steps}: loss {done.loss:.4g}, {done.seconds:.1f} s", err=True)


def _print_result(result: LorraRecord, *, model: str, out: Path, as_json: bool) -> None:
    import msgspec

    if as_json:
        click.echo(msgspec.json.encode({"folder": str(out), **msgspec.to_builtins(result)}).decode())
        return
    layers, settings = result.defined.layers, result.defined.settings
    click.echo(
        f"layers {layers[0]} to {layers[-1]}: loss {result.losses[0]:.4g} at first, {result.losses[-1]:.4g} at last"
    )
    moved = result.moved
    click.echo(
        f"{result.held_out} held-out facts: {moved.before:.4g} away from where they should go without the adapter, "
        f"{moved.after:.4g} with it; moved {moved.along:+.2f} of {settings.strength:g} lengths of the direction, "
        f"{result.reworded.along:+.2f} under instructions of other wording"
    )
    if moved.along / settings.strength <= 0:
        click.echo("warning: the adapter does not move them towards it; try --set steps=80, or a higher rate")
    click.echo(f"{out}\nuse it with: unmask run {model}+adapter={out}")
