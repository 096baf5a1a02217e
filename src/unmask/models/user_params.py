"""Parameters and headers that a user adds to every request: read, checked, compared, and never left out.

The program leaves out its own settings where an endpoint refuses them (`parameters`). What the user asked for by name
is another matter: a refusal of that ends the run.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from unmask.errors import FatalModelError, UsageError
from unmask.files import read_environment
from unmask.models.base import Model
from unmask.models.keys import SECRET_NAME, known_secrets, mask_likely_secrets
from unmask.models.settings import Role, spell_setting
from unmask.records import Sampling

OWN_PARAMS = {
    "model": "{model} names it",
    "messages": "the scenarios are it",
    "system": "the scenarios have it; --developer-prompt adds to it",
    "n": "--takes sets it",
    "temperature": "{temperature} sets it",
    "max_tokens": "{max_tokens} sets it",
    "max_completion_tokens": "{max_tokens} sets it",
    "top_p": "{top_p} sets it",
    "seed": "--seed sets it for the subject, and a judge is asked without it",
    "stream": "answers are read whole",
    "stream_options": "answers are read whole",
    "response_format": "the questions to a judge set it",
    "logprobs": "no command uses them",
    "top_logprobs": "no command uses them",
    "service_tier": "{tier} sets it, and it does not define a run",
    "prompt_cache_options": "the program decides it",
}
"""What the program sets itself, and who decides it, with the flags of that model filled in."""


def parse_pairs(words: Iterable[str], *, flag: str, as_text: bool = False) -> dict[str, Any]:
    """The values of a flag that may be repeated, by name: `NAME=JSON`, or `NAME=TEXT`."""
    values: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        name = name.strip()
        if not equals or not name:
            raise UsageError(
                f"{flag} {_shorten(name or word)!r} has no name and value",
                advice=f"Write {flag} NAME={'VALUE' if as_text else 'JSON'}.",
            )
        if name in values:
            raise UsageError(f"{flag} {name} is there twice", advice="Give each name once.")
        try:
            values[name] = text.strip() if as_text else json.loads(text)
        except (ValueError, RecursionError):  # the value is not repeated: it may be a key
            advice = f"Put text in quotes, as in {flag} '{name}=\"TEXT\"'"
            raise UsageError(f"the value of {flag} {_shorten(name)} is not JSON", advice=advice) from None
    return values


def check_params(params: Mapping[str, Any], *, role: Role) -> dict[str, Any]:
    """The parameters as they are sent and written down, or an error that names the first one that cannot be."""
    flag = spell_setting(role, "params")
    checked = {}
    for name, value in params.items():
        names = [name, *value] if name == "extra_body" and isinstance(value, dict) else [name]
        for own in names:
            if own in OWN_PARAMS:
                settings = ("model", "temperature", "max_tokens", "top_p", "tier")
                reason = OWN_PARAMS[own].format(**{name: spell_setting(role, name) for name in settings})
                raise UsageError(f"{flag} {own} is not yours to set here: {reason}", advice=f"Leave {flag} {own} out.")
        try:
            encoded = json.dumps(value, allow_nan=False, ensure_ascii=False)
        except (TypeError, ValueError, RecursionError) as error:
            raise UsageError(
                f"{flag} {name} cannot be written as JSON: {error}",
                advice="Use texts, numbers, true and false, lists, and objects with texts as names.",
            ) from None
        _refuse_key(flag, name, f'"{name}": {encoded}')
        checked[name] = json.loads(encoded)
    return checked


def check_headers(headers: Mapping[str, str], *, role: Role) -> None:
    """An error for the first header that cannot be sent, or that looks like a key."""
    flag = spell_setting(role, "headers")
    for name, value in headers.items():
        is_secret = SECRET_NAME.search(name) or name.lower() == "cookie"
        _refuse_key(flag, name, "api_key: ******" if is_secret else f"{name}: {value}")
        if not (name + value).isascii() or not (name + value).isprintable() or " " in name:
            advice = "Use plain ASCII, as in X-Title=unmask."
            raise UsageError(f"{flag} {_shorten(name)!r} cannot be sent", advice=advice)


def _refuse_key(flag: str, name: str, text: str) -> None:
    """Raises where a parameter or header holds a key of this machine, or what looks like one."""
    if mask_likely_secrets(text) != text or any(secret in text for secret in known_secrets(read_environment())):
        raise UsageError(
            f"{flag} {_shorten(mask_likely_secrets(name))} holds what looks like a key, and run.json would show it",
            advice="Keys come from the environment or .env, as UNMASK_API_KEY=… or the provider's own variable.",
        )


def refuse_unknown_additions(model: Model, sampling: Sampling, *, role: Role = "subject") -> None:
    """An error where the user adds what this model cannot take."""
    accepted = model.capabilities.params
    unknown = [] if accepted is None else [param for param in sampling.params if param not in accepted]
    if unknown:
        advice = f"It takes {', '.join(sorted(accepted))}." if accepted else "It takes none."
        raise UsageError(
            f"{model.name} does not know the parameter {unknown[0]}",
            advice=f"{advice} Leave {spell_setting(role, 'params')} {unknown[0]} out.",
        )
    if sampling.headers and not model.capabilities.headers:
        raise UsageError(
            f"{model.name} is not asked over HTTP, so it takes no headers",
            advice=f"Leave {spell_setting(role, 'headers')} out.",
        )


# --- what endpoints refuse --------------------------------------------------------------------------------


def refusal_of(name: str, sampling: Sampling, message: str) -> FatalModelError:
    """The error that ends a run: the endpoint's words, and what the user can do."""
    value = format_value(sampling.params[name]) if name in sampling.params else sampling.headers.get(name, "")
    kind = "param" if name in sampling.params else "header"
    advice = (
        f"You asked for {name}={_shorten(value)} (--{kind} or --judge-{kind}), so it is not left out for you:"
        " change it, or leave it out."
    )
    return FatalModelError(message, advice=advice)


# --- showing and comparing --------------------------------------------------------------------------------


def format_value(value: object) -> str:
    """One value as JSON, the same for equal values."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True)


def describe_params(params: Mapping[str, Any]) -> str | None:
    return ", ".join(f"{name}={format_value(params[name])}" for name in sorted(params)) or None


def describe_headers(headers: Mapping[str, str]) -> str | None:
    return ", ".join(f"{name}={headers[name]}" for name in sorted(headers)) or None


def _shorten(text: str) -> str:
    return text if len(text) <= 80 else f"{text[:80]}…"
