"""The wheel that people install: every data file is in it and can be opened."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from contextlib import chdir
from pathlib import Path

import pytest

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


@pytest.fixture(scope="module")
def installed(tmp_path_factory):
    """The folder into which pip has installed a freshly built wheel. The call that builds it is the one pip makes."""
    from hatchling.build import build_wheel

    folder = tmp_path_factory.mktemp("wheel")
    with chdir(ROOT):
        wheel = build_wheel(str(folder))
    install = [sys.executable, "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", "--target"]
    subprocess.run([*install, folder / "installed", folder / wheel], check=True)
    return folder / "installed"


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
