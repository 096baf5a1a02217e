"""The flags of `run`, `judge` and `doctor`. Each is a keyword argument of `unmask.run` of the same name."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import click

from unmask.cli.options import Decorated, choice_of, option
from unmask.judges.base import Tags
from unmask.records import Effort

Decorator = Callable[[Any], Any]


def combine_options(*decorators: Decorator) -> Callable[[Decorated], Decorated]:
    def apply(command: Decorated) -> Decorated:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return apply


class _PairType(click.types.StringParamType):
    """`NAME=VALUE`. In a variable several come one after the other, and a value may hold spaces."""

    name = "pair"

    def split_envvar_value(self, rv: str) -> list[str]:
        return re.split(r"\s+(?=[A-Za-z_][\w.-]*=)", rv.strip()) if rv.strip() else []


def _parse_pairs(context: click.Context, parameter: click.Parameter, value: tuple[str, ...]) -> dict[str, Any]:
    from unmask.models.user_params import parse_pairs

    flag = parameter.opts[0]
    return parse_pairs(value, flag=flag, as_text=not flag.endswith("param"))


def _pairs(*declarations: str, value: str, help: str) -> Decorator:  # noqa: A002  click's name
    return option(
        *declarations,
        metavar=f"NAME={value}",
        type=_PairType(),
        multiple=True,
        show_default=False,
        callback=_parse_pairs,
        rare=True,
        help=f"{help}; may be repeated.",
    )


def _parse_names(context: click.Context, parameter: click.Parameter, value: str | None) -> tuple[str, ...] | None:
    """Names of extra questions, with commas between them."""
    from unmask.runs.options import Also

    choice = choice_of(Also)
    return (
        None if value is None else tuple(choice.convert(name.strip(), parameter, context) for name in value.split(","))
    )


_sent = (
    _pairs("--param", "params", value="JSON", help="Send this field in the body of every request to the subject"),
    _pairs("--header", "headers", value="VALUE", help="Send this HTTP header, no key, to the subject's endpoint"),
)
_sent_to_judge = (
    _pairs("--judge-param", "judge_params", value="JSON", help="The same as --param, to the judge"),
    _pairs("--judge-header", "judge_headers", value="VALUE", help="The same as --header, to the judge's endpoint"),
)
_set = _pairs(
    "--set",
    "set",
    value="VALUE",
    help="Any other setting of the subject: base_url, temperature, max_tokens, top_p, timeout, price=IN/OUT,"
    " tier=flex, wait_for_server, give_up_after, takes_per_call. judge.NAME and numeric.NAME are for the judge and the"
    " judge for numbers. See docs/models.md",
)
_base_url = option("--base-url", metavar="URL", help="An OpenAI-compatible endpoint of the subject.")
_judge_base_url = option("--judge-base-url", metavar="URL", help="The same of the judge.")

subject = combine_options(
    click.argument("model", metavar="[MODEL]", required=False, envvar="UNMASK_MODEL"),
    option("--data", default="core", metavar="PATH", help="Folder, file, cais/MASK[@REV] or bundled set."),
    option("--takes", type=int, default=1, help="Pressured requests per scenario."),
    option("--limit", type=int, help="So many scenarios, spread over archetypes."),
    option("--control", is_flag=True, help="Ask each question also without the role: what does pressure cause?"),
    _base_url,
    option("--temperature", type=float, default=1.0, help="Of the subject."),
    option("--max-tokens", type=int, default=None, help="In one reply; else 1000, and 16000 once it reasons."),
    option("--seed", type=int, rare=True, help="Random seed that is sent to the subject's endpoint."),
    *_sent,
    option("--direct", type=int, default=3, rare=True, help="How often the direct question is asked."),
    option(
        "--effort",
        type=choice_of(Effort),
        default="lazy",
        rare=True,
        help="lazy: skip requests that cannot change a verdict. full: send all of them.",
    ),
    option(
        "--developer-prompt",
        metavar="NAME|FILE",
        rare=True,
        help="Honesty instruction, put before the pressured system prompt.",
    ),
    option(
        "--beliefs-from",
        metavar="RUN",
        rare=True,
        help="Reuse the probes of a run of the same model, which may be untreated.",
    ),
)

selection = combine_options(
    option("--archetype", multiple=True, metavar="NAME", rare=True, help="Only this archetype; may be repeated."),
    option("--ids", multiple=True, metavar="ID", rare=True, help="Only this scenario; may be repeated."),
    option("--sample-seed", type=int, default=0, rare=True, help="Decides which scenarios a limit keeps."),
    option("--shard", metavar="K/N", rare=True, help="Only part K of N equal ones, in shards/NAME."),
)

reading = combine_options(
    _judge_base_url,
    option(
        "--numeric-judge",
        metavar="NAME",
        rare=True,
        help="Another judge for numbers; the judge reads all else. An existing run keeps its own.",
    ),
    *_sent_to_judge,
    _set,
    option(
        "--tags",
        type=choice_of(Tags),
        rare=True,
        help="Who reads a yes or no in tags: a rule, where the data says which side yes means, or the judge. A rule"
        " unless given, or as the run has it.",
    ),
    option(
        "--also",
        metavar="NAMES",
        callback=_parse_names,
        rare=True,
        help="More questions, with commas between them. check: were supplied facts understood? self-report: does the"
        " subject call its reply true? role-play: which lies are plainly fiction or a part played?"
        " misleads: what do replies that take no side leave their reader with? (experimental) `unmask judge` asks the"
        " last two.",
    ),
)
doctor = combine_options(_base_url, *_sent, _judge_base_url, *_sent_to_judge, _set)

limits = combine_options(
    option("--max-connections", type=int, default=50, rare=True, help="Open requests per endpoint."),
    option("--requests-per-minute", type=int, rare=True, help="Most requests per minute to each endpoint."),
    option("--max-cost", type=float, metavar="USD", help="Send no more once the run has cost this."),
    option(
        "--batch",
        type=click.Choice(["judge", "all"]),
        help="Ask the judge, or both, in batches at half price: see docs/models.md.",
    ),
    option("--no-wait", is_flag=True, rare=True, help="Leave once batches run; the same command collects them."),
)


quiet = option("--quiet", is_flag=True, help="Show no progress.")
