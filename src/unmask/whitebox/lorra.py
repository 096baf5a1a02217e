"""LoRRA from facts to a PEFT adapter folder: what is refused before, what is kept on the way, what stands beside it.

The folder appears whole or not at all. While training, a folder of the same name with `.partial` behind it holds what
`resume` needs.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import platform
import random
import re
import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from unmask import __version__
from unmask.errors import FatalModelError, MissingError, RequestRefusedError, UsageError
from unmask.files import write_whole
from unmask.records import Record
from unmask.whitebox.adapter import find_adapter
from unmask.whitebox.contrast import (
    INSTRUCTIONS,
    UNSEEN,
    Fact,
    Instruction,
    facts_hash,
    instructions_hash,
    messages,
    pairs,
    split,
)
from unmask.whitebox.directions import draw_curve
from unmask.whitebox.load import Checked, free_memory, model_hash, parameters, template_hash, weights
from unmask.whitebox.represent import Example, Moved, Settings, Trainer, grouped, targets

if TYPE_CHECKING:
    from unmask.whitebox.chat import Chat

SAVE_EVERY = 10
"""Steps between two savings: a few megabytes each."""
CHECKED = 64
"""Held-out facts on which it is seen how far activations have moved."""
PACKAGES = ("torch", "transformers", "peft", "safetensors")


class Defined(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Everything the weights of an adapter depend on. A training is resumed only if none of it has changed."""

    model_hash: str
    template_hash: str
    facts_hash: str
    instructions_hash: str
    settings: Settings
    layers: tuple[int, ...]
    versions: dict[str, str]


class Made(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What `lorra.json` says. `moved` is of held-out facts, `reworded` of the same under instructions that were not
    trained on. Losses are of different batches, the longest texts first. `resumed` are the steps at which training went
    on after a break."""

    version: str
    model: str
    defined: Defined
    evaluated: tuple[str, ...]
    learnt: int
    held_out: int
    first_loss: float
    last_loss: float
    moved: Moved
    reworded: Moved
    resumed: tuple[int, ...]
    seconds: float
    device: str
    precision: str


class Done(Record, frozen=True):
    """A step that was made, of so many; `loss` is from before it."""

    step: int
    steps: int
    loss: float
    seconds: float


class Job(Record, frozen=True, kw_only=True):
    """What to train, where to, and whether to go on with what is there. `evaluated` is only written down."""

    out: Path
    settings: Settings = Settings()
    evaluated: tuple[str, ...] = ()
    resume: bool = False


def refuse(job: Job, *, model: str) -> None:
    """What can be said before a model is opened."""
    if "+adapter=" in model or "+steer=" in model:
        raise UsageError(
            f"{model} is treated already; an adapter is trained for a bare model",
            advice=f"--model {re.split('[+](?:adapter|steer)=', model)[0]}; "
            "unmask mitigate merge makes a bare model of one with an adapter",
        )
    if importlib.util.find_spec("peft") is None:
        raise MissingError("LoRRA needs peft", advice="pip install 'unmask[whitebox]'")
    if job.out.exists():
        raise UsageError(f"{job.out} exists already", advice="give another --out, or remove it")
    if not job.resume and partial(job.out).exists():
        raise UsageError(
            f"{partial(job.out)} holds an unfinished training", advice="go on with --resume, or remove that folder"
        )
    if job.resume and not (partial(job.out) / "state.pt").is_file():
        raise UsageError(f"there is no training to resume at {partial(job.out)}", advice="leave --resume out")
    _refuse_settings(job.settings)


def _refuse_settings(settings: Settings) -> None:
    wrong = [
        name
        for name, good in (
            ("--rank", settings.rank >= 1),
            ("--lora-alpha", settings.lora_alpha > 0),
            ("--dropout", 0 <= settings.dropout < 1),
            ("--strength", settings.strength != 0),
            ("--rate", settings.rate > 0),
            ("--steps", settings.steps >= 1),
            ("--batch", settings.batch >= 1),
            ("--answer-tokens", settings.answer_tokens >= 1),
        )
        if not good
    ]
    if wrong:
        raise UsageError(f"{wrong[0]} is out of range", advice="unmask mitigate lorra --help shows what is published")


def train(
    checked: Checked, chat: Chat, facts: Sequence[Fact], *, job: Job, report: Callable[[Done], None] = lambda _: None
) -> Made:
    """Train an adapter for a model that was checked and not loaded yet, and write its folder."""
    import torch

    settings = job.settings
    layers = targets(settings, checked.config.get_text_config().num_hidden_layers)
    learnt, held = split(facts, seed=settings.seed)
    drawn = list(_examples(chat, learnt, settings))
    examples = grouped(drawn, settings.batch, rng=random.Random(f"unmask lorra {settings.seed}"))
    unseen = [_tokens(chat, held[:CHECKED], settings, instructions=some) for some in (INSTRUCTIONS, UNSEEN)]
    _refuse_long(checked, [*examples, *unseen[0], *unseen[1]])
    _refuse_too_large(checked, examples, settings, depth=layers[-1] + 1)
    model = weights(checked)
    defined = Defined(
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
        losses, resumed, before = _trained(trainer, examples, defined, job=job, report=report)
        moved, reworded = (_moved(trainer, some) for some in unseen)
    made = Made(
        version=__version__,
        model=checked.source.recorded,
        defined=defined,
        evaluated=job.evaluated,
        learnt=len(learnt),
        held_out=len(unseen[0]),
        first_loss=losses[0],
        last_loss=losses[-1],
        moved=moved,
        reworded=reworded,
        resumed=resumed,
        seconds=before + time.monotonic() - began,
        device=_device(model),
        precision=str(model.dtype).removeprefix("torch."),
    )
    _finish(trainer, made, losses, out=job.out, base=checked.source.shown)
    return made


def partial(out: Path) -> Path:
    """Where an unfinished training is kept."""
    return out.with_name(f"{out.name}.partial")


# --- examples -----------------------------------------------------------------------------------------------


def _examples(chat: Chat, facts: Sequence[Fact], settings: Settings) -> Iterator[Example]:
    """As many as the steps need. Each round takes all facts in a new order, so that a fact meets other instructions."""
    wanted, turn = settings.steps * settings.batch, 0
    while wanted > 0:
        order = random.Random(f"unmask lorra {settings.seed} {turn}").sample(list(facts), len(facts))
        yield from _tokens(chat, order[:wanted], settings)
        wanted, turn = wanted - len(order), turn + 1


def _tokens(
    chat: Chat, facts: Sequence[Fact], settings: Settings, *, instructions: Sequence[Instruction] = INSTRUCTIONS
) -> list[Example]:
    from unmask.whitebox.activations import Said, tokenised

    made = []
    for fact, pair in zip(facts, pairs(facts, instructions=instructions), strict=True):
        plain, honest, untruthful = (
            tokenised(chat, Said(asked, pair.answer), limit=settings.answer_tokens)
            for asked in (messages(fact), pair.honest, pair.untruthful)
        )
        made.append(Example(plain.all, honest.all, untruthful.all, plain.answer))
    return made


def _refuse_long(checked: Checked, examples: Sequence[Example]) -> None:
    longest = max(len(text) for one in examples for text in (one.plain, one.honest, one.untruthful))
    if longest > checked.context:
        raise RequestRefusedError(
            f"{checked.source.shown}: a training text has {longest} tokens, the context holds {checked.context}"
        )


def _refuse_too_large(checked: Checked, examples: Sequence[Example], settings: Settings, *, depth: int) -> None:
    """Weights, and what a backward pass needs of a forward one: per token and layer some sixteen times the width of the
    model and four times that of its inner layer. A formula, not fitted to measured peaks."""
    import torch

    text, gpu = checked.config.get_text_config(), checked.device.startswith("cuda")
    each = 2 if gpu else 4
    tokens = settings.batch * max(len(one.plain) for one in examples)
    inner = getattr(text, "intermediate_size", None) or 4 * text.hidden_size
    need = each * (parameters(checked) + tokens * depth * (16 * text.hidden_size + 4 * inner))
    have = torch.cuda.mem_get_info(checked.device)[0] if gpu else free_memory()
    if have is not None and need > have:
        needs, has = (f"{size / 2**30:.1f} GiB" for size in (need, have))
        raise MissingError(
            f"training {checked.source.shown} at --batch {settings.batch} needs about {needs}, {has} are free",
            advice=f"--batch {max(1, settings.batch // 2)}, or a smaller model",
        )


# --- training -----------------------------------------------------------------------------------------------


def _trained(
    trainer: Trainer, examples: Sequence[Example], defined: Defined, *, job: Job, report: Callable[[Done], None]
) -> tuple[list[float], tuple[int, ...], float]:
    """Losses of all steps, where training was taken up again, and seconds spent before this process."""
    import torch

    folder, settings = partial(job.out), job.settings
    losses, resumed, before = _restored(trainer, defined, folder) if job.resume else ([], (), 0.0)
    began = time.monotonic()
    for step in range(len(losses), settings.steps):
        started = time.monotonic()
        try:
            losses.append(trainer.step(examples[step * settings.batch : (step + 1) * settings.batch]))
        except torch.OutOfMemoryError as error:
            raise FatalModelError(
                f"out of memory at step {step + 1}: {str(error).splitlines()[0]}",
                advice=f"--batch {max(1, settings.batch // 2)}",
            ) from None
        except FatalModelError as error:
            shutil.rmtree(folder, ignore_errors=True)  # going on from there would end in the same place
            raise FatalModelError(f"step {step + 1}: {error}", advice=error.advice) from None
        report(Done(step + 1, settings.steps, losses[-1], time.monotonic() - started))
        if (step + 1) % SAVE_EVERY == 0 or step + 1 == settings.steps:
            kept = {"losses": losses, "resumed": list(resumed), "seconds": before + time.monotonic() - began}
            _keep(trainer.state() | kept, defined, folder)
    return losses, resumed, before


def _moved(trainer: Trainer, unseen: Sequence[Example]) -> Moved:
    size = trainer.settings.batch
    groups = [unseen[start : start + size] for start in range(0, len(unseen), size)]
    found = [(trainer.moved(group), len(group) / len(unseen)) for group in groups]
    along, before, after = (
        sum(getattr(one, name) * share for one, share in found) for name in ("along", "before", "after")
    )
    return Moved(along, before, after)


def _keep(state: dict[str, Any], defined: Defined, folder: Path) -> None:
    import torch

    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_whole(folder / "defined.json", msgspec.json.format(msgspec.json.encode(defined)))
        torch.save(state, folder / "state.pt.new")
        os.replace(folder / "state.pt.new", folder / "state.pt")
    except OSError as error:
        raise _cannot_write(folder, error) from None


def _restored(trainer: Trainer, defined: Defined, folder: Path) -> tuple[list[float], tuple[int, ...], float]:
    import torch

    try:
        known = msgspec.json.decode((folder / "defined.json").read_bytes(), type=Defined)
        state = torch.load(folder / "state.pt", map_location=trainer.weights[0].device, weights_only=True)
        changed = [name for name in Defined.__struct_fields__ if getattr(known, name) != getattr(defined, name)]
        if changed:
            raise UsageError(
                f"{folder} was begun with other {', '.join(name.replace('_', ' ') for name in changed)}",
                advice="give the same settings, or remove that folder and begin anew",
            )
        trainer.restore(state)
        losses = [float(loss) for loss in state["losses"]]
        return losses, (*state["resumed"], len(losses)), float(state["seconds"])
    except UsageError:
        raise
    except Exception as error:  # whatever a damaged file makes of its readers
        said = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise UsageError(f"{folder} cannot be resumed: {said}", advice="remove that folder and begin anew") from None


# --- what is written ----------------------------------------------------------------------------------------


def _finish(trainer: Trainer, made: Made, losses: Sequence[float], *, out: Path, base: str) -> None:
    beside = out.with_name(f".{out.name}.new")
    adapted = trainer.finished()
    adapted.peft_config["default"].base_model_name_or_path = base
    try:
        shutil.rmtree(beside, ignore_errors=True)
        adapted.save_pretrained(beside, save_embedding_layers=False)
        (beside / "README.md").unlink(missing_ok=True)  # an empty form
        write_whole(beside / "lorra.json", msgspec.json.format(msgspec.json.encode(made)))
        write_whole(beside / "curve.json", msgspec.json.encode({"losses": list(losses)}))
        draw_curve(losses, beside / "curve.svg", title=f"LoRRA, {made.model}")
        find_adapter(str(beside))
        beside.rename(out)
    except OSError as error:
        raise _cannot_write(out, error) from None
    finally:
        shutil.rmtree(beside, ignore_errors=True)
    shutil.rmtree(partial(out), ignore_errors=True)


def _cannot_write(path: Path, error: OSError) -> UsageError:
    return UsageError(f"cannot write {path}: {error.strerror or error}", advice="give another --out")


def _device(model: Any) -> str:
    if model.device.type == "cuda":
        import torch

        return str(torch.cuda.get_device_name(model.device))
    return platform.machine()
