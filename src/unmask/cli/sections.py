"""Under which heading a flag stands in the help of a command that has many, and in docs/cli.md.

A table is for several commands: a flag that a command lacks is passed over. A flag that no table names stands under
`OTHER`, so a new one is shown before anybody has thought of its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

Sections = Mapping[str, str]
"""Flags without their dashes, by heading."""

OTHER = "More"
OUTPUT = "Output"

RUN: Sections = {
    "What to run": "data model judge numeric-judge out preset",
    "Which scenarios": "archetype ids limit sample-seed shard revision skip-bad-rows",
    "The subject": "base-url wait-for-server temperature max-tokens top-p seed param header developer-prompt",
    "What is asked": "direct takes one-call stop-at-first-lie effort beliefs-from check-provided self-report",
    "The judge": "judge-base-url judge-temperature judge-max-tokens judge-param judge-header judge-name reader"
    " role-play keep-presets",
    "The judge for figures": "numeric-judge-base-url numeric-judge-max-tokens numeric-judge-param"
    " numeric-judge-header numeric-judge-name",
    "Speed and cost": "max-connections requests-per-minute timeout max-cost tier judge-tier numeric-judge-tier batch"
    " no-wait price judge-price numeric-judge-price",
    "When it ends": "stop-when max-unjudged moved yes",
}
"""`run`, `plan` and `judge`."""

LABEL: Sections = {
    "Who and which": "who size sample-seed probes",
    "Elsewhere than in this terminal": "export import",
}

TRAINING: Sections = {
    "What to train": "policy model data out judge",
    "Which scenarios": "archetype limit",
    "Which facts": "facts evaluated known",
    "How it is trained": "layers strength method schedule width pooling rank lora-alpha dropout rate rounds steps batch"
    " enough answer-tokens",
    "Chance": "seed temperature",
}
"""`organism` and the mitigations that train."""

VERDICTS: Sections = {
    "The limit": "max-p-lie max-p-lie-in baseline max-rise on anytime",
    "Which verdicts": "preset judge labels margin drop-changed all-pairs with-published",
    "What a run has to keep": "max-unjudged min-belief min-engagement max-empty max-capped",
    OUTPUT: "flips resample-seed format out junit markdown",
}
"""Commands that hold finished runs against each other or against a limit."""


class SectionedCommand(click.Command):
    """A command whose help lists its flags under headings, and ends in examples: command lines to copy."""

    def __init__(self, *arguments: Any, sections: Sections, examples: str = "", **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.sections = sections
        self.examples = examples

    def group_options(self, context: click.Context) -> dict[str, list[click.Option]]:
        """The flags by heading, in the order of the table; what every command has stands last."""
        places = {
            f"--{flag}": (number, order, heading)
            for number, (heading, flags) in enumerate(self.sections.items())
            for order, flag in enumerate(flags.split())
        }
        places |= {f"--{flag}": (99, 99, OUTPUT) for flag in ("quiet", "json", "help")}
        options = [parameter for parameter in self.get_params(context) if isinstance(parameter, click.Option)]
        placed_options = [
            (next((places[flag] for flag in option.opts if flag in places), (98, 0, OTHER)), option)
            for option in options
        ]
        groups: dict[str, list[click.Option]] = {}
        for (_, _, heading), option in sorted(placed_options, key=lambda pair: pair[0][:2]):
            groups.setdefault(heading, []).append(option)
        return groups

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        groups = {
            heading: [record for option in options if (record := option.get_help_record(ctx))]
            for heading, options in self.group_options(ctx).items()
        }
        write_sections(formatter, groups)
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self.examples.splitlines()))


def write_sections(formatter: click.HelpFormatter, groups: Mapping[str, list[tuple[str, str]]]) -> None:
    """A definition list under each heading, all with the same left column."""
    widest = min(30, max((len(name) for rows in groups.values() for name, _ in rows), default=0))
    for heading, rows in groups.items():
        with formatter.section(heading):
            formatter.write_dl([(name.ljust(widest), meaning) for name, meaning in rows])
