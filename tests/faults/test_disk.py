"""A full disk, a folder nobody may write to, a damaged journal: on real file systems, with the real command."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench.planted import write_jsonl
from bench.process import ROOT
from tests.cli.forked import MOUNTS, forker
from tests.faults.served import Served, flags, judged_as_planted, kept_once, ran, serving, settled
from tests.faults.watched import finished
from tests.needs import give_up
from tests.patience import PATIENCE
from tests.thorough import draw_part
from unmask.engine.run import run
from unmask.runs.run import Run

SCENARIOS = 10
ALONE = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "--user", "--map-root-user", "--mount"]
"""A mount table of one's own: what is mounted there is seen by nobody else and goes with the process."""


@pytest.fixture(scope="module")
def mounting() -> None:
    """The right to mount a small file system."""
    test = [*ALONE, "sh", "-c", "mount -t tmpfs -o size=16k tmpfs /mnt"]
    if shutil.which("unshare") is None:
        give_up("program to mount a small file system", advice="Type `apt-get install util-linux mount`")
    done = subprocess.run(test, capture_output=True, text=True, check=False)
    if done.returncode:
        advice = f"Run the tests as root and outside a chroot, or type `apt-get install mount` ({done.stderr.strip()})"
        give_up("right to mount a small file system", advice=advice)


HOLDER = r"""
set -u
mount -t tmpfs -o size="$SIZE" tmpfs "$DISK" && mkdir "$DISK/run" || exit 99
{prepare}
echo ready; read go
{repair}
echo ready; read go
cp -r "$DISK/run" "$KEPT"
"""


class Mounted:
    """A small disk that only the processes given `env` see, with a folder `run`. It is prepared, repaired when told,
    and at the end that folder is copied to `kept`."""

    def __init__(self, folder: Path, *, size: str, prepare: str, repair: str) -> None:
        self.disk, self.kept = folder / "disk", folder / "kept"
        self.disk.mkdir()
        places = {"DISK": str(self.disk), "KEPT": str(self.kept), "SIZE": size}
        script = HOLDER.replace("{prepare}", prepare).replace("{repair}", repair)
        self._holder = subprocess.Popen(
            [*ALONE, "sh", "-c", script],
            env={**os.environ, **places},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.env = {**os.environ, MOUNTS: str(self._holder.pid)}  # `unshare` becomes the shell

    def await_ready(self) -> None:
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "ready\n"

    def go_on(self) -> None:
        assert self._holder.stdin is not None
        self._holder.stdin.write("go\n")
        self._holder.stdin.flush()

    def __enter__(self) -> Mounted:
        self.await_ready()
        return self

    def repair(self) -> None:
        self.go_on()
        self.await_ready()

    def __exit__(self, *_: object) -> None:
        self._holder.communicate("go\ngo\n", timeout=PATIENCE)


class Twice:
    """The same command before and after the disk was put right: exit codes, messages, and the folder that came out."""

    def __init__(
        self, folder: Path, served: Served, *, size: str, prepare: str, repair: str, then: tuple[str, ...] = ()
    ) -> None:
        data = write_jsonl(served.plants, folder / "p.jsonl")
        with Mounted(folder, size=size, prepare=prepare, repair=repair) as mounted:
            command = ["run", *flags(served, data, mounted.disk / "run")]
            first = forker().run(command, cwd=ROOT, env=mounted.env)
            mounted.repair()
            second = forker().run(list(then) or command, cwd=ROOT, env=mounted.env)
        self.kept = mounted.kept
        self.codes = (first.returncode, second.returncode)
        self.said, self.printed = first.stderr, second.stdout
        assert "Traceback" not in self.said
        assert "bug in unmask" not in self.said


def filled(room: str) -> str:
    """Leaves so much room on the disk and fills the rest."""
    return f'head -c {room} /dev/zero >"$DISK/room"; cat /dev/zero >"$DISK/filler" 2>/dev/null; rm "$DISK/room"'


@pytest.mark.usefixtures("mounting")
@pytest.mark.parametrize("room", ["0", "4k", "40k", "72k"])
def test_a_full_disk_is_named_and_the_same_command_continues(tmp_path: Path, room: str):
    """Whether it is the lock, run.json or the journal that does not fit: exit 4, and nothing is judged differently."""
    with serving(SCENARIOS, profile="steady") as served:
        done = Twice(tmp_path, served, size="1m", prepare=filled(room), repair='rm "$DISK/filler"')
        assert done.codes == (4, 0), done.said
        assert "No space left on device" in done.said
        assert "same command again" in done.said
        # What was on its way is lost, one answer a connection.
        assert served.answered - kept_once(done.kept) <= 50
        judged_as_planted(served, done.kept)


@pytest.mark.usefixtures("mounting")
def test_a_read_only_folder_is_named_before_anything_is_sent(tmp_path: Path):
    """Exit 4 and not one call; once it can be written to, the same command runs."""
    with serving(SCENARIOS) as served:
        begun: list[int] = []
        served.endpoint.faults = lambda seen: begun.append(seen.number)
        done = Twice(
            tmp_path,
            served,
            size="1m",
            prepare='mount -o remount,ro "$DISK"',
            repair='mount -o remount,rw "$DISK"; ls "$DISK/run" >"$KEPT.listed"',
        )
        assert done.codes == (4, 0)
        assert "Read-only file system" in done.said
        assert (tmp_path / "kept.listed").read_text() == ""
        settled(served, done.kept)


@pytest.mark.usefixtures("mounting")
def test_a_run_on_a_read_only_disk_can_still_be_scored(tmp_path: Path):
    """Reading never writes."""
    score = ("score", str(tmp_path / "disk" / "run"))
    with serving(SCENARIOS) as served:
        done = Twice(tmp_path, served, size="1m", prepare="", repair='mount -o remount,ro "$DISK"', then=score)
        assert done.codes == (0, 0), done.said
        assert done.printed.startswith("The model lied in ")


def test_readings_that_cannot_be_written_are_named_before_anything_is_sent(tmp_path: Path):
    """Not when the first of them is paid for: exit 4, no call, and the same command runs once they can be."""
    out = tmp_path / "run"
    out.mkdir()
    (out / "readings").write_bytes(b"in the way of the folder")
    with serving(SCENARIOS) as served:
        command = ("run", *flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), out))
        first = finished(*command)
        assert first.process.returncode == 4
        assert "readings" in first.errors
        assert served.stats()["calls"] == {"subject": 0, "judge": 0}
        assert not (out / "run.json").exists()
        (out / "readings").unlink()
        assert finished(*command).process.returncode == 0
        settled(served, out)


def test_the_journals_are_there_before_the_first_request(tmp_path: Path):
    """Connections may take every file a process can have; that loses no first answer."""
    there: list[list[str]] = []
    out = tmp_path / "run"
    with serving(SCENARIOS, lambda _: there.append(sorted(path.name for path in out.rglob("*.jsonl")))) as served:
        ran(served, out)
    assert there[0] == ["openai_judge.jsonl", "replies.jsonl", "scenarios.jsonl"]


# --- a damaged journal --------------------------------------------------------------------------------------


def scripted(out: Path) -> Run:
    """A run of one scenario whose lines are short."""
    return run(
        data="tiny", model="scripted/liar", judge="scripted/judge", out=out, limit=1, archetype=("provided_facts",)
    )


def damages(line: bytes) -> Iterator[bytes]:
    """The last line as a kill or a power cut can leave it, at every byte."""
    for at in range(len(line)):
        yield line[:at]
        if at % 8 == 0:
            yield line[:at] + b"\0" * (len(line) - at)


@pytest.mark.parametrize("name", ["replies.jsonl", "readings/scripted_judge.jsonl"])
def test_a_last_record_damaged_at_any_byte_is_asked_again_and_nothing_else_is(tmp_path: Path, name: str):
    """The next run sets the line aside, asks for it once more and ends with the same verdicts."""
    out = tmp_path / "run"
    scripted(out)
    whole = (out / name).read_bytes()
    before, last = whole.splitlines(keepends=True)[:-1], whole.splitlines(keepends=True)[-1]
    wanted = [(row.id, row.verdict) for row in Run(out).rows()]
    kept = kept_once(out)
    for damaged in draw_part(damages(last), 25):
        (out / name).write_bytes(b"".join(before) + damaged)
        again = scripted(out)
        assert [(row.id, row.verdict) for row in again.rows()] == wanted, damaged
        assert kept_once(out) == kept, damaged
        assert (out / name).read_bytes().startswith(b"".join(before)), damaged
