"""What layers hold: the same numbers as transformers gives itself, whatever is read beside, and no hook left behind."""

from __future__ import annotations

import math

import pytest

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")

from tests.models.local import tiny_llama  # noqa: E402
from unmask.errors import FatalModelError, RequestRefusedError  # noqa: E402
from unmask.records import Message  # noqa: E402
from unmask.whitebox.activations import (  # noqa: E402
    capture_activations,
    compute_activations,
    layers_of,
    tokenise,
)
from unmask.whitebox.chat import Chat  # noqa: E402
from unmask.whitebox.contrast import AnsweredChat  # noqa: E402

SAID = [
    AnsweredChat((Message("user", "Is ice cold?"),), "Yes, it is."),
    AnsweredChat((Message("system", "Be brief."), Message("user", "What do bees make?")), "Honey"),
    AnsweredChat((Message("user", "x" * 80),), "A"),
    AnsweredChat((Message("user", "And now?"),)),
]


@pytest.fixture(scope="module")
def chat():
    return Chat(tiny_llama.tokenizer(), name="tiny")


def hooks(model) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


@pytest.mark.parametrize("kind", ["llama", "qwen2", "mistral"])
def test_activations_are_those_transformers_gives_itself(chat, kind):
    """One conversation at a time, without filling: `output_hidden_states` of transformers is the reference."""
    model = tiny_llama.model(kind, num_hidden_layers=3)
    found = compute_activations(model, chat, SAID)
    assert found.shape == (4, 3, 32)
    for said, row in zip(SAID, found, strict=True):
        tokens = tokenise(chat, said)
        with torch.inference_mode():
            states = model(input_ids=torch.tensor([tokens.all]), output_hidden_states=True).hidden_states
        for layer in (0, 1):  # the last one comes normed
            wanted = states[layer + 1][0, -max(1, tokens.answer) :].mean(dim=0)
            torch.testing.assert_close(row[layer], wanted, rtol=1e-4, atol=1e-4)


def test_no_hook_stays_after_an_error():
    """The error happens while the hooks are there."""
    model = tiny_llama.model()
    with pytest.raises(ZeroDivisionError), capture_activations(model, [0, 1]):
        _ = (1 if hooks(model) == 2 else None) / 0
    assert hooks(model) == 0


def test_what_is_watched_can_be_gone_back_through():
    """Training needs the gradient of what a layer holds."""
    model = tiny_llama.model()
    with capture_activations(model, [1]) as held:
        model(input_ids=torch.tensor([[1, 2, 3]]))
    held[1].sum().backward()
    assert model.model.layers[0].mlp.up_proj.weight.grad.abs().sum() > 0


def test_layers_of_an_adapted_model_are_those_of_the_model():
    """PEFT wraps the model; the layers inside are the same objects."""
    from peft import LoraConfig, get_peft_model

    model = tiny_llama.model()
    inside = list(model.model.layers)
    wrapped = get_peft_model(model, LoraConfig(r=2, target_modules=["q_proj"]))
    assert layers_of(wrapped) == inside


def test_activations_that_are_not_numbers_are_an_error(chat):
    model = tiny_llama.model()
    torch.nn.init.constant_(model.model.layers[1].mlp.down_proj.weight, math.nan)
    with pytest.raises(FatalModelError, match="layer 1 are not numbers"):
        compute_activations(model, chat, SAID)


def test_an_answer_is_cut_to_the_limit_and_a_conversation_that_is_too_long_is_refused(chat):
    assert [tokenise(chat, SAID[0], limit=limit).answer for limit in (4, None)] == [4, len("Yes, it is.")]
    short = Chat(tiny_llama.tokenizer(), name="tiny", context=20)
    with pytest.raises(RequestRefusedError, match=r"a conversation has .* tokens, the context holds 20"):
        tokenise(short, SAID[0])
