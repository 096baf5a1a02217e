"""A model and an adapter as one model folder.

Steering and LoRRA are made for bare models; on such a folder they can be tried on what an adapter has made of a model.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from unmask import __version__
from unmask.errors import UsageError
from unmask.files import write_atomically
from unmask.records import Record
from unmask.whitebox.adapter import merge_adapter
from unmask.whitebox.load import CheckedModel, load_base_model, model_hash, refuse_too_large, silence_transformers

if TYPE_CHECKING:
    from unmask.whitebox.chat import Chat

RECORD_FILE = "merged.json"


class MergeRecord(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What `merged.json` says: where the weights came from, and which they are now."""

    version: str
    model: str
    """As replies name it: the adapter by its hash."""
    before_hash: str
    adapter_hash: str
    model_hash: str


def refuse_merge(out: Path, *, model: str) -> None:
    """What can be said before a model is opened."""
    if "+adapter=" not in model:
        raise UsageError(f"{model} has no adapter to merge", advice="--model hf:PATH+adapter=DIR")
    if "+steer=" in model:
        raise UsageError(
            f"{model} is steered, and a push is not a weight",
            advice="Merge the adapter alone, and write +steer=FILE@COEFFICIENT behind the new folder",
        )
    if out.exists():
        raise UsageError(f"{out} exists already", advice="Give another --out, or remove it")


def merge(checked: CheckedModel, chat: Chat, *, out: Path) -> MergeRecord:
    """Write the folder: weights in float32, tokenizer and chat template. It appears whole or not at all.

    Always in main memory and float32: in bfloat16 what an adapter adds would partly be rounded away.
    """
    source = checked.source
    if source.adapter is None:
        raise UsageError(f"{source.shown} has no adapter to merge")
    on_cpu = CheckedModel(source, config=checked.config, tokenizer=checked.tokenizer, device="cpu")
    refuse_too_large(on_cpu)
    model = load_base_model(on_cpu)
    quantizer = getattr(model, "hf_quantizer", None)
    if quantizer is not None:
        if source.file is None:
            raise UsageError(
                f"{source.shown} has packed weights, and an adapter cannot be added to these without loss",
                advice="Merge into the model they were packed from",
            )
        quantizer.remove_quantization_config(model)  # a GGUF file was unpacked when it was read: packed in name only
    before = model_hash(model)
    model = merge_adapter(model, source.adapter)
    record = MergeRecord(
        version=__version__,
        model=source.recorded,
        before_hash=before,
        adapter_hash=source.adapter.hash,
        model_hash=model_hash(model),
    )
    new_folder = out.with_name(f".{out.name}.new")
    try:
        shutil.rmtree(new_folder, ignore_errors=True)
        with silence_transformers():
            model.save_pretrained(new_folder)
        chat.tokenizer.save_pretrained(new_folder)
        write_atomically(new_folder / RECORD_FILE, msgspec.json.format(msgspec.json.encode(record)))
        new_folder.rename(out)
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror or error}", advice="Give another --out") from None
    finally:
        shutil.rmtree(new_folder, ignore_errors=True)
    return record
