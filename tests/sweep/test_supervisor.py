"""The supervisor, with real processes: what it calls ready, and that it leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from tests.patience import PATIENCE
from tests.sweep.trees import alive, await_true, children_of, read_pids, vllm_like
from unmask.errors import UsageError
from unmask.sweep.servers.base import ServerFailed, ServerSpec
from unmask.sweep.servers.process import SupervisedServer
from unmask.sweep.servers.supervisor import BoundedLog

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="the supervisor needs Linux")


class Starter:
    """Starts servers and ends what a test leaves of them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.servers: list[SupervisedServer] = []

    def __call__(self, spec: ServerSpec) -> SupervisedServer:
        self.servers.append(SupervisedServer(spec, folder=self.folder))
        return self.servers[-1]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Starter]:
    starter = Starter(tmp_path)
    yield starter
    for server in starter.servers:
        server.end()


def tree_of(server: SupervisedServer, file: Path) -> list[int]:
    """The supervisor and its parent, server, helper and worker."""
    (supervisor,) = children_of(server.pid)
    return [server.pid, supervisor, *read_pids(file)]


def test_a_server_is_ready_when_it_has_answered_with_its_key_which_no_process_and_no_log_shows(start, tmp_path):
    pids = tmp_path / "pids"
    server = start(vllm_like("tiny", "--workers", pids))
    address = server.await_ready().address
    request = Request(
        f"{address}/chat/completions",
        json.dumps({"model": "tiny", "messages": [{"role": "user", "content": "hello"}]}).encode(),
        {"Content-Type": "application/json", "Authorization": f"Bearer {server.key}"},
    )
    assert json.load(urlopen(request))["choices"]
    lines = [Path(f"/proc/{pid}/cmdline").read_bytes() for pid in tree_of(server, pids)]
    assert all(lines)
    assert not any(server.key.encode() in line for line in lines)
    assert server.key not in server.log.read_text()
    assert server.log.stat().st_mode & 0o077 == 0


def test_a_server_without_a_health_path_is_ready_when_it_answers(start):
    assert start(vllm_like("tiny", "--fault", "no-health")).await_ready().event == "ready"


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        ("out-of-memory", "CUDA out of memory"),
        ("never-ready", "not ready within 1 s"),
        ("no-answers", "not ready within 1 s"),
        ("no-template", "default chat template"),
    ],
)
def test_a_server_that_cannot_serve_is_refused_with_its_log_and_leaves_nothing(start, tmp_path, fault, reason):
    pids = tmp_path / "pids"
    patience = {"ready_within": 1.0} if "1 s" in reason else {}
    server = start(vllm_like("tiny", "--fault", fault, "--workers", pids, **patience))
    with pytest.raises(ServerFailed) as caught:
        server.await_ready()
    assert reason in str(caught.value)
    assert "listening soon" in str(caught.value)
    assert alive([server.pid, *read_pids(pids)]) == []


def test_a_command_is_started_in_the_folder_of_the_grid_and_one_that_does_not_exist_is_named(start, tmp_path):
    (tmp_path / "serve").symlink_to(sys.executable)
    spec = vllm_like()
    assert start(ServerSpec(name="tiny", command=("./serve", *spec.command[1:]), folder=str(tmp_path))).await_ready()
    with pytest.raises(ServerFailed, match="no-such-program cannot be started: No such file"):
        start(ServerSpec(name="x", command=("no-such-program",))).await_ready()


@pytest.mark.parametrize("victim", ["pipe", "parent TERM", "server -9", "supervisor -9", "parent -9"])
def test_no_process_is_left_whichever_is_ended(start, tmp_path, victim):
    """The worker has a session of its own and ignores SIGTERM."""
    pids = tmp_path / "pids"
    server = start(vllm_like("tiny", "--workers", pids))
    server.await_ready()
    parent, supervisor, api, _helper, worker = tree = tree_of(server, pids)
    assert len({os.getsid(pid) for pid in (parent, supervisor, api, worker)}) == 4
    assert alive(tree) == tree
    match victim:
        case "pipe":
            server.ask_to_end()
        case "parent TERM":
            os.kill(parent, signal.SIGTERM)
        case "server -9":
            os.kill(api, signal.SIGKILL)
        case "supervisor -9":
            os.kill(supervisor, signal.SIGKILL)
        case "parent -9":
            os.killpg(parent, signal.SIGKILL)
    event = server.next_event()
    assert event.event == "lost"
    if victim == "server -9":
        assert "the server was ended by SIGKILL" in event.reason
    server.end()
    assert await_true(lambda: not alive(tree)), alive(tree)


def test_no_process_is_left_when_the_driver_is_killed(tmp_path):
    pids = tmp_path / "pids"
    program = f"""
        import time
        from pathlib import Path
        from unmask.sweep.servers.base import ServerSpec
        from unmask.sweep.servers.process import SupervisedServer

        spec = ServerSpec(name="tiny", command={vllm_like("tiny", "--workers", pids).command!r})
        server = SupervisedServer(spec, folder=Path({str(tmp_path)!r}))
        server.await_ready()
        print(server.pid, flush=True)
        time.sleep(600)
    """
    driver = subprocess.Popen([sys.executable, "-c", textwrap.dedent(program)], stdout=subprocess.PIPE, text=True)
    assert driver.stdout is not None
    with driver.stdout as said:
        parent = int(said.readline())
    tree = [parent, *children_of(parent), *read_pids(pids)]
    driver.kill()
    driver.wait()
    assert await_true(lambda: not alive(tree)), alive(tree)


@pytest.mark.parametrize("trouble", ["hang", "stop"])
def test_a_server_that_is_healthy_and_does_not_answer_is_lost_and_ended(start, tmp_path, trouble):
    pids, switch = tmp_path / "pids", tmp_path / "switch"
    patience = 2.0 if trouble == "hang" else PATIENCE
    server = start(vllm_like("tiny", "--workers", pids, "--switch", switch, check_every=0.1, answers_within=patience))
    server.await_ready()
    tree = tree_of(server, pids)
    switch.write_text(trouble)
    event = server.next_event()
    assert event.event == "lost"
    assert ("did not answer within 2 s" if trouble == "hang" else "HTTP 500") in event.reason
    assert await_true(lambda: not alive(tree)), alive(tree)


def test_a_log_keeps_its_beginning_and_its_end(tmp_path):
    log = BoundedLog(tmp_path / "log", head=1000, tail=1000)
    source = subprocess.Popen(
        [sys.executable, "-c", "for i in range(5000): print('line', i)"], stdout=subprocess.PIPE, bufsize=0
    )
    assert source.stdout is not None
    with source.stdout as output:
        log.copy_from(output)
    source.wait()
    text = (tmp_path / "log").read_text()
    assert len(text) < 1000 + 2 * 1000 + (1 << 16)
    assert text.startswith("line 0\nline 1\n")
    assert "[... cut ...]" in text
    assert text.endswith("line 4999\n")


def test_another_system_is_refused_with_the_way_out(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(UsageError, match="cannot be supervised on darwin") as caught:
        SupervisedServer(vllm_like(), folder=tmp_path)
    assert 'base_url = "…"' in (caught.value.advice or "")
