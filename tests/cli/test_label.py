"""`unmask label`, `agree` and `score --labels` as their user meets them, the keyboard on a real pseudo-terminal."""

from __future__ import annotations

import csv
import fcntl
import json
import os
import pty
import re
import select
import subprocess
import sys
import termios
import time
from pathlib import Path

import pytest

from tests.analysis.labelled import dataset, made
from tests.cli.terminal import KEPT, unmask
from tests.needs import give_up
from unmask.analysis.labels import load_labels, open_writer
from unmask.analysis.sampling import load_or_draw_sample, sampled_items
from unmask.records import PRESSURED, Interval, Label, Letter
from unmask.runs.run import open_run

SIZE = 6


@pytest.fixture
def folder(tmp_path) -> Path:
    """A run of six scenarios, one numeric, one a lie, and a sample of all of them."""
    run = made(tmp_path / "run", dataset(SIZE, numeric={5}), lies={1})
    load_or_draw_sample(run, size=SIZE)
    return run.path


class Keyboard:
    """A person at a terminal: what the program shows, and keys for it."""

    def __init__(self, *arguments: str, cwd: Path) -> None:
        try:
            ours, theirs = pty.openpty()
        except OSError as error:
            give_up("pseudo-terminal", advice=f"Type `mount -t devpts devpts /dev/pts` as root ({error})")
        clean = {name: os.environ[name] for name in KEPT if name in os.environ}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "unmask.cli.main", *arguments],
            cwd=cwd,
            env={**clean, "TERM": "xterm", "COLUMNS": "80", "LINES": "50"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
            # So that Ctrl-C reaches it; no thread is running here.
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0),  # noqa: PLW1509
        )
        os.close(theirs)
        self._terminal = ours
        self.shown = ""

    def until(self, words: str, *, seconds: float = 60) -> str:
        """Everything shown up to these words, which are then behind us."""
        limit = time.monotonic() + seconds
        while words not in self.shown:
            left = limit - time.monotonic()
            if left <= 0 or not select.select([self._terminal], [], [], left)[0]:
                raise AssertionError(f"{words!r} was not shown, but:\n{self.shown[-2000:]}")
            try:
                self.shown += os.read(self._terminal, 65536).decode("utf-8", "replace")
            except OSError as error:
                raise AssertionError(f"ended before {words!r}:\n{self.shown[-2000:]}") from error
        seen, _, self.shown = self.shown.partition(words)
        return seen

    def press(self, keys: str) -> None:
        os.write(self._terminal, keys.encode())

    def leave(self) -> int:
        code = self.process.wait(timeout=60)
        os.close(self._terminal)
        return code


def words(text: str) -> str:
    """Without line breaks, which depend on the terminal."""
    return " ".join(text.split())


def place(text: str) -> int:
    return int(re.findall(r"lamp (\d+) pressured", text)[-1])


def test_a_person_labels_goes_back_leaves_and_takes_it_up_again(folder):
    """Letters, a figure, a note, back, skip and quit; the second session goes on where the first stopped."""
    arguments = ("label", str(folder), "--who", "ann")
    first = Keyboard(*arguments, cwd=folder.parent)
    text = first.until("q quit")
    assert "0 of 6 labelled" in text
    given: dict[int, str] = {}
    for number in range(3):
        given[place(text)] = "figure" if "Which figure" in text else "A"
        if "Which figure" in text:
            first.press("=")
            first.until("Figure or range")
            first.press("10..20\n")
        else:
            first.press("a")
        text = first.until("q quit")
        assert f"{number + 1} of 6 labelled" in text
    first.press("z")
    text = first.until("means nothing here")
    first.press("-")
    text = first.until("q quit")
    assert "Your label: " in text
    first.press("n")
    first.until("Note: ")
    first.press("not sure\n")
    assert "not sure" in first.until("q quit")
    first.press("s")
    text = first.until("q quit")
    assert "Your label" not in text
    first.press("q")
    first.until("3 of 6 labelled, kept in")
    assert first.leave() == 0

    second = Keyboard(*arguments, cwd=folder.parent)
    for number in range(3, SIZE):
        text = second.until("q quit")
        assert f"{number} of 6 labelled" in text
        assert place(text) not in given
        given[place(text)] = "C"
        second.press("c")
    second.until("6 of 6 labelled")
    second.until(f"unmask agree {folder} --labels ann")
    assert second.leave() == 0

    kept = load_labels(open_run(folder), "ann")
    letters = {int(key[0][1:]): label for key, label in kept.items()}
    assert set(letters) == set(range(SIZE))
    assert sum(label.note == "not sure" for label in kept.values()) == 1
    for number, word in given.items():
        label = letters[number]
        if number == 5:
            assert label.interval == (Interval(10, 20) if word == "figure" else Interval())
        else:
            assert label.letter is Letter(word)
    assert {label.weight for label in kept.values()} == {1.0}


def test_undo_takes_back_the_last_label_and_shows_its_reply(folder):
    session = Keyboard("label", str(folder), "--who", "ann", cwd=folder.parent)
    first = place(session.until("q quit"))
    session.press("c")
    session.until("1 of 6 labelled")
    session.press("u")
    text = session.until("Taken back.")
    assert "0 of 6 labelled" in text
    assert place(text) == first
    session.press("u")
    session.until("Nothing was given in this session")
    session.press("q")
    assert session.leave() == 0
    assert load_labels(open_run(folder), "ann") == {}


def test_two_people_label_at_the_same_time_and_one_not_twice(folder):
    """The second window of one person says which process has the first, and what to do."""
    ann = Keyboard("label", str(folder), "--who", "ann", cwd=folder.parent)
    ann.until("pressured")
    bo = Keyboard("label", str(folder), "--who", "bo", cwd=folder.parent)
    bo.until("pressured")
    again = Keyboard("label", str(folder), "--who", "ann", cwd=folder.parent)
    shown = again.until("--who NAME.")
    assert f"ann.jsonl is in use by process {ann.process.pid} on " in shown
    assert again.leave() == 4
    for person in (ann, bo):
        person.press("aq")
        assert person.leave() == 0
    run = open_run(folder)
    assert [len(load_labels(run, who)) for who in ("ann", "bo")] == [1, 1]
    assert sorted(path.name for path in (folder / "labels").iterdir()) == ["ann.jsonl", "bo.jsonl", "sample.json"]


def test_the_screen_is_blind(folder):
    """It says nothing about model, judge, truth or verdict."""
    at = Keyboard("label", str(folder), "--who", "ann", cwd=folder.parent)
    text = at.until("q quit")
    at.press("q")
    at.until("labelled, kept in")
    assert at.leave() == 0
    for word in ("scripted", "judge", "truth", "verdict", "lamps", "archetype"):
        assert word not in text.lower()


def test_interrupting_keeps_what_was_labelled(folder):
    """Ctrl-C leaves with 130, and the label before it is on disk."""
    at = Keyboard("label", str(folder), "--who", "ann", cwd=folder.parent)
    text = at.until("q quit")
    at.press("c")
    at.until("1 of 6 labelled")
    at.press("\x03")
    at.until("interrupted")
    assert at.leave() == 130
    assert [key[0] for key in load_labels(open_run(folder), "ann")] == [f"s{place(text):03}"]


def test_without_a_terminal_it_says_what_to_do(folder):
    """No keys can be read from a pipe."""
    done = unmask("label", str(folder), "--who", "ann", cwd=folder.parent)
    assert done.returncode == 2
    assert "--export" in done.stderr


def test_labels_need_a_name(folder):
    """Whose they are is part of a label."""
    done = unmask("label", str(folder), cwd=folder.parent)
    assert done.returncode == 2
    assert "--who NAME" in done.stderr


def test_out_by_csv_and_in_again_changes_the_score(folder, tmp_path):
    """Export, fill in with a spreadsheet, import, agree, score: the whole way round."""
    sheet = tmp_path / "out.csv"
    assert unmask("label", str(folder), "--export", str(sheet), cwd=tmp_path).returncode == 0
    with sheet.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        row["letter"] = "C" if row["kind"] == "numeric" else "B"
    with sheet.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, rows[0])
        out.writeheader()
        out.writerows(rows)
    taken = unmask("label", str(folder), "--import", str(sheet), "--who", "bo", "--json", cwd=tmp_path)
    assert json.loads(taken.stdout) == {"read": 6, "added": {"bo": 6}}
    again = unmask("label", str(folder), "--import", str(sheet), "--who", "bo", "--json", cwd=tmp_path)
    assert json.loads(again.stdout) == {"read": 6, "added": {}}
    found = json.loads(unmask("agree", str(folder), "--labels", "bo", "--json", cwd=tmp_path).stdout)
    assert found["judge_against_labels"][0]["effect"]["missed_lies"] == 4
    text = words(unmask("agree", str(folder), "--labels", "bo", cwd=tmp_path).stdout)
    assert "0 false lies, 4 missed" in text
    shown = words(unmask("score", str(folder), "--labels", "bo", cwd=tmp_path).stdout)
    assert "Corrected P(lie) n/a: only 6 scenarios are labelled; at least 10 are needed." in shown


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_an_export_that_finds_no_room_leaves_no_half_file(folder, tmp_path, ending):
    """A limit on the size of files refuses what a full disk refuses."""
    limited = (
        "import resource, sys; from unmask.cli.main import run_command_line; "
        "resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000)); sys.exit(run_command_line(sys.argv[1:]))"
    )
    out = tmp_path / "out"
    out.mkdir()
    sheet = str(out / f"sheet{ending}")
    done = subprocess.run(
        [sys.executable, "-c", limited, "label", str(folder), "--export", sheet],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 4, done.stderr
    assert list(out.iterdir()) == []


def test_an_import_without_a_name_is_refused(folder, tmp_path):
    """Unless the file has one in each row."""
    path = tmp_path / "labels.jsonl"
    path.write_text(json.dumps({"scenario": "s000", "slot": PRESSURED, "letter": "A"}))
    done = unmask("label", str(folder), "--import", str(path), cwd=tmp_path)
    assert done.returncode == 2
    assert "--who NAME" in done.stderr


def test_an_empty_import_is_refused(folder, tmp_path):
    """Zero labels are no import."""
    path = tmp_path / "labels.csv"
    unmask("label", str(folder), "--export", str(path), cwd=tmp_path)
    done = unmask("label", str(folder), "--import", str(path), "--who", "bo", cwd=tmp_path)
    assert done.returncode == 2
    assert "every row is empty" in done.stderr


def test_labels_of_another_run_are_refused_with_exit_code_2(folder, tmp_path):
    """And each is named."""
    path = tmp_path / "other.jsonl"
    path.write_text(json.dumps({"scenario": "elsewhere", "slot": PRESSURED, "letter": "A", "who": "x"}))
    for command in (
        ("label", str(folder), "--import"),
        ("agree", str(folder), "--labels"),
        ("score", str(folder), "--labels"),
    ):
        done = unmask(*command, str(path), cwd=tmp_path)
        assert done.returncode == 2
        assert "elsewhere pressured 0: the run has no such scenario" in done.stderr


def test_the_corrected_rate_stands_beside_the_raw_one(tmp_path):
    """In text and JSON; P(lie) itself is what it was."""
    run = made(tmp_path / "run", dataset(30), lies=set(range(10)), errs={0, 1, 20, 21, 22})
    lines = open_writer(run, "ann")
    for item in sampled_items(run, load_or_draw_sample(run, size=30)):
        number = int(item.scenario.id[1:])
        lines.append(Label(scenario=item.scenario.id, slot=PRESSURED, letter=Letter("AB"[number < 10]), who="ann"))
    lines.close()
    plain = json.loads(unmask("score", str(run.path), "--json", cwd=tmp_path).stdout)
    found = json.loads(unmask("score", str(run.path), "--labels", "ann", "--json", cwd=tmp_path).stdout)
    assert plain["corrected"] is None
    assert found["overall"] == plain["overall"]
    assert found["corrected"]["raw"] == pytest.approx(11 / 30)
    assert found["corrected"]["value"] == pytest.approx(10 / 30)
    shown = words(unmask("score", str(run.path), "--labels", "ann", cwd=tmp_path).stdout)
    assert "Corrected P(lie) 33.3 %" in shown
    assert "3 false lies, 2 missed" in shown
