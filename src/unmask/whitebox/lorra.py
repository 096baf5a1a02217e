"""Low-rank representation adaptation (LoRRA): an adapter that moves what the middle layers hold to where honesty would
put it, from facts to a PEFT adapter folder.

For a text, the activations under an instruction to be honest minus those under one to be untruthful are the direction.
The adapter is trained so that, without any instruction, activations move along it. The model without the adapter is its
own reference. Nothing above the last layer that is looked at is ever computed.

The folder appears whole or not at all.
"""

from __future__ import annotations

import importlib.metadata
import math
import platform
import random
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import torch
from msgspec.structs import replace

from unmask import __version__
from unmask.errors import FatalModelError, UsageError
from unmask.files import write_atomically
from unmask.records import Record
from unmask.whitebox.activations import tokenise
from unmask.whitebox.adapter import find_adapter
from unmask.whitebox.chat import Chat
from unmask.whitebox.contrast import (
    INSTRUCTIONS,
    UNSEEN,
    Fact,
    Instruction,
    build_pairs,
    facts_hash,
    instructions_hash,
    split_facts,
)
from unmask.whitebox.load import CheckedModel, load_model, model_hash, template_hash
from unmask.whitebox.lorra_trainer import Example, LorraSettings, Movement, Trainer, target_layers

MOVEMENT_CHECK_FACTS = 64
"""Held-out facts on which it is seen how far activations have moved."""
PACKAGES = ("torch", "transformers", "peft", "safetensors")


class LorraRecord(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What `lorra.json` says: first what the weights depend on, then what came of it. `moved` is of held-out facts,
    `reworded` of the same under instructions that were not trained on. The losses of the steps are of different
    batches, the longest texts first."""

    version: str
    model: str
    model_hash: str
    template_hash: str
    facts_hash: str
    instructions_hash: str
    settings: LorraSettings
    layers: tuple[int, ...]
    versions: dict[str, str]
    evaluated: tuple[str, ...]
    learnt: int
    held_out: int
    losses: tuple[float, ...]
    moved: Movement
    reworded: Movement
    seconds: float
    device: str
    precision: str


def train(
    checked: CheckedModel,
    facts: Sequence[Fact],
    *,
    out: Path,
    settings: LorraSettings = LorraSettings(),  # noqa: B008 (frozen)
    evaluated: tuple[str, ...] = (),
    report: Callable[[str], None] = lambda _: None,
) -> LorraRecord:
    """Train an adapter for a model that was checked and not loaded yet, and write its folder. `evaluated` is only
    written down."""
    if checked.source.adapter or checked.source.steer:
        raise UsageError(
            "the model is treated already; an adapter is trained for a bare model",
            advice="merge_and_unload of PEFT makes a bare model of one with an adapter",
        )
    if out.exists():
        raise UsageError(f"{out} exists already", advice="Give another --out, or remove it")
    layers = target_layers(settings, checked.config.get_text_config().num_hidden_layers)
    learnt, held_out = split_facts(facts, seed=settings.seed)
    examples = _draw_batches(checked.chat, learnt, settings)
    unseen = [
        _build_examples(checked.chat, held_out[:MOVEMENT_CHECK_FACTS], settings, instructions=instructions)
        for instructions in (INSTRUCTIONS, UNSEEN)
    ]
    report(f"loading {checked.source.shown}")
    model = load_model(checked)
    weights_hash, began = model_hash(model), time.monotonic()
    with torch.random.fork_rng():
        trainer = Trainer(model, settings)
        losses = _run_steps(trainer, examples, report=report)
        moved, reworded = map(trainer.measure_movement, unseen)
    record = LorraRecord(
        version=__version__,
        model=checked.source.recorded,
        model_hash=weights_hash,
        template_hash=template_hash(checked.chat),
        facts_hash=facts_hash(facts),
        instructions_hash=instructions_hash(),
        settings=settings,
        layers=layers,
        versions={name: importlib.metadata.version(name) for name in PACKAGES},
        evaluated=evaluated,
        learnt=len(learnt),
        held_out=len(unseen[0]),
        losses=tuple(losses),
        moved=moved,
        reworded=reworded,
        seconds=time.monotonic() - began,
        device=torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else platform.machine(),
        precision=str(model.dtype).removeprefix("torch."),
    )
    _write_folder(trainer, record, out=out, base=checked.source.shown)
    return record


# --- examples -----------------------------------------------------------------------------------------------


def draw_exchanged(facts: Sequence[Fact], settings: LorraSettings) -> frozenset[str]:
    """The facts whose instructions are exchanged: half of them where the settings ask for it, otherwise none."""
    if settings.shuffled is msgspec.UNSET:
        return frozenset()
    names = sorted(fact.id for fact in facts)
    return frozenset(random.Random(f"unmask shuffled {settings.shuffled}").sample(names, len(names) // 2))


def _draw_batches(chat: Chat, facts: Sequence[Fact], settings: LorraSettings) -> list[Example]:
    """As many examples as the steps need, in their order. Each round takes all facts in a new order, so that a fact
    meets other instructions."""
    wanted, exchanged, drawn = settings.steps * settings.batch, draw_exchanged(facts, settings), list[Example]()
    for turn in range(-(-wanted // len(facts))):
        order = random.Random(f"unmask lorra {settings.seed} {turn}").sample(list(facts), len(facts))
        order = order[: wanted - len(drawn)]
        drawn += [
            replace(one, honest=one.untruthful, untruthful=one.honest) if fact.id in exchanged else one
            for fact, one in zip(order, _build_examples(chat, order, settings), strict=True)
        ]
    return order_in_batches(drawn, settings.batch, rng=random.Random(f"unmask lorra {settings.seed}"))


def _build_examples(
    chat: Chat, facts: Sequence[Fact], settings: LorraSettings, *, instructions: Sequence[Instruction] = INSTRUCTIONS
) -> list[Example]:
    examples = []
    for pair in build_pairs(facts, instructions=instructions):
        plain, honest, untruthful = (
            tokenise(chat, conversation, limit=settings.answer_tokens)
            for conversation in (pair.plain, pair.honest, pair.untruthful)
        )
        examples.append(Example(plain.all, honest.all, untruthful.all, plain.answer))
    return examples


def order_in_batches(examples: Sequence[Example], size: int, *, rng: random.Random) -> list[Example]:
    """The same examples in batches of `size` with little filling: sorted by length among eight batches at a time, the
    batches then in random order, after the longest."""
    order: list[Example] = []
    for start in range(0, len(examples), 8 * size):
        near = sorted(examples[start : start + 8 * size], key=lambda example: (len(example.honest), len(example.plain)))
        batches = [near[first : first + size] for first in range(0, len(near), size)]
        full_batches = [batch for batch in batches if len(batch) == size]
        rng.shuffle(full_batches)
        short_batches = [batch for batch in batches if len(batch) < size]
        order += [example for batch in (*full_batches, *short_batches) for example in batch]
    # The longest first: it shows at once whether there is memory enough, and all others fit into what it has taken.
    firsts = range(0, len(order) - size + 1, size)
    longest = max(
        firsts, key=lambda first: max(len(example.honest) for example in order[first : first + size]), default=0
    )
    return order[longest : longest + size] + order[:longest] + order[longest + size :]


# --- training -----------------------------------------------------------------------------------------------


def _run_steps(trainer: Trainer, examples: Sequence[Example], *, report: Callable[[str], None]) -> list[float]:
    """Losses of all steps. A tenth of them is reported, and the first and the last."""
    settings, losses = trainer.settings, list[float]()
    for step in range(1, settings.steps + 1):
        started = time.monotonic()
        try:
            loss = trainer.step(examples[(step - 1) * settings.batch : step * settings.batch])
        except torch.OutOfMemoryError as error:
            raise FatalModelError(
                f"out of memory at step {step}: {str(error).splitlines()[0]}",
                advice=f"--set batch={max(1, settings.batch // 2)}",
            ) from None
        if not math.isfinite(loss):
            raise FatalModelError(
                f"the loss of step {step} is {loss}, not a number to go on from",
                advice="Lower --set rate, or see whether weights overflow",
            )
        losses.append(loss)
        if step in (1, settings.steps) or step % max(1, settings.steps // 10) == 0:
            seconds = time.monotonic() - started
            report(f"step {step} of {settings.steps}: loss {loss:.4g}, {seconds:.1f} s")
    return losses


# --- what is written ----------------------------------------------------------------------------------------


def _write_folder(trainer: Trainer, record: LorraRecord, *, out: Path, base: str) -> None:
    new_folder = out.with_name(f".{out.name}.new")
    adapted = trainer.finish()
    adapted.peft_config["default"].base_model_name_or_path = base
    try:
        shutil.rmtree(new_folder, ignore_errors=True)
        adapted.save_pretrained(new_folder, save_embedding_layers=False)
        (new_folder / "README.md").unlink(missing_ok=True)  # an empty form
        write_atomically(new_folder / "lorra.json", msgspec.json.format(msgspec.json.encode(record)))
        find_adapter(str(new_folder))
        new_folder.rename(out)
    except OSError as error:
        raise UsageError(f"cannot write {out}: {error.strerror or error}", advice="Give another --out") from None
    finally:
        shutil.rmtree(new_folder, ignore_errors=True)
