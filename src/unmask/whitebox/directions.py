"""Reading a direction of honesty out of a model: from pairs that differ in their instruction, layer by layer.

Facts and instructions that directions are read from are not those by which a layer is chosen.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import torch
from msgspec.structs import replace

from unmask import __version__
from unmask.errors import FatalModelError
from unmask.whitebox.activations import (
    compute_activations,
    layers_of,
    pad_tokens,
    refuse_missing_layers,
    tokenise,
)
from unmask.whitebox.contrast import (
    UNSEEN,
    ContrastPair,
    Fact,
    answer_fact,
    build_pairs,
    facts_hash,
    instructions_hash,
    split_facts,
)
from unmask.whitebox.load import model_hash, template_hash
from unmask.whitebox.steer import LayerScore, SignCheck, Steering, SteeringRecord, steered

if TYPE_CHECKING:
    from unmask.whitebox.chat import Chat

SIGN_CHECK_FACTS = 32
"""Held-out facts by which it is seen what pushing does."""
ANSWERS_PER_PASS = 8
"""Answers scored at once: the scores of every word for every token have to fit."""

Report = Callable[[str], None]


def read_steering(
    model: Any,
    chat: Chat,
    facts: Sequence[Fact],
    *,
    name: str,
    layers: tuple[int, ...] | None = None,
    seed: int = 0,
    report: Report = lambda _: None,
) -> Steering:
    """A direction for every layer, the best of them chosen (among `layers`, where given), and a look at what pushing
    along it does."""
    count = len(layers_of(model))
    refuse_missing_layers(layers or (), count=count)
    considered = layers or tuple(range(count))
    learnt, held_out = split_facts(facts, seed=seed)
    report(f"reading {len(learnt)} pairs")
    seen = _compute_both_sides(model, chat, build_pairs(learnt))
    report(f"reading {len(held_out)} held-out pairs")
    unseen = _compute_both_sides(model, chat, build_pairs(held_out, instructions=UNSEEN))
    vectors = compute_directions(*seen)
    scores = tuple(score for score in score_layers(vectors, *unseen) if score.layer in considered)
    best = max(scores, key=lambda score: (score.right, score.gap))
    metadata = SteeringRecord(
        version=__version__,
        model=name,
        model_hash=model_hash(model),
        template_hash=template_hash(chat),
        facts_hash=facts_hash(facts),
        instructions_hash=instructions_hash(),
        layers=count,
        size=vectors.shape[1],
        considered=considered,
        layer=best.layer,
        seed=seed,
        learnt=len(learnt),
        held_out=len(held_out),
        scores=scores,
    )
    report("checking what pushing does")
    steering = Steering(metadata, vectors)
    sign = check_sign(model, chat, steering, held_out[:SIGN_CHECK_FACTS])
    return Steering(replace(metadata, sign=sign), vectors)


def compute_directions(honest: Any, untruthful: Any) -> Any:
    """From `[pair, layer, size]` the mean way from untruthful to honest in each layer."""
    means = (honest - untruthful).mean(dim=0)
    lengths = means.norm(dim=1)
    if not bool(torch.isfinite(lengths).all()) or bool((lengths == 0).any()):
        bad = next(layer for layer, length in enumerate(lengths.tolist()) if not 0 < length < float("inf"))
        raise FatalModelError(
            f"layer {bad} does not tell honest from untruthful instructions at all",
            advice="The chat template may leave the system prompt out, or the weights may be damaged",
        )
    return means


def draw_random_steering(honest: Steering, *, seed: int) -> Steering:
    """Random directions in the place of honest ones: as long in every layer, and pushed in the same layers."""
    source = torch.Generator().manual_seed(seed)
    drawn = torch.randn(honest.vectors.shape, generator=source, dtype=torch.float32)
    lengths = honest.vectors.norm(dim=1, keepdim=True) / drawn.norm(dim=1, keepdim=True)
    return Steering(replace(honest.metadata, scores=(), sign=None, random=seed), drawn * lengths)


def score_layers(vectors: Any, honest: Any, untruthful: Any) -> list[LayerScore]:
    """How well each layer's direction tells held-out pairs apart. Pairs and not single answers: what an answer is about
    moves it further along any direction than how it is meant."""
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    along = torch.einsum("pls,ls->pl", honest - untruthful, unit)
    right = (along > 0).sum(dim=0).tolist()
    gaps = (along.mean(dim=0) / along.std(dim=0).clamp_min(1e-12)).tolist()
    return [LayerScore(layer, hits, len(along), gap) for layer, (hits, gap) in enumerate(zip(right, gaps, strict=True))]


def _compute_both_sides(model: Any, chat: Chat, pairs: Sequence[ContrastPair]) -> tuple[Any, Any]:
    honest = compute_activations(model, chat, [pair.honest for pair in pairs])
    return honest, compute_activations(model, chat, [pair.untruthful for pair in pairs])


# --- what pushing does ------------------------------------------------------------------------------------


def check_sign(model: Any, chat: Chat, steering: Steering, facts: Sequence[Fact]) -> SignCheck:
    """What pushing does. The model is left as it was."""
    margins = []
    for coefficient in (-1.0, 0.0, 1.0):
        with steered(model, steering, coefficient):
            margins.append(truth_margin(model, chat, facts))
    away, still, towards = margins
    return SignCheck(away, still, towards, facts=len(facts))


def truth_margin(model: Any, chat: Chat, facts: Sequence[Fact]) -> float:
    """By how many nats a token the true answer is likelier than the untrue one, for a model told to be untruthful."""
    told = [(fact, UNSEEN[place % len(UNSEEN)].untruthful) for place, fact in enumerate(facts)]
    true = [answer_fact(fact, fact.answer, instruction=instruction) for fact, instruction in told]
    untrue = [answer_fact(fact, fact.falsehood, instruction=instruction) for fact, instruction in told]
    tokens = [tokenise(chat, conversation) for conversation in (*true, *untrue)]
    means = []  # of the log-likelihoods of each answer's tokens
    for start in range(0, len(tokens), ANSWERS_PER_PASS):
        group = tokens[start : start + ANSWERS_PER_PASS]
        ids = pad_tokens(group, model.device)
        with torch.inference_mode():
            odds = model(input_ids=ids, use_cache=False).logits[:, :-1].float().log_softmax(dim=-1)
            token_likelihoods = odds.gather(2, ids[:, 1:, None])[:, :, 0]
        for row, answered in enumerate(group):
            means.append(token_likelihoods[row, answered.places.start - 1 : answered.places.stop - 1].mean())
    likelihoods = torch.stack(means).cpu()
    margin = (likelihoods[: len(facts)] - likelihoods[len(facts) :]).mean().item()
    if math.isnan(margin):
        raise FatalModelError("the model's scores are not numbers", advice="Its weights are damaged, or overflow")
    return float(margin)
