"""What make says of a machine that lacks something."""

from __future__ import annotations

import subprocess
import sys
from itertools import product
from pathlib import Path

import pytest

from tools import check_machine
from tools.check_machine import MUSL, NEW, OLD, VENV

ROOT = Path(__file__).resolve().parent.parent


@pytest.mark.parametrize(
    ("version", "pip", "abi"),
    list(
        product(
            [(3, 8), (3, 10), (3, 11), (3, 14), (3, 15)],
            [True, False],
            ["cpython-313-x86_64-linux-gnu", "x-linux-musl"],
        )
    ),
)
def test_every_lack_is_named_and_an_old_python_alone(version, pip, abi):
    """Whatever else is missing there will be different once Python is newer."""
    found = check_machine.list_obstacles(version, can_install_pip=pip, abi=abi)
    if version < (3, 11):
        assert found == [OLD]
    else:
        assert set(found) == ({VENV} if not pip else set()) | ({MUSL} if "musl" in abi else set())
    assert check_machine.list_warnings(version) == ([NEW] if version == (3, 15) else [])


@pytest.fixture
def tree(tmp_path) -> Path:
    """A copy of the tree that has nothing but make's own files."""
    for name in ("Makefile", "pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_bytes((ROOT / name).read_bytes())
    (tmp_path / "tools").symlink_to(ROOT / "tools")
    return tmp_path


def make_demo(tree: Path, python: str) -> list[str]:
    """What make says when it stops before it has made anything."""
    command = ["make", "demo", f"PYTHON={python}"]
    done = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert not (tree / ".venv").exists()
    return done.stderr.splitlines()


def test_without_ensurepip_make_stops_before_anything_is_made(tree):
    """One line with what to type."""
    python = tree / "bare-python"
    python.write_text(
        f'#!/bin/sh\nexec "{sys.executable}" -c "import runpy, sys; sys.modules[\'ensurepip\'] = None;'
        ' sys.argv = sys.argv[1:]; runpy.run_path(sys.argv[0], run_name=\'__main__\')" "$@"\n'
    )
    python.chmod(0o755)
    assert make_demo(tree, str(python))[0] == VENV.format(python=python)


def test_a_python_that_is_not_there_is_named(tree):
    assert make_demo(tree, "python9")[0].startswith("python9 is not on this machine. On Debian and Ubuntu, type: ")


def test_make_test_bare_names_what_it_does_not_know():
    done = subprocess.run(
        [sys.executable, ROOT / "tools" / "bare_systems.py", "slackware"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert done.stderr == "there is no system 'slackware'; there are 12, 13, testing, small\n"


def test_the_container_has_no_root_and_its_context_is_there():
    """make test-container carries out its steps; CI sees that they name what is in the tree, and let it through."""
    lines = (ROOT / "Containerfile").read_text(encoding="utf-8").splitlines()
    steps = [line.split() for line in lines if line and not line.startswith("#")]
    assert [step[1] for step in steps if step[0] == "USER"] == ["unmask"]
    copied = {name for step in steps if step[0] == "COPY" and not step[1].startswith("--") for name in step[1:-1]}
    let_through = {line[1:] for line in (ROOT / ".containerignore").read_text().splitlines() if line.startswith("!")}
    assert copied == let_through
    assert all((ROOT / name).exists() for name in copied)
