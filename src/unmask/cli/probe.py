"""`unmask probe`."""

from __future__ import annotations

import click

from unmask.cli import settings
from unmask.cli.crash import explain_interruption
from unmask.cli.options import choice_of, in_colour, json_flag, option, print_json
from unmask.records import Pooling


@click.command()
@click.argument("run", metavar="RUN")
@option("--model", metavar="NAME", help="The run's model under another name, where it lies elsewhere now.")
@option("--preset", type=settings.PRESETS, help="Scoring rules; the run's own unless given.")
@option("--judge", metavar="NAME", help="Whose readings; the judge of the last `unmask run` unless given.")
@option(
    "--pooling",
    type=choice_of(Pooling),
    default="last",
    help="Where a reply is read: at its last token, or as the mean over all.",
)
@option("--resample-seed", type=int, default=0, help="Random seed of the folds and the bootstrap.")
@option("--quiet", is_flag=True, help="No progress.")
@json_flag
def probe(
    run: str,
    model: str | None,
    preset: str | None,
    judge: str | None,
    pooling: str,
    resample_seed: int,
    quiet: bool,
    as_json: bool,
) -> None:
    """Tell a local model's lies from its honest replies by its activations, beside the controls that could explain it.

    The first control is the same probe on the prompt without the reply: without a lead over it, the probe is not called
    a lie detector. RUN is a run of an hf: model, or of an embedded one whose GGUF file is here. `unmask run …
    --self-report` adds what the model says of its replies.
    """
    from unmask.experiments.probe import probe as measured
    from unmask.render.terminal.progress import print_step

    report_progress = (lambda _: None) if quiet else print_step
    with explain_interruption(lambda: "before the end; nothing was written, so nothing is kept"):
        result = measured(
            run,
            preset=preset,
            judge=judge,
            model=model,
            pooling=pooling,
            seed=resample_seed,
            report=report_progress,
        )
    if as_json:
        print_json(result.to_json())
    else:
        from unmask.render.terminal.probe import render

        click.echo(render(result, color=in_colour()), nl=False)
