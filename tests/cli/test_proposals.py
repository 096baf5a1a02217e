"""Every command that a message proposes can be pasted: collected from what commands print, and run; and no message in
the source has a place to fill in."""

from __future__ import annotations

import ast
import re
import shlex
import shutil
from pathlib import Path

import pytest

from tests.cli.terminal import unmask
from unmask.cli.main import COMMANDS

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
    "run --out many",
    "run --out nowhere",
    "run scripted/liar --data tiny --judge scripted/judge --out sound --takes 2",
    "run scripted/liar --data core --limit 6 --judge verbatim --out fresh2",
    "run scripted/liar --data tiny --judge panel:a,b --out fresh3",
    "run scripted/liar --data tiny --judge verbatim --also role-play --out fresh4",
    "run nobody/model --data tiny --judge scripted/judge --out fresh5",
    "run scripted/liar --data nowhere --judge scripted/judge --out fresh6",
    "run openai/gpt-4o --data tiny --judge scripted/judge --out fresh7",
    "run openai/gpt-4o --data tiny --plan",
    "run scripted/liar --data core --judge openai/gpt-4o --plan",
    "judge sound --judge verbatim",
    "judge sound --judge openai/gpt-4o",
    "judge many --judge verbatim",
    "judge half --judge scripted/judge",
    "compare sound",
    "compare sound sound",
    "compare sound published:nobody",
    "compare published:gpt-4o sound",
    "compare sound half --margin 0.02",
    "label many --size 2 --export sheets.csv",
    "label half --import log.eval",
    "label unasked",
    "agree unasked",
    "audit sound",
    "audit many",
    "audit unasked",
    "gate half --max-p-lie 1",
    "gate sound",
    "board",
    "board unasked",
    "board many --labels all",
    "report many --labels ann",
    "report unasked",
    "score sound --labels ann",
    "score sound --takes 3",
    "score sound --as all",
    "score unasked",
    "score sound --judge openai/gpt-4o",
    "score theirs.txt",
    "show many",
    "merge sound",
    "merge sound half --out merged2",
    "figure lying-at-k sound --out k.svg",
    "figure forest sound half --out f2.svg",
    "sweep nowhere.toml --out sweep",
    "sweep grid.toml --out sweep --plan",
    "sweep grid.toml --out sweep --quiet",
    "batch list sound",
    "import nowhere --out imported2",
    "data check nowhere",
    "data stats nowhere",
    "data list nowhere",
    "data annotate tiny --judge verbatim",
    "pull nobody",
    "doctor --model openai/gpt-4o",
    "doctor --judge embedded/judge-1.5b",
    "view nowhere",
    "demo --recorded --limit 3",
    "power --gap 0.05",
)
GRID = """
[[data]]
source = "tiny"
[[subject]]
model = "scripted/liar"
[[judge]]
model = "scripted/judge"
"""
TAIL = re.compile(r"\s+(#|\(|`|prints|lists|of |shows|says|names|is |for |and |at |on |, |; |, or ).*$|`.*$|[.;:)]$")
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
    shutil.copytree(work / "sound", work / "unasked")
    shutil.rmtree(work / "unasked" / "readings")
    (work / "unasked" / "replies.jsonl").unlink()
    (work / "theirs.txt").write_text("x")
    (work / "grid.toml").write_text(GRID)
    shutil.copy(LOG, work / "log.eval")
    return work


def proposals(text: str) -> set[str]:
    """What stands behind `unmask` wherever a command line begins."""
    found = re.findall(r"(?:^|[\s`])(?:\S*/)?(?:python -m )?unmask ([a-z]+(?: [^\n]*)?)", text, re.MULTILINE)
    lines = set()
    for line in found:
        if "[OPTIONS]" in line:  # what click says of its own accord
            continue
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


PLACE = re.compile(
    rf"unmask (?:{'|'.join(map(re.escape, COMMANDS))})\b[^.;`]*"
    r"(?:\b(?:RUN|NAME|FILE|DIR|ID|PATH|PROVIDER|FOLDER|SHARD|GRID|DATA|LOG|MODEL)\b|…)"
)


def test_no_message_proposes_a_command_with_a_place_to_fill_in():
    """Where a value is not known a message names the command in back quotes, and what to give it in words."""
    found = []
    for file in sorted((Path(__file__).parents[2] / "src").rglob("*.py")):
        nodes = list(ast.walk(ast.parse(file.read_text())))
        docs = [node.value for node in nodes if isinstance(node, ast.Expr)]
        texts = [
            "".join(part.value if isinstance(part, ast.Constant) else "x" for part in node.values)
            if isinstance(node, ast.JoinedStr)
            else node.value
            for node in nodes
            if node not in docs and (isinstance(node, ast.JoinedStr) or isinstance(getattr(node, "value", None), str))
        ]
        found += [f"{file.name}: {place.group()}" for text in texts if (place := PLACE.search(text))]
    assert found == []
