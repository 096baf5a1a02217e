"""An `hf:` model opened for its inside: the weights and the chat, treatments applied, without the queue around them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from unmask.models.base import Treatment, refuse_changed
from unmask.models.local.gguf import read_header
from unmask.models.local.hf import find_source, treatments_of
from unmask.whitebox.load import CheckedModel, check_model, load_model, require_extra

if TYPE_CHECKING:
    from unmask.whitebox.chat import Chat


class WhiteboxModel(NamedTuple):
    """`recorded` names the model as its replies do: adapters and directions by hash."""

    model: Any
    chat: Chat
    recorded: str


def check_local_model(name: str) -> tuple[CheckedModel, Chat]:
    """What can be known of an `hf:` model, and refused, before its weights are read."""
    from unmask.whitebox.chat import Chat

    source = find_source(name)
    if source.trained_to_read:  # the adapter reads replies; inside is the model without it
        source = msgspec.structs.replace(source, adapter=None, trained_to_read=False)
    require_extra(source)
    template = read_header(Path(source.shown)).chat_template if source.file else None
    checked = check_model(source, template=template)
    return checked, Chat(checked.tokenizer, name=source.shown)


@contextmanager
def open_whitebox(
    name: str, *, made_with: Sequence[Treatment] = (), run: str = "the run", full_precision: bool = False
) -> Iterator[WhiteboxModel]:
    """Loads the weights of `hf:PATH`, `hf:PATH+adapter=DIR` or `hf:PATH+steer=FILE@COEFFICIENT`.

    `made_with` is what `run` was made with: if adapter or steer file is another by now, it is refused.
    """
    checked, chat = check_local_model(name)
    refuse_changed(made_with, treatments_of(checked.source), run=run)
    yield WhiteboxModel(load_model(checked, full_precision=full_precision), chat, checked.source.recorded)
