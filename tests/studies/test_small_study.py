"""A study from its design to its result, in its smallest form: a random model, killed once and continued."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")
pytest.importorskip("peft", reason="needs the extra whitebox")

from studies.mitigations.__main__ import main  # noqa: E402
from studies.mitigations.design import hash_design, read_design  # noqa: E402
from studies.mitigations.run import centre_layer  # noqa: E402
from tests.models.local import tiny_llama  # noqa: E402
from unmask import UnmaskError  # noqa: E402
from unmask.whitebox.steer import load_steering  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent.parent
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
TREATED = ["base", *ARMS[4:]]
COMMAND = ["study.toml", "--out", "out"]


def write_study(folder: Path, text: str = DESIGN) -> Path:
    (folder / "format.md").write_text("Write in short paragraphs, and put a full stop after every sentence.")
    (folder / "study.toml").write_text(text)
    return folder / "study.toml"


def git(folder: Path, *words: str) -> str:
    who = ["-c", "user.name=nobody", "-c", "user.email=nobody@localhost", "-c", "commit.gpgsign=false"]
    done = subprocess.run(["git", *who, *words], cwd=folder, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def kill_in_the_middle(folder: Path) -> dict[Path, bytes]:
    """Start the real command, kill it while a steered arm runs, and return every file that was there then."""
    command = [sys.executable, "-m", "studies.mitigations", *COMMAND]
    with subprocess.Popen(command, cwd=folder, env={**os.environ, "PYTHONPATH": str(ROOT)}) as process:
        while process.poll() is None and not (folder / "out/runs/steer-0.5--4/replies.jsonl").is_file():
            time.sleep(0.01)
        process.send_signal(signal.SIGKILL)
        assert process.wait(timeout=60) == -signal.SIGKILL
    return {path: path.read_bytes() for path in (folder / "out").rglob("*") if path.is_file()}


@pytest.fixture(scope="module")
def place(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("study")
    tiny_llama.saved(folder / "model", max_position_embeddings=32_768)
    write_study(folder)
    git(folder, "init")
    git(folder, "add", "study.toml", "format.md")
    git(folder, "commit", "-m", "a design")
    return folder


@pytest.fixture(scope="module")
def killed(place) -> dict[Path, bytes]:
    """What the folder held when it was killed; the study was finished since."""
    files = kill_in_the_middle(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(place)
        assert main(COMMAND) == 0
    return files


@pytest.fixture
def here(place, killed, monkeypatch) -> Path:
    monkeypatch.chdir(place)
    return place


def test_every_arm_has_a_run_and_every_treatment_a_perplexity(here):
    assert sorted(path.name for path in Path("out/runs").iterdir()) == sorted(ARMS)
    assert {path.parent.name for path in Path("out/runs").glob("*/fluency.json")} == set(TREATED)


def test_after_a_kill_nothing_is_asked_twice(here, killed):
    """And what was made before the kill is what the study goes on with."""
    counts: Counter[tuple[str, str, str, int]] = Counter()
    for file in Path("out").glob("runs/*/replies.jsonl"):
        for line in map(json.loads, file.read_text().splitlines()):
            counts.update((file.parent.name, line["scenario"], line["slot"], take) for take in line.get("takes", [0]))
    assert set(counts.values()) == {1}
    kept = [path for path in killed if path.suffix == ".safetensors"]
    assert kept
    assert all(path.read_bytes() == killed[path] for path in kept)


def test_arms_borrow_the_beliefs_of_the_base(here):
    base = json.loads(Path("out/runs/base/run.json").read_text())["id"]
    for name in ARMS[1:]:
        assert json.loads((Path("out/runs") / name / "run.json").read_text())["beliefs_from"]["run"] == base


def test_the_result_names_the_commit_of_the_design(here):
    """It was committed before the first arm ran, so no caution says otherwise."""
    result = json.loads(Path("out/results.json").read_text())
    assert result["commit"].startswith(git(here, "rev-parse", "HEAD"))
    assert {row["arm"]["name"] for row in result["arms"]} == set(ARMS[1:])
    assert not any("committed" in caution for caution in result["cautions"])
    assert Path("out/results.md").read_text().startswith("# small\n")


def test_the_same_command_again_runs_nothing(here):
    """Only the result is written anew."""
    before = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*") if path.is_file()}
    assert main(COMMAND) == 0
    after = {path: path.stat().st_mtime_ns for path in Path("out").rglob("*") if path.is_file()}
    assert {path.name for path in after if after[path] != before.get(path)} == {"results.json", "results.md"}


def test_a_random_direction_is_as_long_as_the_honest_one_in_every_layer(here):
    """It points elsewhere, is pushed in the same layers, and its file says what it is."""
    honest, drawn = (load_steering(Path("out/prepared") / f"{name}.safetensors") for name in ("steer-0.5", "random-1"))
    assert torch.allclose(honest.vectors.norm(dim=1), drawn.vectors.norm(dim=1), rtol=1e-4)
    assert not torch.allclose(honest.vectors, drawn.vectors, rtol=0.1)
    assert drawn.metadata.layer == honest.metadata.layer
    assert drawn.metadata.random == 1


def test_adapters_of_both_signs_and_with_shuffled_labels_differ(here):
    records = {name: json.loads((Path("out/prepared") / name / "lorra.json").read_text()) for name in ARMS[-3:]}
    settings = {name: record["settings"] for name, record in records.items()}
    assert [settings[name]["strength"] for name in ARMS[-3:]] == [5, -5, 5]
    assert [settings[name].get("shuffled") for name in ARMS[-3:]] == [None, None, 0]
    assert len({(Path("out/prepared") / name / "adapter_model.safetensors").read_bytes() for name in records}) == 3
    assert records["lorra+5"]["moved"]["along"] > 0 > records["lorra-5"]["moved"]["along"]


@pytest.mark.parametrize(("depth", "layers", "layer"), [(0.5, 28, 14), (0.0, 28, 0), (1.0, 28, 27), (0.3, 2, 0)])
def test_the_push_is_centred_on_the_layer_nearest_to_the_depth(depth, layers, layer):
    assert centre_layer(depth, layers) == layer


# --- designs


@pytest.mark.parametrize(
    ("text", "prompt"),
    [(DESIGN.replace("takes = 2", "takes = 3"), None), (DESIGN, "Be honest.")],
    ids=["key", "prompt"],
)
def test_another_design_in_the_same_folder_is_refused(here, tmp_path, capsys, text, prompt):
    """By its keys, and by the text of a prompt."""
    file = write_study(tmp_path, text)
    if prompt is not None:
        (tmp_path / "format.md").write_text(prompt)
    assert main([str(file), "--out", "out"]) == 2
    assert "was begun with another design" in capsys.readouterr().err


def test_arms_may_be_left_out_and_changes_be_told_afterwards(here, tmp_path, capsys):
    """Neither is part of the hash; the result says both."""
    text = 'left_out = ["lorra-shuffled"]\n' + DESIGN + '\n[[changed]]\ndate = "2026-01-01"\nwhat = "a"\nwhy = "b"\n'
    file = write_study(tmp_path, text)
    assert hash_design(read_design(file), tmp_path) == hash_design(read_design(Path("study.toml")), here)
    assert main([str(file), "--out", "out", "--analyse"]) == 0
    shown = capsys.readouterr().out
    assert "Left out: lorra-shuffled." in shown
    assert "Changed 2026-01-01: a Why: b" in shown
    assert main([*COMMAND, "--analyse"]) == 0


def test_arms_wait_for_the_base(place, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "model").symlink_to(place / "model")
    write_study(tmp_path)
    assert main([*COMMAND, "--only", "prompt-*"]) == 2
    assert "the base in out is not finished, and prompt-plain borrows its beliefs" in capsys.readouterr().err
    assert main([*COMMAND, "--only", "nothing"]) == 2
    assert "--only nothing matches no arm" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('"hf:model"', '"hf:model+steer=a@1"', "is not an untreated hf: model"),
        ("[-4.0, 4.0]", "[4.0]", "need both signs"),
        ('"format.md"', '"none.md"', "the prompt 'none.md' is neither a file"),
        ('"format.md"', '"../format.md"', "is neither a file"),
        ('name = "small"', 'name = "a/b"', "is not the name of a folder"),
        ("takes = 2", "takes = 2\nmore = 1", "unknown field `more`"),
        ("takes = 2", 'takes = 2\nleft_out = ["base"]', "never left out"),
        ("takes = 2", 'takes = 2\nleft_out = ["x"]', "`left_out` names no arm: 'x'"),
    ],
)
def test_designs_that_cannot_be_run_are_refused(tmp_path, before, after, said):
    with pytest.raises(UnmaskError, match=said):
        read_design(write_study(tmp_path, DESIGN.replace(before, after, 1)))


@pytest.mark.parametrize("name", ["smollm2", "e1", "e2"])
def test_the_designs_of_the_repository_can_be_read(name):
    assert read_design(ROOT / "studies" / f"{name}.toml").name == name
