"""What studies may import of unmask: its public names, and the list *Stable for research* of docs/architecture.md."""

from __future__ import annotations

import ast
import re
from importlib import import_module
from pathlib import Path

import pytest

import unmask

ROOT = Path(__file__).resolve().parent.parent.parent
SECTION = (ROOT / "docs/architecture.md").read_text(encoding="utf-8").partition("## Stable for research\n")[2]
STABLE = {
    f"unmask.{module}.{name}"
    for module, names in re.findall(r"^\| `([\w.]+)` \| (.+) \|$", SECTION.partition("\n## ")[0], re.MULTILINE)
    for name in re.findall(r"`(\w+)`", names)
}


@pytest.mark.parametrize("name", sorted(STABLE))
def test_what_is_stable_can_be_imported(name):
    """A name that moves breaks somebody's study: it moves with this list, and with `studies/`."""
    pytest.importorskip("torch", reason="needs the extra whitebox")
    module, _, attribute = name.rpartition(".")
    owner = unmask.Run if module == "unmask.Run" else import_module(module)
    assert hasattr(owner, attribute) or attribute in owner.__init__.__code__.co_names


def test_studies_import_nothing_else_of_unmask():
    """So that this list is all that a change of unmask has to look at."""
    used = {
        f"{node.module}.{alias.name}"
        for path in (ROOT / "studies").rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "unmask"
        for alias in node.names
    }
    assert used
    assert used <= STABLE | {f"unmask.{name}" for name in unmask.__all__}
