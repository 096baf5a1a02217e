"""An `hf:` model opened for its inside: the weights and the chat, treatments applied, without the queue around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import msgspec

from unmask.models.base import Treatment, refuse_changed
from unmask.models.local.hf import check_source, find_source, treatments_of
from unmask.whitebox.chat import Chat
from unmask.whitebox.load import CheckedModel, load_model


class WhiteboxModel(NamedTuple):
    """`recorded` names the model as its replies do: adapters and directions by hash."""

    model: Any
    chat: Chat
    recorded: str


def check_local_model(name: str) -> CheckedModel:
    """What can be known of an `hf:` model, and refused, before its weights are read."""
    source = find_source(name)
    if source.trained_to_read:  # the adapter reads replies; inside is the model without it
        source = msgspec.structs.replace(source, adapter=None, trained_to_read=False)
    return check_source(source)


@contextmanager
def open_whitebox(
    name: str, *, made_with: Sequence[Treatment] = (), run: str = "the run", full_precision: bool = False
) -> Iterator[WhiteboxModel]:
    """Loads the weights of `hf:PATH`, `hf:PATH+adapter=DIR` or `hf:PATH+steer=FILE@COEFFICIENT`.

    `made_with` is what `run` was made with: if adapter or steer file is another by now, it is refused.
    """
    checked = check_local_model(name)
    refuse_changed(made_with, treatments_of(checked.source), run=run)
    yield WhiteboxModel(load_model(checked, full_precision=full_precision), checked.chat, checked.source.recorded)
