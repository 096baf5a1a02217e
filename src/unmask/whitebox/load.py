"""Opening a transformers chat model: what can be refused is refused before a weight is read.

A model is a folder, a hub name or a GGUF file. Its weights are bfloat16 on a GPU and float32 on a CPU.

Which model is this? A hash of samples of its weights, the same on a GPU in bfloat16 as on a CPU in float32.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from unmask.errors import FatalModelError, MissingError, UsageError
from unmask.files import read_environment
from unmask.records import Record
from unmask.whitebox.adapter import Adapter, find_adapter, wrap_model
from unmask.whitebox.chat import Chat
from unmask.whitebox.steer import Steer, add_steering_hooks, find_steer, load_steering, refuse_other_shape

NEEDED_PACKAGES = ("torch", "transformers", "peft", "safetensors", "gguf")
SPARE = 1.15
"""What a model takes in memory, as a multiple of its weights, before the first token: buffers, the runtime itself."""
DEVICE_VARIABLE = "UNMASK_HF_DEVICE"

_TREATMENT = re.compile(r"\+(adapter|steer)=")


class ModelSource(Record, frozen=True):
    """Where a model comes from: `folder` is a folder or a hub name, `file` a GGUF file in it. With `trained_to_read`
    the adapter is for the questions of a judge, and all other answers are the model's own."""

    folder: str
    file: str | None = None
    adapter: Adapter | None = None
    steer: Steer | None = None
    trained_to_read: bool = False
    shipped: bool = False
    """Whether the adapter came with unmask."""

    @property
    def shown(self) -> str:
        return str(Path(self.folder) / self.file) if self.file else self.folder

    @property
    def recorded(self) -> str:
        """What answers say of their model: its name without the way to it, adapter and direction by hash."""
        name = self.shown if self.shown == self.folder and not Path(self.folder).is_dir() else Path(self.shown).name
        adapter = f"adapter@{self.adapter.hash}" if self.adapter else None
        return "+".join(part for part in (name, adapter, self.steer and self.steer.recorded) if part)


class CheckedModel(NamedTuple):
    """A model that can be loaded: its configuration and tokenizer are here, its weights are not."""

    source: ModelSource
    config: Any
    chat: Chat
    device: str


def parse_source(name: str) -> ModelSource:
    """The model a user wrote down: `PATH`, with `+adapter=DIR` and `+steer=FILE@COEFFICIENT` after it, in any order.

    A path that is not here is taken for a hub name.
    """
    path, *treated = _TREATMENT.split(name)
    treatments = list(zip(treated[::2], treated[1::2], strict=True))
    kinds = [kind for kind, _ in treatments]
    if len(set(kinds)) < len(kinds):
        raise UsageError(f"{name} has two of +{kinds[0]}=", advice=f"hf:{path}+{kinds[0]}={treatments[0][1]}")
    place, folder, file = Path(path).expanduser(), path, None
    if place.is_dir():
        folder = str(place)
    elif place.is_file():
        if place.suffix.lower() != ".gguf":
            raise UsageError(f"{place} is neither a model folder nor a GGUF file", advice="Give the folder it lies in")
        folder, file = str(place.parent), place.name
    elif path.startswith(("/", ".", "~")) or place.suffix.lower() == ".gguf" or path.count("/") > 1:
        raise MissingError(f"there is no model at {place}", advice="Give a model folder, a GGUF file or a hub name")
    wanted = dict(treatments)
    adapter = find_adapter(wanted["adapter"]) if "adapter" in wanted else None
    steer = find_steer(wanted["steer"]) if "steer" in wanted else None
    return ModelSource(folder, file, adapter, steer)


def require_extra() -> None:
    """Refuse before anything is loaded where a package is missing."""
    missing = [name for name in NEEDED_PACKAGES if importlib.util.find_spec(name) is None]
    if missing:
        raise MissingError(f"hf: models need {', '.join(missing)}", advice="pip install 'unmask[whitebox]'")


@contextlib.contextmanager
def waiting_without_spinning() -> Iterator[None]:
    """What loads OpenMP in here has it wait without spinning: it reads these variables once, when it is loaded.

    Spinning threads take the processor from those they wait for. On a busy machine two threads that slept wrote 16
    replies a minute, two that span 5, and one 10 (SmolLM2 135M in llama.cpp).
    """
    wanted = {"OMP_WAIT_POLICY": "passive", "GOMP_SPINCOUNT": "0"}
    set_here = {key: value for key, value in wanted.items() if key not in os.environ}
    os.environ.update(set_here)
    try:
        yield
    finally:
        for key in set_here:
            del os.environ[key]


def choose_device() -> str:
    """From UNMASK_HF_DEVICE, otherwise a GPU where there is one."""
    with waiting_without_spinning():
        import torch
    asked = os.environ.get(DEVICE_VARIABLE, "").strip()
    if not asked:
        return "cuda" if torch.cuda.is_available() else "cpu"
    try:
        torch.empty(1, device=asked)
    except (RuntimeError, AssertionError) as error:
        reason = _first_line(error)
        raise MissingError(
            f"{DEVICE_VARIABLE}={asked} cannot be used: {reason}", advice="cuda, cuda:1 or cpu"
        ) from None
    return asked


def check_model(source: ModelSource, *, template: str | None = None) -> CheckedModel:
    """Read configuration and tokenizer and see that the weights would fit. `template` is used where the tokenizer has
    none."""
    device = choose_device()
    config, tokenizer = _load_config_and_tokenizer(source)
    tokenizer.chat_template = getattr(tokenizer, "chat_template", None) or template
    if not tokenizer.chat_template:
        raise MissingError(
            f"{source.shown} has no chat template, so it cannot be sent a conversation",
            advice="Use an instruction-tuned model, or add chat_template.jinja to its folder",
        )
    text = config.get_text_config()
    if source.steer:
        refuse_other_shape(load_steering(Path(source.steer.file)).metadata, config)
    # Only attention with keys and values can be written in rows of different length, as here.
    odd = set(getattr(text, "layer_types", None) or ()) - {"full_attention", "sliding_attention"}
    if odd or config.model_type in ("mamba", "mamba2", "rwkv", "falcon_mamba"):
        raise UsageError(
            f"{source.shown} has layers of kind {', '.join(sorted(odd)) or config.model_type}",
            advice="hf: runs models of full or sliding attention; serve others and use vllm/NAME",
        )
    if device.startswith("cpu") or source.file:  # a GGUF file is unpacked in main memory
        _refuse_too_large(source, config)
    context = int(getattr(text, "max_position_embeddings", None) or 4096)
    return CheckedModel(source, config, Chat(tokenizer, name=source.shown, context=context), device)


def load_model(checked: CheckedModel, *, full_precision: bool = False) -> Any:
    """The model itself, ready to answer, with the adapter and the direction it was asked for with."""
    source, model = checked.source, load_base_model(checked, full_precision=full_precision)
    if source.adapter:
        # Not merged: in bfloat16 a merged adapter would lose what is small.
        model = wrap_model(model, source.adapter).get_base_model().eval().requires_grad_(False)
    if source.steer:  # the hooks stay: the model is this source's own, and steps are recorded with them in place
        add_steering_hooks(model, load_steering(Path(source.steer.file)), source.steer.coefficient)
    return model


def load_base_model(checked: CheckedModel, *, full_precision: bool = False) -> Any:
    """The model without adapter or direction. On a GPU its weights are in half precision unless told otherwise."""
    import torch
    from transformers import AutoModelForCausalLM

    source, half = checked.source, not full_precision and not checked.device.startswith("cpu")
    # Weights that are pickled may run code. The hub is not asked to convert those of a repository either.
    os.environ.setdefault("DISABLE_SAFETENSORS_CONVERSION", "1")
    options = {**_reading_options(source), **({} if source.file else {"use_safetensors": True})}
    try:
        with silence_transformers():
            model = AutoModelForCausalLM.from_pretrained(
                source.folder, config=checked.config, dtype=torch.bfloat16 if half else torch.float32, **options
            ).to(checked.device)
    except torch.OutOfMemoryError as error:
        raise FatalModelError(f"{source.shown} does not fit into the memory of {checked.device}: {error}") from None
    except Exception as error:  # readers of weight files have exceptions of their own
        raise FatalModelError(
            f"transformers cannot load {source.shown}: {_first_line(error)}",
            advice="Weights have to be safetensors or GGUF. Files may also be incomplete, or of an architecture that is"
            " newer than the installed transformers",
        ) from None
    return model.eval().requires_grad_(False)


# --- what is refused --------------------------------------------------------------------------------------


def _reading_options(source: ModelSource) -> dict[str, Any]:
    """How transformers reads any file of a model: code that came with it is never run, and nobody is asked to allow it.
    The token is for names on the hub."""
    token = read_environment().get("HF_TOKEN", "").strip() or None
    return {"trust_remote_code": False, "token": token, **({"gguf_file": source.file} if source.file else {})}


def _load_config_and_tokenizer(source: ModelSource) -> tuple[Any, Any]:
    from transformers import AutoConfig, AutoTokenizer

    options = _reading_options(source)
    try:
        with silence_transformers():
            config = AutoConfig.from_pretrained(source.folder, **options)
            return config, AutoTokenizer.from_pretrained(source.folder, **options)
    except Exception as error:  # as above; a folder that is no model fails in many ways
        advice = "Give a folder with config.json and tokenizer files, a GGUF file, or a hub name you can reach"
        if "trust_remote_code" in str(error):
            advice = "hf: runs no code that came with a model; serve it where that is safe, and use vllm/NAME"
        raise MissingError(f"transformers cannot open {source.shown}: {_first_line(error)}", advice=advice) from None


def _refuse_too_large(source: ModelSource, config: Any) -> None:
    """Refuse weights for which main memory is too small: the system would end the process without a word. A GPU says
    so itself."""
    import torch
    from transformers import AutoModelForCausalLM

    try:
        with silence_transformers(), torch.device("meta"):  # counted without making any
            empty = AutoModelForCausalLM.from_config(config, trust_remote_code=False)
    except (ValueError, RuntimeError, KeyError, ImportError, AttributeError) as error:
        raise UsageError(f"transformers has no chat model for {source.shown}: {_first_line(error)}") from None
    need, have = 4 * sum(weight.numel() for weight in empty.parameters()) * SPARE, free_memory()
    if have is not None and need > have:
        needs, has = (f"{size / 2**30:.1f} GiB" for size in (need, have))
        raise MissingError(
            f"{source.shown} needs about {needs}, main memory has {has} free",
            advice="Use a smaller model or a larger machine; gguf:PATH runs quantised files in less",
        )


def free_memory() -> int | None:
    """Bytes of main memory this process may still take, or `None` where the system does not say."""
    available: list[int] = []
    with contextlib.suppress(OSError, ValueError, IndexError):
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        available.append(next(int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")))
    with contextlib.suppress(OSError, ValueError):
        limit = int(Path("/sys/fs/cgroup/memory.max").read_text(encoding="ascii"))
        used = int(Path("/sys/fs/cgroup/memory.current").read_text(encoding="ascii"))
        pages = Path("/sys/fs/cgroup/memory.stat").read_text(encoding="ascii").splitlines()
        reclaimable = dict(line.split(" ", 1) for line in pages).get("inactive_file", "0")
        # File pages count as used in a container and are given up when they are needed.
        available.append(limit - used + int(reclaimable))
    return min(available, default=None)


@contextlib.contextmanager
def silence_transformers() -> Iterator[None]:
    """Progress bars and advice of transformers would run through our own display."""
    from transformers import modeling_gguf_pytorch_utils as unpacking
    from transformers.utils import logging

    bar = unpacking.tqdm  # this one bar does not ask whether bars are wanted
    unpacking.tqdm = lambda tensors, **_: tensors
    level, bars = logging.get_verbosity(), logging.is_progress_bar_enabled()
    logging.set_verbosity_error()
    logging.disable_progress_bar()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        unpacking.tqdm = bar
        logging.set_verbosity(level)
        if bars:
            logging.enable_progress_bar()


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or type(error).__name__).splitlines()[0][:300]


SAMPLES = 64
"""Values taken from each weight. Training changes nearly all of them, so a few of each are enough to tell."""


def model_hash(model: Any) -> str:
    """Names the weights. An adapter that lies on them is not part of them."""
    import torch

    base_model = model.get_base_model() if hasattr(model, "get_base_model") else model
    state = hashlib.blake2b(digest_size=8)
    named = base_model.named_parameters()
    # Under the names they have without PEFT, which puts a layer around those it adapts.
    weights = [(name.replace(".base_layer", ""), weight) for name, weight in named if ".lora_" not in name]
    for name, weight in sorted(weights):
        flat = weight.detach().reshape(-1)
        places = torch.linspace(0, flat.numel() - 1, min(SAMPLES, flat.numel()), dtype=torch.float64).round().long()
        taken = flat[places.to(flat.device)].to(torch.bfloat16).cpu().view(torch.int16).tolist()
        state.update(f"{name} {tuple(weight.shape)} {taken}\n".encode())
    return state.hexdigest()


def template_hash(chat: Any) -> str:
    """Names the chat template: the same weights behave differently behind another."""
    template = str(getattr(chat.tokenizer, "chat_template", None) or "")
    return hashlib.blake2b(template.encode(), digest_size=8).hexdigest()
