"""The point of it all: what README, tutorial and how-tos tell you to type works as typed.

In a folder with nothing but `.venv`, an empty home, no `unmask` until the text activates it, no key until the text sets
one, and a planted endpoint behind `OPENAI_BASE_URL`. `make` and `pip` lines are in blocks without a language; `make
test-bare` types those in a system with nothing on it.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.e2e.planted_core import serve_planted_core
from tests.e2e.typed import Screen, show_command, type_command
from tests.needs import give_up
from tests.thorough import THOROUGH

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.MULTILINE | re.DOTALL)
PROMISE = re.compile(r"#\s*exit (\d+)")
ACTIVATE = ". .venv/bin/activate"


def typed_lines(page: str) -> list[str]:
    """The commands of a page, in order: all of its blocks marked `sh`, and the line that sets the key."""
    lines: list[str] = []
    for language, block in BLOCK.findall((ROOT / page).read_text(encoding="utf-8")):
        whole = block.replace("\\\n", " ")
        lines += [line for line in whole.splitlines() if language == "sh" or line.startswith("export OPENAI_API_KEY")]
    return [line for line in lines if line.strip() and not line.startswith("#")]


def next_commands(shown: list[str]) -> list[str]:
    """The commands that the demo ends with."""
    commands = [line.strip() for line in shown[shown.index("NEXT") :] if line.strip().startswith("unmask ")]
    assert len(commands) == 3, shown
    return commands


def test_every_command_of_the_pages_does_what_they_promise():
    """The README in a shell; then what else the tutorial has, with no need to start Python for each again. A line that
    stands on both pages is typed once; in a thorough run the tutorial is begun anew and typed whole."""
    if not Path("/dev/ptmx").exists():
        give_up("pseudo-terminal", advice="Mount devpts.")
    failures: list[str] = []
    with newcomer() as (folder, env), newcomer() as another:
        read = type_page(typed_lines("README.md"), type_command, folder, env, failures)
        lines = typed_lines("docs/tutorial.md")
        if THOROUGH:
            another_folder, another_env = another
            activate(ACTIVATE, another_folder, another_env)  # as the page says where it installs
            type_page(lines, show_command, another_folder, another_env, failures)
        else:
            new = [line for line in lines if without_comment(line) not in read]
            assert len(new) < len(lines)
            type_page(new, show_command, folder, env, failures)
    assert not failures, "\n".join(failures)


def test_every_command_of_the_how_tos_does_what_it_promises():
    """In order, with the built-in fake models, and no key."""
    failures: list[str] = []
    with newcomer() as (folder, env):
        activate(ACTIVATE, folder, env)
        env["PAGER"] = "cat"  # nobody turns the pages of 300 lies
        type_page(typed_lines("docs/howto.md"), show_command, folder, env, failures)
    failures = [failure for failure in failures if "terminal: unmask: " not in failure]  # an error is one line
    assert not failures, "\n".join(failures)


@contextmanager
def newcomer() -> Iterator[tuple[Path, dict[str, str]]]:
    """A folder to work in that holds nothing but `.venv`, as `make demo` leaves it, and the environment of its user."""
    # A short path: doctor shows where it works, and nobody's folder is as long as those of pytest.
    with tempfile.TemporaryDirectory(prefix="u") as short, serve_planted_core() as url:
        home, folder = Path(short, "home"), Path(short, "work")
        home.mkdir()
        scripts = folder / ".venv" / "bin"
        scripts.mkdir(parents=True)
        (scripts / "activate").write_text(f'export PATH="{Path(sys.executable).parent}:$PATH"\n', encoding="utf-8")
        env = {
            "HOME": str(home),
            "PATH": "/usr/bin:/bin",
            "TERM": "xterm-256color",
            "LANG": "C.UTF-8",
            "OPENAI_BASE_URL": url,
        }
        if "PYTHONPATH" in os.environ:
            env["PYTHONPATH"] = os.environ["PYTHONPATH"]
        yield folder, env


def activate(line: str, folder: Path, env: dict[str, str]) -> None:
    """Types the line, and keeps what it does to the shell for the lines after it."""
    typed = f"{line}\nprintenv PATH"
    done = subprocess.run(["bash", "-c", typed], cwd=folder, env=env, capture_output=True, text=True, check=True)
    env["PATH"] = done.stdout.strip()


def without_comment(line: str) -> str:
    return line.partition(" #")[0].strip()


def type_page(
    lines: list[str], type_line: Callable[..., Screen], folder: Path, env: dict[str, str], failures: list[str]
) -> set[str]:
    """Every line, and what the demo ends with. What was typed; failures are added to those given."""
    assert len(lines) > 5
    typed = set()
    while lines:
        line = lines.pop(0)
        if line.startswith("export OPENAI_API_KEY"):
            env["OPENAI_API_KEY"] = "sk-planted"
            continue
        if line.startswith(ACTIVATE):
            activate(line, folder, env)
            continue
        typed.add(without_comment(line))
        promised = PROMISE.search(line)
        screen = type_line(line, cwd=folder, env=env)
        if screen.code != (int(promised[1]) if promised else 0):
            failures.append(f"{line}\n  ended with {screen.code}:\n  " + "\n  ".join(screen.lines[-12:]))
        if line.startswith("unmask demo"):
            lines = [*next_commands(screen.lines), *lines]
        failures += [f"{line}\n  is wider than the terminal: {wide}" for wide in screen.too_wide]
    return typed
