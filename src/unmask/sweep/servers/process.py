"""One server under its supervisor, seen from the process that started it."""

from __future__ import annotations

import os
import re
import secrets
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

from unmask.errors import UsageError
from unmask.files import read_environment
from unmask.records import Record
from unmask.sweep.servers.base import ServerFailed, ServerSpec
from unmask.sweep.servers.supervisor import KEY_VARIABLE, Settings, read_log_tail

END_WITHIN = 30.0
"""Seconds that a supervisor has to end its server; its own grace is a tenth of that."""


class ServerEvent(Record, frozen=True, kw_only=True):
    """A line of the supervisor: `ready`, `failed` or `lost`."""

    event: str
    address: str = ""
    reason: str = ""
    log: str = ""

    def describe(self, name: str) -> str:
        """What happened, with the last lines of the log."""
        lines = " | ".join(filter(None, map(str.strip, self.log.splitlines())))
        return f"server {name}: {self.reason}" + (f"; the end of its log: {lines}" if lines else "")


QUIET = {"VLLM_NO_USAGE_STATS": "1"}
"""vLLM reports its use to its makers unless this is set. What the user or the grid sets comes first."""


def inherited_environment() -> dict[str, str]:
    """The environment of this process without keys of providers: a server asks nobody. HF_TOKEN stays, also that of
    `.env`, because servers fetch their weights themselves."""
    token = read_environment().get("HF_TOKEN")
    kept = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return kept | ({"HF_TOKEN": token} if token else {})


class SupervisedServer:
    """A supervisor and its server. Methods block; the server ends with this process, whatever ends it."""

    def __init__(
        self, spec: ServerSpec, *, folder: Path, host: str = "127.0.0.1", environment: Mapping[str, str] | None = None
    ) -> None:
        if sys.platform != "linux":
            raise UsageError(
                f"server {spec.name} cannot be supervised on {sys.platform}",
                advice='Start it by hand and give its address, base_url = "…", or run the sweep on Linux.',
            )
        self.spec = spec
        self.key = secrets.token_urlsafe(24)
        self.log = folder / f"{re.sub('[^A-Za-z0-9._-]+', '-', spec.name)[:60]}-{secrets.token_hex(4)}.log"
        settings = {name: getattr(spec, name) for name in Settings._fields if name not in ("log", "host")}
        typed = msgspec.json.encode(settings | {"log": str(self.log), "host": host}).decode()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "unmask.sweep.servers.supervisor", typed],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**QUIET, **inherited_environment(), **spec.environment, **(environment or {}), KEY_VARIABLE: self.key},
            start_new_session=True,  # Ctrl-C is for the driver, which ends its servers in order
        )

    @property
    def pid(self) -> int:
        return self._process.pid

    def next_event(self) -> ServerEvent:
        """Wait for the next line of the supervisor; its end without one is a loss, too."""
        assert self._process.stdout is not None
        if line := self._process.stdout.readline():
            return msgspec.json.decode(line, type=ServerEvent)
        return ServerEvent(event="lost", reason="its supervisor was ended from outside", log=read_log_tail(self.log))

    def await_ready(self) -> ServerEvent:
        """Wait until the server answers; raises `ServerFailed` after all its processes are gone."""
        event = self.next_event()
        if event.event != "ready":
            self.end()
            raise ServerFailed(event.describe(self.spec.name), advice=f"The whole log: {self.log}")
        return event

    def ask_to_end(self) -> None:
        """Close the pipe that keeps the server alive; returns at once."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def end(self) -> None:
        """End the server with everything it started, and wait for that."""
        self.ask_to_end()
        try:
            self._process.wait(END_WITHIN)
        except subprocess.TimeoutExpired:
            self._process.kill()  # the supervisor below it is told by that
            self._process.wait()
