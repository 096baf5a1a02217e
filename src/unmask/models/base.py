"""The one protocol a model has to meet, what a model can do, and the files that a local model is changed by."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from unmask.errors import MixedRunError
from unmask.records import Completion, Record, Request


class Capabilities(Record, frozen=True, kw_only=True):
    """What a model can do beyond one plain answer to one request."""

    max_n: int = 1
    """How many choices one request may ask for."""
    supports_options: bool = False
    """Whether the model honours `Request.options` and gives a probability for each."""
    trained_to_read: bool = False
    """Whether the model was trained on the questions of the trained judge (`judges/pick`)."""
    params: tuple[str, ...] | None = ()
    """The names of `Sampling.params` that the model takes; `None`: its endpoint decides."""
    headers: bool = False
    """Whether `Sampling.headers` are sent."""


@runtime_checkable
class Model(Protocol):
    """Anything that answers requests: a subject, or the model behind a judge.

    `complete` raises only the ModelError tree of `unmask.errors`; the caller retries and limits. It must be
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


def sends_key(model: Model) -> bool:
    """Whether requests to this model carry a key, which may be wrong."""
    return getattr(getattr(model, "target", None), "key_source", None) is not None


def awaits_server(model: Model) -> bool:
    """Whether the server of this model is still being placed."""
    return bool(getattr(model, "awaits_server", False))


class Treatment(Record, frozen=True):
    """An adapter's folder or a steer file. `kind` is as in a model's name: `adapter`, `steer`."""

    kind: str
    path: str
    hash: str


@runtime_checkable
class TreatedModel(Protocol):
    """A model that files can change."""

    @property
    def treatments(self) -> tuple[Treatment, ...]: ...


def treatments_of(model: Model) -> tuple[Treatment, ...]:
    """What a model is changed by; nothing for models that cannot be."""
    return model.treatments if isinstance(model, TreatedModel) else ()


def find_changed(before: Sequence[Treatment], now: Sequence[Treatment]) -> Iterator[tuple[Treatment, Treatment]]:
    """Those whose content is another. A kind that only one side knows of is left to the comparison of model names."""
    earlier = {treatment.kind: treatment for treatment in before}
    for treatment in now:
        was = earlier.get(treatment.kind)
        if was is not None and was.hash != treatment.hash:
            yield was, treatment


def refuse_changed(before: Sequence[Treatment], now: Sequence[Treatment], *, run: str) -> None:
    """For work on a finished run: what would be measured is no longer the model that gave its replies."""
    for was, treatment in find_changed(before, now):
        raise MixedRunError(
            f"{treatment.path} has changed since {run} was made: "
            f"its {treatment.kind} had content {was.hash}, now {treatment.hash}",
            advice=f"Put back the {treatment.kind} it was made with, or make a new run with this one.",
        )
