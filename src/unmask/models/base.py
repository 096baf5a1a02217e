"""The one protocol a model has to meet."""

from __future__ import annotations

from typing import Protocol, cast, runtime_checkable

from unmask.records import Completion, Record, Request


class Capabilities(Record, frozen=True, kw_only=True):
    """What a model can do beyond one plain answer to one request."""

    max_n: int = 1
    """How many choices one request may ask for."""
    supports_options: bool = False
    """Whether the model honours `Request.options` and gives a probability for each."""
    trained_to_read: bool = False
    """Whether the model was trained on the questions of the trained judge (`judges/pick`)."""
    logprobs: bool = False
    """Whether the model can give the log probability of each token of a reply. No model here does so yet."""


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
    def capabilities(self) -> Capabilities:
        """What this model can do. `max_n` may fall to 1 once the endpoint has shown that it ignores `n`."""

    async def complete(self, request: Request) -> Completion: ...

    async def close(self) -> None:
        """Release connections or memory. Called once, after the last request."""


class _OlderModel(Protocol):
    """A model that somebody wrote before there were capabilities."""

    max_n: int
    supports_options: bool


def capabilities_of(model: Model) -> Capabilities:
    """What a model can do. One that was written before `capabilities` says it with two attributes of its own; this is
    the only place that knows of them."""
    try:
        return model.capabilities
    except AttributeError:
        older = cast("_OlderModel", model)
        return Capabilities(max_n=older.max_n, supports_options=older.supports_options)
