"""Merging: the folder answers as the adapted model does, stands alone, and is whole or not there."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")
pytest.importorskip("peft", reason="needs the extra whitebox")

from tests.models.local import tiny_llama  # noqa: E402
from tests.models.local.test_hf import adapter  # noqa: E402
from unmask.cli.main import run_command_line  # noqa: E402
from unmask.errors import FatalModelError, MissingError, UsageError  # noqa: E402
from unmask.models.local.inside import check_local_model, open_whitebox  # noqa: E402
from unmask.models.local.pull import pull  # noqa: E402
from unmask.records import Message  # noqa: E402
from unmask.whitebox import load  # noqa: E402
from unmask.whitebox.load import model_hash  # noqa: E402
from unmask.whitebox.merge import RECORD_FILE, merge, refuse_merge  # noqa: E402

TEXT = torch.tensor([[3, 1, 4, 1, 5, 9, 2, 6]])


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_llama.saved(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def treated(folder, tmp_path_factory) -> str:
    place = adapter(tmp_path_factory.mktemp("made") / "adapter", tiny_llama.model(), scale=0.5)
    return f"hf:{folder}+adapter={place}"


@pytest.fixture(scope="module")
def merged(treated, tmp_path_factory) -> Path:
    out = tmp_path_factory.mktemp("merged") / "whole"
    checked, chat = check_local_model(treated)
    merge(checked, chat, out=out)
    return out


def scores(name: str):
    with open_whitebox(name) as opened, torch.inference_mode():
        return opened.model(input_ids=TEXT).logits


def test_the_folder_gives_the_scores_of_the_adapted_model(folder, treated, merged):
    """And not those of the bare one."""
    wanted, found = scores(treated), scores(f"hf:{merged}")
    torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)
    assert (found - scores(f"hf:{folder}")).abs().max() > 0.1


def test_the_folder_asks_in_the_same_words(folder, merged):
    """Tokenizer and chat template go with the weights."""
    asked = (Message("system", "Be brief."), Message("user", "Hi"))
    was, now = (check_local_model(f"hf:{place}")[1] for place in (folder, merged))
    assert now.encode(now.render_prompt(asked)) == was.encode(was.render_prompt(asked))


def test_what_was_merged_is_written_down(treated, merged):
    made = json.loads((merged / RECORD_FILE).read_text())
    with open_whitebox(f"hf:{merged}") as opened:
        assert made["model_hash"] == model_hash(opened.model)
    with open_whitebox(treated) as opened:
        assert made["before_hash"] == model_hash(opened.model)
        assert made["model"] == opened.recorded
    assert made["adapter_hash"] in made["model"]


def test_weights_are_written_in_float32_whatever_the_model_was_in(treated, tmp_path, monkeypatch):
    """Also where hf: would use a GPU, and so bfloat16."""
    monkeypatch.setattr(load, "choose_device", lambda: "meta")
    checked, chat = check_local_model(treated)
    merge(checked, chat, out=tmp_path / "whole")
    assert json.loads((tmp_path / "whole" / "config.json").read_text())["dtype"] == "float32"


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("hf:here", "has no adapter"),
        ("hf:here+steer=f@2", "has no adapter"),
        ("hf:here+adapter=a+steer=f@2", "steered"),
    ],
)
def test_a_model_with_nothing_to_merge_is_refused(name, said, tmp_path):
    with pytest.raises(UsageError, match=said) as caught:
        refuse_merge(tmp_path / "out", model=name)
    assert caught.value.advice


def test_a_folder_that_is_there_is_not_written_over(treated, tmp_path):
    with pytest.raises(UsageError, match="exists already"):
        refuse_merge(tmp_path, model=treated)


def test_an_adapter_of_another_model_leaves_nothing(folder, tmp_path):
    place = adapter(tmp_path / "wide", tiny_llama.model(hidden_size=64), scale=0.1)
    checked, chat = check_local_model(f"hf:{folder}+adapter={place}")
    with pytest.raises(FatalModelError, match="does not fit this model"):
        merge(checked, chat, out=tmp_path / "whole")
    assert [path.name for path in tmp_path.iterdir()] == ["wide"]


def test_an_adapter_whose_weights_are_no_tensors_is_named(folder, tmp_path):
    """A file that was cut off, or is something else, is an error with the folder's name and not a crash."""
    place = adapter(tmp_path / "cut", tiny_llama.model(), scale=0.1)
    weights = place / "adapter_model.safetensors"
    weights.write_bytes(weights.read_bytes()[:100])
    checked, chat = check_local_model(f"hf:{folder}+adapter={place}")
    with pytest.raises(FatalModelError, match=r"cut does not fit this model"):
        merge(checked, chat, out=tmp_path / "whole")


@pytest.mark.large
def test_a_gguf_file_becomes_a_folder_of_unpacked_weights(tmp_path):
    """The real 135M model: transformers calls what it has unpacked packed, and would not write it."""
    file = pull("smollm2-135m")
    with open_whitebox(f"hf:{file}") as opened, torch.inference_mode():
        place = adapter(tmp_path / "adapter", opened.model, scale=0.01)  # which lies on the model from here on
        wanted = opened.model(input_ids=TEXT).logits
    out = tmp_path / "whole"
    checked, chat = check_local_model(f"hf:{file}+adapter={place}")
    merge(checked, chat, out=out)
    torch.testing.assert_close(scores(f"hf:{out}"), wanted, rtol=1e-3, atol=1e-3)
    now = check_local_model(f"hf:{out}")[1]
    asked = (Message("system", "Be brief."), Message("user", "Hi"))
    assert now.encode(now.render_prompt(asked)) == chat.encode(chat.render_prompt(asked))


def test_weights_that_stay_packed_are_refused(treated, tmp_path, monkeypatch):
    """An adapter cannot be added to them without loss."""
    packed = load.load_base_model

    def bare(checked):
        model = packed(checked)
        model.hf_quantizer = object()
        return model

    monkeypatch.setattr("unmask.whitebox.merge.load_base_model", bare)
    checked, chat = check_local_model(treated)
    with pytest.raises(UsageError, match="packed weights"):
        merge(checked, chat, out=tmp_path / "whole")
    assert not list(tmp_path.iterdir())


def test_too_little_main_memory_is_said_before_weights_are_read(treated, tmp_path, monkeypatch):
    checked, chat = check_local_model(treated)
    monkeypatch.setattr(load, "free_memory", lambda: 1000)
    monkeypatch.setattr(load, "load_base_model", lambda _: pytest.fail("weights were read"))
    with pytest.raises(MissingError, match="main memory"):
        merge(checked, chat, out=tmp_path / "whole")


def test_a_place_that_cannot_be_written_to_leaves_nothing(treated, tmp_path):
    (tmp_path / "file").write_text("")
    checked, chat = check_local_model(treated)
    with pytest.raises(UsageError, match="cannot write"):
        merge(checked, chat, out=tmp_path / "file" / "whole")


def test_the_command_says_how_to_use_the_folder(treated, tmp_path, capsys):
    out = tmp_path / "whole"
    assert run_command_line(["mitigate", "merge", "--model", treated, "--out", str(out)]) == 0
    assert f"--model hf:{out}" in capsys.readouterr().out


def test_lorra_names_the_way_for_a_treated_model(treated, tmp_path, capsys):
    """An adapter is trained for a bare model; merging makes one."""
    assert run_command_line(["mitigate", "lorra", "--model", treated, "--out", str(tmp_path / "adapter")]) == 2
    assert "unmask mitigate merge" in capsys.readouterr().err
