"""Extras that are not installed: every command that needs one says so in one line, and how to get it in another."""

from __future__ import annotations

import json
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
import json, os, sys, tempfile
from importlib.machinery import PathFinder

class Hiding:
    hidden = set(json.loads(sys.argv[1]))
    find_distributions = PathFinder.find_distributions

    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in cls.hidden else PathFinder.find_spec(name, path, target)

sys.meta_path[:] = [finder for finder in sys.meta_path if finder is not PathFinder] + [Hiding]

import unmask.cli.main, unmask.cli.settings, unmask.data.load, unmask.engine.run
from unmask.cli.start import main

results = []
for hidden, line in json.loads(sys.argv[2]):
    with tempfile.TemporaryFile("w+") as said:
        child = os.fork()
        if not child:
            Hiding.hidden = set(hidden)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(said.fileno(), 2)
            sys.argv[1:] = line
            main()
            sys.exit()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        said.seek(0)
        results.append([code, said.read(), sorted(os.listdir())])
print(json.dumps(results))
"""
"""The console script, once for each line, in processes where the modules named before it are not installed. What they
are forked from has imported nothing of any extra."""

ASK = ("--data", "tiny", "--judge", "verbatim", "--out", "new")

LINES = {
    "embedded": [
        ("run", *ASK, "embedded/smollm2-135m"),
        ("run", *ASK, "gguf:file.gguf"),
        ("judge", "run", "--judge", "embedded/judge-1.5b"),
        ("demo",),
    ],
    "figures": [
        ("figure", "outcomes", "run", "--out", "new.svg"),
        ("mitigate", "report", "run", "other", "--out", "new.svg"),
    ],
    "hub": [
        ("run", "--plan", "--data", "cais/MASK", "openai/x", "--judge", "openai/x"),
        ("data", "check", "cais/MASK"),
    ],
    "inspect": [
        ("run", *ASK, "inspect/openai/x"),
        ("judge", "run", "--judge", "inspect/openai/x"),
        ("export", "run", "--format", "inspect", "--out", "new.eval"),
    ],
    "parquet": [
        ("export", "run", "--format", "parquet", "--out", "new.parquet"),
        ("data", "check", "known_facts.parquet"),
    ],
    "ray": [("sweep", "ray.toml", "--out", "new")],
    "view": [("view", "run", "--no-open"), ("label", "run", "--who", "me")],
    "whitebox": [
        ("run", *ASK, "hf:gpt2"),
        ("judge", "run", "--judge", "hf:org/name"),
        ("mitigate", "steer", "--model", "hf:gpt2", "--out", "new.safetensors"),
        ("mitigate", "lorra", "--model", "hf:gpt2", "--out", "new"),
        ("mitigate", "report", "run", "hf", "--fluency"),
    ],
}
"""What needs each extra."""

GRID = """
[ray]
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
    (folder / "known_facts.parquet").write_bytes(b"PAR1")
    (folder / "ray.toml").write_text(GRID.format())
    return folder


def run_without(lines: list[tuple[list[str], tuple[str, ...]]], place: Path) -> list[tuple[int, str, list[str]]]:
    """Exit code, what was said and the files that are there then, for each line without the modules before it."""
    env = {
        "PATH": os.environ["PATH"],
        "UNMASK_CACHE": str(place / "cache"),
        "HOME": "/nowhere",
    }
    every = sorted({module for modules, _ in lines for module in modules})
    command = [sys.executable, "-c", WITHOUT, json.dumps(every), json.dumps(lines)]
    done = subprocess.run(command, cwd=place, env=env, stdout=subprocess.PIPE, text=True, timeout=300, check=True)
    results: list[tuple[int, str, list[str]]] = json.loads(done.stdout)
    return results


def test_every_extra_has_a_line_that_needs_it():
    """A new one cannot be forgotten here."""
    assert set(LINES) == set(list_extras())


def test_what_needs_an_extra_says_which(place):
    """Exit code 4, what is missing, what to type; nothing is written, and nothing is called a bug."""
    before = sorted(path.name for path in place.iterdir())
    extras = [extra for extra in LINES for _ in LINES[extra]]
    modules = {extra: [package.replace("-", "_") for package in list_extras()[extra]] for extra in LINES}
    typed = [(modules[extra], line) for extra in LINES for line in LINES[extra]]
    for extra, (_, line), (code, said, after) in zip(extras, typed, run_without(typed, place), strict=True):
        assert code == 4, (line, said)
        lines = said.splitlines()
        advice = lines.index(f"pip install 'unmask[{extra}]'")
        assert lines[advice - 1].startswith("unmask: "), line
        assert "bug" not in said, line
        assert after == before, line
