"""Low-rank representation adaptation (LoRRA): an adapter that moves what the middle layers hold to where honesty would
put it, from facts to a PEFT adapter folder.

For a text, the activations under an instruction to be honest minus those under one to be untruthful are the direction.
The adapter is trained so that, without any instruction, activations move along it. The model without the adapter is its
own reference. Nothing above the last layer that is looked at is ever computed.

The folder appears whole or not at all.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import platform
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import torch

from unmask import __version__
from unmask.errors import FatalModelError, MissingError, RequestRefusedError, UsageError
from unmask.files import write_atomically
from unmask.records import Record
from unmask.whitebox.activations import AnsweredChat, tokenise
from unmask.whitebox.adapter import find_adapter
from unmask.whitebox.contrast import (
    INSTRUCTIONS,
    UNSEEN,
    Fact,
    Instruction,
    build_messages,
    build_pairs,
    facts_hash,
    instructions_hash,
    split_facts,
)
from unmask.whitebox.load import CheckedModel, load_model, model_hash, template_hash
from unmask.whitebox.lorra_trainer import Example, LorraSettings, Movement, StepReport, Trainer, target_layers

if TYPE_CHECKING:
    from unmask.whitebox.chat import Chat

MOVEMENT_CHECK_FACTS = 64
"""Held-out facts on which it is seen how far activations have moved."""
PACKAGES = ("torch", "transformers", "peft", "safetensors")


class TrainingDefinition(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Everything the weights of an adapter depend on."""

    model_hash: str
    template_hash: str
    facts_hash: str
    instructions_hash: str
    settings: LorraSettings
    layers: tuple[int, ...]
    versions: dict[str, str]


class LorraRecord(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What `lorra.json` says. `moved` is of held-out facts, `reworded` of the same under instructions that were not
    trained on. The losses of the steps are of different batches, the longest texts first."""

    version: str
    model: str
    defined: TrainingDefinition
    evaluated: tuple[str, ...]
    learnt: int
    held_out: int
    losses: tuple[float, ...]
    moved: Movement
    reworded: Movement
    seconds: float
    device: str
    precision: str


class LorraJob(Record, frozen=True, kw_only=True):
    """What to train, and where to. `evaluated` is only written down."""

    out: Path
    settings: LorraSettings = LorraSettings()
    evaluated: tuple[str, ...] = ()


def refuse_job(job: LorraJob, *, model: str) -> None:
    """What can be said before a model is opened."""
    if "+adapter=" in model or "+steer=" in model:
        raise UsageError(
            f"{model} is treated already; an adapter is trained for a bare model",
            advice=f"--model {re.split('[+](?:adapter|steer)=', model)[0]}; "
            "merge_and_unload of PEFT makes a bare model of one with an adapter",
        )
    if importlib.util.find_spec("peft") is None:
        raise MissingError("LoRRA needs peft", advice="pip install 'unmask[whitebox]'")
    if job.out.exists():
        raise UsageError(f"{job.out} exists already", advice="Give another --out, or remove it")


def train(
    checked: CheckedModel,
    chat: Chat,
    facts: Sequence[Fact],
    *,
    job: LorraJob,
    report: Callable[[StepReport], None] = lambda _: None,
) -> LorraRecord:
    """Train an adapter for a model that was checked and not loaded yet, and write its folder."""
    settings = job.settings
    layers = target_layers(settings, checked.config.get_text_config().num_hidden_layers)
    learnt, held_out = split_facts(facts, seed=settings.seed)
    unordered = list(_draw_examples(chat, learnt, settings, exchanged=draw_exchanged(learnt, settings)))
    examples = order_in_batches(unordered, settings.batch, rng=random.Random(f"unmask lorra {settings.seed}"))
    unseen = [
        _build_examples(chat, held_out[:MOVEMENT_CHECK_FACTS], settings, instructions=instructions)
        for instructions in (INSTRUCTIONS, UNSEEN)
    ]
    _refuse_too_long(checked, [*examples, *unseen[0], *unseen[1]])
    model = load_model(checked)
    defined = TrainingDefinition(
        model_hash=model_hash(model),
        template_hash=template_hash(chat),
        facts_hash=facts_hash(facts),
        instructions_hash=instructions_hash(),
        settings=settings,
        layers=layers,
        versions={name: importlib.metadata.version(name) for name in PACKAGES},
    )
    began = time.monotonic()
    with torch.random.fork_rng():
        trainer = Trainer(model, settings)
        losses = _run_steps(trainer, examples, report=report)
        moved, reworded = (_measure_movement(trainer, group) for group in unseen)
    record = LorraRecord(
        version=__version__,
        model=checked.source.recorded,
        defined=defined,
        evaluated=job.evaluated,
        learnt=len(learnt),
        held_out=len(unseen[0]),
        losses=tuple(losses),
        moved=moved,
        reworded=reworded,
        seconds=time.monotonic() - began,
        device=torch.cuda.get_device_name(model.device) if model.device.type == "cuda" else platform.machine(),
        precision=str(model.dtype).removeprefix("torch."),
    )
    _write_folder(trainer, record, out=job.out, base=checked.source.shown)
    return record


# --- examples -----------------------------------------------------------------------------------------------


def draw_exchanged(facts: Sequence[Fact], settings: LorraSettings) -> frozenset[str]:
    """The facts whose instructions are exchanged: half of them where the settings ask for it, otherwise none."""
    if settings.shuffled is msgspec.UNSET:
        return frozenset()
    names = sorted(fact.id for fact in facts)
    return frozenset(random.Random(f"unmask shuffled {settings.shuffled}").sample(names, len(names) // 2))


def _draw_examples(
    chat: Chat, facts: Sequence[Fact], settings: LorraSettings, *, exchanged: frozenset[str]
) -> Iterator[Example]:
    """As many as the steps need. Each round takes all facts in a new order, so that a fact meets other instructions."""
    wanted, turn = settings.steps * settings.batch, 0
    while wanted > 0:
        order = random.Random(f"unmask lorra {settings.seed} {turn}").sample(list(facts), len(facts))
        for fact, example in zip(order, _build_examples(chat, order[:wanted], settings), strict=False):
            yield _exchange_sides(example) if fact.id in exchanged else example
        wanted, turn = wanted - len(order), turn + 1


def _exchange_sides(example: Example) -> Example:
    return msgspec.structs.replace(example, honest=example.untruthful, untruthful=example.honest)


def _build_examples(
    chat: Chat, facts: Sequence[Fact], settings: LorraSettings, *, instructions: Sequence[Instruction] = INSTRUCTIONS
) -> list[Example]:
    examples = []
    for fact, pair in zip(facts, build_pairs(facts, instructions=instructions), strict=True):
        plain, honest, untruthful = (
            tokenise(chat, AnsweredChat(asked, pair.answer), limit=settings.answer_tokens)
            for asked in (build_messages(fact), pair.honest, pair.untruthful)
        )
        examples.append(Example(plain.all, honest.all, untruthful.all, plain.answer))
    return examples


def _refuse_too_long(checked: CheckedModel, examples: Sequence[Example]) -> None:
    texts = [text for example in examples for text in (example.plain, example.honest, example.untruthful)]
    longest = max(map(len, texts))
    if longest > checked.context:
        raise RequestRefusedError(
            f"{checked.source.shown}: a training text has {longest} tokens, the context holds {checked.context}"
        )


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


def _run_steps(trainer: Trainer, examples: Sequence[Example], *, report: Callable[[StepReport], None]) -> list[float]:
    """Losses of all steps."""
    settings, losses = trainer.settings, list[float]()
    for step in range(settings.steps):
        started = time.monotonic()
        try:
            losses.append(trainer.step(examples[step * settings.batch : (step + 1) * settings.batch]))
        except torch.OutOfMemoryError as error:
            raise FatalModelError(
                f"out of memory at step {step + 1}: {str(error).splitlines()[0]}",
                advice=f"--batch {max(1, settings.batch // 2)}",
            ) from None
        except FatalModelError as error:
            raise FatalModelError(f"step {step + 1}: {error}", advice=error.advice) from None
        report(StepReport(step + 1, settings.steps, losses[-1], time.monotonic() - started))
    return losses


def _measure_movement(trainer: Trainer, unseen: Sequence[Example]) -> Movement:
    size = trainer.settings.batch
    groups = [unseen[start : start + size] for start in range(0, len(unseen), size)]
    movements = [(trainer.measure_movement(group), len(group) / len(unseen)) for group in groups]
    along, before, after = (
        sum(getattr(movement, name) * share for movement, share in movements) for name in ("along", "before", "after")
    )
    return Movement(along, before, after)


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
