"""Extras that are not installed: every command that needs one says so in one line, and how to get it in another."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.analysis.labelled import dataset, made
from unmask.data.form import write_jsonl
from unmask.data.load import load
from unmask.models.doctor import list_extras

WITHOUT = """
import sys
from importlib.machinery import PathFinder

class Hiding:
    @staticmethod
    def find_spec(name, path=None, target=None):
        return None if name.partition(".")[0] in {hidden!r} else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not PathFinder] + [Hiding]
from unmask.cli.start import main
main()
"""
"""The console script in a process where these modules are not installed."""

ASK = ("--data", "tiny", "--judge", "verbatim", "--out", "new")

LINES = {
    "embedded": [
        ("run", *ASK, "--model", "embedded/smollm2-135m"),
        ("run", *ASK, "--model", "gguf:file.gguf"),
        ("judge", "run", "--judge", "embedded/judge-1.5b"),
        ("demo",),
    ],
    "figures": [
        ("figure", "outcomes", "run", "--out", "new.svg"),
        ("mitigate", "report", "run", "other", "--out", "new.svg"),
    ],
    "hub": [
        ("plan", "--data", "cais/MASK", "--model", "openai/x", "--judge", "openai/x"),
        ("data", "check", "cais/MASK"),
    ],
    "inspect": [
        ("run", *ASK, "--model", "inspect/openai/x"),
        ("judge", "run", "--judge", "inspect/openai/x"),
        ("export", "run", "--format", "inspect", "--out", "new.eval"),
    ],
    "parquet": [
        ("export", "run", "--format", "parquet", "--out", "new.parquet"),
        ("data", "check", "known_facts.parquet"),
    ],
    "seal": [
        ("data", "seal", "set.jsonl", "--out", "new.sealed"),
        ("data", "open", "set.sealed", "--out", "new.jsonl"),
        ("data", "check", "set.sealed"),
    ],
    "ray": [("sweep", "ray.toml", "--out", "new")],
    "slurm": [("sweep", "slurm.toml", "--out", "new")],
    "view": [("view", "run", "--no-open")],
    "whitebox": [
        ("run", *ASK, "--model", "hf:gpt2"),
        ("judge", "run", "--judge", "hf:org/name"),
        ("mitigate", "steer", "--model", "hf:gpt2", "--out", "new.safetensors"),
        ("mitigate", "lorra", "--model", "hf:gpt2", "--out", "new"),
        ("mitigate", "merge", "--model", "hf:gpt2+adapter=adapter", "--out", "new"),
        ("mitigate", "report", "run", "hf", "--fluency"),
        ("probe", "hf"),
        ("organism", "--out", "new"),
        ("organism", "--model", "hf:gpt2", "--out", "new"),
    ],
}
"""What needs each extra."""

GRID = """
[sweep]
fleet = "{fleet}"
[[data]]
source = "tiny"
[[subject]]
name = "own"
serve = {{ command = ["serve", "{{port}}"] }}
[[judge]]
model = "verbatim"
"""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with runs, sets and files of every kind that the lines name."""
    folder = tmp_path_factory.mktemp("extras")
    for name in ("run", "other", "hf"):
        made(folder / name, dataset(24), lies=set(range(12)))
    written = (folder / "hf" / "run.json").read_text()
    (folder / "hf" / "run.json").write_text(written.replace('"scripted/lamps"', '"hf:gpt2"'))
    write_jsonl(load("tiny").scenarios, path=folder / "set.jsonl")
    (folder / "set.sealed").write_bytes(b"unmask-sealed 1\n" + bytes(100))
    (folder / "known_facts.parquet").write_bytes(b"PAR1")
    for fleet in ("ray", "slurm"):
        (folder / f"{fleet}.toml").write_text(GRID.format(fleet=fleet))
    return folder


def run_without(packages: list[str], line: tuple[str, ...], place: Path) -> subprocess.CompletedProcess[str]:
    program = WITHOUT.format(hidden={package.replace("-", "_") for package in packages})
    env = {
        "PATH": os.environ["PATH"],
        "UNMASK_PASSPHRASE": "x",
        "UNMASK_CACHE": str(place / "cache"),
        "HOME": "/nowhere",
    }
    command = [sys.executable, "-c", program, *line]
    return subprocess.run(command, cwd=place, env=env, capture_output=True, text=True, timeout=120, check=False)


def test_every_extra_has_a_line_that_needs_it():
    """A new one cannot be forgotten here."""
    assert set(LINES) == set(list_extras())


@pytest.mark.parametrize(
    ("extra", "line"), [pytest.param(extra, line, id=" ".join(line)) for extra in LINES for line in LINES[extra]]
)
def test_what_needs_an_extra_says_which(place, extra, line):
    """Exit code 4, what is missing, what to type; nothing is written, and nothing is called a bug."""
    before = sorted(place.iterdir())
    done = run_without(list_extras()[extra], line, place)
    assert done.returncode == 4, done.stderr
    lines = done.stderr.splitlines()
    advice = lines.index(f"pip install 'unmask[{extra}]'")
    assert lines[advice - 1].startswith("unmask: ")
    assert "bug" not in done.stderr
    assert sorted(place.iterdir()) == before
