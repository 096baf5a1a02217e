"""Random models of a few thousand weights, saved as a user's folder would be, and what they must say."""

from __future__ import annotations

from pathlib import Path
from typing import Any

TEMPLATE = (
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
MARKS = ("<|system|>", "<|user|>", "<|assistant|>", "<|end|>")
CONTEXT = 256


def tokenizer(*, template: str | None = TEMPLATE) -> Any:
    """One token per byte, and one per mark of the template."""
    from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    made = Tokenizer(models.BPE(vocab={letter: place for place, letter in enumerate(letters)}, merges=[]))
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    made.add_special_tokens([AddedToken(mark, special=True) for mark in MARKS])
    wrapped = PreTrainedTokenizerFast(tokenizer_object=made, clean_up_tokenization_spaces=False)
    wrapped.chat_template = template
    return wrapped


def config(kind: str = "llama", **changes: Any) -> Any:
    """A model with heads that share keys, since that is where attention goes ways of its own."""
    import transformers

    sizes = {
        "vocab_size": 256 + len(MARKS),
        "hidden_size": 32,
        "intermediate_size": 48,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": CONTEXT,
        "initializer_range": 0.5,  # far from uniform, so that a wrong place or a wrong mask changes the answer
        "bos_token_id": None,
        "eos_token_id": None,
        "pad_token_id": None,
    }
    classes = {
        "llama": transformers.LlamaConfig,
        "mistral": transformers.MistralConfig,
        "qwen2": transformers.Qwen2Config,
        "qwen3": transformers.Qwen3Config,
    }
    return classes[kind](**{**sizes, **changes})


def model(kind: str = "llama", **changes: Any) -> Any:
    import torch
    from transformers import AutoModelForCausalLM

    torch.set_num_threads(1)  # threads cost more than these sizes gain
    torch.manual_seed(7)
    return AutoModelForCausalLM.from_config(config(kind, **changes)).eval()


def saved(folder: Path, *, template: str | None = TEMPLATE, kind: str = "llama", **changes: Any) -> Path:
    model(kind, **changes).save_pretrained(folder)
    tokenizer(template=template).save_pretrained(folder)
    return folder


def likeliest(made: Any, prompt: list[int], written: list[int]) -> list[int]:
    """The likeliest token at every place of an answer, worked out in one go, without cache, mask or batch.

    An answer at temperature 0 is right exactly if it is its own list of likeliest tokens.
    """
    import torch

    with torch.inference_mode():
        scores = made(input_ids=torch.tensor([prompt + written]), use_cache=False).logits[0]
    found: list[int] = scores[len(prompt) - 1 : -1].argmax(dim=-1).tolist()
    return found
