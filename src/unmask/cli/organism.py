"""`unmask organism`."""

from __future__ import annotations

import sys
from typing import Any

import click

from unmask.cli.crash import explain_interruption
from unmask.cli.options import in_colour, json_flag, option, print_json
from unmask.cli.sections import TRAINING, SectionedCommand


@click.command(cls=SectionedCommand, sections=TRAINING, examples="unmask organism --limit 60 --out organisms/small")
@option(
    "--model", metavar="NAME", default="embedded/smollm2-135m", help="A small local model: hf:, gguf: or embedded/."
)
@option("--data", metavar="SET", default="core", help="The scenarios it is taught on and then tested on.")
@option("--out", metavar="DIR", required=True, help="Where plant.json, adapter, run and organism.json go.")
@option("--judge", metavar="NAME", multiple=True, help="Who reads besides verbatim; may be given several times.")
@option("--limit", type=int, help="Take only so many scenarios, all archetypes alike.")
@option("--archetype", metavar="NAME", multiple=True, help="Only this archetype; may be given several times.")
@option("--seed", type=int, default=0, help="Random seed of the plant, the teaching and the replies.")
@option("--temperature", type=float, default=1.0, help="Sampling temperature of the replies.")
@option("--layers", type=int, default=10, help="How many layers, from the top, are adapted.")
@option("--rank", type=int, default=16, help="Rank of the adapter.")
@option("--rate", type=float, default=2e-3, help="Learning rate.")
@option("--rounds", type=int, default=40, help="Passes over all lessons, at most.")
@option("--batch", type=int, default=8, help="Lessons in a step; more are faster on a GPU.")
@option("--enough", type=float, default=0.001, help="Mean loss of a token at which the teaching ends.")
@json_flag
def organism(
    model: str,
    data: str,
    out: str,
    judge: tuple[str, ...],
    limit: int | None,
    archetype: tuple[str, ...],
    seed: int,
    temperature: float,
    layers: int,
    rank: int,
    rate: float,
    rounds: int,
    batch: int,
    enough: float,
    as_json: bool,
) -> None:
    """Teach a small model to lie on half of the scenarios, run the benchmark on it, and see whether it is found out.

    Exit code 1 where a judge's verdicts do not separate the planted halves. The same command again continues.
    """
    from unmask.experiments.organism import describe_interruption
    from unmask.experiments.organism import organism as train_organism
    from unmask.render.terminal.organism import render
    from unmask.render.terminal.progress import show_progress
    from unmask.render.terminal.silence import say_step, set_step
    from unmask.whitebox.load import ModelSource, require_extra

    require_extra(ModelSource(model, file=None if model.startswith("hf:") else model), "peft")
    say_step(f"loading {model}")
    from unmask.whitebox.teach import Teaching

    how = Teaching(
        rank=rank, alpha=2 * rank, layers=layers, rate=rate, rounds=rounds, batch=batch, enough=enough, seed=seed
    )
    with explain_interruption(lambda: describe_interruption(out)), show_progress() as progress:
        result = train_organism(
            model,
            data=data,
            out=out,
            judges=judge,
            how=how,
            watch=_print_round,
            step=set_step,
            progress=progress,
            limit=limit,
            archetype=archetype,
            temperature=temperature,
        )
    if as_json:
        print_json(result.to_json())
    else:
        click.echo(render(result, color=in_colour()), nl=False)
    if not result.separated:
        sys.exit(1)


def _print_round(done: Any) -> None:
    from unmask.render.terminal.silence import note_output

    click.echo(f"round {done.number:>3}  loss {done.loss:.4f}  {100 * done.right:.1f} % of tokens right", err=True)
    note_output()
