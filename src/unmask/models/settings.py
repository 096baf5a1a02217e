"""How one model is asked, and how each setting is typed. A run has `ModelSettings` three times: for its subject, its
judge and a judge for numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, get_type_hints

import msgspec

from unmask.errors import UsageError
from unmask.files import is_file_name
from unmask.records import Record, Sampling
from unmask.text import suggest_names

Role = Literal["subject", "judge", "numeric_judge"]

KEYWORDS: dict[str, tuple[Role, str]] = {
    "model": ("subject", "model"),
    "base_url": ("subject", "base_url"),
    "temperature": ("subject", "temperature"),
    "max_tokens": ("subject", "max_tokens"),
    "seed": ("subject", "seed"),
    "params": ("subject", "params"),
    "headers": ("subject", "headers"),
    "judge": ("judge", "model"),
    "judge_base_url": ("judge", "base_url"),
    "judge_params": ("judge", "params"),
    "judge_headers": ("judge", "headers"),
    "numeric_judge": ("numeric_judge", "model"),
}
"""The settings of a model that have a flag, by their name in Python. All others are given with `set`."""
KEYWORD_OF: dict[tuple[str, str], str] = {place: keyword for keyword, place in KEYWORDS.items()}
SET_PREFIX: dict[str, str] = {"subject": "", "judge": "judge.", "numeric_judge": "numeric."}


def flag_of(keyword: str) -> str:
    """The flag of a keyword argument: of `judge_params`, which takes one at a time, `--judge-param`. The model has
    none."""
    if keyword == "model":
        return "MODEL"
    one = keyword.removesuffix("s") if keyword.endswith(("params", "headers")) else keyword
    return f"--{one.replace('_', '-')}"


def spell_setting(role: str, name: str, value: object = None) -> str:
    """A setting as a user types it: `--max-tokens 4000`, `--set judge.max_tokens=4000`."""
    keyword = KEYWORD_OF.get((role, name))
    if keyword is None:
        return f"--set {SET_PREFIX[role]}{name}={'' if value is None else value}"
    return flag_of(keyword) if value is None else f"{flag_of(keyword)} {value}"


class ModelSettings(Record, frozen=True, kw_only=True):
    """The defaults are those of a subject. A judge has temperature 0, and a judge for numbers the temperature and
    `max_tokens` of the judge. Without `max_tokens` a reply may have 1,000 tokens, and more once the model reasons:
    see `models.room`."""

    model: Any = None
    """Its name; in Python also a function or an object with a method `complete`."""
    base_url: str | None = None
    temperature: float | None = 1.0
    max_tokens: int | None = None
    top_p: float | None = None
    seed: int | None = None
    params: dict[str, Any] = msgspec.field(default_factory=dict)
    headers: dict[str, str] = msgspec.field(default_factory=dict)
    timeout: float = 1800.0
    price: str | None = None
    tier: str | None = None
    wait_for_server: float = 0.0
    give_up_after: float = 600.0
    takes_per_call: int | None = None
    """`None` is as many as the endpoint takes."""
    name: str | None = None

    @property
    def sampling(self) -> Sampling:
        return Sampling(self.temperature, self.max_tokens, self.top_p, self.seed, self.params, self.headers)


SETTABLE = {
    "base_url": "address of an OpenAI-compatible endpoint",
    "temperature": "sampling temperature",
    "max_tokens": "most tokens in one reply, whatever the model shows",
    "top_p": "nucleus sampling",
    "timeout": "seconds for one answer",
    "price": "IN/OUT, dollars per million tokens",
    "tier": "flex",
    "wait_for_server": "seconds to wait for an endpoint that is not up yet",
    "give_up_after": "seconds of nothing but failures after which the run ends",
    "takes_per_call": "most takes in one request, of the subject",
    "name": "file of the readings, of the judge",
    "params": "fields of the request body, as a JSON object, of the judge for numbers",
    "headers": "HTTP headers, as a JSON object, of the judge for numbers",
}
"""What `--set` takes, each with its meaning."""
DEFINING = ("temperature", "max_tokens", "top_p", "seed", "params", "headers")
"""The settings of a model that define a run: what its answers depend on. Addresses, prices, tiers and times do not."""
PATIENCE = ("wait_for_server", "give_up_after")
"""Those that models of one address share."""

_ONLY_OF: dict[str, Role] = {
    "takes_per_call": "subject",
    "name": "judge",
    "params": "numeric_judge",
    "headers": "numeric_judge",
}
"""Settings of one role. Parameters and headers of the others have flags."""
_TYPES = get_type_hints(ModelSettings)
_RANGES: dict[str, tuple[float, float]] = {
    "temperature": (0, 2),
    "top_p": (0, 1),
    "max_tokens": (1, 10**9),
    "takes_per_call": (1, 10**9),
    "timeout": (0.001, 1e9),
    "wait_for_server": (0, 86_400),
    "give_up_after": (1, 604_800),
}


def read_setting(name: str, value: object) -> tuple[Role, str, object]:
    """What one `--set NAME=VALUE` is about: role, field and value. A name that does not exist is a usage error."""
    known: dict[str, tuple[Role, str]] = {
        f"{SET_PREFIX[role]}{field}": (role, field)
        for role in ("subject", "judge", "numeric_judge")
        for field in SETTABLE
        if _ONLY_OF.get(field, role) == role
    }
    if name not in known:
        advice = suggest_names(name, known, "") or f"Names are: {', '.join(known)}."
        raise UsageError(f"--set {name[:80]}: there is no such setting", advice=advice)
    role, field = known[name]
    is_object = field in ("params", "headers")
    try:
        if is_object and isinstance(value, str):
            value = msgspec.json.decode(value)
        return role, field, msgspec.convert(value, _TYPES[field], strict=is_object or not isinstance(value, str))
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise UsageError(f"--set {name}={value} cannot be used: {error}", advice=f"It is: {SETTABLE[field]}.") from None


def check_ranges(settings: ModelSettings, role: Role) -> None:
    """An error that names the first value out of range."""
    for field, (low, high) in _RANGES.items():
        value = getattr(settings, field)
        if value is not None and not low <= value <= high:  # this way round NaN is refused too
            said, most = spell_setting(role, field, f"{value:g}"), f" to {high}" if high < 10**9 else ""
            raise UsageError(f"{said} is out of range", advice=f"Give a value from {low:g}{most}.")
    if settings.name is not None and not is_file_name(settings.name):
        raise UsageError(
            f"{spell_setting(role, 'name')}{settings.name[:80]!r} is no name of a file",
            advice="Readings are kept in a file of that name in the run folder: letters, digits, - and _ will do.",
        )


def combine_patience(sharing: Sequence[ModelSettings]) -> dict[str, float]:
    """How long models of one address wait for its server, and until they give it up: the longest that was set."""
    usual = ModelSettings()
    return {
        name: max({getattr(each, name) for each in sharing} - {getattr(usual, name)}, default=getattr(usual, name))
        for name in PATIENCE
    }


def merge_settings(role: Role, given: Mapping[str, object]) -> ModelSettings:
    """The settings of one model out of those that were given."""
    defaults: dict[str, object] = {} if role == "subject" else {"temperature": 0.0}
    return msgspec.convert({**defaults, **given}, ModelSettings)
