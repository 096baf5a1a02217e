"""Any provider of Inspect as a model: `inspect/PROVIDER/NAME`. Needs the extra `inspect`."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Any
from urllib.parse import quote

from unmask.errors import (
    FatalModelError,
    MissingError,
    ModelError,
    RequestRefusedError,
    TransientModelError,
    UsageError,
)
from unmask.files import read_environment
from unmask.models.base import Capabilities
from unmask.models.failures import THROTTLED, ProviderProblem, exception_for
from unmask.models.keys import (
    KEY_VARIABLE,
    Key,
    Target,
    check_base_url,
    find_key,
    known_secrets,
    longest_first,
    origin,
    proxy_secrets,
    refuse_stray_key,
    scrub,
    url_secrets,
)
from unmask.models.parameters import refused_addition
from unmask.models.settings import Role
from unmask.models.user_params import refusal_of
from unmask.records import Choice, Completion, Request, Sampling, Stop, Usage

CONNECTIONS = 100_000
"""Inspect's own limit is put out of the way: ours decides, and two would only hide each other."""

_STOPS = {
    "stop": Stop.END,
    "max_tokens": Stop.LENGTH,
    "model_length": Stop.LENGTH,
    "content_filter": Stop.FILTER,
}
PARAMS = (
    "effort",
    "extra_body",
    "frequency_penalty",
    "logit_bias",
    "presence_penalty",
    "reasoning_effort",
    "reasoning_history",
    "reasoning_mode",
    "reasoning_summary",
    "reasoning_tokens",
    "stop_seqs",
    "top_k",
    "verbosity",
)
"""Settings of Inspect's `GenerateConfig` that no command sets itself. `extra_body` takes all other names."""
_ADDRESS_NAME = re.compile(r"(?:BASE_URL|API_BASE|ENDPOINT|ENDPOINT_URL)\Z")
"""How the variables end in which Inspect's providers look for an address."""
_NEVER_LENT = re.compile(r"(?i)_proxy\Z|\A(?:ssl_cert|requests_ca|curl_ca)")
"""Proxies and certificates come from the real environment, as for requests of our own."""
_MARKUP = re.compile(r"\[/?[a-z][a-z ]*\]")


def open_inspect(
    name: str, *, role: Role = "subject", base_url: str | None = None, timeout: float = 1800.0
) -> InspectModel:
    """The model Inspect calls `name` without `inspect/`. Variables of `.env` are lent to Inspect while it looks for its
    key. An address there is refused where it would get a key of the real environment."""
    try:
        inspect = import_module("inspect_ai.model")
    except ImportError:
        advice = "pip install 'unmask[inspect]'"
        raise MissingError(f"{name} needs Inspect, which is not installed", advice=advice) from None
    short, environ = name.removeprefix("inspect/"), read_environment()
    if "/" not in short.strip("/"):
        raise UsageError(f"{name} names no provider of Inspect", advice="Write inspect/PROVIDER/NAME")
    key = find_key((KEY_VARIABLE[role],), environ=environ)
    if base_url is None:
        _refuse_stray_keys(environ, key, role=role)
    else:
        check_base_url(base_url, key_variable=KEY_VARIABLE[role])
    config = inspect.GenerateConfig(max_retries=0, max_connections=CONNECTIONS)
    # All that Inspect may send: which variables its provider reads is known to that provider only.
    values = known_secrets(environ)
    escaped = {quote(value, safe="") for value in values}
    secrets = longest_first({*values, *escaped, *url_secrets(base_url or ""), *proxy_secrets()})
    try:
        with _lend_environment(environ):
            model = inspect.get_model(
                short, config=config, base_url=base_url, api_key=key.value if key else None, memoize=False
            )
    except Exception as error:
        reason = scrub(_MARKUP.sub("", str(error)), secrets=secrets)
        if type(error).__name__ == "PrerequisiteError":
            raise MissingError(f"{name}: {reason}", advice="Do what Inspect asks for, then try again") from None
        advice = "See https://inspect.aisi.org.uk/providers.html for its names"
        raise UsageError(f"{name}: {reason}", advice=advice) from None
    return InspectModel(model, name=short, timeout=timeout, base_url=base_url, secrets=secrets)


def _refuse_stray_keys(environ: Mapping[str, str], key: Key | None, *, role: Role) -> None:
    """Which key an address gets is known to Inspect's provider only: any that begins with the same word may be it, and
    `INSPECT_EVAL_MODEL_BASE_URL` is for all."""
    for variable, url in environ.items():
        if variable in os.environ or not _ADDRESS_NAME.search(variable) or "://" not in url:
            continue
        word = "" if variable.startswith("INSPECT_") else f"{variable.partition('_')[0]}_"
        keys = [
            Key(value, name)
            for name, value in os.environ.items()
            if value and name.startswith(word) and name.endswith(("_KEY", "_TOKEN"))
        ]
        for candidate in filter(None, [key, *keys]):
            refuse_stray_key(candidate, variable=variable, url=url, role=role)


@contextmanager
def _lend_environment(environ: Mapping[str, str]) -> Iterator[None]:
    extra = [name for name in environ if name not in os.environ and not _NEVER_LENT.search(name)]
    os.environ.update({name: environ[name] for name in extra})
    try:
        yield
    finally:
        for name in extra:
            os.environ.pop(name, None)


class InspectModel:
    """One choice a call. A schema is not passed on: which of Inspect's providers take one differs by version."""

    capabilities = Capabilities(params=PARAMS, headers=True)

    def __init__(
        self, model: Any, *, name: str, timeout: float, base_url: str | None = None, secrets: tuple[str, ...] = ()
    ) -> None:
        self.name = f"inspect/{name}"
        self.endpoint = (origin(base_url) if base_url else "") or f"inspect/{name.partition('/')[0]}"
        self._model = model
        self._timeout = timeout
        # Only for what errors say: Inspect sends.
        self._target = Target(self.name, "", self.endpoint, self.endpoint, {}, "Inspect's provider", (), secrets)
        self._answered = False

    def __repr__(self) -> str:
        return f"InspectModel({self.name})"

    async def complete(self, request: Request) -> Completion:
        inspect, sampling = import_module("inspect_ai.model"), request.sampling
        kinds = {
            "system": inspect.ChatMessageSystem,
            "user": inspect.ChatMessageUser,
            "assistant": inspect.ChatMessageAssistant,
        }
        messages = [kinds[message.role](content=message.content) for message in request.messages]
        config = self._build_config(inspect, sampling)
        begin = time.perf_counter()
        try:
            async with asyncio.timeout(self._timeout):
                output = await self._model.generate(messages, config=config)
        except TimeoutError:
            raise TransientModelError(f"timeout: no answer within {self._timeout:g} s from {self.name}") from None
        except Exception as error:
            raise self._explain(error, sampling) from None
        self._answered = True
        if not output.choices:
            reason = f": {self._target.scrub(output.error)}" if output.error else ""
            raise TransientModelError(f"{self.name}: the answer holds no choices{reason}", paid=not output.error)
        return Completion(
            choices=tuple(convert_choice(choice) for choice in output.choices[: request.n]),
            usage=convert_usage(output.usage),
            latency=time.perf_counter() - begin,
            model=output.model or None,
        )

    async def close(self) -> None:
        await self._model.api.aclose()

    def _build_config(self, inspect: Any, sampling: Sampling) -> Any:
        try:
            return make_config(inspect, sampling)
        except ValueError as error:
            reason = " ".join(str(error).split())[:300]
            raise FatalModelError(
                f"{self.name}: Inspect refuses the parameters: {reason}", advice="Change --param, or --judge-param."
            ) from None

    def _explain(self, error: Exception, sampling: Sampling) -> ModelError:
        """Inspect's providers know which of their exceptions pass; the rest is told by the HTTP status they carry.
        Inspect wraps what happened in tenacity's RetryError, also when it was told not to retry."""
        attempt = getattr(error, "last_attempt", None)
        if attempt is not None and isinstance(inner := attempt.exception(), Exception):
            error = inner
        api, words = self._model.api, _MARKUP.sub("", str(error)) or type(error).__name__
        named = (getattr(error, name, None) for name in ("status_code", "status", "code"))
        status = next((value for value in named if isinstance(value, int)), 401 if api.is_auth_failure(error) else None)
        problem, message = ProviderProblem(status or 400, words), f"{self.name}: {self._target.scrub(words)}"
        decision = api.should_retry(error)
        if decision and not problem.out_of_money:
            limited = getattr(decision, "kind", None) == "rate_limit" or status in THROTTLED
            return TransientModelError(message, throttled=limited, retry_after=getattr(decision, "retry_after", None))
        if (name := refused_addition(problem, sampling, answered=self._answered)) is not None:
            return refusal_of(name, sampling, message)
        if status is None and not problem.out_of_money:
            return RequestRefusedError(message, may_be_all=not problem.too_long)
        return exception_for(problem, self._target)


def make_config(inspect: Any, sampling: Sampling) -> Any:
    """Sampling as Inspect has it. Raises ValueError for a value that Inspect refuses."""
    named = {name: value for name, value in sampling.params.items() if name in inspect.GenerateConfig.model_fields}
    body = {name: value for name, value in sampling.params.items() if name not in named}
    return inspect.GenerateConfig(
        temperature=sampling.temperature,
        max_tokens=sampling.max_tokens,
        top_p=sampling.top_p,
        seed=sampling.seed,
        extra_headers=sampling.headers or None,
        **{"extra_body": body or None} | named,
    )


def convert_choice(choice: Any) -> Choice:
    content = choice.message.content
    parts = [] if isinstance(content, str) else content
    text = content if isinstance(content, str) else "".join(part.text for part in parts if part.type == "text")
    thoughts = [part.reasoning or getattr(part, "summary", None) for part in parts if part.type == "reasoning"]
    reasoning = "\n".join(thought for thought in thoughts if thought)
    return Choice(text=text, reasoning=reasoning or None, stop=_STOPS.get(choice.stop_reason, Stop.OTHER))


def convert_usage(usage: Any) -> Usage:
    """Inspect counts cached input apart from the rest; here input is all of it, as for every other model."""
    if usage is None:
        return Usage()
    cached, stored = usage.input_tokens_cache_read, usage.input_tokens_cache_write
    return Usage(
        input=usage.input_tokens + (cached or 0) + (stored or 0),
        output=usage.output_tokens,
        reasoning=usage.reasoning_tokens,
        cached=cached,
        written=stored or None,
    )
