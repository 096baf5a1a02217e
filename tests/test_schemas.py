"""The schemas for editors are those of the records, take what the loaders take, and refuse what they refuse."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from tests.docs_schemas import FOLDER, schemas

ROOT = Path(__file__).resolve().parent.parent
VALIDATORS = {
    name: Draft202012Validator(json.loads((FOLDER / name).read_text(encoding="utf-8")))
    for name in ("scenario.json", "grid.json")
}
BLOCKS = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "sweep.md").read_text(encoding="utf-8"), re.DOTALL)
WHOLE = [text for text in BLOCKS if "[[judge]]" in text]
GRIDS = [tomllib.loads(text) for text in WHOLE]
GRIDS += [tomllib.loads((ROOT / name).read_text(encoding="utf-8")) for name in ("tests/golden/sweep/grid.toml",)]


@pytest.mark.parametrize("name", VALIDATORS)
def test_the_files_are_what_make_docs_writes(name):
    assert (FOLDER / name).read_text(encoding="utf-8") == schemas()[name], "run `make docs`"
    Draft202012Validator.check_schema(VALIDATORS[name].schema)


@pytest.mark.parametrize("name", ["core", "ladder", "tiny"])
def test_every_bundled_scenario_is_valid(name):
    lines = (ROOT / "src/unmask/data/scenarios" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()
    assert [
        error.message for line in lines for error in VALIDATORS["scenario.json"].iter_errors(json.loads(line))
    ] == []


def test_grids_of_the_docs_are_valid():
    assert len(GRIDS) > 2
    assert [error.message for grid in GRIDS for error in VALIDATORS["grid.json"].iter_errors(grid)] == []


@pytest.mark.parametrize("change", [{"truht": "A"}, {"truth": "E"}, {"rung": 4}, {"conversation": "hello"}])
def test_a_wrong_scenario_is_not(change):
    line = (ROOT / "src/unmask/data/scenarios/tiny.jsonl").read_text(encoding="utf-8").splitlines()[0]
    assert not VALIDATORS["scenario.json"].is_valid(json.loads(line) | change)
