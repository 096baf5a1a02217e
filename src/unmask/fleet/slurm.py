"""Servers as jobs of Slurm, one for each, by way of submitit.

A job runs the same supervisor and writes `ID.json` into a folder that all machines share: host, port, key and the end
of its time. Two things tell it that the driver is alive. The driver holds a connection to the job, which its system
closes when the driver is gone, however it died; the job ends its server then. And the driver counts up a number in the
file `driver`: where the connection could not be made or has broken, a job ends its server when the number has stood
still for long. A clock is never compared with that of another machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import secrets
import socket
import threading
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import msgspec

from unmask.errors import MissingError, UnmaskError, UsageError
from unmask.files import write_atomically
from unmask.fleet.base import NoRoom, Server, ServerFailed, ServerSpec
from unmask.fleet.process import SupervisedServer
from unmask.models.daemon import run_in_daemon
from unmask.records import Record

BEAT = 5.0
"""Seconds between two signs of life of the driver."""
LOOK = 1.0
"""Seconds between two looks at the files of jobs."""
LINE_WITHIN = 5.0
"""Seconds in which driver and job have to be connected."""
UNFINISHED = frozenset({"PENDING", "CONFIGURING", "RUNNING", "COMPLETING", "REQUEUED", "SUSPENDED", "UNKNOWN"})
"""States of a job that is not over. Slurm does not know a job at once."""


class JobFile(Record, frozen=True, kw_only=True):
    """`ID.json`. `state` is `starting`, `ready`, `failed` or `lost`."""

    state: str
    host: str
    line: tuple[str, int] | None = None
    """Where the driver connects, so that the job learns of its end."""
    port: int = 0
    address: str = ""
    key: str = ""
    deadline: float | None = None
    """When Slurm ends the job, as seconds since the epoch."""
    reason: str = ""


def serve_job(spec: Mapping[str, Any], folder: str, identity: str, *, minutes: int, away: float) -> None:
    """What a job does: run one server until it is lost, nobody needs it or its driver is gone."""
    fleet, host = Path(folder), socket.gethostname()
    end = os.environ.get("SLURM_JOB_END_TIME")
    deadline = float(end) if end else time.time() + 60.0 * minutes
    address = find_own_address()
    listener = socket.create_server((address, 0))
    process = SupervisedServer(msgspec.convert(spec, ServerSpec), folder=fleet / "logs", host=address)
    threading.Thread(target=_end_when_unneeded, args=(process, fleet, identity, away), daemon=True).start()
    threading.Thread(target=_end_with_driver, args=(process, listener), daemon=True).start()

    def write(state: str, **fields: Any) -> None:
        line = (address, int(listener.getsockname()[1]))
        content = JobFile(state=state, host=host, line=line, deadline=deadline, key=process.key, **fields)
        # Only the user may read the key.
        write_atomically(fleet / f"{identity}.json", msgspec.json.encode(content), mode=0o600)

    write("starting")
    try:
        event = process.await_ready()
    except ServerFailed as error:
        write("failed", reason=str(error))
        return
    write("ready", port=event.port, address=event.address)
    write("lost", reason=process.next_event().describe(process.spec.name))
    process.end()


def _end_when_unneeded(process: SupervisedServer, fleet: Path, identity: str, away: float) -> None:
    """Also where the driver was killed and could tell nobody: its number stands still."""
    beat, since = "", time.monotonic()
    while not (fleet / f"{identity}.end").exists() and time.monotonic() - since < away:
        time.sleep(min(LOOK, away / 4))
        now = _read_text(fleet / "driver")
        if now != beat:
            beat, since = now, time.monotonic()
    process.ask_to_end()


def _end_with_driver(process: SupervisedServer, listener: socket.socket) -> None:
    """Whoever knows the key is the driver, and the end of its connection is its own. A connection that breaks says
    nothing: a network can do that."""
    while True:
        connection, _ = listener.accept()
        with connection, contextlib.suppress(OSError):
            connection.settimeout(LINE_WITHIN)
            if not secrets.compare_digest(connection.makefile("rb").readline(200).strip(), process.key.encode()):
                continue
            connection.settimeout(None)
            while connection.recv(64):
                pass
            process.ask_to_end()
            return


def connect_line(written: JobFile) -> socket.socket | None:
    """The driver's end of it; `None` where the job cannot be reached that way."""
    if written.line is None:
        return None
    try:
        line = socket.create_connection(written.line, timeout=LINE_WITHIN)
        line.sendall(f"{written.key}\n".encode())
    except OSError:
        return None
    return line


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except OSError:
        return ""


def find_own_address() -> str:
    """The address by which the driver reaches this machine; outside of Slurm a job is a process beside the driver."""
    if "SLURM_JOB_ID" not in os.environ:
        return "127.0.0.1"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as trial:
        try:
            trial.connect(("192.0.2.1", 9))  # no packet is sent; the system only chooses the way
            return str(trial.getsockname()[0])
        except OSError:
            return socket.gethostbyname(socket.gethostname())


def parse_walltime(walltime: int | str) -> int:
    """Minutes, from a number of them or from `[D-]HH:MM:SS`."""
    if isinstance(walltime, int) and walltime > 0:
        return walltime
    if match := re.fullmatch(r"(?:(\d+)-)?(\d+):(\d\d):(\d\d)", str(walltime)):
        days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
        total = (days * 24 + hours) * 60 + minutes + (seconds > 0)
        if total > 0:
            return total
    raise UsageError(f"walltime {walltime!r} is no time", advice='Write minutes, or "HH:MM:SS", or "D-HH:MM:SS".')


class SlurmFleet:
    """`folder` is on a file system that all machines share. `walltime` is that of a job, in minutes or as Slurm writes
    it, `setup` lines of shell before it, `options` are further ones of submitit, as `slurm_account`. A job that waits
    longer than `queue_within` seconds for its start is taken back. `cluster="local"` runs jobs as processes of this
    machine, for tests. `away` is how long a driver may be silent."""

    def __init__(
        self,
        folder: Path,
        *,
        partition: str | None = None,
        walltime: int | str = 240,
        setup: Sequence[str] = (),
        options: Mapping[str, Any] | None = None,
        most_servers: int = 64,
        queue_within: float = 3600.0,
        away: float = 120.0,
        cluster: str | None = None,
    ) -> None:
        try:
            import submitit
        except ImportError:
            raise MissingError("fleet slurm needs submitit", advice="Type: pip install 'unmask[slurm]'") from None
        if cluster is None:
            import shutil

            if shutil.which("sbatch") is None:
                raise MissingError(
                    "fleet slurm needs the command sbatch, which is not on this machine",
                    advice="Start the sweep on a login node of the cluster.",
                )
        self._submitit: Any = submitit
        self._folder = folder.absolute()
        self._folder.mkdir(parents=True, exist_ok=True)
        self._cluster, self._minutes = cluster or "slurm", parse_walltime(walltime)
        self._options = {
            **({"slurm_partition": partition} if partition else {}),
            **({"slurm_setup": list(setup)} if setup else {}),
            **(options or {}),
        }
        self._most, self._queue_within, self._away = most_servers, queue_within, away
        self._running: dict[Server, tuple[Any, str, asyncio.Task[None]]] = {}
        self._placing = 0
        self._lines: dict[str, socket.socket | None] = {}
        """The connections to jobs, by identity."""
        self._closed = threading.Event()
        self._beat: threading.Thread | None = None

    async def place(self, spec: ServerSpec) -> Server:
        if self.room()["servers"] < 1:
            raise NoRoom(f"server {spec.name}: {self._most} jobs are there already")
        if self._beat is None:
            self._beat = threading.Thread(target=self._show_life, daemon=True)
            self._beat.start()
        identity = f"server-{secrets.token_hex(6)}"
        self._placing += 1
        try:
            job = await run_in_daemon(lambda: self._submit_job(spec, identity))
            try:
                written = await self._await_file(spec, job, identity)
            except BaseException:
                await asyncio.shield(run_in_daemon(lambda: job.cancel(check=False)))
                raise
        except BaseException:
            self._ask_to_end(identity)  # also for a job that was not submitted yet when its caller left
            self._close_line(identity)
            raise
        finally:
            self._placing -= 1
        server = Server(spec, base_url=written.address, key=written.key)
        server.deadline = written.deadline
        self._running[server] = job, identity, asyncio.create_task(self._follow_job(server, job, identity))
        return server

    async def drop(self, server: Server) -> None:
        _, identity, watch = self._running.pop(server, (None, "", None))
        if watch is None:
            return
        self._ask_to_end(identity)
        await watch

    def room(self) -> Mapping[str, float]:
        """Slurm queues what does not fit: only the number of jobs is limited here."""
        return {"gpus": float("inf"), "servers": float(self._most - len(self._running) - self._placing)}

    async def close(self) -> None:
        await asyncio.gather(*(self.drop(server) for server in list(self._running)))
        self._closed.set()

    def _submit_job(self, spec: ServerSpec, identity: str) -> Any:
        executor = self._submitit.AutoExecutor(folder=self._folder / "jobs", cluster=self._cluster)
        executor.update_parameters(timeout_min=self._minutes, name=f"unmask-{spec.name}"[:60], gpus_per_node=spec.gpus)
        if self._cluster == "slurm" and spec.labels:
            executor.update_parameters(slurm_constraint="&".join(spec.labels.values()))
        executor.update_parameters(**self._options)
        return executor.submit(
            serve_job,
            msgspec.to_builtins(spec),
            str(self._folder),
            identity,
            minutes=self._minutes,
            away=self._away,
        )

    async def _await_file(self, spec: ServerSpec, job: Any, identity: str) -> JobFile:
        """What the job has written when its server is ready; it bounds the start itself, once it runs."""
        begin = time.monotonic()
        while True:
            written = self._read_file(identity)
            if written is not None and identity not in self._lines:
                self._lines[identity] = await run_in_daemon(partial(connect_line, written))
            if written is not None and written.state != "starting":
                break
            state = await run_in_daemon(lambda: str(job.state))
            if state not in UNFINISHED and self._read_file(identity) == written:
                raise ServerFailed(f"server {spec.name}: its job {job.job_id} ended as {state}: {_read_errors(job)}")
            if state == "PENDING" and time.monotonic() - begin > self._queue_within:
                raise NoRoom(f"server {spec.name}: its job {job.job_id} did not start in {self._queue_within:g} s")
            await asyncio.sleep(min(LOOK, 0.1 + (time.monotonic() - begin) / 10))
        if written.state != "ready":
            raise ServerFailed(written.reason)
        return written

    async def _follow_job(self, server: Server, job: Any, identity: str) -> None:
        """Until the job is over; the server is lost by that, unless it was dropped."""
        reason = None
        while reason is None:
            await asyncio.sleep(LOOK / 2)
            written = self._read_file(identity)
            if written is not None and written.state == "lost":
                reason = written.reason
            elif (state := await run_in_daemon(lambda: str(job.state))) not in UNFINISHED:
                reason = f"server {server.spec.name}: its job {job.job_id} ended as {state}: {_read_errors(job)}"
        if self._running.pop(server, None) is not None:
            server.reason = reason
            server.lost.set()
        self._close_line(identity)
        await run_in_daemon(lambda: job.cancel(check=False))

    def _close_line(self, identity: str) -> None:
        if (line := self._lines.pop(identity, None)) is not None:
            line.close()

    def _read_file(self, identity: str) -> JobFile | None:
        try:
            return msgspec.json.decode((self._folder / f"{identity}.json").read_bytes(), type=JobFile)
        except (OSError, msgspec.DecodeError):
            return None

    def _ask_to_end(self, identity: str) -> None:
        """Jobs of submitit do not end on SIGTERM."""
        (self._folder / f"{identity}.end").touch()

    def _show_life(self) -> None:
        number = time.time_ns()  # of another driver before, the number was another
        while not self._closed.is_set():
            number += 1
            with contextlib.suppress(UnmaskError):  # a full disk is the driver's own trouble
                write_atomically(self._folder / "driver", str(number).encode())
            self._closed.wait(min(BEAT, self._away / 4))


def _read_errors(job: Any) -> str:
    lines = (job.stderr() or "").strip().splitlines()
    return lines[-1] if lines else "no word of it"
