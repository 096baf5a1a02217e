"""Text of endpoints, run folders and files reaches the terminal as text: no title is set, no screen cleared, no line
turned round. Every command is typed as a user would, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bench.fuzz import seeds
from tests.analysis.labelled import dataset, made
from tests.cli.terminal import unmask
from tests.models.loopback import Canned, Sent, loopback_in_thread
from unmask.data.form import write_jsonl
from unmask.errors import FatalModelError, JournalError, UnmaskError, UsageError
from unmask.records import PRESSURED

STEERING = "no\x1b]0;pwned\x07\x1b[2J\x1b[1;1H\x9b31m\u202eevil\u2066\r\x08"
"""A title, a cleared screen, a colour, a turned line, and a return to its beginning."""
LOG = Path(__file__).parent.parent / "interop" / "logs" / "3-C.eval"


def harmless(done: subprocess.CompletedProcess[str], *, says: str = "evil") -> None:
    """The text is there, and nothing but text."""
    shown = done.stdout + done.stderr
    assert says in shown
    assert not [character for character in shown if not (character.isprintable() or character in "\n\t")]


def steer(sent: Sent) -> Canned:
    """A list of models, or a refusal."""
    return Canned({"error": {"message": STEERING}}, 401) if sent.body else Canned({"data": [{"id": STEERING}]})


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    with loopback_in_thread(steer) as server:
        yield server.url


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return made(tmp_path / "run", dataset(3), lies={1}).path


def rewrite(folder: Path, change: Callable[[dict[str, Any]], None]) -> None:
    path = folder / "run.json"
    held = json.loads(path.read_text())
    change(held)
    path.write_text(json.dumps(held))


@pytest.mark.parametrize("traceback", ["", "1"])
def test_the_error_of_an_endpoint(endpoint: str, traceback: str, tmp_path: Path):
    write_jsonl([seeds.BINARY], path=tmp_path / "set.jsonl")
    flags = ("--data", "set.jsonl", "openai/m", "--base-url", endpoint, "--judge", "verbatim", "--out", "run")
    done = unmask("run", *flags, cwd=tmp_path, env={"UNMASK_TRACEBACK": traceback})
    assert done.returncode == 4
    harmless(done)


def test_the_models_that_an_endpoint_lists(endpoint: str, tmp_path: Path):
    harmless(unmask("doctor", "--model", "openai/m", "--base-url", endpoint, cwd=tmp_path))


def test_the_judges_of_a_run(folder: Path, tmp_path: Path):
    rewrite(folder, lambda held: [spec.update(model=STEERING) for spec in held["judges"].values()])
    harmless(unmask("score", "run", "--judge", "nobody", cwd=tmp_path))


def test_the_command_that_completes_a_run(folder: Path, tmp_path: Path):
    rewrite(folder, lambda held: held["subject"].update(base_url=STEERING))
    replies = folder / "replies.jsonl"
    replies.write_text(replies.read_text().partition("\n")[0] + "\n")
    done = unmask("score", "run", cwd=tmp_path)
    assert "completes the run" in done.stdout
    harmless(done)


@pytest.mark.parametrize("name", ["scenario", "slot", "who"])
def test_what_a_label_is_about_and_who_gave_it(name: str, folder: Path, tmp_path: Path):
    scenario = json.loads((folder / "replies.jsonl").read_text().partition("\n")[0])["scenario"]
    label = {"scenario": scenario, "slot": PRESSURED, "take": 0, "letter": "A", "who": "ann"}
    (tmp_path / "labels.jsonl").write_text(json.dumps({**label, name: f"{STEERING}\nunmask: fine"}) + "\n")
    done = unmask("label", "run", "--import", "labels.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    assert "\nunmask: fine" not in done.stderr
    harmless(done)


def test_the_version_a_log_names(tmp_path: Path):
    with zipfile.ZipFile(LOG) as old, zipfile.ZipFile(tmp_path / "x.eval", "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            held = json.loads(old.read(name))
            if name in ("header.json", "_journal/start.json"):
                held["eval"].setdefault("metadata", {})["full_task_version"] = STEERING
            new.writestr(name, json.dumps(held))
    done = unmask("import", "x.eval", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    harmless(done)


@pytest.mark.parametrize("line", [(STEERING,), ("doctor", f"--{STEERING}"), ("score", "run", "--preset", STEERING)])
def test_a_command_line_that_was_pasted(line: tuple[str, ...], tmp_path: Path):
    done = unmask(*line, cwd=tmp_path)
    assert done.returncode == 2
    harmless(done)


def test_an_id_that_is_long_and_has_lines_of_its_own(tmp_path: Path):
    """One line for each bad row, of which the beginning and the end can be read."""
    row = {"id": f"first {STEERING}\nunmask: fine {'x' * 9_000} last", "archetype": "none"}
    (tmp_path / "set.jsonl").write_text(json.dumps(row) + "\n")
    done = unmask("data", "check", "set.jsonl", cwd=tmp_path)
    assert done.returncode == 2
    (line,) = [line for line in done.stderr.splitlines() if "evil" in line]
    assert "first" in line
    assert "last" in line
    assert len(line) < 3_000
    assert "\nunmask: fine" not in done.stderr
    harmless(done)


@pytest.mark.parametrize("kind", [UsageError, JournalError, FatalModelError])
def test_an_error_is_safe_to_print_anywhere(kind: type[UnmaskError]):
    """In Python and in a notebook as well: message, problems and advice."""
    error = kind(f"{STEERING}\nunmask: fine", problems=[f"row\n{STEERING}"], advice=STEERING)
    shown = f"{error}\n{error.advice}\n{''.join(error.__notes__)}"
    assert len(str(error).splitlines()) == 2
    assert not [character for character in shown if not (character.isprintable() or character == "\n")]
