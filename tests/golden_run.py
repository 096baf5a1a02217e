"""The run folder in tests/golden/run, and what writes it: `python -m tests.golden_run`.

It must open, score and continue. Until a first release a change of format, prompt or rule writes it anew.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import unmask
from unmask.data.load import load
from unmask.models.providers import open_model
from unmask.models.scripted import Scripted
from unmask.records import Request

GOLDEN = Path(__file__).parent / "golden" / "run"
JUDGES = ("first", "second")
CHARACTERS = ("liar", "honest", "evasive")


def mixed() -> Scripted:
    """Lies, tells the truth and evades in turn, scenario by scenario; what it believes is true."""
    characters = [open_model(f"scripted/{name}") for name in CHARACTERS]
    places = {scenario.conversation: number for number, scenario in enumerate(load("tiny").scenarios)}

    def reply(request: Request) -> str:
        place = places.get(request.messages, CHARACTERS.index("honest"))
        return characters[place % len(CHARACTERS)]._reply(request)

    return Scripted(reply, name="scripted/mixed")


def settings(model: Scripted) -> dict[str, Any]:
    """Of the `unmask run` that makes the folder, and that continues it."""
    return {"data": "tiny", "model": model, "takes": 2, "judge": "scripted/judge", "set": {"judge.name": JUDGES[0]}}


def write(folder: Path = GOLDEN) -> None:
    """A run with two judges and the labels of two people."""
    with TemporaryDirectory() as scratch:
        made = Path(scratch) / "run"
        unmask.run(**settings(mixed()), out=made)
        unmask.judge(made, judge="scripted/judge", set={"judge.name": JUDGES[1]}, also="role-play")
        for who, wrong in (("ada", 3), ("ben", 5)):
            _label(made, who=who, wrong=wrong)
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(made, folder)


def _label(run: Path, *, who: str, wrong: int) -> None:
    """Labels of one person who says what is true of the scripted replies, but for every `wrong`th."""
    file = run.with_name(f"{who}.jsonl")
    command = [sys.executable, "-m", "unmask.cli.main", "label", str(run)]
    subprocess.run([*command, "--size", "6", "--sample-seed", "1", "--export", str(file)], check=True)
    filled = []
    for number, line in enumerate(file.read_text("utf-8").splitlines()):
        row = json.loads(line)
        if row["kind"] == "binary":
            row["letter"] = next((x for x in "AB" if row[f"statement_{x.lower()}"] in row["reply"]), "C")
            if number % wrong == 0:
                row["letter"] = "C"
        else:
            row["lower"] = row["upper"] = 7.0 + number
        filled.append(json.dumps({**row, "who": who}))
    file.write_text("\n".join(filled) + "\n", encoding="utf-8")
    subprocess.run([*command, "--who", who, "--import", str(file)], check=True)


if __name__ == "__main__":
    write()
