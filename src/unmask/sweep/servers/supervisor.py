"""The supervisor of one model server: `python -m unmask.sweep.servers.supervisor --name NAME --log FILE -- COMMAND...`.

It starts the command, says in one line of JSON when the server answers, looks at it from time to time, and ends the
server with everything it has started when nobody needs it any more: when standard input is closed, whatever ended the
process at the end of that pipe, on SIGTERM, and when the server itself is gone.

Two processes do that. The *supervisor* adopts orphans (PR_SET_CHILD_SUBREAPER), so that workers in a session of their
own stay its descendants. The *guardian* above it does nothing but wait: kill -9 of the supervisor leaves all of them to
the guardian, and kill -9 of the guardian tells the supervisor to end. Each has a session of its own.

The standard library only, and Linux only. The key of the server comes in the variable UNMASK_SERVER_KEY.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import select
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from unmask.sweep.servers.descendants import (
    adopt_orphans,
    describe_exit,
    end_descendants,
    end_with_parent,
    reap_children,
    send_signal,
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
"""Seconds between two looks whether a server that starts is up."""
MOST_FAILED_CHECKS = 3
"""Checks in a row that fail before a server that is still there counts as lost."""

USER_AGENT = "unmask-server-check"
"""What the questions of the supervisor are signed with, so that a server can tell them from those of a run."""
QUESTION = [{"role": "user", "content": "Answer with one word: ready?"}]
CHOICES = ["1", "2"]


def main(arguments: Sequence[str] | None = None) -> int:
    """The guardian. Returns the exit code of the supervisor."""
    settings = _parse_arguments(arguments)
    if sys.platform != "linux":
        print("the supervisor needs Linux: no other system lets a process adopt orphans", file=sys.stderr)
        return 2
    adopt_orphans()
    guardian = os.getpid()
    supervisor = os.fork()
    if supervisor == 0:
        os.setsid()  # kill -9 of a process group must not hit both
        end_with_parent(signal.SIGTERM, guardian)
        adopt_orphans()
        return Supervisor(settings).run()
    return _guard_supervisor(supervisor)


def _parse_arguments(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="supervisor", description=__doc__.partition("\n")[0])
    parser.add_argument("--name", required=True, help="what the server calls its model")
    parser.add_argument("--log", required=True, type=Path, help="where its output goes, cut to a few MB")
    parser.add_argument("--host", default="127.0.0.1", help="the address it listens on")
    parser.add_argument("--choices", action="store_true", help="ask for a constrained answer before it is ready")
    parser.add_argument("--ready-within", type=float, default=900.0, metavar="SECONDS")
    parser.add_argument("--answers-within", type=float, default=120.0, metavar="SECONDS")
    parser.add_argument("--check-every", type=float, default=10.0, metavar="SECONDS")
    parser.add_argument("command", nargs="+", help="with {host}, {port} and {name}")
    return parser.parse_args(arguments)


def _guard_supervisor(supervisor: int) -> int:
    """Wait for the supervisor, and end what it leaves behind. Its own parent may be gone although the pipe is open:
    a process that was forked from the parent may hold the other end."""
    parent, orphaned = os.getppid(), False

    def pass_on(*_: object) -> None:
        send_signal(supervisor, signal.SIGTERM)

    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, pass_on)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGCHLD])
    while True:
        ended, status = os.waitpid(supervisor, os.WNOHANG)
        if ended:
            break
        signal.sigtimedwait([signal.SIGCHLD], 1.0)
        if os.getppid() != parent and not orphaned:
            orphaned = True
            pass_on()
    end_descendants(grace=0.0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


class CheckFailed(Exception):
    """A check of the server failed. `final`: no further check will do better. `late`: the time was over."""

    def __init__(self, reason: str, *, final: bool = False, busy: bool = False, late: bool = False) -> None:
        super().__init__(reason)
        self.final, self.busy, self.late = final, busy, late


class Supervisor:
    """Starts one server, watches it and ends it. `run` is called once."""

    def __init__(self, settings: argparse.Namespace) -> None:
        self.settings = settings
        self.key = os.environ.get(KEY_VARIABLE, "")
        self.log = BoundedLog(settings.log)
        self._ended = False
        self._news: list[tuple[str, str]] = []
        """What the thread that checks has seen: an event and its reason."""
        self._wake_reader, self._wake_writer = os.pipe()
        os.set_blocking(self._wake_reader, False)
        os.set_blocking(self._wake_writer, False)

    def run(self) -> int:
        """0 when it was asked to end, 1 when the server failed or was lost."""
        settings = self.settings
        signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, self._ask_to_end)
        signal.signal(signal.SIGCHLD, lambda *_: None)  # only to be woken
        port, _reservation = reserve_port(settings.host)
        places = {"{host}": settings.host, "{port}": str(port), "{name}": settings.name}
        try:
            server = self._start_server([fill_places(part, places) for part in settings.command])
        except OSError as error:
            return self._print_event("failed", f"{settings.command[0]} cannot be started: {error.strerror or error}")
        probe = ServerProbe(settings, port=port, key=self.key)
        threading.Thread(target=self._check_for_ever, args=(probe,), daemon=True).start()
        return self._watch_server(server, probe)

    def _watch_server(self, server: subprocess.Popen[bytes], probe: ServerProbe) -> int:
        """Until the server, the parent or the patience with the server is at an end."""
        ready, parent_pipe = False, 0
        while True:
            readable = select.select([parent_pipe, self._wake_reader], [], [], 1.0)[0]
            if self._wake_reader in readable:
                os.read(self._wake_reader, 4096)
            if parent_pipe in readable and not os.read(parent_pipe, 4096):
                self._ended = True
            reap_children(server)
            if self._ended:
                end_descendants(first=server, grace=GRACE)
                return 0
            event, reason = self._news.pop(0) if self._news else ("", "")
            if server.returncode is not None:
                end_descendants(grace=0.0)  # what is left of a server that is dead can only hold its memory
                self._copier.join(2.0)
                return self._print_event("lost" if ready else "failed", describe_exit(server.returncode))
            if event == "ready":
                ready = True
                print(json.dumps({"event": "ready", "address": probe.address, "port": probe.port}), flush=True)
            elif event:
                self._print_event(event, reason)
                end_descendants(first=server, grace=GRACE)
                return 1

    def _ask_to_end(self, *_: object) -> None:
        self._ended = True

    def _start_server(self, command: list[str]) -> subprocess.Popen[bytes]:
        supervisor = os.getpid()
        server = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, **dict.fromkeys(SERVER_KEY_VARIABLES, self.key)} if self.key else None,
            start_new_session=True,
            preexec_fn=lambda: end_with_parent(signal.SIGKILL, supervisor),  # noqa: PLW1509  no thread runs yet
        )
        assert server.stdout is not None
        self._copier = threading.Thread(target=self.log.copy_from, args=(server.stdout,), daemon=True)
        self._copier.start()
        return server

    def _print_event(self, event: str, reason: str) -> int:
        tail = self.log.read_tail()
        if "out of memory" in tail.lower():
            reason += "; the log says: out of memory"
        line = json.dumps({"event": event, "reason": reason, "log": tail})
        try:
            print(line.replace(self.key, "***") if self.key else line, flush=True)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # nobody listens any more; the end of Python flushes again
        return 1

    def _queue_news(self, event: str, reason: str = "") -> None:
        self._news.append((event, reason))
        os.write(self._wake_writer, b"!")

    def _check_for_ever(self, probe: ServerProbe) -> None:
        try:
            probe.await_ready()
        except CheckFailed as error:
            self._queue_news("failed", str(error))
            return
        self._queue_news("ready")
        failed = 0
        while failed < MOST_FAILED_CHECKS:
            time.sleep(self.settings.check_every)
            try:
                probe.check()
                failed = 0
            except CheckFailed as error:
                failed = MOST_FAILED_CHECKS if error.final else failed + 1
                reason = str(error)
        self._queue_news("lost", reason)


class ServerProbe:
    """Asks a server whether it is well."""

    def __init__(self, settings: argparse.Namespace, *, port: int, key: str) -> None:
        self.settings, self.port = settings, port
        self.address = f"http://{settings.host}:{port}/v1"
        self._place = (settings.host, port)
        self._headers = {"Content-Type": "application/json", "User-Agent": USER_AGENT}
        if key:
            self._headers["Authorization"] = f"Bearer {key}"

    def await_ready(self) -> None:
        """Returns when the server is healthy and has given a real answer, and a constrained one if that is wanted."""
        deadline, trouble = time.monotonic() + self.settings.ready_within, "it never answered"
        steps: list[Callable[[float], None]] = [self._look_at_health, self._ask_completion]
        if self.settings.choices:
            steps.append(self._ask_constrained)
        while steps:
            left = deadline - time.monotonic()
            if left <= 0:
                raise CheckFailed(f"not ready within {self.settings.ready_within:g} s: {trouble}")
            try:
                steps[0](left)
                steps.pop(0)
            except CheckFailed as error:
                if error.final:
                    raise
                trouble = str(error)
                time.sleep(min(POLL, max(0.0, left)))

    def check(self) -> None:
        """One look at a server that was ready. Health alone says nothing about an engine that hangs."""
        patience = self.settings.answers_within
        self._look_at_health(patience)
        try:
            self._ask_completion(patience)
        except CheckFailed as error:
            if error.late:
                raise CheckFailed(f"it says that it is well, and {error}", final=True) from None
            if not error.busy:
                raise

    def _look_at_health(self, patience: float) -> None:
        status, _ = self._send_request("GET", "/health", patience)
        if status == 404:
            status, _ = self._send_request("GET", "/v1/models", patience)
        if status != 200:
            raise CheckFailed(f"its health check says HTTP {status}")

    def _ask_completion(self, patience: float, **extra: Any) -> Any:
        body = {"model": self.settings.name, "messages": QUESTION, "max_tokens": 1, "temperature": 0.0, **extra}
        status, content = self._send_request("POST", "/v1/chat/completions", patience, body)
        if status in (429, 503):
            raise CheckFailed(f"a completion was refused with HTTP {status}", busy=True)
        text = content.decode("utf-8", "replace")
        if status != 200:
            raise CheckFailed(f"a completion was refused with HTTP {status}: {text[:300]}", final=400 <= status < 500)
        try:
            return json.loads(text)["choices"][0]
        except (ValueError, LookupError, TypeError):
            raise CheckFailed(f"a completion came back that is none: {text[:300]}", final=True) from None

    def _ask_constrained(self, patience: float) -> None:
        choice = self._ask_completion(
            patience, structured_outputs={"choice": CHOICES}, logprobs=True, top_logprobs=len(CHOICES)
        )
        answer, probabilities = (choice.get("message") or {}).get("content"), choice.get("logprobs")
        if answer not in CHOICES or not probabilities:
            raise CheckFailed(
                f"asked for one of {CHOICES} with probabilities it said {answer!r}; this judge needs a server "
                "that honours structured_outputs, as vLLM does",
                final=True,
            )

    def _send_request(self, method: str, path: str, patience: float, body: object = None) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection(*self._place, timeout=max(patience, 0.1))
        try:
            connection.request(method, path, None if body is None else json.dumps(body), self._headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        except TimeoutError:
            raise CheckFailed(f"{path} did not answer within {patience:.3g} s", late=True) from None
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

    def read_tail(self) -> str:
        return read_log_tail(self.path)


def read_log_tail(path: Path, lines: int = TAIL_LINES) -> str:
    """The last lines of a log; nothing where there is none."""
    try:
        with path.open("rb") as file:
            size = file.seek(0, os.SEEK_END)
            file.seek(max(0, size - 16_384))
            return "\n".join(file.read().decode("utf-8", "replace").splitlines()[-lines:])
    except OSError:
        return ""


# --- the command ------------------------------------------------------------------------------------------------


def fill_places(text: str, places: Mapping[str, str]) -> str:
    """Without `str.format`: arguments may hold JSON."""
    for place, value in places.items():
        text = text.replace(place, value)
    return text


def reserve_port(host: str) -> tuple[int, socket.socket]:
    """A port that is free now, and what keeps other supervisors on this machine from it while this process lives: a
    name that only Linux has, and that vanishes with its process."""
    while True:
        with socket.socket() as trial:
            trial.bind((host, 0))
            port: int = trial.getsockname()[1]
        reservation = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        try:
            reservation.bind(f"\0unmask-port-{port}")
            return port, reservation
        except OSError:
            reservation.close()


if __name__ == "__main__":
    sys.exit(main())
