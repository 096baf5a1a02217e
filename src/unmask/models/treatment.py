"""The files a local model is changed by, named by their content, so that a run goes on with those it was begun with."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol, runtime_checkable

from unmask.errors import MixedRunError
from unmask.models.base import Model
from unmask.records import Record


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
