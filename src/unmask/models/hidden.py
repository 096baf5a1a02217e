"""Answers without secrets: an endpoint, or a proxy before it, may echo what it was sent where a reply belongs."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from unmask.models.target import LONG, without
from unmask.records import Completion


def hidden(completion: Completion, secrets: Sequence[str]) -> Completion:
    """Without any of `secrets`, in text, reasoning and the name of the model. Short ones stay, since they may be words
    of the reply."""
    long = [secret for secret in secrets if len(secret) >= LONG]
    choices = [
        msgspec.structs.replace(
            choice,
            text=without(choice.text, long),
            reasoning=None if choice.reasoning is None else without(choice.reasoning, long),
        )
        for choice in completion.choices
    ]
    model = None if completion.model is None else without(completion.model, long)
    return msgspec.structs.replace(completion, choices=tuple(choices), model=model)
