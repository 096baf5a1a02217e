"""Writes a model with an adapter as a model folder of its own: mitigations are trained for bare models."""

from __future__ import annotations

import shutil
from pathlib import Path

from unmask.errors import UsageError
from unmask.models.local.inside import check_local_model
from unmask.whitebox.adapter import wrap_model
from unmask.whitebox.load import load_base_model, model_hash, silence_transformers


def merge(name: str, *, out: Path) -> str:
    """`hf:PATH+adapter=DIR` as the folder `out`: weights, tokenizer and chat template. Returns the hash of the weights.

    In main memory and float32: in bfloat16 part of what an adapter adds would be rounded away. The folder appears whole
    or not at all.
    """
    if out.exists():
        raise UsageError(f"{out} exists already", advice="Give another --out, or remove it")
    if "+adapter=" not in name or "+steer=" in name:
        raise UsageError(f"{name} is not a model with an adapter alone", advice="--model hf:PATH+adapter=DIR")
    checked = check_local_model(name)
    assert checked.source.adapter is not None
    base = load_base_model(checked._replace(device="cpu"))
    if (quantizer := getattr(base, "hf_quantizer", None)) is not None:
        if checked.source.file is None:
            raise UsageError(f"{name} has packed weights", advice="Merge into the model they were packed from")
        quantizer.remove_quantization_config(base)  # transformers has unpacked a GGUF file when it read it
    model = wrap_model(base, checked.source.adapter).merge_and_unload(safe_merge=True)
    out.parent.mkdir(parents=True, exist_ok=True)
    new_folder = out.with_name(f".{out.name}.new")
    shutil.rmtree(new_folder, ignore_errors=True)
    with silence_transformers():
        model.save_pretrained(new_folder)
    checked.chat.tokenizer.save_pretrained(new_folder)
    new_folder.rename(out)
    return model_hash(model)
