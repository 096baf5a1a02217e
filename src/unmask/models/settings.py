"""How one model is asked. A run has this record three times: for its subject, its judge and a judge for numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, get_type_hints

import msgspec

from unmask.errors import UsageError
from unmask.files import is_file_name
from unmask.models.keys import Role, spell_setting
from unmask.models.providers import check_tier
from unmask.models.user_params import check_headers, check_params
from unmask.records import Record, Sampling
from unmask.text import suggest_names


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
    "tier": "flex or default",
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
_ROLES: dict[str, Role] = {"": "subject", "judge": "judge", "numeric": "numeric_judge"}
_TYPES = get_type_hints(ModelSettings)
_RANGES = {"temperature": (0, 2), "top_p": (0, 1), "wait_for_server": (0, 86_400), "give_up_after": (1, 604_800)}


def read_setting(name: str, value: object) -> tuple[Role, str, object]:
    """What one `--set NAME=VALUE` is about: role, field and value. A name that does not exist is a usage error."""
    prefix, _, field = name.rpartition(".")
    role = _ROLES.get(prefix)
    if role is None or field not in SETTABLE or _ONLY_OF.get(field, role) != role:
        known = [
            f"{other}.{each}" if other else each
            for other, of in _ROLES.items()
            for each in SETTABLE
            if _ONLY_OF.get(each, of) == of
        ]
        advice = suggest_names(name, known) or f"Names are: {', '.join(known)}."
        raise UsageError(f"--set {name[:80]}: there is no such setting", advice=advice)
    is_object = field in ("params", "headers")
    try:
        if is_object and isinstance(value, str):
            value = msgspec.json.decode(value)
        return role, field, msgspec.convert(value, _TYPES[field], strict=is_object or not isinstance(value, str))
    except (msgspec.ValidationError, msgspec.DecodeError) as error:
        raise UsageError(f"--set {name}={value} cannot be used: {error}", advice=f"It is: {SETTABLE[field]}.") from None


def check_model_settings(settings: ModelSettings, role: Role) -> ModelSettings:
    """The same settings, or an error that names the first value out of range."""
    for field in ("max_tokens", "takes_per_call"):
        value = getattr(settings, field)
        if value is not None and value < 1:
            raise UsageError(f"{spell_setting(role, field, value)} is too small", advice="Give at least 1.")
    for field, (low, high) in _RANGES.items():
        value = getattr(settings, field)
        if value is not None and not low <= value <= high:
            raise UsageError(
                f"{spell_setting(role, field, f'{value:g}')} is out of range",
                advice=f"Give a value from {low} to {high}.",
            )
    if not settings.timeout > 0:  # this way round NaN, which is above and below nothing, is refused
        said = spell_setting(role, "timeout", f"{settings.timeout:g}")
        raise UsageError(f"{said} is not a time to wait", advice="Give seconds above 0.")
    if settings.name is not None and not is_file_name(settings.name):
        raise UsageError(
            f"{spell_setting(role, 'name')}{settings.name[:80]!r} is no name of a file",
            advice="Readings are kept in a file of that name in the run folder: letters, digits, - and _ will do.",
        )
    if settings.model is not None:
        check_tier(settings.tier, settings.model, flag=spell_setting(role, "tier"))
    check_headers(settings.headers, role=role)
    return msgspec.structs.replace(settings, params=check_params(settings.params, role=role))


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
