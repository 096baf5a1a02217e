"""`unmask mitigate steer`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from unmask.cli.crash import explain_interruption
from unmask.cli.options import TRAINING, SectionedCommand, json_flag, option

if TYPE_CHECKING:
    from unmask.whitebox.steer import SteeringRecord


CHANCE = 0.7
"""Share of held-out pairs below which a direction is called hardly better than chance; chance is one half."""


@click.command(
    cls=SectionedCommand,
    sections=TRAINING,
    examples="unmask mitigate steer --model hf:Qwen/Qwen2.5-0.5B-Instruct --out honest.safetensors",
)
@option("--model", required=True, metavar="hf:PATH", help="The model to read the direction from.")
@option("--out", required=True, type=click.Path(path_type=Path), metavar="FILE", help="The file to write.")
@option("--layers", metavar="FROM-TO", help="Choose among these layers, numbered from 0: 8-20, or 8,10,12.")
@option("--facts", metavar="FILE", help="Train on facts of your own, as JSONL.")
@option("--limit", type=int, metavar="N", help="Train on that many facts, drawn by the seed.")
@option(
    "--evaluated", multiple=True, metavar="PATH", help="Sets no training fact may be in; the bundled ones unless given."
)
@option("--seed", type=int, default=0, help="Decides which facts are held out.")
@json_flag
def steer(
    model: str,
    out: Path,
    facts: str | None,
    limit: int | None,
    evaluated: tuple[str, ...],
    layers: str | None,
    seed: int,
    as_json: bool,
) -> None:
    """Find a direction of honesty in a local model.

    hf:PATH+steer=FILE@COEFFICIENT applies it; a positive coefficient is towards honesty.
    """
    from unmask.cli.mitigate import parse_layers
    from unmask.files import choose_by_ending
    from unmask.models.local.inside import open_whitebox
    from unmask.render.terminal.progress import print_step
    from unmask.whitebox import contrast
    from unmask.whitebox.load import ModelSource, require_extra
    from unmask.whitebox.steer import refuse_existing, save_steering

    if out.suffix:  # a name without an ending has always been taken
        choose_by_ending(out, {".safetensors": True})
    require_extra(ModelSource(model))
    refuse_existing(out)
    training_facts = contrast.load_facts(facts)
    contrast.refuse_shared(training_facts, evaluated or contrast.EVALUATED)
    from unmask.whitebox.directions import read_steering

    considered = parse_layers(layers)
    lost = explain_interruption(lambda: f"before {out} was written; what was read is lost")
    report = (lambda _: None) if as_json else print_step
    report(f"loading {model}")
    with lost, open_whitebox(model) as opened:
        steering = read_steering(
            opened.model,
            opened.chat,
            contrast.draw_facts(training_facts, limit, seed=seed),
            name=opened.recorded,
            layers=considered,
            seed=seed,
            report=report,
        )
    save_steering(steering, out)
    _print_result(steering.metadata, model=model, out=out, as_json=as_json)


def _print_result(result: SteeringRecord, *, model: str, out: Path, as_json: bool) -> None:
    import msgspec

    if as_json:
        click.echo(msgspec.json.encode({"file": str(out), **msgspec.to_builtins(result)}).decode())
        return
    chosen = next(score for score in result.scores if score.layer == result.layer)
    click.echo(
        f"layer {result.layer} of {result.layers} tells {chosen.right} of {chosen.of} held-out pairs apart "
        f"({100 * chosen.accuracy:.0f} %), by {chosen.gap:.1f} standard deviations"
    )
    if result.sign is not None:
        click.echo(
            "a model told to be untruthful prefers the true answer by "
            f"{result.sign.away:+.3f}, {result.sign.still:+.3f}, {result.sign.towards:+.3f} nats a token "
            "at coefficient -1, 0, 1"
        )
        if not result.sign.agrees:
            click.echo("warning: a positive coefficient does not make it prefer the truth; the direction reads only")
    if chosen.accuracy < CHANCE:
        click.echo("warning: hardly better than chance; this model does not show honesty along one direction")
    click.echo(f"{out}\nuse it with: unmask run {model}+steer={out}@1")
