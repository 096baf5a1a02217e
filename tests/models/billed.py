"""Providers on loopback that keep an invoice of their own: what they bill is what `unmask` has to arrive at.

Written from the documentation of the providers: which usage fields they send, what they refuse and how, which tier they
say an answer was given at. A test sets the faults.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.models.loopback import Canned, Sent

CACHE_FROM = 1024
"""Tokens from which prompts are written to a cache."""
CHARACTERS_PER_TOKEN = 4


OPENAI_FULL = Canned(
    {"error": {"message": "Resource Unavailable", "type": "server_error", "code": "resource_unavailable"}}, 429
)
"""OpenAI's answer to a flex request that it has no room for, which it does not bill."""
GROQ_FULL = Canned({"error": {"message": "over capacity", "type": "capacity_exceeded"}}, 498)
"""Groq's answer to the same."""


@dataclass
class BilledProvider:
    """An OpenAI-compatible provider. Prices are dollars per million tokens."""

    input: float = 4.0
    output: float = 20.0
    read: float = 0.4
    write: float | None = None
    """What a prompt costs that it puts into its cache by itself; `None` for one that does so for nothing, and that
    refuses `prompt_cache_options` as a parameter it does not know."""
    flex: float | None = 0.5
    """The part of the price that flex costs; `None` where a model has no flex, which is a 400."""
    standard: str | None = "default"
    """What an answer at the standard tier says."""
    refuses_flex: Callable[[int], bool] = lambda number: False
    """By the number of the flex request."""
    refusal: Canned = OPENAI_FULL
    reasoning: int = 0
    reasons_apart: bool = False
    """Whether `completion_tokens` leaves the reasoning out, as at xAI and Gemini."""
    words: str = "Answer: A"
    invoice: float = 0.0
    tiers: list[str] = field(default_factory=list)
    """Of every answer."""
    flex_requests: int = 0

    def __call__(self, sent: Sent) -> Canned:
        body = sent.body
        if "prompt_cache_options" in body and self.write is None:
            return _refuse("Unknown parameter: 'prompt_cache_options'.", "prompt_cache_options", "unknown_parameter")
        tier = self.standard
        if body.get("service_tier") == "flex":
            self.flex_requests += 1
            if self.flex is None:
                return _refuse("Flex is not available for this model.", "service_tier", "invalid_service_tier")
            if self.refuses_flex(self.flex_requests):
                return self.refusal
            tier = "flex"
        size = sum(len(message["content"]) for message in body["messages"])
        prompt, answer, choices = size // CHARACTERS_PER_TOKEN, 12, body.get("n", 1)
        opted_out = body.get("prompt_cache_options") == {"mode": "explicit"}
        written = prompt if self.write is not None and prompt >= CACHE_FROM and not opted_out else 0
        hidden, shown = self.reasoning * choices, answer * choices
        fresh = (prompt - written) * self.input + written * (self.write or 0.0)
        factor = (self.flex or 1.0) if tier == "flex" else 1.0
        self.invoice += factor * (fresh + (hidden + shown) * self.output) / 1e6
        self.tiers.append(tier or "")
        usage: dict[str, Any] = {
            "prompt_tokens": prompt,
            "completion_tokens": shown if self.reasons_apart else shown + hidden,
            "total_tokens": prompt + shown + hidden,
            "prompt_tokens_details": {"cached_tokens": 0, **({"cache_write_tokens": written} if self.write else {})},
            "completion_tokens_details": {"reasoning_tokens": hidden},
        }
        choice = {"message": {"role": "assistant", "content": self.words}, "finish_reason": "stop"}
        answer_body = {"model": body["model"], "choices": [choice] * choices, "usage": usage}
        return Canned(answer_body | ({} if tier is None else {"service_tier": tier}))


def _refuse(message: str, param: str, code: str) -> Canned:
    error = {"message": message, "type": "invalid_request_error", "param": param, "code": code}
    return Canned({"error": error}, 400)
