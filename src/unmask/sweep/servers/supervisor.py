"""The supervisor of one model server: `python -m unmask.sweep.servers.supervisor SETTINGS`, a JSON object.

It starts the command, prints a line of JSON when the server answers and when it is lost, and ends the server with
everything it has started when nobody needs it any more: when standard input is closed, whatever ended the process that
had the other end, on SIGTERM, and when the server itself is gone. It adopts orphans (PR_SET_CHILD_SUBREAPER), so that
workers in a session of their own stay its descendants.

A parent above it does nothing but wait: Ray sends SIGKILL to the children of a worker that ends, and a supervisor that
got it could end nothing.

The standard library only, and Linux only. The key of the server comes in the variable UNMASK_SERVER_KEY.
"""

from __future__ import annotations

import http.client
import json
import os
import queue
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import IO, NamedTuple

from unmask.sweep.servers.descendants import (
    adopt_orphans,
    describe_exit,
    end_descendants,
    end_with_parent,
    reap_children,
)

KEY_VARIABLE = "UNMASK_SERVER_KEY"
SERVER_KEY_VARIABLES = (KEY_VARIABLE, "VLLM_API_KEY")
"""The server gets its key in both."""

HEAD_BYTES = TAIL_BYTES = 1 << 20
"""What is always left of a log: its beginning, which has the settings, and its end, which has the failure."""
TAIL_LINES = 30
"""Lines of the log that a failure is reported with."""

GRACE = 3.0
"""Seconds from SIGTERM to SIGKILL."""
POLL = 0.2
"""Seconds between two looks at a server that starts, and at its process."""
MOST_FAILED_CHECKS = 3
"""Checks in a row that fail before a server that is still there counts as lost."""

USER_AGENT = "unmask-server-check"
"""What the questions of the supervisor are signed with, so that a server can tell them from those of a run."""
QUESTION = [{"role": "user", "content": "Answer with one word: ready?"}]


def main() -> int:
    settings = Settings(**json.loads(sys.argv[1]))
    adopt_orphans()
    parent = os.getpid()
    supervisor = os.fork()
    if supervisor == 0:
        os.setsid()  # a SIGKILL of a process group must not hit both
        end_with_parent(signal.SIGTERM, parent)
        adopt_orphans()
        return Supervisor(settings).run()
    _, status = os.waitpid(supervisor, 0)
    end_descendants(grace=0.0)  # what it left behind, if it was killed
    return os.waitstatus_to_exitcode(status) & 0xFF


class Settings(NamedTuple):
    """`command` has `{host}`, `{port}` and `{name}` to be filled in."""

    name: str
    """What the server calls its model."""
    command: list[str]
    log: str
    folder: str | None
    """Where the server is started, if it is there."""
    host: str
    """The address it listens on."""
    ready_within: float
    answers_within: float
    check_every: float


class CheckFailed(Exception):
    """A check of the server failed. `final`: no further check will do better."""

    def __init__(self, reason: str, *, final: bool = False) -> None:
        super().__init__(reason)
        self.final = final


class Supervisor:
    """Starts one server, watches it and ends it. `run` is called once."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.key = os.environ.get(KEY_VARIABLE, "")
        self.log = BoundedLog(Path(settings.log))
        self._news: queue.SimpleQueue[tuple[str, str]] = queue.SimpleQueue()
        """What threads and signals have seen, `ready`, `failed`, `lost` or `end`, each with its reason."""

    def run(self) -> int:
        """0 when it was asked to end, 1 when the server failed or was lost."""
        settings = self.settings
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self._news.put(("end", "")))
        port = find_port(settings.host)
        try:
            server = self._start_server(port)
        except OSError as error:
            return self._print_event("failed", f"{settings.command[0]} cannot be started: {error.strerror or error}")
        copier = self._start_thread(self.log.copy_from, server.stdout)
        self._start_thread(self._await_end_of_pipe)
        self._start_thread(self._check_for_ever, Probe(settings, port=port, key=self.key))
        ready = False
        while True:
            try:
                event, reason = self._news.get(timeout=POLL)
            except queue.Empty:
                event = reason = ""
            reap_children(server)
            if event == "end":
                end_descendants(first=server, grace=GRACE)
                return 0
            if server.returncode is not None:
                end_descendants(grace=0.0)  # what is left of a server that is dead can only hold its memory
                copier.join(2.0)
                return self._print_event("lost" if ready else "failed", describe_exit(server.returncode))
            if event == "ready":
                ready = True
                print(json.dumps({"event": "ready", "address": f"http://{settings.host}:{port}/v1"}), flush=True)
            elif event:
                self._print_event(event, reason)
                end_descendants(first=server, grace=GRACE)
                return 1

    def _start_server(self, port: int) -> subprocess.Popen[bytes]:
        supervisor, settings = os.getpid(), self.settings
        command = settings.command
        for place, value in (("{host}", settings.host), ("{port}", str(port)), ("{name}", settings.name)):
            command = [part.replace(place, value) for part in command]  # not `str.format`: arguments may hold JSON
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            cwd=settings.folder if settings.folder and os.path.isdir(settings.folder) else None,
            env={**os.environ, **dict.fromkeys(SERVER_KEY_VARIABLES, self.key)} if self.key else None,
            start_new_session=True,
            preexec_fn=lambda: end_with_parent(signal.SIGKILL, supervisor),  # noqa: PLW1509  no thread runs yet
        )

    def _start_thread(self, work: object, *arguments: object) -> threading.Thread:
        thread = threading.Thread(target=work, args=arguments, daemon=True)  # type: ignore[arg-type]
        thread.start()
        return thread

    def _await_end_of_pipe(self) -> None:
        while os.read(0, 4096):
            pass
        self._news.put(("end", ""))

    def _check_for_ever(self, probe: Probe) -> None:
        try:
            probe.await_ready()
        except CheckFailed as error:
            self._news.put(("failed", str(error)))
            return
        self._news.put(("ready", ""))
        failed = 0
        while failed < MOST_FAILED_CHECKS:
            time.sleep(self.settings.check_every)
            try:
                probe.check()
                failed = 0
            except CheckFailed as error:
                failed = MOST_FAILED_CHECKS if error.final else failed + 1
                reason = str(error)
        self._news.put(("lost", reason))

    def _print_event(self, event: str, reason: str) -> int:
        tail = read_log_tail(self.log.path)
        if "out of memory" in tail.lower():
            reason += "; the log says: out of memory"
        line = json.dumps({"event": event, "reason": reason, "log": tail})
        try:
            print(line.replace(self.key, "***") if self.key else line, flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody listens any more; the end of Python flushes again
        return 1


class Probe:
    """Asks a server whether it is well: health alone says nothing about an engine that hangs."""

    def __init__(self, settings: Settings, *, port: int, key: str) -> None:
        self.settings = settings
        self._place = (settings.host, port)
        self._headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    def await_ready(self) -> None:
        """Returns when the server is healthy, where it has an opinion about that, and has answered a question."""
        deadline, trouble = time.monotonic() + self.settings.ready_within, "it never answered"
        while (left := deadline - time.monotonic()) > 0:
            try:
                status, _ = self._send("GET", "/health", left)
                if status not in (200, 404):
                    raise CheckFailed(f"its health check says HTTP {status}")
                if self._ask(left):
                    return
                trouble = "it is too busy to answer"
            except CheckFailed as error:
                if error.final:
                    raise
                trouble = str(error)
            except TimeoutError:
                break
            time.sleep(POLL)
        raise CheckFailed(f"not ready within {self.settings.ready_within:g} s: {trouble}")

    def check(self) -> None:
        """One look at a server that was ready."""
        patience = self.settings.answers_within
        try:
            self._ask(patience)
        except TimeoutError:
            raise CheckFailed(f"it did not answer within {patience:.3g} s", final=True) from None

    def _ask(self, patience: float) -> bool:
        """Whether it has answered; False where it is too busy."""
        body = {"model": self.settings.name, "messages": QUESTION, "max_tokens": 1, "temperature": 0.0}
        status, content = self._send("POST", "/v1/chat/completions", patience, body)
        text = content[:300].decode("utf-8", "replace")
        if status not in (200, 429, 503):
            raise CheckFailed(f"a completion was refused with HTTP {status}: {text}", final=400 <= status < 500)
        if status == 200 and b'"choices"' not in content:
            raise CheckFailed(f"a completion came back that is none: {text}", final=True)
        return status == 200

    def _send(self, method: str, path: str, patience: float, body: object = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self._place, timeout=max(patience, 0.1))
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self._headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except TimeoutError:
            raise
        except (OSError, http.client.HTTPException) as error:
            raise CheckFailed(f"{path} cannot be asked: {error}") from None
        finally:
            connection.close()


class BoundedLog:
    """A log file that never has more than its first and its last bytes. Only its owner can read it."""

    def __init__(self, path: Path, *, head: int = HEAD_BYTES, tail: int = TAIL_BYTES) -> None:
        self.path, self._head, self._tail = path, head, tail
        path.parent.mkdir(parents=True, exist_ok=True)
        self._file = os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600), "w+b", buffering=0)

    def copy_from(self, output: IO[bytes]) -> None:
        """Until nobody can write any more. A disk that is full must not stop the server."""
        while chunk := os.read(output.fileno(), 1 << 16):
            try:
                self._append_bounded(chunk)
            except OSError:
                continue

    def _append_bounded(self, chunk: bytes) -> None:
        self._file.write(chunk)
        if self._file.tell() > self._head + 2 * self._tail:
            self._file.seek(-self._tail, os.SEEK_END)
            end = self._file.read()
            self._file.seek(self._head)
            self._file.write(b"\n[... cut ...]\n" + end)
            self._file.truncate()


def read_log_tail(path: Path) -> str:
    """The last lines of a log; nothing where there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 16_384))
            return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-TAIL_LINES:])
    except OSError:
        return ""


def find_port(host: str) -> int:
    """A port that is free now."""
    with socket.socket() as trial:
        trial.bind((host, 0))
        port: int = trial.getsockname()[1]
        return port


if __name__ == "__main__":
    sys.exit(main())
