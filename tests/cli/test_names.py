"""Names of files that are no text: Linux allows any bytes in them, and Python hands them over as half characters."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.cli.terminal import unmask
from unmask.data.form import write_jsonl
from unmask.data.load import load

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")

ODD = "x\udcff"
LIAR = ("scripted/liar", "--judge", "scripted/judge")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a set and two runs under such names."""
    folder = tmp_path_factory.mktemp("names")
    write_jsonl(load("tiny").scenarios, path=folder / f"{ODD}.jsonl")
    for name in ("a", "b"):
        assert unmask("run", "--data", "tiny", *LIAR, "--out", name + ODD, cwd=folder).returncode == 0
    return folder


@pytest.mark.parametrize(
    "command",
    [
        ("score", f"a{ODD}", "--json"),
        ("compare", f"a{ODD}", f"b{ODD}"),
        ("compare", f"a{ODD}", f"b{ODD}", "--json"),
        ("board", f"a{ODD}", f"b{ODD}", "--json"),
        ("gate", f"a{ODD}", "--max-p-lie", "1", "--json"),
        ("export", f"a{ODD}", "--format", "csv", "--out", f"csv{ODD}"),
        ("report", f"a{ODD}", f"b{ODD}", "--out", f"report{ODD}.html"),
    ],
)
def test_a_run_in_a_folder_with_such_a_name_is_read_and_shown(place: Path, command: tuple[str, ...]):
    """The output is strict (`tests.cli.forked`), as in any terminal but one without a locale, where it is lenient."""
    done = unmask(*command, cwd=place)
    assert (done.returncode, done.stderr) == (0, "")
