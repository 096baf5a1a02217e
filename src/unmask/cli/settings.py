"""The flags of `plan`, `run` and `judge`. Each is a field of `unmask.Options` of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from unmask.cli.options import Command, choice_of, option
from unmask.records import Effort, Preset

PRESETS = choice_of(Preset)


def combine_options(*decorators: Callable[[Any], Any]) -> Callable[[Command], Command]:
    def apply(command: Command) -> Command:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


def _check_share(context: click.Context, parameter: click.Parameter, value: float) -> float:
    """The value, or an error before anything is done: no share is below 0 or above 1, and NaN is above nothing."""
    from unmask.errors import UsageError

    if not 0 <= value <= 1:
        raise UsageError(f"{parameter.opts[0]} {value:g} is out of range", advice="Give a value from 0 to 1.")
    return value


class _PairType(click.types.StringParamType):
    """`NAME=VALUE`. In a variable several stand one after the other, and a value may hold spaces."""

    name = "pair"

    def split_envvar_value(self, rv: str) -> list[str]:
        import re

        return re.split(r"\s+(?=[A-Za-z_][\w.-]*=)", rv.strip()) if rv.strip() else []


def _parse_pairs(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, Any]:
    from unmask.models.user_params import parse_pairs

    return parse_pairs(value, flag=parameter.opts[0])


def additions(role: str = "subject") -> tuple[Callable[[Any], Any], ...]:
    """The flags for what is sent to an endpoint besides, for every command that asks a model."""
    field = {"subject": "", "judge": "judge_", "judge for figures": "numeric_judge_"}[role]
    flag = f"--{field.replace('_', '-')}"
    pairs: dict[str, Any] = {"type": _PairType(), "multiple": True, "callback": _parse_pairs, "show_default": False}
    return (
        option(
            f"{flag}param",
            f"{field}params",
            metavar="NAME=JSON",
            help=f"Send this parameter to the {role}'s endpoint besides; may be repeated.",
            **pairs,
        ),
        option(
            f"{flag}header",
            f"{field}headers",
            metavar="NAME=VALUE",
            help=f"Send this HTTP header to the {role}'s endpoint besides, no key; may be repeated.",
            **pairs,
        ),
    )


def max_unjudged(what: str = "exit code is 3") -> Callable[[Command], Command]:
    """The flag of the same name, for every command that has it."""
    help_text = f"Share of unjudged takes above which {what}."
    return option("--max-unjudged", type=float, default=0.05, callback=_check_share, help=help_text)


subject = combine_options(
    click.argument("subject", metavar="[MODEL]", required=False),
    option("--data", default="core", metavar="PATH", help="A folder, a JSONL file, cais/MASK, or a bundled set."),
    option("--model", metavar="NAME", help="The subject, as provider/name; the same as MODEL."),
    option("--base-url", metavar="URL", help="Any OpenAI-compatible endpoint for the subject."),
    option("--temperature", type=float, default=1.0, help="Sampling temperature of the subject."),
    option("--max-tokens", type=int, default=1000, help="Most tokens in one reply of the subject."),
    option("--top-p", type=float, help="Nucleus sampling (top p) of the subject."),
    option("--seed", type=int, help="Random seed that is sent to the subject's endpoint."),
    *additions(),
    option("--direct", type=int, default=3, help="How often the direct question is asked."),
    option("--takes", type=int, default=1, help="How often the pressured request is sent."),
    option(
        "--effort",
        type=choice_of(Effort),
        default="lazy",
        help="lazy: skip requests that cannot change a verdict. full: send all of them.",
    ),
    option("--one-call/--no-one-call", default=True, help="Ask for several takes in one request (n), where it works."),
    option(
        "--developer-prompt", metavar="NAME|FILE", help="Honesty instruction, put before the pressured system prompt."
    ),
    option(
        "--beliefs-from", metavar="RUN", help="Reuse the probes of a run of the same model, which may be untreated."
    ),
    option("--check-provided", is_flag=True, help="Also ask whether supplied facts were understood."),
    option(
        "--self-report", is_flag=True, help="After the pressured reply, ask the subject whether its reply was true."
    ),
)

selection = combine_options(
    option("--archetype", multiple=True, metavar="NAME", help="Only this archetype; may be repeated."),
    option("--ids", multiple=True, metavar="ID", help="Only this scenario; may be repeated."),
    option("--limit", type=int, help="At most this many scenarios, spread over the archetypes."),
    option("--sample-seed", type=int, default=0, help="Decides which scenarios a limit keeps."),
    option("--shard", metavar="K/N", help="Only part K of N equal ones, in shards/NAME."),
    option("--revision", metavar="REV", help="Revision of the hub data; a pinned commit unless given."),
    option("--skip-bad-rows", is_flag=True, help="Drop rows that cannot be used, and record them."),
)

_READERS = click.Choice(["auto", "llm"])


_JUDGES_FIGURES = "judge for figures"


def name_numeric_judge(what: str) -> Callable[[Command], Command]:
    """The flag of the same name, for every command that has it."""
    return option("--numeric-judge", metavar="NAME", help=what)


numeric_judge = name_numeric_judge(
    "Another judge for figures; the judge reads all else. An existing run keeps its own."
)


def _reading_options(reader: Callable[[Any], Any]) -> Callable[[Command], Command]:
    return combine_options(
        option("--judge-base-url", metavar="URL", help="Any OpenAI-compatible endpoint for the judge."),
        option("--judge-temperature", type=float, default=0.0, help="Sampling temperature of the judge."),
        option("--judge-max-tokens", type=int, default=1000, help="Most tokens in one answer of the judge."),
        *additions("judge"),
        option("--judge-name", metavar="FILE", help="Keep these readings in a file of this name."),
        option(
            "--numeric-judge-base-url", metavar="URL", help="Any OpenAI-compatible endpoint of the judge for figures."
        ),
        option(
            "--numeric-judge-max-tokens",
            type=int,
            help="Most tokens in one of its answers; as many as for the judge unless given.",
        ),
        *additions(_JUDGES_FIGURES),
        option("--numeric-judge-name", metavar="FILE", help="Keep its readings in a file of this name."),
        reader,
        option("--role-play", is_flag=True, help="Ask the judge which lies are plainly fiction or a part played."),
    )


reading = _reading_options(
    option(
        "--reader",
        type=_READERS,
        default="auto",
        help="auto: read a tagged yes or no by rule. llm: send every reply to the judge.",
    )
)
reading_again = _reading_options(
    option("--reader", type=_READERS, help="auto or llm, as for `unmask run`; as before, or as the run, unless given.")
)

_TIERS = click.Choice(["flex", "flex,default", "default"])

limits = combine_options(
    option("--max-connections", type=int, default=50, help="Open requests per endpoint."),
    option("--requests-per-minute", type=int, help="Most requests per minute to each endpoint."),
    option("--timeout", type=float, default=1800.0, help="Seconds for one answer."),
    option(
        "--wait-for-server",
        type=float,
        default=0.0,
        metavar="SECONDS",
        help="Wait so long for an endpoint that is not up yet: one that refuses connections or answers 503.",
    ),
    option("--max-cost", type=float, metavar="USD", help="Send nothing more once the run has cost this."),
    option(
        "--tier",
        type=_TIERS,
        help="Service tier of the subject: flex costs half at OpenAI and Google; with ,default the standard tier takes"
        " over where flex has no room.",
    ),
    option("--judge-tier", type=_TIERS, help="The same for the judge."),
    option("--numeric-judge-tier", type=_TIERS, help="The same for the judge for figures."),
    option(
        "--batch",
        type=click.Choice(["judge", "all"]),
        help="Ask the judge, or both, in batches at half price: rounds of minutes to hours. See docs/batches.md.",
    ),
    option("--no-wait", is_flag=True, help="Leave once batches are under way; the same command collects them."),
    option("--price", metavar="IN/OUT", help="Price of the subject, in dollars per million tokens."),
    option("--judge-price", metavar="IN/OUT", help="Price of the judge, in dollars per million tokens."),
    option("--numeric-judge-price", metavar="IN/OUT", help="Price of the judge for figures, likewise."),
)

ending = combine_options(
    max_unjudged(),
    option("--moved", is_flag=True, help="The endpoint has a new address; the model behind it is the same."),
    option("--quiet", is_flag=True, help="Show no progress."),
)
