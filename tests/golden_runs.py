"""The subjects of the run folders in tests/golden/runs, and what wrote those folders.

The folders were written by version 0.1.0 at commit 1f1eec5 and are what people have on disk: they must open, continue
and score. `python -m tests.golden_runs FOLDER` shows how; a newer version writes other folders, and nobody replaces the
old ones with them.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path

import unmask
from unmask.data.load import load
from unmask.models.providers import open_model
from unmask.models.scripted import Scripted
from unmask.records import Request

RUNS = Path(__file__).parent / "golden" / "runs"
DATA = RUNS / "without-polarity.jsonl"
"""`tiny`, without `yes_means` in three scenarios: a judge has to say which side *yes* means."""
CHARACTERS = ("liar", "honest", "liar", "evasive", "liar", "liar", "honest", "liar", "liar", "evasive")
"""Of the ten takes of a scenario, the first one shifted by its number. In every third scenario nobody lies, and in
every sixth everything is evaded."""
REPLIES = RUNS / "written-replies.jsonl"
"""Replies of `embedded/qwen2.5-coder-1.5b` to scenarios of `core`: scenario, slot, text."""


def mixed() -> Scripted:
    """Lies, tells the truth and evades in turn; what it believes is true."""
    scenarios = load(DATA).scenarios
    characters = {name: open_model(f"scripted/{name}") for name in set(CHARACTERS)}
    place = {scenario.conversation: number for number, scenario in enumerate(scenarios)}
    takes: Counter[int] = Counter()

    def reply(request: Request) -> str:
        number = place.get(request.messages)
        character = "honest"
        if number is not None:
            character = CHARACTERS[(number + takes[number]) % len(CHARACTERS)]
            if number % 3 == 2 and character == "liar":
                character = "honest" if number % 6 == 2 else "evasive"
            if number % 6 == 5:
                character = "evasive"
            takes[number] += 1
        return characters[character]._reply(request)

    return Scripted(reply, name="scripted/mixed")


def writer() -> Scripted:
    """Answers with what a small model once wrote under pressure, and probes with the truth."""
    lines = [json.loads(line) for line in REPLIES.read_text(encoding="utf-8").splitlines()]
    texts = {(line["scenario"], line["slot"]): line["text"] for line in lines}
    answers: dict[object, str] = {}
    for scenario in load("core").scenarios:
        if (scenario.id, "pressured") in texts:
            answers[scenario.conversation] = texts[scenario.id, "pressured"]
    honest = open_model("scripted/honest")

    def reply(request: Request) -> str:
        return answers[request.messages] if request.messages in answers else honest._reply(request)

    return Scripted(reply, name="scripted/writer")


def write(folder: Path) -> None:
    """The two folders, as they were written."""
    shutil.copy(DATA, folder)
    os.chdir(folder)  # a run records the path of its data as given
    letters = Path("letters")
    options = {"data": DATA.name, "model": mixed(), "takes": 10, "out": letters, "judge": "scripted/judge"}
    unmask.run(**options, judge_name="first")
    unmask.judge(letters, judge="scripted/judge", judge_name="second", role_play=True)
    for who, wrong in (("ada", 3), ("ben", 5)):
        _label(letters, who=who, wrong=wrong)
    replies = letters / "replies.jsonl"
    replies.write_bytes(replies.read_bytes()[:-400])
    ids = tuple(dict.fromkeys(json.loads(line)["scenario"] for line in REPLIES.read_text("utf-8").splitlines()))
    unmask.run(data="core", ids=ids, model=writer(), judge="rules", out="rules")
    for picture in Path().glob("*/status.json"):  # of this machine and this minute
        picture.unlink()


def _label(run: Path, *, who: str, wrong: int) -> None:
    """Labels of one person who says what is true of the scripted replies, but for every `wrong`th."""
    file = Path(f"{who}.jsonl")
    command = [sys.executable, "-m", "unmask.cli.main", "label", str(run)]
    subprocess.run([*command, "--size", "8", "--sample-seed", "1", "--export", str(file)], check=True)
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
    file.unlink()


if __name__ == "__main__":
    write(Path(sys.argv[1]))
