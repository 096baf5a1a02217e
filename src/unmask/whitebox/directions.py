"""Reading a direction of honesty out of a model: from pairs that differ in their instruction, layer by layer.

Facts and instructions that directions are read from are not those by which a layer is chosen.

The loss of a training as a figure.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from unmask import __version__
from unmask.errors import FatalModelError
from unmask.records import Record
from unmask.whitebox.activations import AnsweredChat, Pooling, activations, existing_layers, tokenised
from unmask.whitebox.contrast import UNSEEN, ContrastPair, Fact, facts_hash, instructions_hash, messages, pairs, split
from unmask.whitebox.load import model_hash, template_hash
from unmask.whitebox.steer import (
    DirectionMethod,
    LayerScore,
    Schedule,
    SignCheck,
    Steering,
    SteeringRecord,
    default_width,
    refuse_width,
    steered,
    strongest,
)

if TYPE_CHECKING:
    from unmask.whitebox.chat import Chat

CHECKED = 32
"""Held-out facts by which it is seen what pushing does."""
ROWS = 8
"""Answers scored at once: the scores of every word for every token have to fit."""

Report = Callable[[str], None]


class DirectionPlan(Record, frozen=True, kw_only=True):
    """How a direction is to be read. `layers` are those that may be chosen; `None` means all."""

    method: DirectionMethod = DirectionMethod.DIFFERENCE
    pooling: Pooling = Pooling.MEAN
    layers: tuple[int, ...] | None = None
    schedule: Schedule = Schedule.GAUSSIAN
    width: float | None = None
    seed: int = 0


def read_steering(
    model: Any, chat: Chat, found: Sequence[Fact], *, plan: DirectionPlan, name: str, report: Report = lambda _: None
) -> Steering:
    """A direction for every layer, the best of them chosen, and a look at what pushing along it does."""
    considered = existing_layers(model, plan.layers)
    every = existing_layers(model)
    width = default_width(plan.schedule, len(every)) if plan.width is None else plan.width
    refuse_width(plan.schedule, width, layers=len(every))
    learnt, held = split(found, seed=plan.seed)
    report(f"reading {len(learnt)} pairs")
    seen = _both(model, chat, pairs(learnt), pooling=plan.pooling)
    report(f"reading {len(held)} held-out pairs")
    unseen = _both(model, chat, pairs(held, instructions=UNSEEN), pooling=plan.pooling)
    vectors = directions(*seen, method=plan.method)
    scores = tuple(score for score in scored(vectors, *unseen) if score.layer in considered)
    made = SteeringRecord(
        version=__version__,
        model=name,
        model_hash=model_hash(model),
        template_hash=template_hash(chat),
        facts_hash=facts_hash(found),
        instructions_hash=instructions_hash(),
        layers=len(every),
        size=vectors.shape[1],
        considered=considered,
        method=plan.method,
        pooling=plan.pooling,
        layer=strongest(scores).layer,
        schedule=plan.schedule,
        width=width,
        seed=plan.seed,
        learnt=len(learnt),
        held_out=len(held),
        scores=scores,
    )
    report("checking what pushing does")
    steering = Steering(made, vectors)
    return with_sign(model, chat, steering, held[:CHECKED])


def directions(honest: Any, untruthful: Any, *, method: DirectionMethod) -> Any:
    """From `[pair, layer, size]` a vector for each layer, from untruthful to honest and as long as that way is.

    The principal component is that of the differences as they are, not of their distance from their own mean: it is
    what pairs turned round at random, whose mean is nothing, would give.
    """
    gaps = (honest - untruthful).transpose(0, 1)
    means = gaps.mean(dim=1)
    if method is DirectionMethod.PCA:
        first = torch.linalg.svd(gaps, full_matrices=False).Vh[:, 0]
        along = torch.einsum("ls,ls->l", means, first)
        means = along[:, None] * first
    lengths = means.norm(dim=1)
    if not bool(torch.isfinite(lengths).all()) or bool((lengths == 0).any()):
        bad = next(layer for layer, length in enumerate(lengths.tolist()) if not 0 < length < float("inf"))
        raise FatalModelError(
            f"layer {bad} does not tell honest from untruthful instructions at all",
            advice="the chat template may leave the system prompt out, or the weights may be damaged",
        )
    return means


def scored(vectors: Any, honest: Any, untruthful: Any) -> list[LayerScore]:
    """How well each layer's direction tells held-out pairs apart. Pairs and not single answers: what an answer is about
    moves it further along any direction than how it is meant."""
    unit = vectors / vectors.norm(dim=1, keepdim=True)
    along = torch.einsum("pls,ls->pl", honest - untruthful, unit)
    right = (along > 0).sum(dim=0).tolist()
    gaps = (along.mean(dim=0) / along.std(dim=0).clamp_min(1e-12)).tolist()
    return [LayerScore(layer, hits, len(along), gap) for layer, (hits, gap) in enumerate(zip(right, gaps, strict=True))]


def _both(model: Any, chat: Chat, made: Sequence[ContrastPair], *, pooling: Pooling) -> tuple[Any, Any]:
    honest, untruthful = (
        activations(model, chat, said, layers=existing_layers(model), pooling=pooling)
        for said in (
            [AnsweredChat(pair.honest, pair.answer) for pair in made],
            [AnsweredChat(pair.untruthful, pair.answer) for pair in made],
        )
    )
    return honest, untruthful


# --- what pushing does ------------------------------------------------------------------------------------


def with_sign(model: Any, chat: Chat, steering: Steering, held: Sequence[Fact]) -> Steering:
    """The same with its `SignCheck`. The model is left as it was."""
    from msgspec.structs import replace

    found: list[float] = []
    for coefficient in (-1.0, 0.0, 1.0):
        with steered(model, steering, coefficient):
            found.append(margin(model, chat, held))
    away, still, towards = found
    sign = SignCheck(away=away, still=still, towards=towards, facts=len(held))
    return Steering(replace(steering.made, sign=sign), steering.vectors)


def margin(model: Any, chat: Chat, held: Sequence[Fact]) -> float:
    """By how many nats a token the true answer is likelier than the untrue one, for a model told to be untruthful."""
    asked = [messages(fact, UNSEEN[place % len(UNSEEN)].untruthful) for place, fact in enumerate(held)]
    said = [
        *(AnsweredChat(question, fact.answer) for question, fact in zip(asked, held, strict=True)),
        *(AnsweredChat(question, fact.falsehood) for question, fact in zip(asked, held, strict=True)),
    ]
    likely = torch.cat([_likelihoods(model, chat, said[start : start + ROWS]) for start in range(0, len(said), ROWS)])
    found = (likely[: len(held)] - likely[len(held) :]).mean().item()
    if math.isnan(found):
        raise FatalModelError("the model's scores are not numbers", advice="its weights are damaged, or overflow")
    return float(found)


def _likelihoods(model: Any, chat: Chat, said: Sequence[AnsweredChat]) -> Any:
    """The mean log-likelihood of each answer's tokens."""
    tokens = [tokenised(chat, one) for one in said]
    longest = max(len(one.all) for one in tokens)
    ids = torch.tensor([[*one.all, *[0] * (longest - len(one.all))] for one in tokens], device=model.device)
    with torch.inference_mode():
        odds = model(input_ids=ids, use_cache=False).logits[:, :-1].float().log_softmax(dim=-1)
        told = odds.gather(2, ids[:, 1:, None])[:, :, 0]
    rows = [told[row, one.places.start - 1 : one.places.stop - 1].mean() for row, one in enumerate(tokens)]
    return torch.stack(rows).cpu()


def draw_curve(losses: Sequence[float], path: Path, *, title: str) -> bool:
    """Write the loss of every step as SVG. False, and nothing written, without matplotlib."""
    if importlib.util.find_spec("matplotlib") is None:
        return False
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    figure = Figure(figsize=(6, 3.5), layout="constrained")
    axes = figure.subplots()
    axes.plot(range(1, len(losses) + 1), losses, color="#0b6e99", linewidth=1.5)
    axes.set(title=title, xlabel="step", ylabel="distance to the wanted activations", ylim=(0, None))
    axes.spines[["top", "right"]].set_visible(False)
    with rc_context({"svg.hashsalt": "unmask", "svg.fonttype": "none"}):
        figure.savefig(path, format="svg", metadata={"Date": None})
    return True
