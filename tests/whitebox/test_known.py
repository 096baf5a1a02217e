"""Which facts a model knows: the probability of the words that make an answer true."""

from __future__ import annotations

import math

import pytest

pytest.importorskip("torch", reason="needs the extra whitebox")

import torch

from tests.models.local import tiny_llama
from unmask.errors import FatalModelError
from unmask.models.local.inside import open_whitebox
from unmask.records import Message, Role
from unmask.whitebox.contrast import Fact
from unmask.whitebox.known import measure_knowledge

MOON = Fact("moon", "sky", "Is the moon far?", "It is far away.", "It is near by.")
SNOW = Fact("snow", "weather", "What colour is snow?", "Snow is white.", "Snow is green.")
DIFFERENCES = {"moon": ("It is ", "far awa"), "snow": ("Snow is ", "white")}
"""Of each answer what it shares with its falsehood, and where the two differ. The tokens of this model are letters."""


@pytest.fixture(scope="module")
def opened(tmp_path_factory):
    folder = tiny_llama.saved(tmp_path_factory.mktemp("known") / "model")
    with open_whitebox(f"hf:{folder}") as model:
        yield model


def predict_next(model, tokens):
    with torch.inference_mode():
        return model(input_ids=torch.tensor([tokens], device=model.device)).logits[0, -1].double().softmax(dim=-1)


@pytest.mark.parametrize(("fact", "example"), [(MOON, SNOW), (SNOW, MOON)])
def test_a_probability_is_the_product_of_those_of_the_tokens(opened, fact, example):
    """Worked out token by token, for one fact alone, behind the other one as an example."""
    measured = measure_knowledge(opened.model, opened.chat, (MOON, SNOW), seed=0)
    shared, different = DIFFERENCES[fact.id]
    messages = (
        Message(Role.USER, example.question),
        Message(Role.ASSISTANT, example.answer),
        Message(Role.USER, fact.question),
    )
    tokens = opened.chat.encode(opened.chat.render_prompt(messages, thinks=False) + shared)
    expected = 1.0
    for token in opened.chat.encode(different):
        expected *= predict_next(opened.model, tokens)[token].item()
        tokens = [*tokens, token]
    assert 0 < expected < 1
    assert measured[fact.id] == pytest.approx(expected, rel=1e-4)


def test_scores_that_are_no_numbers_are_an_error(opened):
    """Damaged weights are not taken for ignorance."""
    weight = opened.model.lm_head.weight
    before = weight.detach().clone()
    try:
        with torch.no_grad():
            weight.fill_(math.nan)
        with pytest.raises(FatalModelError, match="not numbers"):
            measure_knowledge(opened.model, opened.chat, (MOON, SNOW), seed=0)
    finally:
        with torch.no_grad():
            weight.copy_(before)
