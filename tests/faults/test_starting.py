"""An address that does not answer as a model does: a server that comes up late or never, a web page, a missing /v1."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from bench import faulty
from bench.fault import Fault
from bench.planted import write_jsonl
from tests.faults.served import JUDGE, SUBJECT, flags, serving, settled
from tests.faults.watched import finished, watched

SCENARIOS = 6
LOADING = Fault(503, b'{"error": {"message": "Loading model", "code": 503}}')


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_server_that_starts_late_is_waited_for(tmp_path: Path):
    """The run says what it waits for, then is as any other: nothing bought twice, every verdict as planted."""
    port = free_port()
    with serving(SCENARIOS) as elsewhere:
        data = write_jsonl(elsewhere.plants, tmp_path / "p.jsonl")
    url = f"http://127.0.0.1:{port}/v1"
    command = ("--data", str(data), SUBJECT, "--base-url", url, "--judge", JUDGE, "--judge-base-url", url)
    with watched(
        "run",
        *command,
        "--out",
        str(tmp_path / "run"),
        "--set",
        "wait_for_server=300",
        "--set",
        "judge.wait_for_server=300",
    ) as child:
        waiting = child.until(f"waiting for http://127.0.0.1:{port} to come up")
        assert "Connection refused" in waiting
        with serving(SCENARIOS, port=port) as served:
            assert child.end() == 0, child.errors
            settled(served, tmp_path / "run")


def test_a_server_that_loads_its_model_is_waited_for(tmp_path: Path):
    """It answers 503 meanwhile, more often than any request is tried."""
    with serving(SCENARIOS, lambda _: LOADING) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        with watched("run", *command, "--set", "wait_for_server=300", "--set", "judge.wait_for_server=300") as child:
            assert "Loading model" in child.until("to come up")
            child.when(lambda: served.stats()["faulted"] >= 3)
            served.endpoint.faults = None
            assert child.end() == 0, child.errors
        settled(served, tmp_path / "run")


def test_a_server_that_never_starts_ends_the_run_when_the_wait_is_over(tmp_path: Path):
    with serving(SCENARIOS) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
    child = finished("run", *command, "--set", "wait_for_server=3", "--set", "judge.wait_for_server=3")
    assert child.process.returncode == 4
    assert "to come up" in child.errors
    assert "Connection refused; waited 3 s for the server" in child.errors


@pytest.mark.parametrize(
    "fault",
    [Fault(401, b'{"error": {"message": "no such key"}}'), Fault(404, b'{"error": {"message": "no such model"}}')],
)
def test_what_is_no_server_that_starts_is_not_waited_for(tmp_path: Path, fault: Fault):
    with serving(SCENARIOS, lambda _: fault) as served:
        command = flags(served, write_jsonl(served.plants, tmp_path / "p.jsonl"), tmp_path / "run")
        child = finished(
            "run",
            *command,
            "--set",
            "wait_for_server=300",
            "--set",
            "judge.wait_for_server=300",
            "--max-connections",
            "1",
        )
        assert child.process.returncode == 4
        assert "to come up" not in child.errors
        assert served.stats()["faulted"] == 1


@contextmanager
def web_site(status: int) -> Iterator[tuple[str, list[str]]]:
    """A server that has nothing but one page, and the paths that it was asked for."""
    asked: list[str] = []

    class Pages(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(status)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(faulty.PAGE)))
            self.end_headers()
            self.wfile.write(faulty.PAGE)

        def log_message(self, *_: object) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Pages)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_port}", asked
    finally:
        server.shutdown()
        server.server_close()


@pytest.mark.parametrize("status", [200, 404])
def test_a_base_url_that_is_a_web_site_stops_the_run_with_the_reason(tmp_path: Path, status: int):
    """After one page; the missing /v1 is named."""
    command = ("--data", "tiny", "--judge", "verbatim", "--out", str(tmp_path / "run"))
    with web_site(status) as (url, asked):
        child = finished("run", "openai/m", *command, "--base-url", url, "--max-connections", "1")
    assert child.process.returncode == 4
    assert asked == ["/chat/completions"]
    assert "an HTML page" in child.errors
    assert "most base URLs end in /v1" in child.errors
