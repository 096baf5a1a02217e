"""Anthropic's messages API."""

from __future__ import annotations

from typing import Any, ClassVar

import msgspec

from unmask.errors import TransientModelError
from unmask.models.base import Capabilities
from unmask.models.http import HttpAnswer, decode_answer
from unmask.models.openai import ChatModel, split_content, stop_of, token_count
from unmask.models.tiers import read_tier
from unmask.records import Choice, Completion, Request, Usage

PARAMS = ("context_management", "metadata", "output_config", "stop_sequences", "thinking", "top_k")
"""What else this API has that no command sets itself."""

MAX_TOKENS = 4096
"""Sent when the caller left the limit to the endpoint: this one insists on having it named."""


class _MessageBody(msgspec.Struct):
    content: list[Any] | None = None
    stop_reason: Any = None
    usage: Any = None
    model: Any = None


_DECODER = msgspec.json.Decoder(_MessageBody)


class Anthropic(ChatModel):
    """A model behind `/v1/messages`. One choice a call; a schema or a seed cannot be sent and is left out."""

    capabilities = Capabilities(params=PARAMS, headers=True)
    chat_path = "/v1/messages"
    models_path = "/v1/models"
    key_header = "x-api-key"
    headers: ClassVar = {"anthropic-version": "2023-06-01"}
    refusable = frozenset({"temperature", "top_p"})

    def _make_payload(self, request: Request) -> tuple[dict[str, Any], tuple[str, ...]]:
        return _payload(request, model=self.served_name)

    def _parse_answer(self, answer: HttpAnswer, request: Request, *, notes: tuple[str, ...]) -> Completion:
        body = decode_answer(answer, _DECODER, self.target)
        if body.content is None:
            raise TransientModelError(f"{self.name} at {self.target.shown}: the answer holds no content", paid=True)
        text, thinking = split_content(body.content)
        return Completion(
            choices=(Choice(text=text, reasoning=thinking or None, stop=stop_of(body.stop_reason)),),
            usage=_usage(body.usage),
            latency=answer.latency,
            model=body.model if isinstance(body.model, str) else None,
            adjusted=notes,
            tier=read_tier(body.usage.get("service_tier") if isinstance(body.usage, dict) else None),
        )


def _payload(request: Request, *, model: str) -> tuple[dict[str, Any], tuple[str, ...]]:
    sampling = request.sampling
    payload: dict[str, Any] = {
        **sampling.params,
        "model": model,
        "max_tokens": sampling.max_tokens or MAX_TOKENS,
        "messages": tuple([message for message in request.messages if message.role != "system"]),
    }
    if system := "\n\n".join(message.content for message in request.messages if message.role == "system"):
        payload["system"] = system
    if sampling.temperature is not None:
        payload["temperature"] = sampling.temperature
    if sampling.top_p is not None:
        payload["top_p"] = sampling.top_p
    notes = []
    if sampling.max_tokens is None:
        notes.append(f"max_tokens: sent as {MAX_TOKENS}")
    if sampling.seed is not None:
        notes.append("seed: not sent")
    return payload, tuple(notes)


def _usage(counts: Any) -> Usage:
    """Input includes what was read from and written to the cache, as other providers count it."""
    fresh, cached = token_count(counts, "input_tokens"), token_count(counts, "cache_read_input_tokens")
    stored = token_count(counts, "cache_creation_input_tokens")
    return Usage(
        input=None if fresh is None else fresh + (cached or 0) + (stored or 0),
        output=token_count(counts, "output_tokens"),
        cached=cached,
        written=stored or None,
    )
