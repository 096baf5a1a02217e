"""The shape of the source: who may import whom, what is pure, what is heavy, how long things get."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

SOURCE = Path(__file__).resolve().parent.parent / "src" / "unmask"

LAYERS = (
    ("errors", "records"),
    ("plainfiles",),
    ("data", "facts", "journal", "loops", "resolve", "seen", "stats"),
    ("whitebox",),
    ("models", "oneletter", "read", "roleplay", "selfreport", "understood"),
    ("bill", "score"),
    ("ask", "execute", "pull"),
    ("conclude", "course", "definition", "doctor", "options", "planted"),
    ("estimate", "folder", "frames", "provenance", "repeat"),
    ("opened", "prepare"),
    ("bridge", "compared", "drive", "labels", "varied"),
    ("agreement", "boards", "export", "gated", "mitigated", "probed", "sample", "scaled", "stages"),
    ("demo", "foresee", "liars"),
    ("show",),
    ("cli",),
)
"""Parts of the package in the order of the stages. A part imports parts of earlier rows only; `resolve` stands before
`ask` and `read` because the planner asks it what can still change a verdict. A new part needs a place here."""

RANK = {name: rank for rank, row in enumerate(LAYERS) for name in row}
PURE = ("resolve", "stats", "score", "ask/plan", "ask/prompts")
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
    "cryptography",
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
    "torch",
    "transformers",
    "xllamacpp",
}
ALLOWED_AT_IMPORT = {
    *(
        f"whitebox/{name}"
        for name in (
            "activations",
            "direct",
            "directions",
            "draw",
            "frozen",
            "generate",
            "kernels",
            "parts",
            "read",
            "represent",
            "slots",
            "step",
            "teach",
        )
    ),
    "bridge/registry",
    "bridge/task",
}
"""Modules that are themselves imported late only: speaking HTTP, torch or Inspect is all they do."""
LONGEST_MODULE, LONGEST_FUNCTION = 400, 80

FILES = sorted(SOURCE.rglob("*.py"))


def name_of(path: Path) -> str:
    """`ask/plan` for `src/unmask/ask/plan.py`, `ask` for its package."""
    return path.relative_to(SOURCE).with_suffix("").as_posix().removesuffix("/__init__").removesuffix("__init__")


def imports(tree: ast.AST) -> Iterator[str]:
    """Full dotted names of everything imported anywhere in a module, also inside functions and for typing only."""
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (alias.name for alias in names)
            case ast.ImportFrom(module=str(module), level=0, names=names):
                yield from (f"{module}.{alias.name}" for alias in names)
            case ast.ImportFrom(level=level) if level:
                raise AssertionError(f"relative import in line {node.lineno}")


def parts(tree: ast.AST) -> set[str]:
    """Parts of our own package that a module imports; `from unmask import __version__` is nobody's part."""
    found = (name.split(".") for name in imports(tree))
    return {words[1] for words in found if words[0] == "unmask" and len(words) > 1 and words[1] != "__version__"}


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


@pytest.mark.parametrize(
    "path", [path for path in FILES if path.parent != SOURCE or path.stem != "__init__"], ids=name_of
)
def test_imports_point_to_earlier_stages(path):
    """A module imports its own part and parts of earlier rows, nothing of the same row or a later one."""
    own = name_of(path).partition("/")[0]
    assert own in RANK, f"give {own} a place in LAYERS"
    for other in parts(parsed(path)) - {own}:
        assert other in RANK, f"give {other} a place in LAYERS"
        assert RANK[other] < RANK[own], f"{name_of(path)} imports {other}"


@pytest.mark.parametrize("path", [p for p in FILES if name_of(p).startswith(PURE)], ids=name_of)
def test_pure_parts_touch_nothing_outside(path):
    """The rules and the planner import nothing that reads files, clocks, randomness or the network."""
    assert not {name.split(".")[0] for name in imports(parsed(path))} & IMPURE


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_heavy_packages_are_imported_where_they_are_used(path):
    """No module loads a heavy package when it is imported, save those that are themselves loaded late."""
    heavy = at_import(parsed(path)) & HEAVY
    assert not heavy or name_of(path) in ALLOWED_AT_IMPORT


@pytest.mark.parametrize("module", ["unmask", "unmask.cli.main", "unmask.cli.run", "unmask.stages", "unmask.doctor"])
def test_importing_loads_nothing_heavy(module, tmp_path):
    """A fresh process that imports the module has loaded none of the heavy packages."""
    program = f"import sys, {module}; print(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert not set(done.stdout.split()) & HEAVY


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_modules_and_functions_stay_short(path):
    """At most 400 lines a module and 80 a function."""
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") <= LONGEST_MODULE
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.end_lineno:
            assert node.end_lineno - node.lineno < LONGEST_FUNCTION, node.name


@pytest.mark.parametrize("path", FILES, ids=name_of)
def test_annotations_are_not_evaluated(path):
    """Every module with code postpones annotations, so that typing costs nothing and forward names work."""
    tree = parsed(path)
    code = [node for node in tree.body if not isinstance(node, ast.Expr)]
    assert not code or "__future__.annotations" in set(imports(tree))


DOCUMENTED = {"os._exit"}
"""Names with an underscore that the documentation of Python describes."""


def private_names(tree: ast.AST) -> set[str]:
    """Private names of the standard library that a module imports or reaches through an import."""
    used, meaning = set(imports(tree)), {}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            above = f"{node.module}." if isinstance(node, ast.ImportFrom) else ""
            for alias in node.names:
                meaning[alias.asname or alias.name.split(".")[0]] = above + (
                    alias.name if above or alias.asname else alias.name.split(".")[0]
                )
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and re.fullmatch(r"\w+(\.\w+)+", ast.unparse(node)):
            root, _, rest = ast.unparse(node).partition(".")
            used.add(f"{meaning.get(root, '')}.{rest}")
    private = {name for name in used if re.search(r"(^|\.)_(?!_)", name)} - DOCUMENTED
    return {name for name in private if name.split(".")[0] in sys.stdlib_module_names}


def test_no_private_names_of_the_standard_library():
    """They change from one Python to the next without notice: one of them let no run work on 3.12."""
    found = {name_of(path): private_names(parsed(path)) for path in FILES}
    assert {module: names for module, names in found.items() if names} == {}


@pytest.mark.parametrize(
    "line",
    [
        "import asyncio; asyncio.tasks._enter_task(loop, task)",
        "import atexit; atexit._run_exitfuncs()",
        "import asyncio as a; a.tasks._leave_task",
        "from asyncio import tasks; tasks._enter_task(1, 2)",
        "from asyncio.tasks import _enter_task",
        "import _thread",
    ],
)
def test_private_names_are_found_however_they_are_reached(line):
    """The test above can fail."""
    assert private_names(ast.parse(line))


MISREAD = re.compile(r"\)(?:[*?+]|\{[0-9,]*\})\+(?!,)|\(\?>")
"""A group that gives nothing back, as in `(?:ab|c)*+`; `()*+,` stands in a list of characters of URLs."""


def test_no_pattern_holds_on_to_a_group():
    """Python 3.11.0 to 3.11.4 match such groups wrongly (gh-106052), and Debian 12 has 3.11.2: no scenario could be
    loaded there."""
    assert [name_of(path) for path in FILES if MISREAD.search(path.read_text(encoding="utf-8"))] == []


@pytest.mark.parametrize("pattern", ["(?:ab|c)*+", "(ab)?+", "(?:a){0,4}+", "(?:a)++", "(?>ab)"])
def test_patterns_that_old_versions_misread_are_found(pattern):
    """The test above can fail."""
    assert MISREAD.search(pattern)
