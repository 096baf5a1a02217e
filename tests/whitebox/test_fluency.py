"""Perplexity on neutral text: against plain arithmetic, and paired between two models."""

from __future__ import annotations

from math import exp, log

import numpy as np
import pytest

from unmask.errors import FatalModelError, UsageError
from unmask.whitebox.fluency import (
    Fluency,
    PassageLoss,
    compare_perplexity,
    is_damaged,
    measure_perplexity,
    read_neutral_passages,
)


def made(losses, *, tokens=100, text="t") -> Fluency:
    return Fluency(model="m", text=text, passages=tuple(PassageLoss(tokens, loss * tokens) for loss in losses))


def test_the_text_is_of_our_own_size():
    """About 1,500 words in passages, none of them empty or doubled."""
    passages = read_neutral_passages()
    assert 1400 <= sum(len(passage.split()) for passage in passages) <= 1600
    assert len(set(passages)) == len(passages) >= 10
    assert all(60 <= len(passage.split()) <= 160 for passage in passages)


def test_the_ratio_is_that_of_the_perplexities():
    """Whatever the losses of single passages are."""
    base, treated = made([3.0, 2.5, 4.0, 3.3]), made([3.1, 2.9, 3.9, 3.6])
    found = compare_perplexity(base, treated)
    assert found.value == pytest.approx(treated.perplexity / base.perplexity)
    assert found.low < found.value < found.high


def test_the_interval_holds_the_true_ratio_as_often_as_it_says():
    """Skewed changes of single tokens, and passages that differ by more than these make."""
    rng, held, true = np.random.default_rng(14), 0, 0.1
    for _ in range(runs := 1_000):
        sizes = rng.integers(100, 180, size=14)
        noise = [(rng.exponential(0.5, size=size) - 0.5).sum() for size in sizes]
        added = (true + rng.normal(0, 0.05, size=14)) * sizes + noise
        base, treated = (
            Fluency(model="m", text="t", passages=tuple(map(PassageLoss, map(int, sizes), map(float, losses))))
            for losses in (3.0 * sizes, 3.0 * sizes + added)
        )
        found = compare_perplexity(base, treated)
        held += found.low <= exp(true) <= found.high
    assert 0.93 <= held / runs <= 0.975


@pytest.mark.parametrize(("factor", "limit", "told"), [(1.11, 1.1, True), (1.09, 1.1, False), (1.09, 1.05, True)])
def test_beyond_the_limit_is_damage(factor, limit, told):
    """By the ratio itself."""
    found = compare_perplexity(made([3.0] * 4), made([3.0 + log(factor)] * 4))
    assert is_damaged(found, limit=limit) is told


@pytest.mark.parametrize("other", [made([3.0] * 2, text="x"), made([3.0] * 2, tokens=99), made([3.0])])
def test_other_texts_or_tokens_are_not_compared(other):
    """A ratio of them would mean nothing."""
    with pytest.raises(UsageError, match="different texts or tokens"):
        compare_perplexity(made([3.0] * 2), other)


class Words:
    """A chat of one token a character."""

    def encode(self, text: str) -> list[int]:
        return [ord(letter) % 256 for letter in text]


def test_perplexity_is_the_mean_surprise_of_the_next_token():
    """Against a loop over tokens. A model without numbers is an error, and not a perplexity of NaN."""
    torch = pytest.importorskip("torch", reason="needs the extra whitebox")
    from tests.models.local import tiny_llama

    model = tiny_llama.model()
    found = measure_perplexity(model, Words(), name="m", passages=("The sea is wide.", "A door."))
    assert [one.tokens for one in found.passages] == [15, 6]
    ids = Words().encode("A door.")
    loss = 0.0
    for place in range(1, len(ids)):
        logits = model(input_ids=torch.tensor([ids[:place]])).logits[0, -1]
        loss -= torch.log_softmax(logits.float(), dim=-1)[ids[place]].item()
    assert found.passages[1].loss == pytest.approx(loss, rel=1e-4)
    assert found.perplexity == pytest.approx(exp(sum(one.loss for one in found.passages) / 21))
    model.lm_head.weight.data[:] = float("nan")
    with pytest.raises(FatalModelError, match="no numbers"):
        measure_perplexity(model, Words(), name="m", passages=("A door.",))
