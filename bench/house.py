"""The aims of the house, measured: what a stranger has to take in before the program is understood.

    python -m bench.house

The figures are for judgement. Nothing fails by them: a rename that only appends a word is worse than none.
"""

from __future__ import annotations

import ast
import random
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from inspect import CO_OPTIMIZED
from pathlib import Path
from types import CodeType, FrameType
from typing import NamedTuple

import click

import unmask
from bench.planted import plant, write_jsonl
from bench.process import ROOT, serving
from tests.docs_cli import commands
from unmask.cli.main import COMMANDS, FIRST

SOURCE = ROOT / "src" / "unmask"
AVOIDED = frozenset(
    {"found", "one", "held", "said", "given", "there", "made", "kept"}
    | {"told", "known", "whole", "bare", "rest", "other", "placed"}
)
"""Participles and pronouns that name nothing: neither functions nor locals are to be called so."""

Function = ast.FunctionDef | ast.AsyncFunctionDef

COUNT_MODULES = """
import atexit, sys
ours = lambda: [name for name in sys.modules if name == "unmask" or name.startswith("unmask.")]
atexit.register(lambda: print(len(ours()), file=sys.stderr))
from unmask.cli.start import main
main()
"""


class Named(NamedTuple):
    """A function and where it stands."""

    name: str
    place: str
    exempt: bool
    """A dunder, property, click command or public name: others decide what it is called."""

    @property
    def is_one_word(self) -> bool:
        return "_" not in self.name.strip("_")


def source_files() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def python_files(folder: str) -> list[Path]:
    return sorted((ROOT / folder).rglob("*.py"))


def count_docs() -> tuple[int, int]:
    """Pages of the manual and their words, generated ones included."""
    pages = sorted((ROOT / "docs").glob("*.md"))
    return len(pages), sum(len(page.read_text(encoding="utf-8").split()) for page in pages)


def count_flags() -> dict[str, int]:
    """Every command that does something, with the number of its flags."""
    return {
        name: sum(isinstance(parameter, click.Option) for parameter in command.params)
        for name, command in commands()
        if not isinstance(command, click.Group)
    }


def modules_and_functions_of_a_scenario() -> tuple[int, int]:
    """What is called, by file and by name, when one scripted scenario is run and scored."""
    called: set[CodeType] = set()

    def note_call(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(str(SOURCE)):
            called.add(frame.f_code)

    with tempfile.TemporaryDirectory() as place:
        threading.setprofile(note_call)
        sys.setprofile(note_call)
        try:
            models = {"model": "scripted/liar", "judge": "scripted/judge"}
            unmask.run(data="core", limit=1, out=Path(place, "run"), **models).score()
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
    # What is run once, when a module or a class is made, is no step of a scenario.
    named = [code for code in called if code.co_flags & CO_OPTIMIZED and not code.co_name.startswith("<")]
    return len({code.co_filename for code in named}), len(named)


def root_files() -> list[str]:
    return sorted(path.name for path in SOURCE.iterdir() if path.is_file())


def count_lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def parse_all() -> dict[str, ast.Module]:
    """Every module of the program by its path inside `src/unmask`."""
    return {
        str(path.relative_to(SOURCE)): ast.parse(path.read_text(encoding="utf-8"), str(path)) for path in source_files()
    }


def repeated_classes(trees: dict[str, ast.Module]) -> dict[str, int]:
    """Class names that more than one class has, nested and private classes included."""
    names = Counter(node.name for tree in trees.values() for node in ast.walk(tree) if isinstance(node, ast.ClassDef))
    return {name: count for name, count in sorted(names.items()) if count > 1}


def all_functions(trees: dict[str, ast.Module]) -> list[Named]:
    """Every function and method, in the order of files and lines."""
    return [named for place, tree in trees.items() for named in _functions_in(tree, place, owner=None)]


def _functions_in(node: ast.AST, place: str, *, owner: str | None) -> Iterator[Named]:
    """`owner` is the class whose body this is; functions inside functions have none."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, Function):
            yield Named(child.name, place, _is_exempt(child, owner))
            yield from _functions_in(child, place, owner=None)
        elif isinstance(child, ast.ClassDef):
            yield from _functions_in(child, place, owner=child.name)
        else:
            yield from _functions_in(child, place, owner=owner)


def _is_exempt(function: Function, owner: str | None) -> bool:
    if function.name.startswith("__") and function.name.endswith("__"):
        return True
    decorators = [ast.unparse(decorator) for decorator in function.decorator_list]
    if any(text.endswith(("property", ".setter", ".getter")) for text in decorators):
        return True
    if any(".command(" in text or ".group(" in text for text in decorators):
        return True
    public = set(unmask.__all__)
    return function.name in public if owner is None else owner in public and not function.name.startswith("_")


def avoided_names(trees: dict[str, ast.Module]) -> tuple[Counter[str], Counter[str]]:
    """How often an avoided word names a function, and how often it is bound as a local or a parameter."""
    functions: Counter[str] = Counter()
    local: Counter[str] = Counter()
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                functions[node.name.strip("_")] += 1
                local.update(_locals_of(node))
    return _only_avoided(functions), _only_avoided(local)


def _only_avoided(counts: Counter[str]) -> Counter[str]:
    return Counter({name: count for name, count in counts.items() if name in AVOIDED})


def _locals_of(function: Function) -> set[str]:
    """Names that this function binds itself; functions inside it count for themselves."""
    names: set[str] = set()
    waiting: list[ast.AST] = [function.args, *function.body]
    while waiting:
        node = waiting.pop()
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                continue
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                names.add(name)
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)) | ast.ExceptHandler(name=str(name)):
                names.add(name)
        waiting.extend(ast.iter_child_nodes(node))
    return names


def modules_of_a_run() -> int:
    """Modules of `unmask` that are loaded when `unmask run` against an HTTP endpoint ends."""
    with tempfile.TemporaryDirectory() as place, serving(scenarios=6) as served:
        data = write_jsonl(plant(6), Path(place, "planted.jsonl"))
        subject = ("openai/mock", "--base-url", served.url)
        judge = ("--judge", "openai/judge", "--judge-base-url", served.url)
        flags = ("run", "--data", str(data), "--out", str(Path(place, "run")), "--quiet", *subject, *judge)
        command = [sys.executable, "-c", COUNT_MODULES, *flags]
        done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return int(done.stderr.split()[-1])


def help_milliseconds(times: int = 9) -> float:
    """The median time of `unmask --help` in a process of its own."""
    command = [sys.executable, "-m", "unmask.cli.start", "--help"]
    each = []
    for _ in range(times):
        started = time.perf_counter()
        subprocess.run(command, cwd=ROOT, stdout=subprocess.DEVNULL, check=True)
        each.append(1000 * (time.perf_counter() - started))
    return statistics.median(each)


def main() -> None:
    trees = parse_all()
    classes = repeated_classes(trees)
    functions = [named for named in all_functions(trees) if not named.exempt]
    one_word = sum(named.is_one_word for named in functions)
    in_functions, in_locals = avoided_names(trees)
    flags, (pages, words), walked = count_flags(), count_docs(), modules_and_functions_of_a_scenario()
    drawn = random.Random(0).sample(sorted(functions), 20)
    rows = [
        ("files in the root", f"{len(root_files())}: {' '.join(root_files())}", "7"),
        ("source lines", f"{count_lines(source_files()):,}", "33,500"),
        ("modules", str(len(trees)), "220"),
        ("modules, named functions of a scenario", f"{walked[0]}, {walked[1]}", "45, 450"),
        ("commands: first help screen, all", f"{sum(map(len, FIRST.values()))}, {len(COMMANDS)}", "12, 25"),
        ("flags: all, of run", f"{sum(flags.values())}, {flags['unmask run']}", "220, 36"),
        ("docs: pages, words", f"{pages}, {words:,}", "16, 32,000"),
        ("lines of tests", f"{count_lines(python_files('tests')):,}", "32,000"),
        ("lines of bench", f"{count_lines(python_files('bench')):,}", "7,000"),
        ("lines of studies, not in the package", f"{count_lines(python_files('studies')):,}", "none"),
        ("class names used more than once", f"{len(classes)}: {' '.join(classes)}", "0"),
        ("avoided names, functions", _counted(in_functions), "0"),
        ("avoided names, locals", _counted(in_locals), "0"),
        ("one-word function names", f"{one_word / len(functions):.1%} of {len(functions):,}", "about half"),
        ("modules loaded by unmask run", str(modules_of_a_run()), "80"),
        ("unmask --help", f"{help_milliseconds():.0f} ms", "150 ms"),
    ]
    for name, value, aim in rows:
        print(f"{name} (aim {aim}): {value}")
    print("20 functions, drawn at random with seed 0:")
    for named in drawn:
        print(f"    {named.name}  ({named.place})")


def _counted(counts: Counter[str]) -> str:
    return f"{counts.total()}: {', '.join(f'{name} {count}' for name, count in counts.most_common())}"


if __name__ == "__main__":
    main()
