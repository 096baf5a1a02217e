"""Steering: the push is what it says, the model is itself again afterwards, and files of other models are refused."""

from __future__ import annotations

import asyncio
import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")

from tests.models.local import tiny_llama  # noqa: E402
from tests.models.local.test_hf import adapter  # noqa: E402
from tests.whitebox.test_generate import WIDE, Replayed, finish, prompts  # noqa: E402
from tests.whitebox.unpacking import quick_unpacking  # noqa: E402
from unmask.cli.main import run_command_line  # noqa: E402
from unmask.errors import FatalModelError, MissingError, UsageError  # noqa: E402
from unmask.models.local.hf import HF, open_hf  # noqa: E402
from unmask.models.local.pull import pull  # noqa: E402
from unmask.records import Message, Request, Sampling  # noqa: E402
from unmask.whitebox.activations import capture_activations  # noqa: E402
from unmask.whitebox.contrast import draw_facts, load_facts  # noqa: E402
from unmask.whitebox.directions import compute_directions, read_steering, score_layers  # noqa: E402
from unmask.whitebox.generate import AnswerRow, Manner, Writer  # noqa: E402
from unmask.whitebox.load import model_hash, parse_source  # noqa: E402
from unmask.whitebox.steer import (  # noqa: E402
    LayerScore,
    Steering,
    SteeringRecord,
    add_steering_hooks,
    find_steer,
    layer_weights,
    load_steering,
    save_steering,
    steered,
)

ROOMY = {"max_position_embeddings": 512}
"""One token a letter: the pairs need more room than other tests."""


def steering(model, *, layer=0, size=3.0) -> Steering:
    """A file for the model whose vectors point anywhere."""
    config = model.config
    made = SteeringRecord(
        version="0",
        model="tiny",
        model_hash=model_hash(model),
        template_hash="t",
        facts_hash="f",
        instructions_hash="i",
        layers=config.num_hidden_layers,
        size=config.hidden_size,
        considered=(0,),
        layer=layer,
        seed=0,
        learnt=6,
        held_out=2,
        scores=(LayerScore(layer, 2, 2, 1.0),),
    )
    drawn_at_random = torch.randn(made.layers, made.size, generator=torch.Generator().manual_seed(1))
    return Steering(made, size * drawn_at_random)


def logits(model):
    with torch.inference_mode():
        return model(input_ids=torch.tensor([[5, 6, 7, 8]])).logits


def hooks(model) -> int:
    return sum(len(module._forward_hooks) for module in model.modules())


# --- shares -----------------------------------------------------------------------------------------------


@given(st.integers(1, 80), st.floats(0, 1))
def test_shares_add_up_to_one_and_are_largest_at_the_chosen_layer(layers, depth):
    layer = min(layers - 1, int(depth * layers))
    found = layer_weights(layer, layers=layers)
    assert len(found) == layers
    assert math.fsum(found) == pytest.approx(1)
    assert found[layer] == max(found) > 0


# --- applying ---------------------------------------------------------------------------------------------


def test_the_push_is_the_coefficient_times_the_share_times_the_vector():
    """At the first layer, to which no other push has come, for every token."""
    model = tiny_llama.model(num_hidden_layers=3)
    made = steering(model, layer=1)
    held = []
    for coefficient in (0.0, -2.0):
        with steered(model, made, coefficient), capture_activations(model, [0]) as seen:
            logits(model)
        held.append(seen[0])
    push = -2 * layer_weights(1, layers=3)[0] * made.vectors[0]
    torch.testing.assert_close(held[1], held[0] + push.expand_as(held[0]))


def test_the_model_is_itself_again_after_an_error():
    model = tiny_llama.model(num_hidden_layers=3)
    before = logits(model)
    with pytest.raises(ZeroDivisionError), steered(model, steering(model), 5.0):
        _ = (1 if hooks(model) and not torch.equal(logits(model), before) else None) / 0
    assert hooks(model) == 0
    assert torch.equal(logits(model), before)


@pytest.mark.parametrize("recorder", [None, Replayed], ids=["plain", "recorded"])
def test_a_steered_model_is_steered_in_every_row_and_step(recorder):
    """Batched writing, also by recorded steps, against a reference without cache, mask or batch."""
    model = tiny_llama.model()
    rows = [AnswerRow(prompt, Manner(12, temperature=0)) for prompt in prompts((3, 40, 17))]
    plain = AnswerRow(rows[1].prompt, Manner(12, temperature=0))
    for each in ([plain], rows):
        written = tiny_llama.model()
        add_steering_hooks(written, steering(model), 0.0 if each == [plain] else 4.0)
        writer = Writer(written, stops=(), room=WIDE, recorder=recorder and recorder())
        writer.add(each)
        finish(writer)
        assert writer.recording == (recorder is not None)
    assert rows[1].written != plain.written
    with steered(model, steering(model), 4.0):
        assert [row.written for row in rows] == [tiny_llama.likeliest(model, row.prompt, row.written) for row in rows]


def test_a_direction_of_another_model_is_refused():
    with pytest.raises(FatalModelError, match="made from another model, tiny: its weights were"):
        add_steering_hooks(tiny_llama.model(initializer_range=0.4), steering(tiny_llama.model()), 1.0)


# --- which model ------------------------------------------------------------------------------------------


def test_a_model_has_the_same_hash_in_every_precision_and_under_an_adapter():
    from peft import LoraConfig, get_peft_model

    wanted = model_hash(tiny_llama.model())
    assert model_hash(tiny_llama.model().to(torch.bfloat16)) == wanted
    wrapped = get_peft_model(tiny_llama.model(), LoraConfig(r=2, target_modules=["q_proj", "down_proj"]))
    assert model_hash(wrapped) == wanted
    assert model_hash(wrapped.get_base_model()) == wanted
    with torch.no_grad():
        wrapped.get_base_model().model.layers[1].mlp.up_proj.weight.mul_(1.01)
    assert model_hash(wrapped) != wanted


# --- the file ---------------------------------------------------------------------------------------------


def nameless(path, made: Steering) -> None:
    from safetensors.torch import save_file

    save_file({"vectors": made.vectors}, path)


def newer(path, made: Steering) -> None:
    """An unknown field may change what the vectors mean."""
    from safetensors.torch import save_file

    fields = {**msgspec.to_builtins(made.metadata), "inverted": True}
    save_file({"vectors": made.vectors}, path, {"unmask": json.dumps(fields)})


@pytest.mark.parametrize(
    "spoil",
    [
        lambda path, made: path.write_bytes(b"\x01" * 99),
        nameless,
        newer,
        lambda path, made: save_steering(Steering(made.metadata, made.vectors * math.nan), path),
        lambda path, made: save_steering(Steering(made.metadata, made.vectors[:1]), path),
    ],
    ids=["noise", "nameless", "newer", "not-numbers", "cut"],
)
def test_a_file_that_is_no_steer_file_is_refused(tmp_path, spoil):
    path = tmp_path / "x.safetensors"
    spoil(path, steering(tiny_llama.model()))
    with pytest.raises(UsageError, match="is no steer file"):
        load_steering(path)


def test_a_file_that_is_there_is_not_written_over(tmp_path):
    path = tmp_path / "a.safetensors"
    path.write_text("mine")
    with pytest.raises(UsageError, match="is there already"):
        save_steering(steering(tiny_llama.model()), path)
    assert path.read_text() == "mine"


# --- in a model's name ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tiny_llama.saved(tmp_path_factory.mktemp("tiny"), **ROOMY)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    path = tmp_path_factory.mktemp("steer") / "v@1.safetensors"
    save_steering(steering(tiny_llama.model(**ROOMY)), path)
    return path


@pytest.fixture
def answer():
    """Opens a model by its name, asks it the same thing every time, and closes it."""
    made: list[HF] = []

    def asking(name: str, text: str = "Hi"):
        made.append(open_hf(f"hf:{name}"))
        request = Request((Message("user", text),), Sampling(temperature=0, max_tokens=12))
        return asyncio.run(made[-1].complete(request))

    yield asking
    for each in made:
        asyncio.run(each.close())


def test_a_coefficient_of_zero_changes_nothing_and_replies_name_the_others(folder, file, answer):
    """By hash, so that another file of the same name is another model."""
    plain, still, pushed = (answer(f"{folder}{end}") for end in ("", f"+steer={file}@0", f"+steer={file}@-4.5"))
    assert plain.choices == still.choices != pushed.choices
    assert pushed.model == f"{folder.name}+steer@{find_steer(f'{file}@1').hash}*-4.5"


def test_adapter_and_direction_work_together_in_any_order(folder, file, answer, tmp_path):
    made = adapter(tmp_path / "a", tiny_llama.model(**ROOMY), scale=0.3)
    ends = (
        "",
        f"+adapter={made}",
        f"+steer={file}@4",
        f"+steer={file}@4+adapter={made}",
        f"+adapter={made}+steer={file}@4",
    )
    plain, adapted, pushed, one, other = (answer(f"{folder}{end}") for end in ends)
    assert one.choices == other.choices
    assert one.model == other.model
    assert len({each.choices for each in (plain, adapted, pushed, one)}) == 4


@pytest.mark.parametrize(
    ("end", "kind", "said"),
    [
        ("+steer={file}", UsageError, "has no coefficient"),
        ("+steer={file}@nan", UsageError, "has no coefficient"),
        ("+steer=none@1", MissingError, "there is no steer file none"),
        ("+steer={file}@1+steer={file}@2", UsageError, "has two of"),
    ],
)
def test_a_name_that_cannot_be_meant_is_refused(folder, tmp_path, end, kind, said):
    path = tmp_path / "v.safetensors"
    save_steering(steering(tiny_llama.model(**ROOMY)), path)
    with pytest.raises(kind, match=said):
        parse_source(f"{folder}{end.format(file=path)}")


def test_a_file_for_another_shape_is_refused_when_the_model_is_opened(tmp_path, file):
    """Before a weight is read."""
    other = tiny_llama.saved(tmp_path, num_hidden_layers=3)
    with pytest.raises(FatalModelError, match="2 layers of size 32, this has 3 of size 32"):
        open_hf(f"hf:{other}+steer={file}@1")


# --- reading a direction ----------------------------------------------------------------------------------


def test_a_planted_direction_is_found_with_its_sign_and_length():
    """Layer 1 of 3 has one, in noise; the other layers have noise only. The held-out pairs choose it."""
    rng = torch.Generator().manual_seed(3)
    planted = torch.nn.functional.normalize(torch.randn(40, generator=rng), dim=0)

    def pair(count):
        untruthful = torch.randn(count, 3, 40, generator=rng)
        honest = untruthful + 0.1 * torch.randn(count, 3, 40, generator=rng)
        honest[:, 1] += planted
        return honest, untruthful

    vectors = compute_directions(*pair(200))
    scores = score_layers(vectors, *pair(60))
    assert scores[1].accuracy == 1.0
    assert max(scores[0].accuracy, scores[2].accuracy) < 0.75
    assert torch.nn.functional.cosine_similarity(vectors[1], planted, dim=0) > 0.95
    assert vectors[1].norm() == pytest.approx(1, rel=0.05)
    with pytest.raises(FatalModelError, match="layer 0 does not tell"):  # a template left the instructions out
        compute_directions(vectors[None], vectors[None])


# --- the command ------------------------------------------------------------------------------------------


def run(folder, out, *more: str) -> int:
    return run_command_line(["mitigate", "steer", "--model", f"hf:{folder}", "--out", str(out), "--limit", "12", *more])


def test_the_command_writes_a_file_that_steers(folder, tmp_path, answer, capsys):
    """The same command gives the same bytes."""
    assert run(folder, tmp_path / "same", "--layers", "1") == 0
    capsys.readouterr()
    assert run(folder, tmp_path / "v", "--layers", "1", "--json") == 0
    assert (tmp_path / "v").read_bytes() == (tmp_path / "same").read_bytes()
    said = json.loads(capsys.readouterr().out)
    assert (said["layer"], said["considered"]) == (1, [1])
    assert (said["learnt"], said["held_out"], said["sign"]["facts"]) == (9, 3, 3)
    assert answer(f"{folder}+steer={tmp_path / 'v'}@40").choices != answer(str(folder)).choices


@pytest.mark.parametrize(
    ("build", "more", "code", "said"),
    [
        (lambda to: tiny_llama.saved(to, template=None), (), 4, "no chat template"),
        (lambda to: tiny_llama.saved(to, **ROOMY), ("--layers", "1-7"), 2, "layer 2, 3, 4, 5, 6, 7: the model has 2"),
        (lambda to: tiny_llama.saved(to, **ROOMY), ("--layers", "7-1"), 2, "names no layers"),
        (lambda to: tiny_llama.saved(to, **ROOMY), ("--limit", "3"), 2, "3 facts are too few"),
    ],
    ids=["template", "layers", "no-layers", "limit"],
)
def test_what_cannot_be_done_is_said_and_nothing_is_written(tmp_path, capsys, *, build, more, code, said):
    (tmp_path / "model").mkdir()
    (tmp_path / "out").mkdir()
    assert run(build(tmp_path / "model"), tmp_path / "out" / "v", *more) == code
    assert said in capsys.readouterr().err
    assert list((tmp_path / "out").iterdir()) == []


def test_facts_of_the_test_are_refused_before_the_model_is_looked_at(tmp_path, capsys):
    rows = [msgspec.to_builtins(fact) for fact in load_facts()[:20]]
    rows[3] |= {"question": "Which city is the capital of Australia?", "answer": "Canberra.", "falsehood": "Sydney."}
    (tmp_path / "mine.jsonl").write_text("\n".join(map(json.dumps, rows)))
    assert run(tmp_path / "no-model", tmp_path / "v", "--facts", str(tmp_path / "mine.jsonl")) == 2
    assert "1 training facts are also in core, ladder, tiny" in capsys.readouterr().err
    assert not (tmp_path / "v").exists()


# --- real weights -----------------------------------------------------------------------------------------


def test_the_direction_of_a_real_model_reads_and_pushes():
    """The 135M model. Told to be untruthful, it finds the true answers likelier the further it is pushed; afterwards it
    is itself again."""
    from unmask.models.local.inside import open_whitebox

    with quick_unpacking(), open_whitebox(f"hf:{pull('smollm2-135m')}") as (model, chat, _), torch.inference_mode():
        ids = torch.tensor([chat.encode("What is the capital of France?")])
        before = model(input_ids=ids).logits
        made = read_steering(model, chat, draw_facts(load_facts(), 16, seed=0), name="smollm2")
        assert torch.equal(before, model(input_ids=ids).logits)
    best = next(score for score in made.metadata.scores if score.layer == made.metadata.layer)
    assert best.right == best.of == 4
    assert made.metadata.sign.away < made.metadata.sign.still < made.metadata.sign.towards
