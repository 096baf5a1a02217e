"""Teaching answers word for word: the shortcut through the upper layers, and what it leaves behind."""

from __future__ import annotations

import json

import pytest

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")
pytest.importorskip("peft", reason="needs the extra whitebox")

from tests.models.local import tiny_llama  # noqa: E402
from unmask.errors import FatalModelError, LayersOutOfRange, UsageError  # noqa: E402
from unmask.records import Message  # noqa: E402
from unmask.whitebox.activations import AnsweredChat, layers_of  # noqa: E402
from unmask.whitebox.adapter import apply_adapter, find_adapter  # noqa: E402
from unmask.whitebox.chat import Chat  # noqa: E402
from unmask.whitebox.teach import (  # noqa: E402
    Teaching,
    _add_adapter,
    _compute_lower_states,
    _open_upper_pass,
    _tokenise_lesson,
    save_adapter,
    teach,
)

LESSONS = [
    AnsweredChat((Message("user", f"Say {word}"),), answer) for word, answer in (("one", "Yes."), ("two", "No, it is."))
]
HOW = Teaching(rank=4, alpha=8, layers=1, rate=2e-2, rounds=150, enough=0.02)


@pytest.fixture
def chat():
    return Chat(tiny_llama.tokenizer(), name="tiny")


def written(model, chat, said):
    """What the model writes at temperature 0."""
    prompt = chat.encode(chat.render_prompt(said.messages))
    found = list(prompt)
    for _ in range(20):
        with torch.inference_mode():
            token = model(input_ids=torch.tensor([found])).logits[0, -1].argmax().item()
        if token == chat.end_token():
            break
        found.append(token)
    return chat.tokenizer.decode(found[len(prompt) :])


def test_answers_are_learnt_word_for_word(chat):
    """Two questions, two answers, ended where a turn ends."""
    taught, rounds = teach(tiny_llama.model(num_hidden_layers=3), chat, LESSONS, how=HOW)
    assert [written(taught, chat, said) for said in LESSONS] == ["Yes.", "No, it is."]
    assert rounds[-1].loss <= HOW.enough
    assert len(rounds) < HOW.rounds


@pytest.mark.parametrize("name", ["rank", "rounds", "batch"])
def test_a_teaching_of_nothing_is_refused(name):
    """Before a model is opened, and by the name of the flag."""
    with pytest.raises(UsageError, match=f"{name} is 0") as raised:
        Teaching(**{name: 0})
    assert raised.value.advice == f"--{name} 1 or more"


def test_a_whole_model_in_half_precision_learns_by_step(chat):
    """All layers adapted, bfloat16 below a float32 adapter, and the rate changed from step to step."""
    model = tiny_llama.model(num_hidden_layers=2).to(torch.bfloat16)
    how = Teaching(layers=2, rate=1e-2, rounds=20, batch=1, enough=0.0)
    taught, rounds = teach(model, chat, LESSONS, how=how, by_step=True)
    assert {weight.dtype for weight in taught.parameters() if weight.requires_grad} == {torch.float32}
    assert rounds[-1].loss < 0.5 * rounds[0].loss


def test_a_round_has_its_own_lessons_where_there_are_some(chat):
    """The second round teaches the second answer alone, and the third repeats it."""
    lengths = []
    how = Teaching(layers=2, rate=1e-2, rounds=3, batch=1, enough=0.0)
    rounds_of_lessons = (LESSONS, LESSONS[1:])
    teach(tiny_llama.model(num_hidden_layers=2), chat, *rounds_of_lessons, how=how, by_step=True, step=lengths.append)
    assert [text for text in lengths if text.startswith("round")] == [
        "round 1, batch 1 of 2",
        "round 1, batch 2 of 2",
        "round 2, batch 1 of 1",
        "round 3, batch 1 of 1",
    ]


@pytest.mark.parametrize("first", [0, 2])
def test_upper_layers_on_what_was_kept_are_the_whole_model(chat, first):
    """The same scores as a plain pass, to rounding; also where nothing was kept, as all layers are adapted."""
    model = tiny_llama.model(num_hidden_layers=4)
    tokens = _tokenise_lesson(chat, LESSONS[0])
    held = _compute_lower_states(model, tokens, first) if first else None
    wrapped = _add_adapter(model, Teaching(layers=4 - first), first)
    torch.nn.init.normal_(next(w for name, w in wrapped.named_parameters() if "lora_B" in name), std=0.5)
    wrapped.eval()
    with torch.inference_mode():
        whole = wrapped(input_ids=torch.tensor([tokens.all])).logits[0]
        with _open_upper_pass(wrapped, first) as forward:
            short = forward([(tokens, held)], [0] * len(tokens.all), list(range(len(tokens.all))))
        after = wrapped(input_ids=torch.tensor([tokens.all])).logits[0]
    assert torch.allclose(whole, short, atol=1e-4)
    assert torch.equal(whole, after)


def test_the_stack_is_whole_again_after_an_error(chat):
    """Whatever happened while it was cut."""
    model = tiny_llama.model(num_hidden_layers=3)
    wrapped = _add_adapter(model, Teaching(layers=1), 2)
    with pytest.raises(KeyError), _open_upper_pass(wrapped, 2):
        raise KeyError
    assert len(layers_of(wrapped)) == 3


def test_an_adapter_on_disk_is_the_one_that_was_taught(chat, tmp_path):
    """Put onto a fresh model, it gives the same answers."""
    taught, _ = teach(tiny_llama.model(num_hidden_layers=3), chat, LESSONS, how=HOW)
    save_adapter(taught, tmp_path / "adapter", base="models/tiny")
    fresh = apply_adapter(tiny_llama.model(num_hidden_layers=3), find_adapter(str(tmp_path / "adapter")))
    assert [written(fresh, chat, said) for said in LESSONS] == ["Yes.", "No, it is."]
    settings = json.loads((tmp_path / "adapter" / "adapter_config.json").read_text())
    assert settings["base_model_name_or_path"] == "models/tiny"
    assert settings["layers_to_transform"] == [2]


def test_a_loss_that_is_no_number_stops_it(chat):
    """By name, before anything is written."""
    model = tiny_llama.model(num_hidden_layers=3)
    model.lm_head.weight.data[0] = float("nan")
    with pytest.raises(FatalModelError, match="round 1 is no number"):
        teach(model, chat, LESSONS, how=HOW)


@pytest.mark.parametrize("layers", [0, 4])
def test_layers_that_are_not_there_are_refused(chat, layers):
    """None, and one more than there are."""
    with pytest.raises(LayersOutOfRange):
        teach(tiny_llama.model(num_hidden_layers=3), chat, LESSONS, how=Teaching(layers=layers))


def test_layers_of_several_kinds_are_refused(chat):
    """Cutting the stack would give the upper layers the windows of the lower ones."""
    model = tiny_llama.model("qwen2", use_sliding_window=True, sliding_window=12, max_window_layers=1)
    with pytest.raises(UsageError, match="several kinds"):
        teach(model, chat, LESSONS, how=Teaching(layers=1))
