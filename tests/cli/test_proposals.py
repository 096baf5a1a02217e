"""Every command that a message proposes can be pasted: collected from what commands print, and run."""

from __future__ import annotations

import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.terminal import unmask

LOG = Path(__file__).parent.parent / "interop" / "logs" / "5-E.eval"
SETTING = ("--data", "tiny", "--judge", "scripted/judge", "--quiet")
SAYING = (
    "score sound",
    "score sound --all",
    "score half",
    "score deaf",
    "score many",
    "score log.eval",
    "score nothing",
    "show sound",
    "show sound nothing",
    "show many",
    "sensitivity sound",
    "agree sound",
    "agree many",
    "audit half",
    "compare sound half",
    "compare many",
    "gate sound --max-p-lie 0.01",
    "gate many --max-p-lie 1",
    "figure forest sound --out f.svg",
    "export sound --out rows.csv --judge openai/gpt-4o",
    "label sound --export sheet.csv",
    "import log.eval --out imported",
    "merge many --out merged",
    "data list",
    "data list tiny",
    "data show nothing",
    "run scripted/liar --data tiny --out fresh",
    "run --data tiny",
    "judge sound --judge verbatim",
)
TAIL = re.compile(r"\s+(#|\(|`|prints|lists|lists|shows|says|names|is |for |and |at |on |, |; |, or ).*$|`.*$|[.;:)]$")
WAITING = re.compile(r"^(view|label)\b(?!.*--export)")
"""They serve pages until Ctrl-C, or take in a sheet that is still to be filled in."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    work = tmp_path_factory.mktemp("proposals")
    for name, model in (("sound", "scripted/liar"), ("half", "scripted/honest")):
        done = unmask("run", model, *SETTING, "--out", name, cwd=work)
        assert done.returncode == 0, done.stderr
    (readings,) = (work / "half" / "readings").glob("*.jsonl")
    readings.write_text("".join(readings.read_text().splitlines(True)[:5]))
    assert unmask("run", "scripted/liar", "--data", "core", "--limit", "12", "--judge", "verbatim", "--out", "deaf",
                  "--quiet", cwd=work).returncode in (0, 3)  # fmt: skip
    for name in ("a", "b"):
        shutil.copytree(work / "sound", work / "many" / name)
    shutil.copy(LOG, work / "log.eval")
    return work


def proposals(text: str) -> set[str]:
    """What stands behind `unmask` wherever a command line begins."""
    found = re.findall(r"(?:^|[\s`])(?:\S*/)?(?:python -m )?unmask ([a-z]+(?: [^\n]*)?)", text, re.MULTILINE)
    lines = set()
    for line in found:
        command, longer = line, ""
        while command != longer:
            longer, command = command, TAIL.sub("", command)
        lines.add(command.strip())
    return {line for line in lines if " " in line}


@pytest.mark.parametrize("line", SAYING)
def test_what_a_message_proposes_can_be_pasted(folder, line):
    """Without a name to fill in, and without a usage error. What asks for a key, an extra or a yes names it itself."""
    done = unmask(*line.split(), cwd=folder)
    for command in proposals(done.stdout + "\n" + done.stderr):
        assert not re.search(r"\b(ID|RUN|NAME|FILE|DIR|PROVIDER|PATH)\b", command), command
        if WAITING.match(command):
            continue
        typed = unmask(*shlex.split(command), cwd=folder)
        needs_key = re.search(r"API_KEY|pip install|pull|type this line", typed.stderr)
        assert typed.returncode in (0, 1, 3) or needs_key, (command, typed.stderr)
