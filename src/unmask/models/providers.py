"""From the name a user writes to a model: `provider/name`, `gguf:PATH`, `hf:PATH`.

A provider is a row of `PROVIDERS`. It names the class that speaks its protocol.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from difflib import get_close_matches
from importlib import import_module
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

from unmask.errors import MissingError, UsageError
from unmask.files import read_environment
from unmask.models.base import Model
from unmask.models.keys import (
    KEY_VARIABLE,
    URL_VARIABLE,
    Key,
    Target,
    find_key,
    find_variable,
    is_this_machine,
    origin,
    refuse_stray_key,
)
from unmask.models.settings import Role, spell_setting
from unmask.models.tiers import ANTHROPIC_BATCHES, FLEX, OPENAI_BATCHES, TOGETHER_BATCHES, BatchService
from unmask.records import Record

if TYPE_CHECKING:
    from unmask.models.openai import ChatModel

OWN_PREFIX = "python/"
"""What the name of a model begins with that is a function of a Python program: see `models/own`."""


class Provider(Record, frozen=True):
    """An HTTP provider. `keys` may be empty and a key is only insisted on at the provider's own host."""

    url: str
    keys: tuple[str, ...]
    url_variables: tuple[str, ...] = ()
    max_n: int = 1
    """Choices that one request may ask for."""
    needs_key: bool = True
    api: str = "unmask.models.openai:OpenAI"
    """The `ChatModel` that speaks its protocol."""
    priced_as: str | None = None
    """The provider's id in the price table; `None` where no price can be known."""
    flex: float | None = None
    """The part of the standard price that the tier `flex` costs, by the provider's documentation; `None` where there is
    no such tier."""
    batch: BatchService | None = None
    """Its batch API, where unmask knows it."""

    def is_home(self, url: str) -> bool:
        return origin(url) == origin(self.url)

    @property
    def chat(self) -> type[ChatModel]:
        module, _, name = self.api.partition(":")
        chat: type[ChatModel] = getattr(import_module(module), name)
        return chat

    def target(
        self, name: str, *, url: str, key: Key | None, variables: tuple[str, ...], path: str | None = None
    ) -> Target:
        """Where requests to a model go, with the headers of its API."""
        chat = self.chat
        headers = dict(chat.headers)
        path = path or chat.chat_path
        return Target.build(
            name, url=url, path=path, key=key, variables=variables, key_header=chat.key_header, headers=headers
        )


MANY = 128
"""More choices than any request here asks for; an endpoint that ignores `n` shows it in its first answer."""

_GOOGLE = "https://generativelanguage.googleapis.com/v1beta/openai"

PROVIDERS: dict[str, Provider] = {
    "openai": Provider(
        "https://api.openai.com/v1",
        ("OPENAI_API_KEY",),
        ("OPENAI_BASE_URL",),
        max_n=MANY,
        priced_as="openai",
        flex=0.5,
        batch=OPENAI_BATCHES,
    ),
    "anthropic": Provider(
        "https://api.anthropic.com",
        ("ANTHROPIC_API_KEY",),
        ("ANTHROPIC_BASE_URL",),
        api="unmask.models.anthropic:Anthropic",
        priced_as="anthropic",
        batch=ANTHROPIC_BATCHES,
    ),
    "google": Provider(
        _GOOGLE, ("GEMINI_API_KEY", "GOOGLE_API_KEY"), ("GEMINI_BASE_URL",), priced_as="google", flex=0.5
    ),
    "openrouter": Provider(
        "https://openrouter.ai/api/v1",
        ("OPENROUTER_API_KEY",),
        ("OPENROUTER_BASE_URL",),
        priced_as="openrouter",
    ),
    "vllm": Provider(
        "http://localhost:8000/v1",
        ("VLLM_API_KEY",),
        ("VLLM_BASE_URL",),
        max_n=MANY,
        needs_key=False,
        api="unmask.models.vllm:Vllm",
    ),
    "ollama": Provider("http://localhost:11434/v1", ("OLLAMA_API_KEY",), ("OLLAMA_BASE_URL",), needs_key=False),
    "together": Provider(
        "https://api.together.xyz/v1", ("TOGETHER_API_KEY",), priced_as="together", batch=TOGETHER_BATCHES
    ),
    "groq": Provider(
        "https://api.groq.com/openai/v1", ("GROQ_API_KEY",), priced_as="groq", flex=1.0, batch=OPENAI_BATCHES
    ),
    "deepseek": Provider("https://api.deepseek.com/v1", ("DEEPSEEK_API_KEY",), priced_as="deepseek"),
    "mistral": Provider("https://api.mistral.ai/v1", ("MISTRAL_API_KEY",), priced_as="mistral"),
    "xai": Provider("https://api.x.ai/v1", ("XAI_API_KEY",), priced_as="x-ai"),
}


IN_PROCESS = ("embedded", "scripted", "inspect")

BY_PATH = ("gguf", "hf")
"""Models that are named by where they lie: `gguf:PATH`, `hf:PATH`."""


def provider_of(name: str) -> str | None:
    """The part of a model's name that decides who answers; `None` where the name has none."""
    before, colon, _ = name.partition(":")
    if colon and before in BY_PATH:
        return before
    provider, slash, _ = name.partition("/")
    return provider if slash else None


def row_of(name: str) -> Provider | None:
    """The HTTP provider of a model, if it has one."""
    return PROVIDERS.get(provider_of(name) or "")


def open_model(
    name: str,
    *,
    role: Role = "subject",
    base_url: str | None = None,
    timeout: float = 1800.0,
    asks_for_key: bool = True,
    tier: str | None = None,
    key_variable: str | None = None,
) -> Model:
    """Open the model a user wrote down. Nothing is sent yet.

    `role` decides which key and URL variables come first (`UNMASK_API_KEY`, `UNMASK_JUDGE_API_KEY`). `timeout` is
    the longest wait for one answer, in seconds. Without `asks_for_key` a missing key is no error: for who only plans.
    `tier` may be `flex`. `key_variable` names the only variable that the key may come from.
    """
    _check_name(name)
    if provider_of(name) == "inspect":
        from unmask.models.inspect import open_inspect

        return open_inspect(name, role=role, base_url=base_url, timeout=timeout)
    row = row_of(name)
    if row is None:
        return _open_in_process(name, base_url=base_url)
    address, key, variables = find_address(row, role=role, base_url=base_url, key_variable=key_variable)
    target = row.target(name, url=address.url, key=key, variables=variables)
    if key is None and asks_for_key and row.needs_key and row.is_home(target.endpoint):
        needed = key_variable or row.keys[0]
        raise MissingError(
            f"{name} needs a key for {urlsplit(row.url).hostname}, and none of {', '.join(variables)} is set",
            advice=f"export {needed}=…, or put the line {needed}=… into .env. A server of your own is named with"
            f" {spell_setting(role, 'base_url', 'http://…')}",
        )
    return row.chat(target, timeout=timeout, max_n=row.max_n, flex=tier == FLEX)


class Address(NamedTuple):
    """Where a provider is asked, and the variable that says so; without one it was given, or is the provider's own."""

    url: str
    variable: str | None = None


def find_address(
    row: Provider, *, role: Role, base_url: str | None, key_variable: str | None = None
) -> tuple[Address, Key | None, tuple[str, ...]]:
    """The address that is given, else that of the role's variable, of the provider's variable, and the provider's; the
    key that is sent there, and the variables that may hold it. Raises where a key would go elsewhere than to this
    provider or this machine because `.env` says so."""
    environ = read_environment()
    variable = None if base_url else find_variable((URL_VARIABLE[role], *row.url_variables), environ=environ)
    url = base_url or (environ[variable].strip() if variable else row.url)
    variables = (KEY_VARIABLE[role], *row.keys) if key_variable is None else (key_variable,)
    key = find_key(variables, environ=environ)
    if key is not None and variable is not None and origin(url) and not row.is_home(url):
        refuse_stray_key(key, variable=variable, url=url, role=role)
    return Address(url, variable), key, variables


class AskedModel(NamedTuple):
    """A model that is about to be asked, as the user named it."""

    role: Role
    name: str
    base_url: str | None = None
    key_variable: str | None = None


def describe_addresses(models: Iterable[AskedModel], *, given_by: str | None = None) -> list[str]:
    """A line for each address, with the flag or variable that names it; `given_by` is what names those that no variable
    does. Raises what `open_model` would raise about address and key."""
    places: dict[str, dict[str, None]] = {}
    for role, name, base_url, key_variable in models:
        row, address = row_of(name), Address(base_url or "")
        if row is not None:
            address = find_address(row, role=role, base_url=base_url, key_variable=key_variable)[0]
        url, variable = address
        if not origin(url):
            continue
        if variable is not None:
            source = variable if variable in os.environ else f"{variable} in .env"
        elif not base_url:
            source = "the provider's own"
        elif given_by is None and os.environ.get(URL_VARIABLE[role], "").strip() == url:
            source = URL_VARIABLE[role]
        else:
            source = given_by or spell_setting(role, "base_url").rstrip("=")
        places.setdefault(f"at {origin(url)} ({source})", {})[role.replace("_", " ")] = None
    return [f"Asking {', '.join(roles)} {place}" for place, roles in places.items()]


def _open_in_process(name: str, *, base_url: str | None) -> Model:
    if base_url is not None:
        raise UsageError(
            f"{name} answers inside this process, so it takes no base URL",
            advice=f"Leave the base URL out, or name a model that {origin(base_url) or 'that URL'} serves: openai/NAME",
        )
    if provider_of(name) == "scripted":
        from unmask.models.scripted import open_scripted

        return open_scripted(name)
    if provider_of(name) == "hf":
        from unmask.models.local.hf import open_hf

        return open_hf(name)
    from unmask.models.local.embedded import open_embedded

    return open_embedded(name)


def _check_name(name: str) -> None:
    """An error where provider or name is missing or unknown."""
    if name.startswith("panel:"):
        raise UsageError(
            f"{name} is several judges, and they read one after another",
            advice="Run with one of them and read the run again with each of the others; then score takes"
            f" --judge {name}.",
        )
    if name.startswith(OWN_PREFIX):
        raise UsageError(
            f"{name} is a function of a Python program",
            advice=f"Call unmask.run or unmask.judge there, with {name.removeprefix(OWN_PREFIX)} itself.",
        )
    by_path = provider_of(name) in BY_PATH
    provider, _, model_name = name.partition(":" if by_path else "/")
    names = (*PROVIDERS, *IN_PROCESS)
    if not by_path and provider not in names:
        reason, advice = "does not say who serves it", f"Write PROVIDER/NAME, as in openai/{name or 'gpt-4o'}."
        if "/" in name:
            reason = f"begins with the unknown provider {provider!r}"
            near = get_close_matches(provider.lower(), names, n=1, cutoff=0.75)
            advice = f"Did you mean {near[0]}/{model_name}?" if near else f"For a server of your own write vllm/{name}."
        raise UsageError(
            f"model {name!r} {reason}", advice=f"{advice} Providers: {', '.join(names)}; or gguf:PATH, hf:PATH"
        )
    if not model_name.strip("/ ") or name != name.strip() or not name.isprintable():
        raise UsageError(f"{name!r} is not a model's name", advice=f"Write {provider}{':PATH' if by_path else '/NAME'}")


def check_tier(tier: str | None, model: object, *, flag: str) -> None:
    """Refuse a tier that nobody has, or that the provider of this model does not have. A model that is no name has
    none."""
    if tier is None:
        return
    name = model if isinstance(model, str) else "a model of a Python program"
    row = row_of(name)
    if tier != FLEX or row is None or row.flex is None:
        names = ", ".join(provider for provider, row in PROVIDERS.items() if row.flex is not None)
        raise UsageError(
            f"{flag}{tier}: {name} has no such tier",
            advice=f"The only tier is {FLEX}, of {names}; or leave {flag} out.",
        )


def is_known_address(model: str, url: str) -> bool:
    """Whether a key may be sent there though nobody has typed the address: the provider's own, or this machine."""
    row = row_of(model)
    return is_this_machine(url) or (row is not None and row.is_home(url))
