"""A study from its design to its last arm, in its smallest form: killed once, continued, and looked at."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import msgspec
import pytest

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")
pytest.importorskip("peft", reason="needs the extra whitebox")

from tests.models.local import test_gguf, tiny_llama  # noqa: E402
from unmask.cli.main import run_command_line  # noqa: E402
from unmask.data.dataset import LoadOptions  # noqa: E402
from unmask.data.load import load  # noqa: E402
from unmask.engine.estimate import estimate_scenarios  # noqa: E402
from unmask.errors import MissingError, MixedRunError, UsageError  # noqa: E402
from unmask.experiments import study_shape  # noqa: E402
from unmask.experiments.study import run_study  # noqa: E402
from unmask.experiments.study_design import design_hash, read_design  # noqa: E402
from unmask.experiments.study_estimate import estimate_study  # noqa: E402
from unmask.experiments.study_folder import ArmWork, StudyFolder, open_study, update_study  # noqa: E402
from unmask.experiments.study_prepare import centre_layer  # noqa: E402
from unmask.judges.base import Style  # noqa: E402
from unmask.models.local.hf import MAX_N  # noqa: E402
from unmask.models.local.inside import check_local_model  # noqa: E402
from unmask.protocol.plan import PlannerSettings  # noqa: E402
from unmask.protocol.state import ScenarioState  # noqa: E402
from unmask.records import Sampling  # noqa: E402
from unmask.runs.options import load_developer_prompt  # noqa: E402
from unmask.whitebox.contrast import load_facts, split_facts  # noqa: E402
from unmask.whitebox.load import load_base_model, model_hash, shared_weights  # noqa: E402
from unmask.whitebox.lorra import draw_exchanged  # noqa: E402
from unmask.whitebox.lorra_trainer import LorraSettings  # noqa: E402
from unmask.whitebox.steer import load_steering  # noqa: E402

DESIGN = """
name = "small"
model = "hf:model"
data = "tiny"
limit = 2
judge = "verbatim"
takes = 2
max_tokens = 6

[prompts]
names = ["plain"]
placebo = "format.md"

[steering]
coefficients = [-4.0, 4.0]
facts = 12

[lorra]
steps = 2
batch = 2
"""
ARMS = [
    *("base", "base-again", "prompt-plain", "prompt-format", "steer-0.5--4", "steer-0.5-+4", "steer-random-1"),
    *("lorra+5", "lorra-5", "lorra-shuffled"),
]


def write_study(folder: Path, text: str = DESIGN) -> Path:
    (folder / "format.md").write_text("Write in short paragraphs, and put a full stop after every sentence.")
    (folder / "study.toml").write_text(text)
    return folder / "study.toml"


def count_requests(out: Path) -> Counter[tuple[str, str, str, int]]:
    """How often each take was asked for in each arm, failures and borrowed lines apart."""
    counts: Counter[tuple[str, str, str, int]] = Counter()
    for file in out.glob("runs/*/replies.jsonl"):
        for line in map(json.loads, file.read_text().splitlines()):
            counts.update((file.parent.name, line["scenario"], line["slot"], take) for take in line.get("takes", [0]))
    return counts


def kill_in_the_middle(folder: Path) -> dict[Path, bytes]:
    """Start the real command, kill it while a steered arm runs, and return every file that was there then."""
    command = [sys.executable, "-m", "unmask", "mitigate", "study", "study.toml", "--out", "out", "--quiet"]
    with subprocess.Popen(command, cwd=folder) as process:
        while process.poll() is None and not (folder / "out/runs/steer-0.5--4/replies.jsonl").is_file():
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL
    return {path: path.read_bytes() for path in (folder / "out").rglob("*") if path.is_file()}


class Continued(msgspec.Struct):
    """A finished study, and what its folder held when it was killed."""

    study: StudyFolder
    killed: dict[Path, bytes]


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    tiny_llama.saved(folder / "model", max_position_embeddings=32_768)
    write_study(folder)
    return folder


@pytest.fixture(scope="module")
def continued(place) -> Continued:
    killed = kill_in_the_middle(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        study = run_study(Path("study.toml"), out=Path("out"), progress=False)
    return Continued(study, killed)


@pytest.fixture
def here(place, monkeypatch) -> Path:
    monkeypatch.chdir(place)
    return place


def test_every_arm_has_a_run_and_a_perplexity(continued, here):
    assert [arm.name for arm in continued.study.arms] == ARMS
    for name in ARMS:
        assert (Path("out/runs") / name / "run.json").is_file()
        assert (Path("out/runs") / name / "fluency.json").is_file()


def test_after_a_kill_nothing_is_asked_twice(continued, here):
    """And what was made before the kill is what the study goes on with."""
    assert set(count_requests(Path("out")).values()) == {1}
    for path, data in continued.killed.items():
        if "prepared" in path.parts and path.suffix == ".safetensors":
            assert path.read_bytes() == data
        if path.name == "replies.jsonl":
            assert path.read_bytes().startswith(data[: data.rfind(b"\n") + 1])


def test_every_finished_piece_of_work_is_written_down_once(continued, here):
    costs = open_study(Path("out")).costs()
    done = Counter((cost.arm, cost.what) for cost in costs)
    assert set(done.values()) == {1}
    for work in (ArmWork.RUN, ArmWork.FLUENCY):
        assert {arm for arm, what in done if what is work} == set(ARMS)
    assert all(cost.calls > 0 and cost.output_tokens for cost in costs if cost.what is ArmWork.RUN)
    assert {cost.device for cost in costs} == {"cpu"}


def test_arms_borrow_the_beliefs_of_the_base(continued, here):
    base = json.loads(Path("out/runs/base/run.json").read_text())["id"]
    for name in ARMS[1:]:
        assert json.loads((Path("out/runs") / name / "run.json").read_text())["beliefs_from"]["run"] == base


def test_the_same_command_again_does_nothing(continued, here):
    """Not even a weight is read."""
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")}
    said: list[str] = []
    run_study(Path("study.toml"), out=Path("out"), report=said.append)
    assert said == []
    assert before == {path: path.stat().st_mtime_ns for path in Path("out").rglob("*")}


def test_a_random_direction_is_as_long_as_the_honest_one_in_every_layer(continued, here):
    """It points elsewhere, and its file says what it is."""
    honest = load_steering(Path("out/prepared/steer-0.5.safetensors"))
    drawn = load_steering(Path("out/prepared/random-1-0.5.safetensors"))
    assert torch.allclose(honest.vectors.norm(dim=1), drawn.vectors.norm(dim=1), rtol=1e-4)
    assert not torch.allclose(honest.vectors, drawn.vectors, rtol=0.1)
    assert (drawn.metadata.layer, drawn.metadata.width) == (honest.metadata.layer, honest.metadata.width)
    assert drawn.metadata.random == 1
    assert honest.metadata.random is msgspec.UNSET


def test_adapters_of_both_signs_and_with_shuffled_labels_differ(continued, here):
    records = {
        name: json.loads((Path("out/prepared") / name / "lorra.json").read_text())
        for name in ("lorra+5", "lorra-5", "lorra-shuffled")
    }
    assert records["lorra+5"]["defined"]["settings"]["strength"] == 5
    assert records["lorra-5"]["defined"]["settings"]["strength"] == -5
    assert records["lorra-shuffled"]["defined"]["settings"]["shuffled"] == 0
    assert "shuffled" not in records["lorra+5"]["defined"]["settings"]
    weights = {(Path("out/prepared") / name / "adapter_model.safetensors").read_bytes() for name in records}
    assert len(weights) == 3
    assert records["lorra+5"]["moved"]["along"] > 0 > records["lorra-5"]["moved"]["along"]


def test_half_of_the_facts_have_their_instructions_exchanged_by_lot():
    learnt, _ = split_facts(load_facts(), seed=0)
    exchanged = draw_exchanged(learnt, LorraSettings(shuffled=0))
    assert len(exchanged) == len(learnt) // 2
    assert exchanged != draw_exchanged(learnt, LorraSettings(shuffled=1))
    assert not draw_exchanged(learnt, LorraSettings())


@pytest.mark.parametrize(("depth", "layers", "layer"), [(0.5, 28, 14), (0.0, 28, 0), (1.0, 28, 27), (0.3, 2, 0)])
def test_the_push_is_centred_on_the_layer_nearest_to_the_depth(depth, layers, layer):
    assert centre_layer(depth, layers) == layer


# --- what may change, and what may not


def test_another_design_in_the_same_folder_is_refused_by_name(continued, here):
    other = here / "other.toml"
    other.write_text(DESIGN.replace("takes = 2", "takes = 3").replace("steps = 2", "steps = 4"))
    with pytest.raises(MixedRunError, match=r"takes: the study has 2, the file says 3\n.*lorra\.steps"):
        run_study(other, out=Path("out"))


def test_a_prompt_with_another_text_is_refused(continued, here, tmp_path):
    file = write_study(tmp_path)
    (tmp_path / "format.md").write_text("Be honest.")
    with pytest.raises(MixedRunError, match=r"prompt format\.md has another text"):
        run_study(file, out=Path("out"))


def test_arms_may_be_left_out_and_changes_be_told_afterwards(continued, here, tmp_path):
    """Neither is part of the hash."""
    text = 'left_out = ["lorra-shuffled"]\n' + DESIGN + '\n[[changed]]\ndate = "2026-01-01"\nwhat = "a"\nwhy = "b"\n'
    (tmp_path / "out").mkdir()
    file = write_study(tmp_path, text)
    design = read_design(file)
    assert design_hash(design) == continued.study.design_hash
    study = run_study(file, out=Path("out"))
    assert "lorra-shuffled" not in [arm.name for arm in study.arms]
    assert open_study(Path("out")).design.changed[0].what == "a"
    assert Path("out/design.toml").read_text() == DESIGN
    run_study(here / "study.toml", out=Path("out"))


def test_arms_wait_for_the_base(place, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(place / "model")
    write_study(tmp_path)
    with pytest.raises(MissingError, match=r"the base of out is not finished, and prompt-plain borrows"):
        run_study(Path("study.toml"), out=Path("out"), only=["prompt-*"])
    with pytest.raises(UsageError, match="--only nothing matches no arm"):
        run_study(Path("study.toml"), out=Path("out"), only=["nothing"])


def test_the_folder_continues_elsewhere_under_the_same_relative_path(continued, place, tmp_path, monkeypatch):
    """A copy of it asks nothing and makes nothing."""
    import shutil

    shutil.copytree(place / "out", tmp_path / "out")
    (tmp_path / "out/arms.jsonl").unlink()  # as if each arm had been killed just before its end
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(place / "model")
    write_study(tmp_path)
    study = run_study(Path("study.toml"), out=Path("out"), only=["base", "steer-*"], progress=False)
    assert set(count_requests(Path("out")).values()) == {1}
    assert {cost.what for cost in study.costs()} == {ArmWork.RUN, ArmWork.FLUENCY}
    assert all(cost.continued for cost in study.costs() if cost.what is ArmWork.RUN)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"hf:model"', '"hf:model+steer=a@1"', "treated already"),
        ("[-4.0, 4.0]", "[4.0]", "need both signs"),
        ('"format.md"', '"none.md"', "there is no prompt 'none.md'"),
        ('"format.md"', '"../format.md"', "there is no prompt"),
        ('name = "small"', 'name = "a/b"', "no name of a folder"),
        ("takes = 2", "takes = 2\nmore = 1", "unknown field `more`"),
    ],
)
def test_designs_that_cannot_be_run_are_refused(tmp_path, before, after, said):
    with pytest.raises(UsageError, match=said):
        read_design(write_study(tmp_path, DESIGN.replace(before, after)))


# --- before it starts


def test_a_plan_starts_nothing_and_reads_no_weights(tmp_path, monkeypatch, capsys):
    """Of a model of 7B there is nothing here but its configuration."""
    shape = {"hidden_size": 4096, "intermediate_size": 11008, "num_hidden_layers": 32, "num_attention_heads": 32}
    config = tiny_llama.config(**shape, num_key_value_heads=32, vocab_size=32_000)
    config.save_pretrained(tmp_path / "model")
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path)
    assert run_command_line(["mitigate", "study", "study.toml", "--plan", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["parameters"] == pytest.approx(6.74e9, rel=0.01)
    assert [arm["arm"] for arm in plan["arms"]] == ARMS
    assert plan["memory"]["total"] > plan["memory"]["weights"] > 4 * plan["parameters"]
    assert plan["minutes"] > 1
    assert sorted(path.name for path in tmp_path.iterdir()) == ["format.md", "model", "study.toml"]
    assert run_command_line(["mitigate", "study", "study.toml", "--plan", "--only", "steer-*"]) == 0
    assert "makes steer-0.5.safetensors first" in capsys.readouterr().out


def test_a_plan_for_a_gguf_file_reads_nothing_but_its_header(tmp_path, monkeypatch, capsys):
    """The file has no weights and no vocabulary, and transformers is never asked for a configuration."""
    (tmp_path / "model.gguf").write_bytes(test_gguf.made(test_gguf.ENTRIES + test_gguf.SIZES))
    monkeypatch.setattr(study_shape, "read_config", lambda _: pytest.fail("transformers was asked"))
    monkeypatch.chdir(tmp_path)
    write_study(tmp_path, DESIGN.replace("hf:model", "hf:model.gguf"))
    assert run_command_line(["mitigate", "study", "study.toml", "--plan", "--json"]) == 0
    plan = json.loads(capsys.readouterr().out)
    assert plan["parameters"] == 16
    keys_and_values = 2 * 2 * (2 * 2) * 4  # both, of two layers, for two heads of two, in float32
    assert plan["memory"]["keys_and_values"] == 16 * (300 + 6) * keys_and_values


def test_a_planned_prompt_costs_what_the_planner_says(tmp_path, monkeypatch):
    """Its tokens are added to those of an arm without it, and come to what planning it from the beginning gives."""
    monkeypatch.chdir(tmp_path)
    tiny_llama.config().save_pretrained(tmp_path / "model")
    file = write_study(tmp_path)
    arms = {arm.arm: arm for arm in estimate_study(read_design(file), tmp_path).arms}
    settings = PlannerSettings(takes=2, style=Style.VERBATIM, sampling=Sampling(1.0, 6, seed=0))
    scenarios = load("tiny", options=LoadOptions(limit=2)).scenarios
    states = ((scenario, ScenarioState()) for scenario in scenarios)
    prompt = load_developer_prompt("plain")
    bounds = estimate_scenarios(states, settings, size=MAX_N, prompt=prompt, lent=True)
    for end in ("least", "most"):
        planned, added = getattr(bounds, end)["subject"], getattr(arms["prompt-plain"], end)["subject"]
        assert (added.calls, added.output) == (planned.calls, planned.output)
        assert added.input == pytest.approx(planned.input, abs=2 * planned.calls)


def test_the_text_of_every_prompt_is_named_in_the_record(continued, here):
    """Files and shipped ones. A text that was changed in the folder itself is refused."""
    record = json.loads(Path("out/study.json").read_text())
    assert set(record["prompts"]) == {"plain", "format.md"}
    assert record["prompts"] == open_study(Path("out")).prompt_hashes
    copy = Path("out/format.md")
    before = copy.read_bytes()
    copy.write_text("Be honest.")
    with pytest.raises(MixedRunError, match=r"prompt format\.md has another text than when the study began"):
        update_study(Path("study.toml"), out=Path("out"))
    copy.write_bytes(before)


def test_a_record_of_before_prompts_were_hashed_stays_valid(continued, here):
    """Their hashes are not known, and nothing is held against them."""
    file = Path("out/study.json")
    before = file.read_bytes()
    record = json.loads(before)
    del record["prompts"]
    file.write_text(json.dumps(record))
    study = update_study(Path("study.toml"), out=Path("out"))
    file.write_bytes(before)
    assert study.record.prompts is None


# --- weights that are read once


def test_what_is_done_to_a_shared_model_reaches_no_other(place):
    """Cut layers, hooks, other weights and another configuration stay with the one they were done to."""
    with shared_weights():
        checked, _ = check_local_model(f"hf:{place / 'model'}")
        first = load_base_model(checked)
        before = model_hash(first)
        first.model.layers = first.model.layers[:1]
        first.config.num_hidden_layers = 1
        first.model.embed_tokens.register_forward_hook(lambda *_: None)
        first.lm_head.weight = torch.nn.Parameter(torch.zeros_like(first.lm_head.weight))
        first.to(torch.bfloat16)
        second = load_base_model(checked)
        assert model_hash(second) == before
        assert (len(second.model.layers), second.config.num_hidden_layers) == (2, 2)
        assert not second.model.embed_tokens._forward_hooks
        assert second.dtype is torch.float32


def test_shared_models_lie_on_the_same_memory(place):
    with shared_weights():
        checked, _ = check_local_model(f"hf:{place / 'model'}")
        first, second = load_base_model(checked), load_base_model(checked)
        assert first is not second
        assert first.lm_head.weight.data_ptr() == second.lm_head.weight.data_ptr()
    assert load_base_model(checked).lm_head.weight.data_ptr() != first.lm_head.weight.data_ptr()
