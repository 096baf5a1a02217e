"""The one protocol a model has to meet."""

from __future__ import annotations

from typing import Protocol, runtime_checkable

from unmask.records import Completion, Request


@runtime_checkable
class Model(Protocol):
    """Anything that answers requests: a subject, or the model behind a judge.

    `complete` raises only the ModelError tree of `unmask.errors`; whoever calls it retries and limits. It must be
    safe to call many times at once on one event loop.
    """

    @property
    def name(self) -> str:
        """As the user writes it: `openai/gpt-4o`."""

    @property
    def endpoint(self) -> str:
        """What limits are shared by: scheme, host and port, without credentials; in-process models name themselves."""

    @property
    def max_n(self) -> int:
        """How many choices one request may ask for. May fall to 1 once the endpoint has shown it ignores `n`."""

    @property
    def supports_options(self) -> bool:
        """Whether `Request.options` is honoured, with probabilities."""

    async def complete(self, request: Request) -> Completion: ...

    async def close(self) -> None:
        """Release connections or memory. Called once, after the last request."""
