"""Every command that prints a table, in terminals of 80 and 120 columns: no line is wider.

The runs have long names, as real models have. The commands that need weights print by the same functions; theirs are
called here with what they print of a result.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import pytest

import unmask
from tests.e2e.typed import show_command, type_command
from tests.made_runs import Subject, scenarios
from tests.needs import give_up
from tests.thorough import THOROUGH, draw_part
from unmask.data.dataset import Dataset, content_hash, in_order
from unmask.data.load import load
from unmask.data.stats import describe_dataset
from unmask.models.scripted import Scripted
from unmask.records import Archetype
from unmask.render.blocks import Cell, Table, to_terminal
from unmask.render.describe.stats import describe_stats
from unmask.render.layout import wrap_text

MODELS = {
    "gpt": "openai/gpt-4o-2024-11-20",
    "claude-sonnet-4-20250514": "anthropic/claude-sonnet-4-20250514",
    "llama-3.1-70b-instruct": "openrouter/meta-llama/llama-3.1-70b-instruct-turbo",
    "qwen": "qwen",
}
THREE = "gpt claude-sonnet-4-20250514 llama-3.1-70b-instruct"
COMMANDS = (
    "unmask score gpt",
    "unmask show gpt",
    "unmask show gpt --verdict lie --random 5 --sample-seed 1",
    "unmask show gpt s-0000",
    f"unmask compare {THREE}",
    f"unmask compare {THREE} qwen",
    f"unmask compare {THREE} --all",
    f"unmask board {THREE} empty",
    f"unmask board {THREE} qwen copy --with-published",
    "unmask board --with-published --compute published",
    "unmask power --gap 0.05 --scenarios 300",
    "unmask power --max-p-lie 0.3 --p 0.2 --scenarios 300",
    "unmask gate gpt --max-p-lie 0.9",
    "unmask gate claude-sonnet-4-20250514 --max-p-lie 0.9 --baseline gpt --max-rise 0.9",
    "unmask sensitivity gpt",
    "unmask agree gpt",
    "unmask compare gpt@scripted/judge gpt@verbatim --margin 0.9 --max-unjudged 1",
    f"unmask mitigate report {THREE}",
    "unmask data list",
    "unmask data list core",
    "unmask data stats core",
    "unmask data show known_facts-001",
    "unmask pull",
    "unmask run --plan openai/gpt-4o-mini --judge openai/gpt-4o",
    "unmask doctor",
)

TYPED = {"unmask run --plan openai/gpt-4o-mini --judge openai/gpt-4o", "unmask doctor"}
"""What `test_first_minutes` types into a terminal of 80 columns, and measures there."""


@pytest.fixture(scope="module")
def folder():
    with tempfile.TemporaryDirectory(prefix="u") as short:
        work = Path(short, "w")
        chosen = scenarios(90)
        name = content_hash(chosen)
        data = Dataset(name="made", source="made", scenarios=in_order(chosen), hash=name, full_hash=name)
        for place, (out, model) in enumerate(MODELS.items()):
            plan = [("lie", "honest", "evasion")[(number // 3 + place * number) % 3] for number in range(90)]
            unmask.run(
                data=data, model=Scripted(Subject(chosen, plan), name=model), judge="scripted/judge", out=work / out
            )
        unmask.judge(work / "gpt", judge="verbatim")
        for file in sorted((work / "gpt").rglob("*")):  # a copied folder, and one whose first start failed
            for target in ("copy", "empty"):
                where = work / target / file.relative_to(work / "gpt")
                if file.is_dir():
                    where.mkdir(parents=True)
                elif target == "copy" or file.name in {"run.json", "scenarios.jsonl"}:
                    where.parent.mkdir(parents=True, exist_ok=True)
                    where.write_bytes(file.read_bytes())
        Path(short, "home").mkdir()
        yield work


def terminal_env(folder: Path, pager: str = "cat") -> dict[str, str]:
    env = {
        "HOME": str(folder.parent / "home"),
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "TERM": "xterm-256color",
        "LANG": "C.UTF-8",
        "PAGER": pager,
        "OPENAI_API_KEY": "sk-none",
    }
    return env | {name: os.environ[name] for name in ("PYTHONPATH",) if name in os.environ}


@pytest.mark.parametrize("columns", [80, 120])
def test_no_table_is_wider_than_the_terminal(folder, columns):
    if not Path("/dev/ptmx").exists():
        give_up("pseudo-terminal", advice="Mount devpts.")
    env = terminal_env(folder)
    failures = []
    narrow = COMMANDS if THOROUGH else [line for line in COMMANDS if line not in TYPED]
    for line in narrow if columns == 80 else draw_part(COMMANDS, 4):
        screen = show_command(line, cwd=folder, env=env, columns=columns)
        if screen.code != 0 or not screen.lines:
            failures.append(f"{line}\n  ended with {screen.code}:\n  " + "\n  ".join(screen.lines[-6:]))
        failures += [f"{line}\n  is wider than the terminal: {wide}" for wide in screen.too_wide]
    assert not failures, "\n".join(failures)


@pytest.mark.parametrize(
    ("line", "paged"),
    [
        ("unmask show qwen", True),
        ("unmask data list core", True),
        ("unmask show qwen --random 5", False),
        ("unmask show qwen | cat", False),
    ],
)
def test_a_list_longer_than_the_terminal_goes_through_the_pager(folder, line, paged):
    """A short one does not, nor one that goes to another program."""
    if not Path("/dev/ptmx").exists():
        give_up("pseudo-terminal", advice="Mount devpts.")
    screen = type_command(line, cwd=folder, env=terminal_env(folder, pager="sed s/^/paged:/"))
    assert screen.code == 0
    assert all(shown.startswith("paged:") == paged for shown in screen.lines)


def assert_fits(text: str, columns: int) -> None:
    assert text
    assert [line for line in text.splitlines() if len(line) > columns] == []


def test_numbers_are_never_cut():
    """Texts go on in further lines, also inside a word; a table of numbers that has no room is too wide instead."""
    row = ("openrouter/" + "x" * 60, Cell(0.28, 0.232, 0.333), "1,234,567")
    for width in range(20, 100):
        shown = to_terminal([Table(("model", "P(lie) %", "requests sent"), [row])], width=width)
        assert all(number in shown for number in ("28.0", "[23.2, 33.3]", "1,234,567"))
        if width >= 12 + 2 + 12:
            assert_fits(shown, width)


@pytest.mark.parametrize("name", ["core", "ladder"])
def test_names_are_whole_where_headings_can_be_folded(name):
    shown = to_terminal(describe_stats(describe_dataset(load(name))), width=80)
    assert_fits(shown, 80)
    assert [one for one in Archetype if len(one) < 20 and f"\n{one} " not in shown] == []


@pytest.mark.parametrize(
    ("text", "room", "lines"),
    [
        ("one two three", 7, ["one two", "three"]),
        ("--judge openai/gpt-4o", 10, ["--judge", "openai/gpt", "-4o"]),
        ("    indented code stays", 16, ["    indented", "    code stays"]),
        ("水が凍ると膨張する", 8, ["水が凍る", "と膨張す", "る"]),
        ("", 8, [""]),
    ],
)
def test_texts_are_wrapped_at_spaces_by_the_columns_they_take(text, room, lines):
    assert wrap_text(text, room) == lines
