"""docs/security.md names a test for every promise, and every test it names exists."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAGE = (ROOT / "docs" / "security.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", PAGE)))


def functions(path: Path) -> set[str]:
    found = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    return {node.name for node in found if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}


def test_the_page_names_tests():
    """Otherwise the next test would be empty."""
    assert len(NAMED) >= 30


@pytest.mark.parametrize("file", sorted({file for file, _ in NAMED}))
def test_a_named_test_exists(file: str):
    """A promise whose test was renamed or removed is a promise nobody keeps."""
    assert {name for own, name in NAMED if own == file} <= functions(ROOT / file)


def test_every_promise_has_a_test():
    """Each row of the tables of promises ends with at least one test."""
    promises = PAGE.partition("## What is promised")[2].partition("## Fuzzing")[0]
    rows = [
        line
        for line in promises.splitlines()
        if line.startswith("|") and not re.match(r"\|(?:-|\s*(?:promise|what) )", line)
    ]
    assert rows
    assert all(re.search(r"`tests/[\w/]+\.py::\w+`\s*\|$", row) for row in rows)


@pytest.mark.parametrize("file", sorted(path.name for path in Path(__file__).parent.glob("test_*.py")))
def test_every_file_of_hostile_tests_is_on_the_page(file: str):
    """What is tested here is promised there."""
    assert file == Path(__file__).name or f"tests/hostile/{file}::" in PAGE


LIMITS = {
    "unmask.runs.journal:LONGEST": "64 MiB",
    "unmask.data.form:LARGEST": "1 GiB",
    "unmask.data.form:LONGEST": "16 MiB",
    "unmask.interop.archive:LARGEST": "128 MiB",
    "unmask.interop.archive:MOST": "8 GiB",
    "unmask.models.local.gguf:MAX_HEADER": "64 MiB",
    "unmask.models.session:MAX_BODY": "64 MiB",
}


@pytest.mark.parametrize("where", LIMITS)
def test_limits_on_the_page_are_those_of_the_program(where: str):
    """Numbers in prose go stale."""
    from importlib import import_module

    module, _, name = where.partition(":")
    size, unit = LIMITS[where].split()
    assert getattr(import_module(module), name) == int(size) * {"MiB": 2**20, "GiB": 2**30}[unit]
    assert LIMITS[where] in PAGE
