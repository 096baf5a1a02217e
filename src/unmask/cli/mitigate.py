"""`unmask mitigate`: the ways to change a local model, and the account of what they cost."""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import click

from unmask.cli import flags
from unmask.cli.options import Command, json_flag, option, print_json, print_note, show_result

if TYPE_CHECKING:
    import msgspec

    from unmask.whitebox.lorra import LorraRecord
    from unmask.whitebox.steer import SteeringRecord

Settings = TypeVar("Settings", bound="msgspec.Struct")

CHANCE = 0.7
"""Share of held-out pairs below which a direction is called hardly better than chance; chance is one half."""

_facts = option("--facts", metavar="FILE", help="Train on facts of your own, as JSONL.")
_evaluated = option(
    "--evaluated", multiple=True, metavar="PATH", help="Sets no training fact may be in; the bundled ones unless given."
)


@click.group()
def mitigate() -> None:
    """Make a local model more honest, and say what that costs.

    `steer` and `lorra` write what `hf:PATH+steer=FILE@COEFFICIENT` and `hf:PATH+adapter=DIR` apply; `report` compares
    runs with and without it.
    """


@mitigate.command(cls=Command, examples="unmask mitigate steer --model hf:Qwen/Qwen3-0.6B --out honest.safetensors")
@option("--model", required=True, metavar="hf:PATH", help="The model to read the direction from.")
@option("--out", required=True, type=click.Path(path_type=Path), metavar="FILE", help="The file to write.")
@_facts
@option("--limit", type=int, metavar="N", help="Train on that many facts, drawn by the seed.")
@_evaluated
@option("--layers", metavar="FROM-TO", help="Choose among these layers, numbered from 0: 8-20, or 8,10,12.")
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
    from unmask.files import choose_by_ending
    from unmask.models.local.inside import open_whitebox
    from unmask.render.progress import print_step
    from unmask.whitebox import contrast
    from unmask.whitebox.load import require_extra
    from unmask.whitebox.steer import refuse_existing, save_steering

    if out.suffix:  # a name without an ending has always been taken
        choose_by_ending(out, {".safetensors": True})
    require_extra()
    refuse_existing(out)
    training_facts = contrast.load_facts(facts)
    contrast.refuse_shared(training_facts, evaluated or contrast.EVALUATED)
    from unmask.whitebox.directions import read_steering

    considered = parse_layers(layers)
    report = (lambda _: None) if as_json else print_step
    report(f"loading {model}")
    try:
        with open_whitebox(model) as opened:
            steering = read_steering(
                opened.model,
                opened.chat,
                contrast.draw_facts(training_facts, limit, seed=seed),
                name=opened.recorded,
                layers=considered,
                seed=seed,
                report=report,
            )
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"before {out} was written; what was read is lost") from None
    save_steering(steering, out)
    if as_json:
        print_json({"file": str(out), **to_plain(steering.metadata)})
        return
    _print_steering(steering.metadata)
    click.echo(f"{out}\nuse it with: unmask run {model}+steer={out}@1")


def to_plain(record: msgspec.Struct) -> dict[str, object]:
    import msgspec

    plain: dict[str, object] = msgspec.to_builtins(record)
    return plain


def _print_steering(result: SteeringRecord) -> None:
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


@mitigate.command(cls=Command, examples="unmask mitigate lorra --model hf:Qwen/Qwen3-0.6B --out adapters/honest")
@option("--model", required=True, metavar="hf:PATH", help="The model to train an adapter for.")
@option("--out", required=True, type=click.Path(path_type=Path), metavar="DIR", help="The adapter's folder.")
@_facts
@_evaluated
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
    """Train an adapter that moves a model towards honesty.

    Low-rank representation adaptation: it moves the activations. hf:PATH+adapter=DIR applies it. The defaults are those
    published for representation engineering.
    """
    from unmask.models.local.inside import check_local_model
    from unmask.whitebox import contrast
    from unmask.whitebox.load import require_extra

    require_extra()
    from unmask.whitebox.lorra import train
    from unmask.whitebox.lorra_trainer import LorraSettings

    settings = parse_settings(pairs, LorraSettings, layers=parse_layers(layers) or (), seed=seed)
    against = tuple(map(str, evaluated or contrast.EVALUATED))
    training_facts = contrast.load_facts(facts)
    contrast.refuse_shared(training_facts, against)
    report = (lambda _: None) if as_json else partial(click.echo, err=True)
    try:
        checked = check_local_model(model)
        result = train(checked, training_facts, out=out, settings=settings, evaluated=against, report=report)
    except KeyboardInterrupt:
        raise KeyboardInterrupt(f"before {out} was written; the steps so far are lost") from None
    if as_json:
        print_json({"folder": str(out), **to_plain(result)})
        return
    _print_adapter(result)
    click.echo(f"{out}\nuse it with: unmask run {model}+adapter={out}")


def _print_adapter(result: LorraRecord) -> None:
    layers, strength, moved = result.layers, result.settings.strength, result.moved
    click.echo(
        f"layers {layers[0]} to {layers[-1]}: loss {result.losses[0]:.4g} at first, {result.losses[-1]:.4g} at last"
    )
    click.echo(
        f"{result.held_out} held-out facts: {moved.before:.4g} away from where they should go without the adapter, "
        f"{moved.after:.4g} with it; moved {moved.along:+.2f} of {strength:g} lengths of the direction, "
        f"{result.reworded.along:+.2f} under instructions of other wording"
    )
    if moved.along / strength <= 0:
        click.echo("warning: the adapter does not move them towards it; try --set steps=80, or a higher rate")


def parse_settings(pairs: Iterable[str], record: type[Settings], **flags: object) -> Settings:
    """The record of `--set NAME=VALUE`, repeated, and of what has a flag. An unknown name, or a value of another kind,
    is a usage error."""
    import msgspec

    from unmask.errors import UsageError
    from unmask.text import refuse_unknown

    given = dict(pair.partition("=")[::2] for pair in pairs)
    refuse_unknown(given, [name for name in record.__struct_fields__ if name not in {*flags, "shuffled"}])
    try:
        return msgspec.convert(given | flags, record, strict=False)
    except msgspec.ValidationError as error:
        raise UsageError(f"--set: {error}") from None


def parse_layers(text: str | None) -> tuple[int, ...] | None:
    """`8-20` or `8,10,12` as numbers; nothing given means the command's own choice."""
    if text is None:
        return None
    layers: set[int] = set()
    for part in text.split(","):
        match = re.fullmatch(r"\s*(\d{1,4})\s*(?:-\s*(\d{1,4})\s*)?", part)
        if match is None or int(match[2] or match[1]) < int(match[1]):
            raise click.BadParameter(f"{text} names no layers; write 8-20, or 8,10,12", param_hint="--layers")
        layers.update(range(int(match[1]), int(match[2] or match[1]) + 1))
    return tuple(sorted(layers))


@mitigate.command()
@click.argument("runs", metavar="BASE TREATED…", nargs=-1, required=True)
@option(
    "--out",
    multiple=True,
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Also write it: .md or .json for the tables, .svg, .png or .pdf for the figure; may be repeated.",
)
@option("--fluency", is_flag=True, help="Load the hf: models whose perplexity is not known yet, and measure it.")
@flags.preset
@flags.judge
@flags.drop_changed
@json_flag
def report(
    runs: tuple[str, ...],
    out: tuple[Path, ...],
    fluency: bool,
    preset: str | None,
    judge: str | None,
    drop_changed: bool,
    as_json: bool,
) -> None:
    """Say what treatments gain, and what they cost.

    Against a base run on the same scenarios. A treatment that only makes the model evade, lose its beliefs or get facts
    wrong is named as such.
    """
    from unmask.analysis.mitigation import measure_fluency, report_mitigations
    from unmask.cli.options import encode_json
    from unmask.files import choose_by_ending, write_atomically
    from unmask.render.figures import FORMATS, figure
    from unmask.render.progress import print_step

    endings = dict.fromkeys((".md", ".json", *FORMATS), True)
    for target in out:
        choose_by_ending(target, endings)
    if fluency:
        for name in measure_fluency(runs):
            print_step(f"perplexity of {name}")
    result = report_mitigations(runs, preset=preset, judge=judge, drop_changed=drop_changed)
    for target in out:
        match target.suffix.lower():
            case ".md":
                write_atomically(target, result.to_markdown().encode())
            case ".json":
                write_atomically(target, encode_json(result.to_json()).encode() + b"\n")
            case _:
                figure("mitigations", runs, target, preset=preset, judge=judge)
    show_result(result, as_json=as_json)
    unfit = [run.name for run in (result.base, *(one.run for one in result.treated)) if run.undecided]
    if unfit:
        print_note(f"unmask: {', '.join(unfit)}: incomplete")
        sys.exit(3)
