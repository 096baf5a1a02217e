"""Steering: a direction added to the residual stream while a model reads and writes. The file, and its use.

A file holds a vector for every layer, as long as the way from untruthful to honest is there. A push is shared among
the layers with weights that add up to one, so a coefficient of 1 is one such way in all, and a positive one is towards
honesty.
"""

from __future__ import annotations

import contextlib
import hashlib
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from unmask.errors import FatalModelError, MissingError, UsageError
from unmask.files import write_atomically
from unmask.records import Record

KEY = "unmask"
"""Where in the file's metadata its `SteeringRecord` is."""


class LayerScore(Record, frozen=True, omit_defaults=False):
    """How well a layer's direction tells held-out answers given honestly from the same ones given untruthfully.

    Of `of` pairs `right` have the honest one further along the direction; `gap` is how much further, on average, in
    standard deviations of that distance.
    """

    layer: int
    right: int
    of: int
    gap: float

    @property
    def accuracy(self) -> float:
        return self.right / self.of


class SignCheck(Record, frozen=True, omit_defaults=False):
    """What pushing does. Held-out facts, under an instruction to be untruthful: by how many nats a token the true
    answer is likelier than the untrue one, on average, with the coefficients -1, 0 and 1."""

    away: float
    still: float
    towards: float
    facts: int

    @property
    def agrees(self) -> bool:
        return self.towards > self.away


class SteeringRecord(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Everything that made a steer file. Without a date: the same command gives the same bytes."""

    version: str
    """Of unmask."""
    model: str
    model_hash: str
    template_hash: str
    facts_hash: str
    instructions_hash: str
    layers: int
    """Of the model."""
    size: int
    considered: tuple[int, ...]
    """Layers among which one was chosen."""
    layer: int
    seed: int
    learnt: int
    """Pairs the directions were read from."""
    held_out: int
    scores: tuple[LayerScore, ...]
    sign: SignCheck | None = None
    random: int | msgspec.UnsetType = msgspec.UNSET
    """Where the vectors are no directions of honesty but random ones of the same lengths: their seed. Such a file has
    no scores and no sign."""


class Steering(NamedTuple):
    """`vectors[layer]` in float32."""

    metadata: SteeringRecord
    vectors: Any


class Steer(Record, frozen=True):
    """A steer file as a model's name gives it. `hash` is over its bytes, so that a run says what it was made with."""

    file: str
    hash: str
    coefficient: float

    @property
    def recorded(self) -> str:
        return f"steer@{self.hash}*{self.coefficient:g}"


def layer_weights(layer: int, *, layers: int) -> tuple[float, ...]:
    """The share of a push that each layer has: a bell curve over their depth around the chosen one, with a standard
    deviation of a tenth of the layers."""
    width = max(1.0, layers / 10)
    weights = [math.exp(-(((place - layer) / width) ** 2) / 2) for place in range(layers)]
    weights = [weight if weight > 1e-3 else 0.0 for weight in weights]
    return tuple(weight / math.fsum(weights) for weight in weights)


# --- applying ---------------------------------------------------------------------------------------------


@contextlib.contextmanager
def steered(model: Any, steering: Steering, coefficient: float) -> Iterator[Any]:
    """The model, pushed while this is open; afterwards it is what it was, whatever happened inside."""
    with contextlib.ExitStack() as exits:
        for handle in add_steering_hooks(model, steering, coefficient):
            exits.callback(handle.remove)
        yield model


def add_steering_hooks(model: Any, steering: Steering, coefficient: float) -> list[Any]:
    """Hooks that add the direction to every token, for as long as they stay; none for a coefficient of 0."""
    from unmask.whitebox.activations import layers_of
    from unmask.whitebox.load import model_hash

    metadata, weights_hash = steering.metadata, model_hash(model)
    if weights_hash != metadata.model_hash:  # a direction of another model is noise at best
        raise _other_model_error(metadata, f"its weights were {metadata.model_hash}, these are {weights_hash}")
    weights = layer_weights(metadata.layer, layers=metadata.layers)
    handles = []
    for module, weight, vector in zip(layers_of(model), weights, steering.vectors, strict=True):
        if coefficient and weight:
            shift = (coefficient * weight * vector).to(device=model.device, dtype=model.dtype)

            def add(_module: Any, _inputs: Any, output: Any, shift: Any = shift) -> Any:
                return (output[0] + shift, *output[1:]) if isinstance(output, tuple) else output + shift

            handles.append(module.register_forward_hook(add))
    return handles


def refuse_other_shape(metadata: SteeringRecord, config: Any) -> None:
    """What the configuration alone can tell, before a weight is read."""
    text = config.get_text_config()
    if (text.num_hidden_layers, text.hidden_size) != (metadata.layers, metadata.size):
        had = f"{metadata.layers} layers of size {metadata.size}"
        has = f"{text.num_hidden_layers} of size {text.hidden_size}"
        raise _other_model_error(metadata, f"that had {had}, this has {has}")


def _other_model_error(metadata: SteeringRecord, reason: str) -> FatalModelError:
    return FatalModelError(
        f"the steer file was made from another model, {metadata.model}: {reason}",
        advice="Make one for this model with `unmask mitigate steer`.",
    )


# --- the file ---------------------------------------------------------------------------------------------


def refuse_existing(path: Path) -> None:
    """Runs name a steer file by its hash: one that is there is not written over."""
    if path.exists():
        raise UsageError(f"{path} is there already", advice="Give another --out, or remove it")
    if not path.parent.is_dir():
        raise UsageError(f"the folder {path.parent} is not there", advice=f"mkdir -p {path.parent}")


def save_steering(steering: Steering, path: Path) -> None:
    """The file is whole or not there."""
    from safetensors.torch import save as encoded

    refuse_existing(path)
    text = msgspec.json.encode(steering.metadata).decode()
    write_atomically(path, encoded({"vectors": steering.vectors.contiguous()}, {KEY: text}))


def find_steer(text: str) -> Steer:
    """`FILE@COEFFICIENT` as it is in a model's name. The file is not opened yet, but for its hash."""
    file, at, number = text.rpartition("@")
    try:
        coefficient = float(number)
    except ValueError:
        coefficient = math.nan
    if not at or not math.isfinite(coefficient):
        raise UsageError(f"+steer={text} has no coefficient", advice=f"Write +steer={file or text}@1")
    path = Path(file).expanduser()
    if not path.is_file():
        raise MissingError(f"there is no steer file {path}", advice="`unmask mitigate steer` makes one.")
    return Steer(str(path), hashlib.blake2b(path.read_bytes(), digest_size=8).hexdigest(), coefficient)


def load_steering(path: Path) -> Steering:
    from safetensors import SafetensorError, safe_open

    try:
        with safe_open(path, framework="pt") as file:
            metadata = msgspec.json.decode((file.metadata() or {})[KEY], type=SteeringRecord)
            vectors = file.get_tensor("vectors").float()
        if tuple(vectors.shape) != (metadata.layers, metadata.size) or not bool(vectors.isfinite().all()):
            raise ValueError(f"its vectors are not {metadata.layers} of {metadata.size} numbers")
    except (SafetensorError, KeyError, msgspec.DecodeError, ValueError, RecursionError, OSError) as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise UsageError(
            f"{path} is no steer file: {reason}", advice="Give a file that unmask mitigate steer has written"
        ) from None
    return Steering(metadata, vectors)
