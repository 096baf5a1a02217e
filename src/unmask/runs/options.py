"""Everything a user can set about a run, in one frozen record: flag = argument = `UNMASK_…` variable."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from unmask.errors import UsageError
from unmask.files import is_file_name
from unmask.protocol.readings import Reader
from unmask.records import MOST_TAKES, Archetype, Effort, Preset, Record, Sampling


class Options(Record, frozen=True, kw_only=True):
    """Defaults are the published settings: temperature 1, 1,000 tokens, three direct probes, one take."""

    base_url: str | None = None
    judge_base_url: str | None = None
    preset: Preset = Preset.PAPER
    effort: Effort = Effort.LAZY
    reader: Reader = Reader.AUTO
    direct: int = 3
    takes: int = 1
    stop_at_first_lie: bool = False
    one_call: bool = True
    check_provided: bool = False
    self_report: bool = False
    role_play: bool = False
    temperature: float | None = 1.0
    max_tokens: int | None = 1000
    top_p: float | None = None
    seed: int | None = None
    judge_temperature: float | None = 0.0
    judge_max_tokens: int | None = 1000
    judge_name: str | None = None
    max_connections: int = 50
    requests_per_minute: int | None = None
    timeout: float = 1800.0
    max_cost: float | None = None
    price: str | None = None
    judge_price: str | None = None
    max_unjudged: float = 0.05
    archetype: tuple[str, ...] = ()
    ids: tuple[str, ...] = ()
    limit: int | None = None
    sample_seed: int = 0
    revision: str | None = None
    skip_bad_rows: bool = False
    developer_prompt: str | None = None
    beliefs_from: str | None = None
    moved: bool = False

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.max_tokens, self.top_p, self.seed)

    @property
    def judge_sampling(self) -> Sampling:
        return Sampling(self.judge_temperature, self.judge_max_tokens)


def given(settings: Mapping[str, Any]) -> Options:
    """Options from keyword arguments or flags, checked. A name or type that is not ours is a usage error."""
    try:
        return checked(msgspec.convert(dict(settings), Options))
    except msgspec.ValidationError as error:
        known = ", ".join(Options.__struct_fields__)
        raise UsageError(f"these settings cannot be used: {error}", advice=f"Settings are: {known}") from None


def checked(options: Options) -> Options:
    """The same options, or an error that names the first value out of range. Called before anything is sent."""
    known = {archetype.value for archetype in Archetype}
    for name in options.archetype:
        if name not in known:
            raise UsageError(f"--archetype {name!r} is unknown", advice=f"Choose from: {', '.join(sorted(known))}")
    at_least = {
        "direct": 1,
        "takes": 1,
        "max_connections": 1,
        "requests_per_minute": 1,
        "max_tokens": 1,
        "judge_max_tokens": 1,
        "limit": 1,
    }
    for field, least in at_least.items():
        value = getattr(options, field)
        if value is not None and value < least:
            raise UsageError(f"--{field.replace('_', '-')} {value} is too small", advice=f"Give at least {least}.")
    for field in ("direct", "takes"):
        if getattr(options, field) > MOST_TAKES:
            raise UsageError(f"--{field} {getattr(options, field)} is too many", advice=f"Give at most {MOST_TAKES}.")
    for field, low, high in (
        ("temperature", 0, 2),
        ("judge_temperature", 0, 2),
        ("top_p", 0, 1),
        ("max_unjudged", 0, 1),
    ):
        value = getattr(options, field)
        if value is not None and not low <= value <= high:
            raise UsageError(
                f"--{field.replace('_', '-')} {value:g} is out of range", advice=f"Give a value from {low} to {high}."
            )
    if options.judge_name is not None and not is_file_name(options.judge_name):
        raise UsageError(
            f"--judge-name {options.judge_name[:80]!r} is no name of a file",
            advice="Readings are kept in a file of that name in the run folder: letters, digits, - and _ will do.",
        )
    if not options.timeout > 0:  # this way round NaN, which is above and below nothing, is refused
        raise UsageError(f"--timeout {options.timeout:g} is not a time to wait", advice="Give seconds above 0.")
    if options.max_cost is not None and not options.max_cost > 0:
        raise UsageError(f"--max-cost {options.max_cost:g} allows nothing", advice="Give dollars above 0.")
    return options
