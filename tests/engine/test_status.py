"""`status.json`: drawn while a run works, true when it is read, and in nobody's way."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread

import msgspec
import pytest

import unmask
from bench.planted import plant, write_jsonl
from bench.process import ROOT, serving
from tests.cli.forked import forker
from tests.e2e.running import run_flags
from tests.patience import PATIENCE
from unmask.engine import status as drawing
from unmask.errors import JournalError, TransientModelError
from unmask.files import write_atomically
from unmask.models.base import Capabilities
from unmask.models.scripted import open_scripted
from unmask.records import Completion, Request
from unmask.runs.folder import Folder
from unmask.runs.status import FRESH, Glimpse, RunStatus, read_status, status_path
from unmask.text import LONGEST_ERROR


class Slow:
    """A liar that takes its time, and whose first answers fail where it has `errors`."""

    def __init__(self, *, seconds: float = 0.02, errors: int = 0, message: str = "") -> None:
        self.model, self.name, self.endpoint = open_scripted("scripted/liar"), "mine/slow", "http://127.0.0.1:9"
        self.capabilities = Capabilities()
        self.seconds, self.errors, self.message = seconds, errors, message

    async def complete(self, request: Request) -> Completion:
        await asyncio.sleep(self.seconds)
        if self.errors:
            self.errors -= 1
            raise TransientModelError(self.message, retry_after=0.3, throttled=True)
        return await self.model.complete(request)

    async def close(self) -> None:
        pass


def watched_run(out: Path, model: object, **settings) -> list[RunStatus]:
    """Every picture that somebody beside the run could see."""
    pictures: dict[float, RunStatus] = {}
    ended = Event()

    def look() -> None:
        while not ended.wait(0.005):
            if (status := read_status(out).status) is not None:
                pictures[status.at] = status

    beside = Thread(target=look)
    beside.start()
    try:
        unmask.run(data="tiny", model=model, judge="scripted/judge", out=out, **settings)
    finally:
        ended.set()
        beside.join()
    return list(pictures.values())


def test_a_run_draws_what_it_does_and_says_that_it_has_ended(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(drawing, "DRAW_INTERVAL", 0.02)
    pictures = watched_run(tmp_path / "run", Slow(), max_connections=2)
    working = [picture for picture in pictures if 0 < picture.done < picture.total]
    assert working
    assert all(picture.ended is None and picture.work == "run" for picture in working)
    assert all(sum(picture.verdicts.values()) == picture.done for picture in working)
    assert any(picture.in_flight and picture.calls_per_second > 0 for picture in working)
    assert [picture.done for picture in working] == sorted(picture.done for picture in working)
    last, score = read_status(tmp_path / "run"), unmask.open_run(tmp_path / "run").score().overall
    assert last.status is not None
    assert not last.is_running
    assert (last.status.ended, last.status.done, last.status.in_flight) == ("done", last.status.total, 0)
    assert last.status.p_lie == score.p_lie
    assert last.status.pid == os.getpid()
    ids = {scenario.id for scenario in Folder(tmp_path / "run").scenarios()}
    assert {scenario.id for scenario in last.status.newest} <= ids
    assert [scenario.at for scenario in last.status.newest] == sorted(
        (scenario.at for scenario in last.status.newest), reverse=True
    )


def test_pictures_are_a_second_apart(tmp_path: Path):
    """All but the last one, which says that it is over."""
    pictures = watched_run(tmp_path / "run", Slow(seconds=0.1), max_connections=2)
    times = [picture.at for picture in pictures if picture.ended is None]
    assert len(times) > 1
    assert all(later - earlier >= 0.99 for earlier, later in pairwise(times))


def test_a_pause_and_the_error_being_tried_again_are_in_the_picture(tmp_path: Path, monkeypatch):
    """In one short line without control characters, while it lasts."""
    monkeypatch.setattr(drawing, "DRAW_INTERVAL", 0.02)
    message = "mine/slow at http://127.0.0.1:9: HTTP 429: \x1b[31mslow\ndown " + "x" * 500
    pictures = watched_run(tmp_path / "run", Slow(errors=1, message=message))
    endpoint = max((picture.endpoints[0] for picture in pictures), key=lambda endpoint: endpoint.pause)
    assert (endpoint.name, endpoint.retries) == ("http://127.0.0.1:9", 1)
    assert endpoint.pause > 0
    assert endpoint.error is not None
    assert endpoint.error.startswith("HTTP 429: slow down xx")
    assert len(endpoint.error) == LONGEST_ERROR
    last = read_status(tmp_path / "run").status
    assert last is not None
    assert last.endpoints[0].retries == 1


def test_deleting_it_changes_nothing(tmp_path: Path):
    out = tmp_path / "run"
    watched_run(out, Slow(seconds=0), limit=4)
    before, answered = unmask.open_run(out).score(), (out / "replies.jsonl").read_bytes()
    status_path(out).unlink()
    assert unmask.open_run(out).score() == before
    watched_run(out, Slow(seconds=0), limit=4)
    assert (out / "replies.jsonl").read_bytes() == answered
    watched_run(out, Slow(seconds=0), limit=8)  # it grows as ever
    assert unmask.open_run(out).score().overall.scenarios == 8


def test_a_folder_without_answers_is_defined_anew_although_a_picture_is_in_it(tmp_path: Path):
    out = tmp_path / "run"
    watched_run(out, Slow(seconds=0), limit=3)
    (out / "replies.jsonl").unlink()
    for file in (out / "readings").iterdir():
        file.unlink()
    assert status_path(out).exists()
    watched_run(out, Slow(seconds=0), limit=2, takes=2)
    assert unmask.open_run(out).score().overall.scenarios == 2


@pytest.mark.parametrize("name", ["status.json", "status.json.new"])
def test_a_picture_that_cannot_be_written_disturbs_no_run(tmp_path: Path, name: str):
    """Something is in its place: the same as a disk that takes nothing."""
    (tmp_path / "run" / name / "in the way").mkdir(parents=True)
    watched_run(tmp_path / "run", Slow(seconds=0), limit=3)
    assert unmask.open_run(tmp_path / "run").score().overall.scenarios == 3
    assert read_status(tmp_path / "run").status is None


def test_no_folder_is_made_for_a_picture(tmp_path: Path):
    """A run folder that was deleted stays deleted."""
    with pytest.raises(JournalError):
        write_atomically(tmp_path / "gone" / "status.json", b"{}", durable=False)
    assert not (tmp_path / "gone").exists()


def test_a_judge_does_not_draw_over_a_run_that_is_at_work(tmp_path: Path):
    """And a run draws over a judge."""
    out = tmp_path / "run"
    watched_run(out, Slow(seconds=0), limit=3)
    status = read_status(out).status
    assert status is not None
    elsewhere = msgspec.structs.replace(status, ended=None, host="elsewhere", pid=1)
    status_path(out).write_bytes(msgspec.json.encode(elsewhere))
    unmask.judge(out, judge="scripted/judge", set={"judge.name": "second"})
    assert read_status(out).status == elsewhere
    status_path(out).write_bytes(msgspec.json.encode(msgspec.structs.replace(elsewhere, work="judge")))
    watched_run(out, Slow(seconds=0), limit=3)
    now = read_status(out).status
    assert now is not None
    assert now.host != "elsewhere"


@pytest.mark.parametrize(
    "content",
    [b"", b"{", b"\xff\xfe", b"[]", b'{"work":"run"}', b"[" * 100_000, b'{"done":"many"}', b"null"],
    ids=["empty", "torn", "binary", "list", "fields", "deep", "type", "null"],
)
def test_what_is_no_picture_is_passed_over(tmp_path: Path, content: bytes):
    status_path(tmp_path).write_bytes(content)
    assert read_status(tmp_path) == Glimpse(None, float("inf"))
    assert not read_status(tmp_path).is_running


def test_a_link_or_a_folder_in_its_place_is_passed_over(tmp_path: Path):
    (tmp_path / "elsewhere.json").write_text("{}")
    status_path(tmp_path).symlink_to(tmp_path / "elsewhere.json")
    assert read_status(tmp_path).status is None
    status_path(tmp_path).unlink()
    status_path(tmp_path).mkdir()
    assert read_status(tmp_path).status is None


def test_fields_of_a_newer_version_are_passed_over(tmp_path: Path):
    watched_run(tmp_path, Slow(seconds=0), limit=2)
    text = status_path(tmp_path).read_bytes()
    status_path(tmp_path).write_bytes(text.replace(b'{"work"', b'{"colour":"blue","work"'))
    assert read_status(tmp_path).status is not None


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_a_real_run_that_is_stopped(tmp_path: Path, number: signal.Signals):
    """After Ctrl-C the picture says so. A killed process says nothing: its picture grows old."""
    out = tmp_path / "run"
    with serving(scenarios=40, latency=0.2) as endpoint:
        data = write_jsonl(plant(40), tmp_path / "planted.jsonl")
        flags = run_flags(endpoint, data, out, "--max-connections", "4", "--quiet")
        process = forker().start(["run", *flags], cwd=ROOT, env=dict(os.environ))
        try:
            until = time.monotonic() + PATIENCE
            while not ((seen := read_status(out)).status and seen.status.calls) and time.monotonic() < until:
                time.sleep(0.05)
            assert seen.is_running
            assert seen.status is not None
            assert seen.status.pid == process.pid
        finally:
            process.send_signal(number)
            process.wait(PATIENCE)
    seen = read_status(out)
    assert seen.status is not None
    if number is signal.SIGINT:
        assert seen.status.ended == "interrupted"
    else:
        assert seen.status.ended is None
        os.utime(status_path(out), (time.time(), time.time() - FRESH))
    assert not read_status(out).is_running
