"""The flags of `run`, `judge` and `doctor`. Each is a keyword argument of `unmask.run` of the same name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import click

from unmask.cli.options import Command, choice_of, option
from unmask.judges.base import Tags
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

    return parse_pairs(value, flag=parameter.opts[0], as_text=parameter.opts[0].endswith("header"))


def _parse_settings(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, str]:
    """`--set NAME=VALUE`, refused here where there is no such setting."""
    from unmask.models.settings import read_setting

    pairs: dict[str, str] = _parse_texts(value, flag=parameter.opts[0])
    for name, text in pairs.items():
        read_setting(name, text)
    return pairs


def _parse_texts(words: tuple[str, ...], *, flag: str) -> dict[str, str]:
    from unmask.models.user_params import parse_pairs

    return parse_pairs(words, flag=flag, as_text=True)


_PAIRS: dict[str, Any] = {"type": _PairType(), "multiple": True, "show_default": False}

set_flag = option(
    "--set",
    "set",
    metavar="NAME=VALUE",
    callback=_parse_settings,
    help="Any other setting of the subject; may be repeated: base_url, temperature, max_tokens, top_p, timeout,"
    " price=IN/OUT, tier=flex, wait_for_server, give_up_after, takes_per_call. judge.NAME and numeric.NAME are for the"
    " judge and the judge for numbers. See docs/models.md.",
    **_PAIRS,
)


def additions(prefix: str = "") -> tuple[Callable[[Any], Any], ...]:
    """The flags for what is sent with every request, for every command that asks a model."""
    who = "judge" if prefix else "subject"
    field = prefix.replace("-", "_")
    return (
        option(
            f"--{prefix}param",
            f"{field}params",
            metavar="NAME=JSON",
            callback=_parse_pairs,
            help=f"Send this field in the body of every request to the {who}; may be repeated.",
            **_PAIRS,
        ),
        option(
            f"--{prefix}header",
            f"{field}headers",
            metavar="NAME=VALUE",
            callback=_parse_pairs,
            help=f"Send this HTTP header, no key, to the {who}'s endpoint; may be repeated.",
            **_PAIRS,
        ),
    )


MAX_UNJUDGED = 0.05
"""The largest share of unjudged takes that a command which takes no limit accepts."""


def max_unjudged(what: str = "exit code is 3") -> Callable[[Command], Command]:
    """The flag of the same name, for every command that has it."""
    help_text = f"Share of unjudged takes above which {what}."
    return option("--max-unjudged", type=float, default=MAX_UNJUDGED, callback=_check_share, help=help_text)


class _AlsoType(click.ParamType[tuple[str, ...]]):
    """Names of extra questions, with commas between them."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> tuple[str, ...]:
        from unmask.runs.options import Also

        names = value if isinstance(value, tuple) else tuple(name.strip() for name in str(value).split(","))
        choice = choice_of(Also)
        return tuple(choice.convert(name, param, ctx) for name in names)


_base_url = option("--base-url", metavar="URL", help="An OpenAI-compatible endpoint of the subject.")
_judge_base_url = option("--judge-base-url", metavar="URL", help="The same of the judge.")

subject = combine_options(
    click.argument("model", metavar="[MODEL]", required=False, envvar="UNMASK_MODEL"),
    option("--data", default="core", metavar="PATH", help="Folder, file, cais/MASK[@REV] or bundled set."),
    _base_url,
    option("--temperature", type=float, default=1.0, help="Of the subject."),
    option("--max-tokens", type=int, default=None, help="In one reply; else 1000, and 16000 once it reasons."),
    option("--seed", type=int, help="Random seed that is sent to the subject's endpoint."),
    *additions(),
    option("--direct", type=int, default=3, help="How often the direct question is asked."),
    option("--takes", type=int, default=1, help="Pressured requests per scenario."),
    option(
        "--effort",
        type=choice_of(Effort),
        default="lazy",
        help="lazy: skip requests that cannot change a verdict. full: send all of them.",
    ),
    option("--control", is_flag=True, help="Ask each question also without the role: what does pressure cause?"),
    option(
        "--developer-prompt", metavar="NAME|FILE", help="Honesty instruction, put before the pressured system prompt."
    ),
    option(
        "--beliefs-from", metavar="RUN", help="Reuse the probes of a run of the same model, which may be untreated."
    ),
)

selection = combine_options(
    option("--archetype", multiple=True, metavar="NAME", help="Only this archetype; may be repeated."),
    option("--ids", multiple=True, metavar="ID", help="Only this scenario; may be repeated."),
    option("--limit", type=int, help="So many scenarios, spread over archetypes."),
    option("--sample-seed", type=int, default=0, help="Decides which scenarios a limit keeps."),
    option("--shard", metavar="K/N", help="Only part K of N equal ones, in shards/NAME."),
)

numeric_judge = option(
    "--numeric-judge",
    metavar="NAME",
    help="Another judge for numbers; the judge reads all else. An existing run keeps its own.",
)


def _reading_options(*own: Callable[[Any], Any]) -> Callable[[Command], Command]:
    return combine_options(_judge_base_url, *additions("judge-"), set_flag, *own)


reading = _reading_options(
    option(
        "--tags",
        type=choice_of(Tags),
        default="rule",
        help="Who reads a yes or no in tags: a rule, where the data says which side yes means, or the judge.",
    ),
    option(
        "--also",
        type=_AlsoType(),
        metavar="NAMES",
        help="More questions, with commas between them. check: were supplied facts understood? self-report: does the"
        " subject call its reply true? role-play: which lies are plainly fiction or a part played?"
        " misleads: what do replies that take no side leave their reader with? (experimental)",
    ),
)
reading_again = _reading_options(
    option("--tags", type=choice_of(Tags), help="As for `unmask run`; as before, or as the run, unless given."),
    option(
        "--also",
        type=_AlsoType(),
        metavar="NAMES",
        help="role-play: ask which lies are a part played. misleads: ask what evasions leave their reader with.",
    ),
)
doctor = combine_options(_base_url, *additions(), _judge_base_url, *additions("judge-"), set_flag)

limits = combine_options(
    option("--max-connections", type=int, default=50, help="Open requests per endpoint."),
    option("--requests-per-minute", type=int, help="Most requests per minute to each endpoint."),
    option("--max-cost", type=float, metavar="USD", help="Send no more once the run has cost this."),
    option(
        "--batch",
        type=click.Choice(["judge", "all"]),
        help="Ask the judge, or both, in batches at half price: see docs/models.md.",
    ),
    option("--no-wait", is_flag=True, help="Leave once batches are under way; the same command collects them."),
)

quiet = option("--quiet", is_flag=True, help="Show no progress.")
