"""`unmask view` as it is typed: bad input, Ctrl-C, another machine's name, a terminal of 80 columns."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests.cli.forked import forker
from tests.made_runs import made
from tests.patience import PATIENCE
from tests.viewer.server import running_viewer
from unmask.errors import UsageError
from unmask.viewer.serve import _check_host


@pytest.fixture(scope="module")
def runs(tmp_path_factory) -> Path:
    folder = tmp_path_factory.mktemp("made") / "runs"
    made(folder / "a", ["lie"] * 3 + ["honest"] * 3)
    return folder


def view(*arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    """The command, where it does not start a server."""
    return forker().run(["view", *arguments, "--no-open"], cwd=cwd, env=dict(os.environ))


def interrupt(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Ctrl-C, and how it ended. A server that waits for its pages would never end, and fail here."""
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=PATIENCE)
    return process.returncode, said


def test_the_address_is_on_a_line_of_its_own(runs, tmp_path):
    """With a token of 256 bits that is new each time; `runs` is the folder unless one is named."""
    tokens = set()
    for _ in range(2):
        with running_viewer(cache=tmp_path, cwd=runs.parent) as viewer:
            tokens.add(viewer.token)
            assert viewer.ask("/").status == 200
            assert interrupt(viewer.process) == (0, "Ctrl-C ends the viewer.\nThe viewer has ended.\n")
    assert len(tokens) == 2
    assert all(len(token) == 43 for token in tokens)


def test_the_browser_opens_the_printed_address(runs, tmp_path):
    """The one that $BROWSER names, while the server answers already."""
    script = tmp_path / "browser"
    script.write_text(f'#!/bin/sh\necho "$1" > {tmp_path}/half && mv {tmp_path}/half {tmp_path}/address\n')
    script.chmod(0o755)
    command = [sys.executable, "-m", "unmask.cli.main", "view", str(runs)]
    env = {**os.environ, "BROWSER": f"{script} %s", "UNMASK_CACHE": str(tmp_path)}
    with subprocess.Popen(command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        printed = process.stdout.readline()
        for _ in range(600):
            if (tmp_path / "address").exists():
                break
            time.sleep(0.05)
        assert interrupt(process)[0] == 0
    assert (tmp_path / "address").read_text() == printed


def test_only_loopback_listens(runs, tmp_path):
    """The address of this machine in its network answers nothing."""
    with running_viewer(runs, cache=tmp_path) as viewer:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
            try:
                probe.connect(("192.0.2.1", 9))  # sends nothing, only chooses an address of ours
                own = probe.getsockname()[0]
            except OSError:
                own = "127.0.0.2"
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((own, viewer.port), timeout=5)


def test_ctrl_c_ends_it_whatever_pages_are_open(runs, tmp_path):
    """A kept connection, and half a request."""
    with running_viewer(runs, cache=tmp_path) as viewer:
        head = f"HTTP/1.1\r\nHost: 127.0.0.1:{viewer.port}\r\nCookie: {viewer.cookie}\r\n\r\n"
        clients = [socket.create_connection(("127.0.0.1", viewer.port)) for _ in range(2)]
        for client, text in zip(clients, (f"GET / {head}", "GET / HTTP/1.1\r\nHost: "), strict=True):
            client.sendall(text.encode())
        assert clients[0].recv(12) == b"HTTP/1.1 200"
        assert interrupt(viewer.process)[0] == 0
        for client in clients:
            client.close()


def test_an_end_from_outside_is_an_end(runs, tmp_path):
    """As by Ctrl-C: a service manager or a batch system sends SIGTERM."""
    with running_viewer(runs, cache=tmp_path) as viewer:
        os.kill(viewer.process.pid, signal.SIGTERM)
        viewer.process.communicate(timeout=PATIENCE)
        assert viewer.process.returncode == 0


def test_a_port_in_use_is_named(runs, tmp_path):
    with running_viewer(runs, cache=tmp_path) as viewer:
        refused = view(str(runs), "--port", str(viewer.port), cwd=tmp_path)
    assert refused.returncode == 2
    assert f"port {viewer.port} cannot be used" in refused.stderr
    assert "--port" in refused.stderr
    assert refused.stdout == ""


@pytest.mark.parametrize("arguments", [("nowhere",), ("file",), ()])
def test_a_folder_that_is_not_there_is_named(tmp_path, arguments):
    (tmp_path / "file").write_text("")
    refused = view(*arguments, cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert (arguments or ("runs",))[0] in refused.stderr
    assert "Name a folder that holds runs." in refused.stderr or "Name the folder of your runs." in refused.stderr


def test_a_folder_without_runs_waits_for_the_first(tmp_path):
    """A page says what to do, and a run that begins is there at the next look."""
    (tmp_path / "runs").mkdir()
    with running_viewer(tmp_path / "runs", cache=tmp_path / "cache") as viewer:
        assert "There is no run in" in viewer.ask("/").text
        made(tmp_path / "runs" / "a", ["honest"] * 3)
        assert ">a<" in viewer.ask("/").text


def test_another_machine_may_be_let_in(runs, tmp_path):
    """Under the one name that was given; the token is needed all the same."""
    with running_viewer(runs, "--allow-remote", "GPU7.lab.example", cache=tmp_path) as viewer:
        own = f"gpu7.lab.example:{viewer.port}"
        assert viewer.ask("/", host=own).status == 200
        assert viewer.ask("/", host=own, with_cookie=False).status == 403
        assert viewer.ask("/", host=f"gpu8.lab.example:{viewer.port}").status == 421
        post = [("Origin", f"http://{own}"), ("Content-Type", "application/json")]
        assert viewer.ask("/nowhere", host=own, method="POST", headers=post, body=b"{}").status == 404
        cross = [*post, ("Sec-Fetch-Site", "cross-site")]
        assert viewer.ask("/nowhere", host=own, method="POST", headers=cross, body=b"{}").status == 403
        code, said = interrupt(viewer.process)
        assert code == 0
        assert "not encrypted" in said


@pytest.mark.parametrize(
    ("host", "shown"),
    [("Lab.Example", "lab.example"), ("10.0.0.7", "10.0.0.7"), ("fe80::1", "[fe80::1]"), ("[::1]", "[::1]")],
)
def test_a_host_is_spelled_as_browsers_do(host, shown):
    assert _check_host(host) == shown


@pytest.mark.parametrize("host", ["", "*", "http://x", "x:80", "x/y", "a b", "-x", "x..y", "x\n", "\x1b[31m", "é"])
def test_what_is_no_host_is_refused(host):
    with pytest.raises(UsageError, match="--allow-remote"):
        _check_host(host)
