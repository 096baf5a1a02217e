"""The same tokens for less where you can wait: the service tier `flex`, and batch APIs as data: what each takes, and in
what it differs from OpenAI's."""

from __future__ import annotations

import re
from typing import Any, Literal

from unmask.records import Record

SERVICE_TIER = "service_tier"
FLEX, BATCH = "flex", "batch"

_STANDARD_NAMES = frozenset({"", "auto", "default", "standard", "on_demand"})


def read_tier(tier: Any) -> str | None:
    """The tier that an answer names; `None` for the standard one, whatever the provider calls it, and for no word."""
    return None if not isinstance(tier, str) or tier.lower() in _STANDARD_NAMES else tier[:40].lower()


_REMOTE_ID = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9._-]+\Z")


def is_remote_id(text: str) -> bool:
    """Whether this can be the id of a batch or a file at a provider: it becomes part of a path, next to a key."""
    return _REMOTE_ID.match(text) is not None


class BatchService(Record, frozen=True, kw_only=True):
    """The batch API of one provider. The defaults are those of OpenAI."""

    api: Literal["files", "messages"] = "files"
    """`files`: an uploaded file of requests, then a batch of it. `messages`: Anthropic's."""
    part: float = 0.5
    """Of the standard price, by the provider's documentation."""
    most_requests: int = 50_000
    most_bytes: int = 190_000_000
    """Of one batch: a little less than the provider says."""
    upload_path: str = "/files"
    purpose: str = "batch"
    form: tuple[tuple[str, str], ...] = ()
    """What the upload also says."""
    chat_url: str = "/v1/chat/completions"
    """What a line and a batch call the chat endpoint."""


OPENAI_BATCHES = BatchService()
AZURE_BATCHES = BatchService(chat_url="/chat/completions", most_requests=100_000)
TOGETHER_BATCHES = BatchService(
    upload_path="/files/upload",
    purpose="batch-api",
    form=(("file_name", "requests.jsonl"), ("file_type", "jsonl")),
    most_bytes=95_000_000,
)
ANTHROPIC_BATCHES = BatchService(api="messages", most_requests=100_000, most_bytes=240_000_000)

AZURE_HOSTS = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")
"""Azure is reached as `openai/DEPLOYMENT` with its own base URL."""
