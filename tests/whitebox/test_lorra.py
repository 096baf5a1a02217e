"""LoRRA: what is trained, that it does what it is for, and that a folder is whole or not there."""

from __future__ import annotations

import json
import math
import random
import signal
import subprocess
import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")
pytest.importorskip("peft", reason="needs the extra whitebox")

import msgspec  # noqa: E402
from click.testing import CliRunner  # noqa: E402
from safetensors.torch import load_file  # noqa: E402

from tests.models.local import tiny_llama  # noqa: E402
from unmask.cli.mitigate import lorra as command  # noqa: E402
from unmask.errors import DataError, FatalModelError, UsageError  # noqa: E402
from unmask.models.local.inside import check_local_model  # noqa: E402
from unmask.whitebox import contrast, load  # noqa: E402
from unmask.whitebox.activations import capture_activations  # noqa: E402
from unmask.whitebox.lorra import LorraRecord, draw_exchanged, order_in_batches, train  # noqa: E402
from unmask.whitebox.lorra_trainer import Example, LorraSettings, Trainer, target_layers  # noqa: E402

DEEP = {"num_hidden_layers": 6, "max_position_embeddings": 512}
QUICK = LorraSettings(steps=6, batch=4, rate=3e-3)
FEW_FACTS = contrast.load_facts()[:48]


@pytest.fixture(scope="module", autouse=True)
def on_the_processor():
    """A GPU would answer faster and less precisely than these tests expect."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(load.DEVICE_VARIABLE, "cpu")
        yield


def examples(count: int, *, seed: int = 1) -> list[Example]:
    """Questions of five random tokens, answers of six, and an instruction of another length on each side."""
    rng = random.Random(seed)
    made = []
    for _ in range(count):
        asked, said = (tuple(rng.randrange(256) for _ in range(length)) for length in (5, 6))
        made.append(Example((*asked, *said), (1, 2, 3, *asked, *said), (9, 8, 7, 6, *asked, *said), 6))
    return made


def trainer(settings: LorraSettings = QUICK, **changes) -> Trainer:
    return Trainer(tiny_llama.model(**(DEEP | changes)).requires_grad_(False), settings)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_llama.saved(tmp_path_factory.mktemp("tiny"), **DEEP)


def made(folder: Path, out: Path, **options) -> LorraRecord:
    return train(check_local_model(f"hf:{folder}"), FEW_FACTS, out=out, **{"settings": QUICK, **options})


@pytest.fixture(scope="module")
def adapter(folder, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("made") / "adapter"
    made(folder, out, evaluated=("core",))
    return out


# --- the training itself ----------------------------------------------------------------------------------


def test_published_settings_are_the_default():
    settings = LorraSettings()
    assert (settings.rank, settings.lora_alpha, settings.dropout, settings.strength) == (8, 16, 0.05, 5)
    assert (settings.rate, settings.steps, settings.batch, settings.answer_tokens) == (3e-4, 40, 16, 64)


@pytest.mark.parametrize(("count", "layers"), [(32, range(10, 21)), (30, range(9, 20)), (6, range(2, 5)), (2, [1])])
def test_the_middle_third_of_the_models_depth_is_looked_at_unless_layers_are_given(count, layers):
    assert target_layers(LorraSettings(), count) == tuple(layers)
    with pytest.raises(UsageError, match=f"layer {count}: the model has {count} layers"):
        target_layers(LorraSettings(layers=(count,)), count)
    with pytest.raises(UsageError, match="no earlier layer"):
        target_layers(LorraSettings(layers=(0,)), count)


@pytest.mark.parametrize("strength", [5.0, -5.0])
def test_the_loss_goes_down_and_activations_move_along_the_direction(strength):
    """The sign of the direction is not lost on the way: `along` counts along it, whatever was wanted."""
    made = trainer(LorraSettings(rate=3e-3, batch=4, strength=strength))
    batch = examples(16)
    start = made.measure_movement(batch)
    assert (start.along, start.after) == (pytest.approx(0, abs=1e-4), pytest.approx(start.before))
    losses = [made.step(batch) for _ in range(30)]
    end = made.measure_movement(batch)
    assert losses[-1] < 0.98 * losses[0]
    assert math.copysign(1, strength) * end.along > 0.1
    assert end.after < 0.98 * start.before


def test_the_loss_is_the_mean_length_of_what_is_missing():
    """Worked out again from activations of a model of its own, row by row, with nothing of the trainer."""
    settings = LorraSettings(layers=(2, 3), strength=3.0)
    batch = examples(3)
    bare = tiny_llama.model(**DEEP)

    def seen(text: tuple[int, ...]) -> torch.Tensor:
        with torch.no_grad(), capture_activations(bare, (2, 3)) as held:
            bare(input_ids=torch.tensor([text]))
        return torch.stack([held[layer][0, -6:] for layer in (2, 3)])

    lengths = [3.0 * (seen(one.honest) - seen(one.untruthful)).norm(dim=-1) for one in batch]
    assert trainer(settings).step(batch) == pytest.approx(torch.stack(lengths).mean().item(), rel=1e-4)


def test_only_the_adapter_before_the_last_layer_looked_at_is_trained():
    """And no layer behind that is there any more."""
    made = trainer(LorraSettings(layers=(1, 3), rate=3e-3))
    assert {int(name.split(".layers.")[1].split(".")[0]) for name in made.names} == {0, 1, 2}
    assert all(".q_proj.lora_" in name or ".v_proj.lora_" in name for name in made.names)
    assert len(made.adapted.get_base_model().model.layers) == 4
    before = {name: weight.clone() for name, weight in made.adapted.named_parameters()}
    made.step(examples(4))
    made.step(examples(4))  # at the first step half of an adapter has no gradient yet
    changed = {name for name, weight in made.adapted.named_parameters() if not torch.equal(weight, before[name])}
    assert changed == set(made.names)


def test_batches_have_texts_of_like_length_and_lose_none():
    rng = random.Random(2)
    every = [Example((0,) * (length := rng.randint(8, 90)), (0,) * (length + 9), (1,) * length, 4) for _ in range(70)]
    found = order_in_batches(every, 8, rng=random.Random(0))
    assert sorted(map(repr, found)) == sorted(map(repr, every))
    assert max(len(one.honest) for one in found[:8]) == max(len(one.honest) for one in every)
    sizes = [[len(one.plain) for one in found[start : start + 8]] for start in range(0, 64, 8)]
    filling = 1 - sum(map(sum, sizes)) / sum(8 * max(batch) for batch in sizes)
    assert filling < 0.15


def test_half_of_the_facts_have_their_instructions_exchanged_by_lot():
    """The control of a study: as long a training, without the content."""
    learnt, _ = contrast.split_facts(contrast.load_facts(), seed=0)
    exchanged = draw_exchanged(learnt, LorraSettings(shuffled=0))
    assert len(exchanged) == len(learnt) // 2
    assert exchanged != draw_exchanged(learnt, LorraSettings(shuffled=1))
    assert not draw_exchanged(learnt, LorraSettings())


# --- the folder -------------------------------------------------------------------------------------------


def test_the_folder_says_everything_that_made_it(adapter, folder):
    told = msgspec.json.decode((adapter / "lorra.json").read_bytes(), type=LorraRecord)
    assert (told.settings, told.layers, told.evaluated) == (QUICK, (2, 3, 4), ("core",))
    assert told.facts_hash == contrast.facts_hash(FEW_FACTS)
    assert set(told.versions) == {"torch", "transformers", "peft", "safetensors"}
    assert len(told.losses) == 6
    assert json.loads((adapter / "adapter_config.json").read_text())["base_model_name_or_path"] == str(folder)


def test_plain_peft_loads_it_and_it_does_something(adapter, folder):
    from peft import PeftModel
    from transformers import AutoModelForCausalLM

    bare = AutoModelForCausalLM.from_pretrained(folder)
    ids = torch.tensor([[1, 2, 3, 4]])
    before = bare(input_ids=ids).logits
    after = PeftModel.from_pretrained(bare, adapter)(input_ids=ids).logits
    assert not torch.allclose(before, after, atol=1e-5)


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(adapter, folder, tmp_path):
    for seed, same in ((0, True), (1, False)):
        made(folder, tmp_path / str(seed), settings=msgspec.structs.replace(QUICK, seed=seed))
        one, other = (load_file(place / "adapter_model.safetensors") for place in (adapter, tmp_path / str(seed)))
        assert all(torch.equal(one[name], other[name]) for name in one) == same


def test_what_is_there_is_not_written_over_and_what_cannot_be_written_is_named(folder, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(UsageError, match="exists already"):
        made(folder, tmp_path / "file")
    with pytest.raises(UsageError, match="cannot write"):
        made(folder, tmp_path / "file" / "out")


def test_weights_that_are_not_numbers_leave_nothing(tmp_path):
    place = tiny_llama.saved(tmp_path / "model", **DEEP)
    model = tiny_llama.model(**DEEP)
    torch.nn.init.constant_(model.model.layers[0].mlp.up_proj.weight, math.nan)
    model.save_pretrained(place)
    with pytest.raises(FatalModelError, match="the loss of step 1 is nan"):
        made(place, tmp_path / "out")
    assert [path.name for path in tmp_path.iterdir()] == ["model"]


# --- the command ------------------------------------------------------------------------------------------


def run(*flags: str):
    return CliRunner().invoke(command, flags, catch_exceptions=True)


def test_the_command_trains_and_says_how_to_use_it(folder, tmp_path):
    out = tmp_path / "adapter"
    done = run("--model", f"hf:{folder}", "--out", str(out), "--set", "steps=2", "--set", "batch=2", "--layers", "1-3")
    assert done.exit_code == 0, done.output
    assert f"use it with: unmask run hf:{folder}+adapter={out}" in done.stdout
    assert "step 2 of 2: loss" in done.stderr
    assert msgspec.json.decode((out / "lorra.json").read_bytes(), type=LorraRecord).layers == (1, 2, 3)


def test_facts_of_the_test_are_refused_before_anything_is_loaded(tmp_path):
    """A fact of `core`, in other words, among our own."""
    shared = contrast.Fact("mine", "x", "Which city is Australia's capital?", "Canberra is.", "Sydney is.")
    file = tmp_path / "facts.jsonl"
    file.write_bytes(b"\n".join(map(msgspec.json.encode, (shared, *contrast.load_facts()[:20]))))
    done = run("--model", "hf:/nowhere", "--out", str(tmp_path / "out"), "--facts", str(file))
    assert isinstance(done.exception, DataError)
    assert "mine: " in str(done.exception)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--set", "rank=0"], "rank"),
        (["--set", "batch=two"], "batch"),
        (["--set", "steeps=2"], "no setting 'steeps'"),
        (["--layers", "5-40"], "layer 6"),
        (["--model", "hf:{model}+adapter={adapter}"], "treated already"),
    ],
)
def test_settings_out_of_range_are_named(folder, adapter, tmp_path, flags, error):
    more = [flag.format(model=folder, adapter=adapter) for flag in flags]
    done = run("--model", f"hf:{folder}", "--out", str(tmp_path / "out"), *more)
    assert isinstance(done.exception, UsageError)
    assert error in str(done.exception)
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_training_says_what_is_lost(folder, tmp_path):
    """The real command, between two steps: exit code 130, and nothing is left behind."""
    size = ["--set", "steps=1000", "--set", "batch=1"]
    line = ["mitigate", "lorra", "--model", f"hf:{folder}", *size, "--out", str(tmp_path / "out")]
    command = [sys.executable, "-m", "unmask", *line]
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        next(text for text in lines if text.startswith("step 1 of"))
        process.send_signal(signal.SIGINT)
        *_, last = lines
        assert process.wait(timeout=60) == 130
    assert last.startswith("unmask: interrupted before")
    assert "the steps so far are lost" in last
    assert not list(tmp_path.iterdir())


# --- real weights -----------------------------------------------------------------------------------------


@pytest.mark.large
def test_real_weights_move_towards_honesty_in_a_few_steps(tmp_path):
    """SmolLM2 135M, on facts that were not trained on."""
    from unmask.models.local.pull import pull

    settings = LorraSettings(steps=6, batch=8, rate=3e-3, layers=(6, 8))
    told = made(Path(pull("smollm2-135m")), tmp_path / "adapter", settings=settings)
    assert told.moved.along > 0.1
    assert told.moved.after < told.moved.before
