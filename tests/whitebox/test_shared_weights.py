"""Weights that are read once: models that share them share nothing else."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")

from tests.models.local import tiny_llama  # noqa: E402
from unmask.models.local.inside import check_local_model  # noqa: E402
from unmask.whitebox.load import load_base_model, model_hash, shared_weights  # noqa: E402


@pytest.fixture(scope="module")
def checked(tmp_path_factory):
    return check_local_model(f"hf:{tiny_llama.saved(tmp_path_factory.mktemp('shared') / 'model')}")[0]


def test_what_is_done_to_a_shared_model_reaches_no_other(checked):
    """Cut layers, hooks, other weights and another configuration stay with the one they were done to."""
    with shared_weights():
        first = load_base_model(checked)
        before = model_hash(first)
        first.model.layers = first.model.layers[:1]
        first.config.num_hidden_layers = 1
        first.model.embed_tokens.register_forward_hook(lambda *_: None)
        first.lm_head.weight = torch.nn.Parameter(torch.zeros_like(first.lm_head.weight))
        first.to(torch.bfloat16)
        second = load_base_model(checked)
        assert model_hash(second) == before
        assert (len(second.model.layers), second.config.num_hidden_layers) == (2, 2)
        assert not second.model.embed_tokens._forward_hooks
        assert second.dtype is torch.float32


def test_shared_models_lie_on_the_same_memory(checked):
    """Only as long as the weights are shared."""
    with shared_weights():
        first, second = load_base_model(checked), load_base_model(checked)
        assert first is not second
        assert first.lm_head.weight.data_ptr() == second.lm_head.weight.data_ptr()
    assert load_base_model(checked).lm_head.weight.data_ptr() != first.lm_head.weight.data_ptr()
