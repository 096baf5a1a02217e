"""The shape of the source: who may import whom, what is pure, what is heavy, how long things get."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "src" / "unmask"

ROOMS = (
    *("errors", "records", "text", "files"),
    *("stats", "data", "whitebox", "models", "judges", "protocol", "scoring", "runs", "engine"),
    *("analysis", "interop", "demo", "sweep", "render", "viewer", "cli"),
)
"""A module imports its own room and rooms that stand before it here. Nothing else stands in the root but `__init__`,
which names the public things, and `__main__`."""

PURE = ("stats", "protocol", "scoring")
"""Style rule 5: nothing here touches files, clocks, randomness or the network."""
IMPURE = {
    "aiohttp",
    "asyncio",
    "datetime",
    "http",
    "io",
    "logging",
    "os",
    "pathlib",
    "random",
    "secrets",
    "shutil",
    "socket",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "urllib",
}
HEAVY = {
    "aiohttp",
    "genai_prices",
    "huggingface_hub",
    "inspect_ai",
    "jinja2",
    "matplotlib",
    "numpy",
    "platformdirs",
    "pyarrow",
    "rich",
    "scipy",
    "starlette",
    "torch",
    "transformers",
    "uvicorn",
    "xllamacpp",
}
LOADED_LATE = ("viewer/", "whitebox/", *(f"interop/inspect/{name}" for name in ("export", "registry", "task")))
"""Modules that are themselves imported late only: speaking torch or Inspect is all they do."""
LONGEST_FUNCTION = 80

FILES = sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    """`ask/plan` for `src/unmask/protocol/plan.py`, `ask` for its package."""
    return path.relative_to(SOURCE).with_suffix("").as_posix().removesuffix("/__init__").removesuffix("__init__")


@cache
def nodes(tree: ast.AST) -> tuple[ast.AST, ...]:
    """All of a tree. Walking through it takes longer than what most tests look for in it."""
    return tuple(ast.walk(tree))


def imports(tree: ast.AST) -> Iterator[str]:
    """Full dotted names of everything imported anywhere in a module, also inside functions and for typing only."""
    for node in nodes(tree):
        if not isinstance(node, ast.Import | ast.ImportFrom):
            continue
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.ImportFrom(level=level) if level:
                raise AssertionError(f"relative import in line {node.lineno}")


def rooms(tree: ast.AST) -> set[str]:
    """Rooms of our own package that a module imports; `from unmask import __version__` is nobody's room."""
    names = (name.split(".") for name in imports(tree))
    return {words[1] for words in names if words[0] == "unmask" and len(words) > 1 and words[1] != "__version__"}


def at_import(tree: ast.Module) -> set[str]:
    """Top packages that are loaded as soon as the module is: not inside a function, not for typing only."""
    found: set[str] = set()
    waiting: list[ast.stmt] = list(tree.body)
    while waiting:
        match waiting.pop():
            case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.FunctionDef() | ast.AsyncFunctionDef():
                continue
            case ast.Import() | ast.ImportFrom() as node:
                found |= {name.split(".")[0] for name in imports(node)}
            case node:
                waiting += [child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]
    return found


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


@cache
def trees() -> dict[str, ast.Module]:
    return {name_of(path): parsed(path) for path in FILES}


def test_the_root_holds_the_rooms_and_nothing_else():
    """A newcomer sees six modules and the rooms."""
    files = {path.name for path in SOURCE.iterdir() if path.is_file()}
    assert files == {"__init__.py", "__main__.py", "errors.py", "records.py", "text.py", "files.py", "py.typed"}
    assert {path.name for path in SOURCE.iterdir() if path.is_dir()} - {"__pycache__"} == set(ROOMS[4:])


def test_imports_point_to_rooms_before():
    """A module imports its own room and rooms before it."""
    wrong = {
        (module, other)
        for module, tree in trees().items()
        if module not in {"", "__main__"}
        for other in rooms(tree)
        if ROOMS.index(other) > ROOMS.index(module.partition("/")[0])
    }
    assert wrong == set()


def test_rooms_re_export_nothing():
    """Only the top `__init__` is a promised import path."""
    packages = [path for path in FILES if path.name == "__init__.py" and path.parent != SOURCE]
    assert [
        name_of(path) for path in packages if any(not isinstance(node, ast.Expr) for node in parsed(path).body)
    ] == []


def test_pure_rooms_touch_nothing_outside():
    """The rules, the planner and the statistics import nothing that reads files, clocks, randomness or the network."""
    pure = {module: tree for module, tree in trees().items() if module.startswith(PURE)}
    assert {module for module, tree in pure.items() if {name.split(".")[0] for name in imports(tree)} & IMPURE} == set()


def test_heavy_packages_are_imported_where_they_are_used():
    """No module loads a heavy package when it is imported, save those that are themselves loaded late."""
    heavy = {module for module, tree in trees().items() if at_import(tree) & HEAVY}
    assert {module for module in heavy if not module.startswith(LOADED_LATE)} == set()


@pytest.mark.parametrize(
    "module", ["unmask", "unmask.cli.main", "unmask.cli.run", "unmask.engine.run", "unmask.models.doctor"]
)
def test_importing_loads_nothing_heavy(module, tmp_path):
    """A fresh process that imports the module has loaded none of the heavy packages."""
    program = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & HEAVY


def test_llama_cpp_is_imported_in_one_place():
    """Its wheel cannot be imported on a bare Debian unless OpenMP is loaded first, in tests and benches too."""
    pattern = re.compile(r"(?:import|from)\s+xllamacpp|\(\s*[\"']xllamacpp")
    files = [path for folder in ("src", "tests", "bench", "studies", "tools") for path in (ROOT / folder).rglob("*.py")]
    found = {path.relative_to(ROOT).as_posix() for path in files if pattern.search(path.read_text(encoding="utf-8"))}
    assert found == {"src/unmask/models/local/llamacpp.py"}


def test_functions_stay_short():
    """At most 80 lines a function."""
    long = [
        f"{module}: {node.name}"
        for module, tree in trees().items()
        for node in nodes(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        if (node.end_lineno or 0) - node.lineno >= LONGEST_FUNCTION
    ]
    assert long == []


def test_annotations_are_not_evaluated():
    """Every module with code postpones annotations, so that typing costs nothing and forward names work."""
    late = [
        module
        for module, tree in trees().items()
        if any(not isinstance(node, ast.Expr) for node in tree.body) and module != "__main__"
        if "__future__.annotations" not in set(imports(tree))
    ]
    assert late == []


DOCUMENTED = {"os._exit"}
"""Names with an underscore that the documentation of Python describes."""


def dotted_name(node: ast.expr) -> str | None:
    """`a.b.c` for what is written so, `None` for an attribute of anything but a name."""
    words: list[str] = []
    while isinstance(node, ast.Attribute):
        words.append(node.attr)
        node = node.value
    return ".".join([node.id, *reversed(words)]) if isinstance(node, ast.Name) else None


def private_names(tree: ast.AST) -> set[str]:
    """Private names of the standard library that a module imports or reaches through an import."""
    used, meaning = set(imports(tree)), {}
    for node in nodes(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            above = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                meaning[alias.asname or alias.name.split(".")[0]] = above + (
                    alias.name if above or alias.asname else alias.name.split(".")[0]
                )
    for node in nodes(tree):
        if isinstance(node, ast.Attribute) and (name := dotted_name(node)):
            root, _, rest = name.partition(".")
            used.add(f"{meaning.get(root, '')}.{rest}")
    private = {name for name in used if re.search(r"(^|\.)_(?!_)", name)} - DOCUMENTED
    return {name for name in private if name.split(".")[0] in sys.stdlib_module_names}


def test_no_private_names_of_the_standard_library():
    """They change from one Python to the next without notice: one of them let no run work on 3.12."""
    found = {module: private_names(tree) for module, tree in trees().items()}
    assert {module: names for module, names in found.items() if names} == {}


MISREAD = re.compile(r"\)(?:[*?+]|\{[0-9,]*\})\+(?!,)|\(\?>")
"""A group that gives nothing back, as in `(?:ab|c)*+`; `()*+,` stands in a list of characters of URLs."""


def test_no_pattern_holds_on_to_a_group():
    """Python 3.11.0 to 3.11.4 match such groups wrongly (gh-106052), and Debian 12 has 3.11.2: no scenario could be
    loaded there."""
    assert [name_of(path) for path in FILES if MISREAD.search(path.read_text(encoding="utf-8"))] == []
