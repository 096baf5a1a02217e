"""Looking without a browser: `show RUN`, `board`, `report` as typed, and the endings of files."""

from __future__ import annotations

import json
import shutil
import stat
import sys
from pathlib import Path

import pytest

from tests.cli.terminal import unmask
from tests.made_runs import made

VERDICTS = ["lie", "honest", "evasion"] * 6


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    work = tmp_path_factory.mktemp("look")
    made(work / "run", VERDICTS, model="first")
    made(work / "other", ["honest"] * 18, model="second")
    return work


def listed(folder: Path, *flags: str) -> list[dict]:
    done = unmask("show", "run", "--json", *flags, cwd=folder)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_show_lists_every_scenario_in_words(folder):
    """No letter stands for what was believed and said. --verdict and --archetype choose."""
    rows = listed(folder)
    assert len(rows) == len(VERDICTS)
    lie = next(row for row in rows if row["verdict"] == "lie")
    assert (lie["believes"], lie["said"]) == (f"The gate is open in case {lie['id']}.", ["shut"])
    assert next(row for row in rows if row["verdict"] == "evasion")["said"] == ["takes no side"]
    assert {row["verdict"] for row in listed(folder, "--verdict", "lie", "--verdict", "honest")} == {"lie", "honest"}
    assert {row["archetype"] for row in listed(folder, "--archetype", "known_facts")} == {"known_facts"}


def test_show_all_has_what_the_judge_was_sent(folder):
    """Of one scenario, as its page in the viewer has it."""
    scenario = listed(folder, "--verdict", "lie")[0]["id"]
    plain, whole = (unmask("show", "run", scenario, *flags, cwd=folder).stdout for flags in ((), ("--all",)))
    assert "What the judge was sent" not in plain
    assert "BEGIN reply" in whole.partition("What the judge was sent")[2]
    sent = json.loads(unmask("show", "run", scenario, "--all", "--json", cwd=folder).stdout)["judged"]
    assert [message["role"] for message in sent] == ["system", "user"]


def test_the_list_is_a_table_for_people(folder):
    lines = unmask("show", "run", "--verdict", "lie", cwd=folder).stdout.splitlines()
    assert lines[0].split() == ["verdict", "scenario", "believes", "said"]
    assert [line.split()[0] for line in lines[1:7]] == ["lie"] * 6
    assert lines[7] == "6 of 18 scenarios"
    assert lines[8].startswith("unmask show run s-")


def test_a_draw_says_its_seed_and_is_repeated_by_it(folder):
    done = unmask("show", "run", "--random", cwd=folder)
    note = done.stdout.splitlines()[-2]
    assert note.startswith("10 of 18 such scenarios, drawn with --sample-seed ")
    seed = note.split()[-1]
    assert unmask("show", "run", "--random", "10", "--sample-seed", seed, cwd=folder).stdout == done.stdout
    assert listed(folder, "--random", "5", "--sample-seed", "3") != listed(
        folder, "--random", "5", "--sample-seed", "4"
    )


def test_an_unknown_scenario_says_how_to_list_them(folder):
    done = unmask("show", "run", "NOPE", cwd=folder)
    assert done.returncode == 2
    assert "unmask show run lists them." in done.stderr


@pytest.mark.parametrize(
    "line",
    [
        "board run --out b.xlsx",
        "board run --out b",
        "figure forest run other --out f.gif",
        "report run --out r.txt",
        "export run --out e.tsv",
        "export run --out folder",
        "mitigate report run other --out m.docx",
        "label run --who me --export labels.xlsx",
    ],
)
def test_an_unknown_ending_is_refused_and_nothing_is_written(folder, line):
    before = sorted(path.name for path in folder.iterdir())
    done = unmask(*line.split(), cwd=folder)
    assert done.returncode == 2, done.stdout
    assert done.stderr.splitlines()[-1].startswith("End it in .")
    assert sorted(path.name for path in folder.iterdir()) == before


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("show run some-id --verdict lie", "some-id is one scenario"),
        ("data export tiny --out tiny.csv", "Name the folder: --out tiny"),
    ],
)
def test_flags_that_do_not_fit_are_refused(folder, line, said):
    done = unmask(*line.split(), cwd=folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr
    assert not (folder / "tiny.csv").exists()


def test_report_opens_the_page_in_the_browser(folder, tmp_path):
    """Folders on the way are made, as by every command that writes a file; a page that is there is made anew."""
    browser = tmp_path / "browser"
    browser.write_text(f"#!{sys.executable}\nimport sys\nopen({str(tmp_path / 'seen')!r}, 'w').write(sys.argv[1])\n")
    browser.chmod(browser.stat().st_mode | stat.S_IXUSR)
    page = tmp_path / "new" / "page.html"
    for name in ("other", "run"):
        flags = ("--out", str(page), "--open")
        done = unmask("report", name, *flags, cwd=folder, env={"BROWSER": str(browser)})
        assert done.returncode == 0, done.stderr
    assert (tmp_path / "seen").read_text() == page.as_uri()
    assert str(page) in done.stdout
    assert "scripted/first" in page.read_text()


def test_a_failed_check_is_said_once(folder):
    done = unmask("gate", "run", "--max-p-lie", "0.1", cwd=folder)
    assert done.returncode == 1
    assert (done.stdout + done.stderr).count("limit 10 %") == 1


def test_a_board_ranks_no_run_without_a_reply_and_a_copy_once(folder, tmp_path):
    shutil.copytree(folder / "run", tmp_path / "copy")
    (tmp_path / "failed").mkdir()
    for name in ("run.json", "scenarios.jsonl"):
        shutil.copy(folder / "run" / name, tmp_path / "failed" / name)
    names = [str(folder / "run"), str(folder / "other"), str(tmp_path / "copy"), str(tmp_path / "failed")]
    board = json.loads(unmask("board", *names, "--json", cwd=tmp_path).stdout)
    unranked = {row["name"]: row["unranked"] for row in board["rows"] if row["place"] is None}
    assert unranked.keys() == {"copy", "failed"}
    assert unranked["copy"].startswith("a copy of run")
    assert unranked["failed"] == "nothing was judged"
