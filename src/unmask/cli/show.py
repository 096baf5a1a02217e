"""`unmask show`."""

from __future__ import annotations

from random import Random, SystemRandom
from shlex import join

import click

from unmask.cli import flags
from unmask.cli.options import choice_of, in_colour, json_flag, option, print_blocks, print_json, print_paged
from unmask.errors import UsageError
from unmask.records import Archetype, Verdict

RANDOM = 10
"""Scenarios that `--random` draws unless a number is given."""


@click.command()
@click.argument("run", metavar="RUN")
@click.argument("scenario_id", metavar="[SCENARIO]", required=False)
@option(
    "--verdict",
    multiple=True,
    type=choice_of(Verdict),
    metavar="NAME",
    help=f"Only scenarios with this verdict: {', '.join(Verdict)}; may be repeated.",
)
@option(
    "--archetype",
    multiple=True,
    type=choice_of(Archetype),
    metavar="NAME",
    help="Only this archetype; may be repeated.",
)
@option(
    "--random",
    "drawn",
    type=click.IntRange(min=1),
    is_flag=False,
    flag_value=RANDOM,
    metavar="[N]",
    help=f"Only N of them, drawn at random; {RANDOM} where no number is given.",
)
@option("--sample-seed", type=int, help="Of --random; another one each time unless given.")
@option("--all", "whole", is_flag=True, help="Of one scenario: also what the judge was sent about the reply.")
@flags.preset
@flags.judge
@json_flag
def show(
    run: str,
    scenario_id: str | None,
    verdict: tuple[str, ...],
    archetype: tuple[str, ...],
    drawn: int | None,
    sample_seed: int | None,
    whole: bool,
    preset: str | None,
    judge: str | None,
    as_json: bool,
) -> None:
    """List the scenarios of a run: verdict, belief, what the model said. Or show one of them in full.

    A long list is shown a screen at a time, by the program in PAGER or by less.
    """
    from unmask.cli.finish import warn_about_folder
    from unmask.render.blocks import to_terminal
    from unmask.render.describe.conversation import quote_judge
    from unmask.render.describe.listing import list_verdicts, summarise_scenario
    from unmask.render.describe.transcript import describe_transcript
    from unmask.runs.run import open_run

    opened = open_run(run)
    if scenario_id is not None:
        if verdict or archetype or drawn is not None:
            what = f"{scenario_id} is one scenario; --verdict, --archetype and --random choose from all"
            raise UsageError(what, advice="Leave out the one or the other.")
        scenario, replies = opened.scenario(scenario_id), opened.replies(scenario_id)
        outcome = opened.outcome(scenario_id, preset=preset, judge=judge)
        warn_about_folder(opened, judge)
        judged = list(quote_judge(opened, scenario, outcome, opened.judge_file(judge))) if whole else []
        if as_json:
            listed = [{"slot": slot, "take": take, "choice": choice} for (slot, take), choice in replies.items()]
            sent = {"judged": [{"role": who.lower(), "content": text} for who, text in judged]} if whole else {}
            print_json({"scenario": scenario, "replies": listed, "outcome": outcome, **sent})
        else:
            print_blocks(describe_transcript(scenario, outcome, replies, judged=judged))
        return
    outcomes = opened.rows(preset=preset, judge=judge)
    warn_about_folder(opened, judge)
    every = [summarise_scenario(*pair) for pair in zip(opened.scenarios, outcomes, strict=True)]
    rows = [
        row
        for row in every
        if (not verdict or (row.verdict in verdict and not row.undecided))
        and (not archetype or row.archetype in archetype)
    ]
    note = f"{len(rows)} of {len(every)} scenarios"
    if drawn is not None and drawn < len(rows):
        seed = SystemRandom().randrange(100_000) if sample_seed is None else sample_seed
        note = f"{drawn} of {len(rows)} such scenarios, drawn with --sample-seed {seed}"
        rows = [rows[place] for place in sorted(Random(seed).sample(range(len(rows)), drawn))]
    if as_json:
        print_json([row.to_json() for row in rows])
        return
    table = to_terminal([list_verdicts(rows)], color=in_colour()) if rows else ""
    first = f"{join(['unmask', 'show', run])} {rows[0].id} shows the first in full\n" if rows else ""
    print_paged(f"{table}{note}\n{first}")
