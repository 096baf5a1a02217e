"""Does a treated model still write? Its perplexity on neutral text of our own, passage by passage.

Both models read the same words, so the ratio of their perplexities is paired and far steadier than either of them.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from importlib.resources import files
from math import exp, fsum, isfinite, sqrt
from typing import TYPE_CHECKING, Annotated, Any

import msgspec

from unmask.errors import FatalModelError, UsageError
from unmask.records import Record

if TYPE_CHECKING:
    from unmask.whitebox.chat import Chat

LIMIT = 1.1
"""A treated model whose perplexity is above this multiple of the base's is called damaged."""


class PassageLoss(Record, frozen=True, array_like=True):
    """One passage: how many of its tokens were foretold, and the sum of their losses in nats."""

    tokens: Annotated[int, msgspec.Meta(ge=1)]
    loss: Annotated[float, msgspec.Meta(ge=0)]


class Fluency(Record, frozen=True, kw_only=True, omit_defaults=False):
    """`fluency.json` in a run folder: how well a model foretells neutral text."""

    model: str
    """As replies name it: an adapter or a direction by its hash."""
    text: str
    """Hash of the text."""
    passages: Annotated[tuple[PassageLoss, ...], msgspec.Meta(min_length=1)]

    @property
    def perplexity(self) -> float:
        mean = fsum(passage.loss for passage in self.passages) / sum(passage.tokens for passage in self.passages)
        return exp(min(mean, 700.0))  # more than any model; a file may say anything


class Ratio(Record, frozen=True, omit_defaults=False):
    """Perplexity of the treated model over that of the base, with a 95 % interval over passages."""

    value: float
    low: float
    high: float


def read_neutral_passages() -> tuple[str, ...]:
    """The passages. They state no fact that any scenario asks about."""
    text = files("unmask.whitebox").joinpath("neutral.txt").read_text(encoding="utf-8")
    return tuple(passage.strip() for passage in text.split("\n\n") if passage.strip())


def measure_perplexity(model: Any, chat: Chat, *, name: str, passages: Sequence[str] | None = None) -> Fluency:
    """Every passage is read alone, from its own first token."""
    import torch

    texts = tuple(passages) if passages is not None else read_neutral_passages()
    losses = []
    for text in texts:
        ids = torch.tensor([chat.encode(text)], device=model.device)
        with torch.inference_mode():
            logits = model(input_ids=ids, use_cache=False).logits[0, :-1].float()
            loss = torch.nn.functional.cross_entropy(logits, ids[0, 1:], reduction="sum")
        losses.append(PassageLoss(ids.shape[1] - 1, float(loss)))
    if not all(isfinite(passage.loss) for passage in losses):
        raise FatalModelError(
            f"{name} gives no numbers for plain text",
            advice="The treatment has broken the model: make it weaker",
        )
    text_hash = hashlib.blake2b("\n\n".join(texts).encode(), digest_size=8).hexdigest()
    return Fluency(model=name, text=text_hash, passages=tuple(losses))


def compare_perplexity(base: Fluency, treated: Fluency) -> Ratio:
    """Its logarithm is the mean loss a token that the treatment adds: a ratio of sums over passages, which is
    linearised, with Student's t over passages.

    Raises a `UsageError` where the two did not read the same text into the same tokens.
    """
    from scipy.special import stdtrit

    tokens = [passage.tokens for passage in base.passages]
    if base.text != treated.text or tokens != [passage.tokens for passage in treated.passages]:
        raise UsageError(
            f"the perplexities of {base.model} and {treated.model} are of different texts or tokens",
            advice="Measure both again: `unmask mitigate report` with --fluency.",
        )
    added = [after.loss - before.loss for before, after in zip(base.passages, treated.passages, strict=True)]
    count, total = len(tokens), sum(tokens)
    mean = fsum(added) / total
    squares = fsum((one - mean * size) ** 2 for one, size in zip(added, tokens, strict=True))
    half = float(stdtrit(count - 1, 0.975)) * sqrt(count / (count - 1) * squares) / total
    return Ratio(exp(mean), exp(mean - half), exp(mean + half))


def is_damaged(ratio: Ratio, *, limit: float = LIMIT) -> bool:
    """By the ratio itself, not by its interval: the text is the same, so there is little chance in it."""
    return ratio.value > limit
