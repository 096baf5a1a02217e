"""What is published: sdist and wheel hold what they should, and the wheel opens every data file."""

from __future__ import annotations

import os
import subprocess
import sys
import sysconfig
import tarfile
from contextlib import chdir
from importlib.metadata import distributions
from pathlib import Path

import pytest

from tests.made_runs import made
from unmask import __version__
from unmask.judges.base import Style
from unmask.judges.letters import prompts_hash

ROOT = Path(__file__).resolve().parent.parent
OPENING = """
import sys
sys.path[:0] = sys.argv[1:]  # the installed wheel, then what it depends on; without `site` no editable install is seen
import unmask
assert unmask.__file__.startswith(sys.argv[1]), unmask.__file__
from pathlib import Path
from unmask.demo.answer_key import load_answer_key
from unmask.demo.recorded import open_recorded
from unmask.analysis.published.values import published_values, training_compute
from unmask.data.load import bundled_sets
from unmask.data.load import load
from unmask.judges.base import Style
from unmask.judges.letters import prompts_hash
from unmask.models.local.catalogue import adapter_of, find_entry
from unmask.render.html import page
from unmask.viewer.templating import render_template
from unmask.whitebox.contrast import load_facts
from unmask.whitebox.fluency import read_neutral_passages
assert published_values() and training_compute() and load_facts() and read_neutral_passages()
assert [len(load(name).scenarios) for name in sorted(bundled_sets())] == [300, 384, 12]
assert adapter_of(find_entry("judge-1.5b")).stat().st_size > 9_000_000
assert adapter_of(find_entry("liar-135m")).stat().st_size > 3_000_000
assert len(load_answer_key().planted) == 300
assert len(open_recorded(Path(sys.argv[1]).parent / "recorded").scenarios) == 250
assert all(page.read_asset(name) for name in ("page.css", "page.js", "base.html", "report.html", "parts.html"))
assert "unmask view" in render_template("refused.html", text="", advice="")
assert (Path(unmask.__file__).parent / "viewer" / "static" / "viewer.css").is_file()
print(prompts_hash(), prompts_hash(Style.PICKS))
"""


MOST = 16_000_000
"""Bytes of a file that is published."""


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    """A folder with a freshly built sdist and the wheel that is built from it. The calls are the ones pip makes."""
    from hatchling.build import build_sdist, build_wheel

    folder = tmp_path_factory.mktemp("built")
    with chdir(ROOT):
        sdist = build_sdist(str(folder))
    with tarfile.open(folder / sdist) as archive:
        archive.extractall(folder / "sdist", filter="data")
    (tree,) = (folder / "sdist").iterdir()
    with chdir(tree):
        build_wheel(str(folder))
    return folder


@pytest.fixture(scope="module")
def installed(built):
    """The folder into which pip has installed the wheel."""
    (wheel,) = built.glob("*.whl")
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*install, built / "installed", wheel], check=True)
    return built / "installed"


def test_what_is_published_is_small_and_holds_no_archive_of_a_study(built):
    """The sdist has what the wheel is built of, and no research, bench or test."""
    (tree,) = (built / "sdist").iterdir()
    names = {path.name for path in tree.iterdir()}
    papers = {"README.md", "LICENSE", "CHANGELOG.md", "CITATION.cff"}
    assert names == papers | {"src", "pyproject.toml", "PKG-INFO", ".gitignore"}
    published = [*built.glob("*.whl"), *built.glob("*.tar.gz")]
    assert len(published) == 2
    assert [path.name for path in published if path.stat().st_size >= MOST] == []


def test_the_metadata_names_version_python_licence_and_types(installed):
    """The version comes from the package, the README is the long description, and type checkers find the marker."""
    (found,) = distributions(path=[str(installed)])
    fields = found.metadata
    assert (fields["Name"], fields["Version"], fields["License-Expression"]) == ("unmask", __version__, "MIT")
    assert (fields["Requires-Python"], fields["Description-Content-Type"]) == (">=3.11", "text/markdown")
    assert fields.get_payload().strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()
    assert (installed / "unmask" / "py.typed").is_file()


def test_the_wheel_holds_every_data_file(installed):
    """Nothing that is no Python file stays behind: hatchling leaves out what git ignores."""
    source = ROOT / "src" / "unmask"
    data = [path for path in source.rglob("*") if path.is_file() and path.suffix not in {".py", ".pyc"}]
    assert len(data) > 30
    for path in data:
        assert (installed / "unmask" / path.relative_to(source)).read_bytes() == path.read_bytes()


def test_the_wheel_holds_the_package_and_nothing_else(installed):
    """Studies and benches are next to the package: people who install it do not get them."""
    (metadata,) = installed.glob("unmask-*.dist-info")
    assert {path.name for path in installed.iterdir()} - {"bin"} == {"unmask", metadata.name}
    assert not list(installed.rglob("material.json"))


def test_the_program_opens_its_data_files_from_the_wheel(installed):
    """Scenarios, prompts, published values, adapter and templates are found where only the wheel is installed."""
    libraries = {sysconfig.get_path("purelib"), sysconfig.get_path("platlib")}
    program = [sys.executable, "-S", "-I", "-c", OPENING, str(installed), *libraries]
    done = subprocess.run(program, cwd=installed, capture_output=True, text=True, check=False)
    assert (done.stderr, done.stdout) == ("", f"{prompts_hash()} {prompts_hash(Style.PICKS)}\n")


def test_pytest_finds_the_fixture_of_the_gate(built, installed, tmp_path):
    """In a project with nothing but the wheel: a kept limit passes, a broken one fails and names its checks."""
    made(tmp_path / "run", ["lie"] * 10 + ["honest"] * 90)
    (tmp_path / "test_honesty.py").write_text(
        "import pytest\n@pytest.mark.parametrize('limit', [0.3, 0.05])\n"
        "def test_it(unmask_gate, limit):\n    assert unmask_gate('run', max_p_lie=limit).passed\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "--junitxml=junit.xml", "-o", "addopts=", "--rootdir=."]
    environment = os.environ | {"PYTHONPATH": str(installed)}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=False)
    assert "1 failed, 1 passed" in done.stdout
    assert "The gate is not met: P(lie) fails." in done.stdout
    assert "Traceback" not in done.stdout
    assert (tmp_path / "junit.xml").read_text(encoding="utf-8").count('value="10.0 % [') == 2
