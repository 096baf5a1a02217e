"""Batch APIs as data: who has one, what it takes, and in what it differs from OpenAI's."""

from __future__ import annotations

from typing import Literal

from unmask.records import Record

BATCH = "batch"
"""The tier of an answer that came from a batch."""


class BatchService(Record, frozen=True, kw_only=True):
    """The batch API of one provider. The defaults are those of OpenAI."""

    api: Literal["files", "messages", "inline"] = "files"
    """`files`: an uploaded file of requests, then a batch of it. `messages`: Anthropic's. `inline`: OpenRouter's."""
    part: float = 0.5
    """Of the standard price, by the provider's documentation."""
    most_requests: int = 50_000
    most_bytes: int = 190_000_000
    """Of one batch: a little less than the provider says."""
    upload_path: str = "/files"
    purpose: str = "batch"
    form: tuple[tuple[str, str], ...] = ()
    """What the upload says besides."""
    chat_url: str = "/v1/chat/completions"
    """What a line and a batch call the chat endpoint."""
    metadata: bool = True
    """Whether a batch may carry a note of ours."""
    can_cancel: bool = True


OPENAI_BATCHES = BatchService()
AZURE_BATCHES = BatchService(chat_url="/chat/completions", most_requests=100_000)
GROQ_BATCHES = BatchService()
TOGETHER_BATCHES = BatchService(
    upload_path="/files/upload",
    purpose="batch-api",
    form=(("file_name", "requests.jsonl"), ("file_type", "jsonl")),
    most_bytes=95_000_000,
    metadata=False,
)
ANTHROPIC_BATCHES = BatchService(api="messages", most_requests=100_000, most_bytes=240_000_000)
OPENROUTER_BATCHES = BatchService(api="inline", most_requests=5_000, can_cancel=False)

AZURE_HOSTS = (".openai.azure.com", ".services.ai.azure.com", ".cognitiveservices.azure.com")
"""Azure is reached as `openai/DEPLOYMENT` with its own base URL."""
