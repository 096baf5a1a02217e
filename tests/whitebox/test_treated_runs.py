"""A run of a treated model goes on with the adapter and the steer file it was begun with, and with no others."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")
pytest.importorskip("peft", reason="needs the extra whitebox")

from tests.models.local import tiny_llama  # noqa: E402
from tests.models.local.test_hf import adapter  # noqa: E402
from tests.whitebox.test_steer import steering  # noqa: E402
from unmask.analysis.mitigation import measure_fluency  # noqa: E402
from unmask.cli.main import run_command_line  # noqa: E402
from unmask.errors import MixedRunError  # noqa: E402
from unmask.models.local.hf import treatments_of  # noqa: E402
from unmask.models.local.inside import open_whitebox  # noqa: E402
from unmask.whitebox.load import parse_source  # noqa: E402
from unmask.whitebox.steer import save_steering  # noqa: E402

LONG = {"max_position_embeddings": 32_768}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_llama.saved(tmp_path_factory.mktemp("tiny"), **LONG)


@pytest.fixture
def place(folder, tmp_path, monkeypatch) -> Path:
    """Where a user works: `model`, `pushed.safetensors` and the folder `adapter` are here."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(folder)
    save_steering(steering(tiny_llama.model(**LONG)), tmp_path / "pushed.safetensors")
    adapter(tmp_path / "adapter", tiny_llama.model(**LONG), scale=0.1)
    return tmp_path


STEERED = "hf:model+steer=pushed.safetensors@2"
ADAPTED = "hf:model+adapter=adapter"
RAN = 3
"""The exit code of a run that came to its end: nobody can read what a tiny model writes in four tokens."""


def change(name: str) -> str:
    """Other content under the same name; the name is given back as an error should have it."""
    if name == STEERED:
        Path("pushed.safetensors").unlink()
        save_steering(steering(tiny_llama.model(**LONG), size=5.0), Path("pushed.safetensors"))
        return "steer pushed.safetensors"
    adapter(Path("adapter"), tiny_llama.model(**LONG), scale=0.2)
    return "adapter adapter"


def run(name: str, *more: str, out: str = "run", judge: str = "verbatim", limit: str = "1") -> int:
    told = ("--data", "tiny", name, "--judge", judge, "--out", out, "--limit", limit, "--max-tokens", "4")
    return run_command_line(["run", *told, "--quiet", *more])


@pytest.mark.parametrize("name", [STEERED, ADAPTED])
def test_run_json_has_the_hash_that_replies_have(name, place):
    assert run(name) == RAN
    (one,) = json.loads(Path("run/run.json").read_text())["subject"]["treatments"]
    reply = json.loads(Path("run/replies.jsonl").read_text().splitlines()[0])
    assert f"{one['kind']}@{one['hash']}" in reply["model"]
    assert run("hf:model", out="bare") == RAN
    assert json.loads(Path("bare/run.json").read_text())["subject"]["treatments"] == []


@pytest.mark.parametrize("name", [STEERED, ADAPTED])
def test_a_changed_file_is_refused_by_name_and_the_way_out_is_given(name, place, capsys):
    """And the run folder stays as it was. An unchanged one is no obstacle."""
    assert run(name) == RAN
    before = Path("run/run.json").read_bytes()
    assert run(name) == RAN
    told = change(name)
    assert run(name) == 2
    said = capsys.readouterr().err
    assert f"{told}: the run has content " in said
    assert "another --out" in said
    assert f"Changed since the run began: {told}. Put back what it was made with" in said
    assert Path("run/run.json").read_bytes() == before


def test_a_judge_whose_adapter_changed_is_refused(place, capsys):
    """Readings of two adapters would stand in one file; a name of its own keeps them apart."""
    assert run("hf:model", judge=ADAPTED) == RAN
    change(ADAPTED)
    assert run("hf:model", judge=ADAPTED) == 2
    said = capsys.readouterr().err
    assert "judge adapter adapter: the run has content" in said
    assert "--set judge.name=NAME" in said
    assert run("hf:model", "--set", "judge.name=second", judge=ADAPTED) == RAN


def test_beliefs_are_not_borrowed_from_a_run_with_other_content(place, capsys):
    assert run(STEERED) == RAN
    change(STEERED)
    assert run(STEERED, "--beliefs-from", "run", "--developer-prompt", "plain", out="other") == 2
    assert "pushed.safetensors has changed since that run was made" in capsys.readouterr().err


def test_perplexity_is_not_measured_of_another_file_than_the_runs(place):
    assert run(STEERED) == RAN
    change(STEERED)
    with pytest.raises(MixedRunError, match=r"pushed\.safetensors has changed since run was made"):
        list(measure_fluency(["run"]))
    assert not Path("run/fluency.json").exists()


def test_compared_runs_say_that_the_content_differs(place, capsys):
    """Same name, another direction: the names alone would not tell."""
    assert run(STEERED) == RAN
    change(STEERED)
    assert run(STEERED, out="other") == RAN
    capsys.readouterr()
    run_command_line(["compare", "run", "other", "--json"])
    assert "treatments" in [one["name"] for one in json.loads(capsys.readouterr().out)["differs"]]


def test_a_copy_with_the_same_content_is_the_same_treatment(place):
    """What counts is the content, not where it lies."""
    made_with = treatments_of(parse_source(STEERED.removeprefix("hf:")))
    Path("copy.safetensors").write_bytes(Path("pushed.safetensors").read_bytes())
    with open_whitebox("hf:model+steer=copy.safetensors@2", made_with=made_with) as opened:
        assert opened.model is not None
