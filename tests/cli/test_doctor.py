"""`unmask doctor`: what it reports, what it contacts, when it fails."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from bench.process import Served, serving
from tests.cli.terminal import unmask

CLOSED = "http://127.0.0.1:9/v1"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Served]:
    with serving(scenarios=6) as served:
        yield served


@contextmanager
def answering(status: int, body: bytes = b"") -> Iterator[tuple[str, list[str | None]]]:
    """The address of a server with one answer, and the Authorization headers it saw."""
    seen: list[str | None] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization"))
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}", seen
        server.shutdown()


@pytest.fixture
def silent() -> Iterator[str]:
    """Host and port of a server that takes connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield f"127.0.0.1:{server.getsockname()[1]}"


def report(done) -> dict[str, list[dict[str, str]]]:
    """The checks by what they look at."""
    found: dict[str, list[dict[str, str]]] = {}
    for check in json.loads(done.stdout):
        found.setdefault(check["what"], []).append(check)
    return found


def test_without_anything_it_is_well(tmp_path):
    """No key and no flag: exit 0, and the key, which is optional, comes with advice. The table says what JSON says;
    extras for developers are not shown."""
    done = unmask("doctor", "--json", cwd=tmp_path)
    assert done.returncode == 0
    found = report(done)
    assert found["key"][0]["state"] == "optional"
    assert "OPENAI_API_KEY" in found["key"][0]["advice"]
    assert {"python", "unmask", "extra hub", "working folder", "cache folder"} <= set(found)
    assert not {"endpoint", "extra dev", "extra site"} & set(found)
    table = unmask("doctor", cwd=tmp_path).stdout
    assert all(check["found"] in table for checks in found.values() for check in checks)


def test_keys_by_name_only(tmp_path):
    """Keys from the environment and .env are named with their source; no value is printed."""
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=valuetwo222\n")
    done = unmask("doctor", cwd=tmp_path, env={"OPENAI_API_KEY": "valueone111"})
    assert "OPENAI_API_KEY from the environment" in done.stdout
    assert "ANTHROPIC_API_KEY from .env" in done.stdout
    assert "value" not in done.stdout + done.stderr


def test_an_endpoint_that_answers_is_ok_and_a_model_it_does_not_list_is_said(tmp_path, endpoint):
    """With those it does; that is no failure."""
    done = unmask("doctor", "--json", "--model", "openai/mock", "--base-url", endpoint.url, cwd=tmp_path)
    assert (done.returncode, report(done)["endpoint"][0]["state"]) == (0, "ok")
    assert report(done)["subject"][0] == {"what": "subject", "state": "ok", "found": "openai/mock", "advice": None}
    done = unmask("doctor", "--json", "--model", "openai/other", "--base-url", endpoint.url, cwd=tmp_path)
    (check,) = report(done)["endpoint"]
    assert (done.returncode, check["state"]) == (0, "missing")
    assert "other" in check["found"]
    assert "mock" in check["advice"]


@pytest.mark.parametrize(
    ("flags", "env"),
    [
        (("--base-url", CLOSED), {}),
        (("--judge", "openai/x", "--judge-base-url", CLOSED), {}),
        (("--model", "openai/x", "--base-url", CLOSED, "--judge", "openai/x", "--judge-base-url", CLOSED), {}),
        (("--model", "openai/x"), {"UNMASK_BASE_URL": CLOSED}),
        (("--judge", "openai/x"), {"OPENAI_BASE_URL": CLOSED}),
        (("--model", "vllm/x"), {"VLLM_BASE_URL": CLOSED}),
    ],
)
def test_configured_endpoint_that_is_down_exits_4(tmp_path, flags, env):
    """Wherever the URL was given, an endpoint that refuses the connection is broken; of two models, once."""
    done = unmask("doctor", "--json", *flags, cwd=tmp_path, env=env)
    assert done.returncode == 4
    (check,) = report(done)["endpoint"]
    assert check["state"] == "broken"
    assert "127.0.0.1:9" in check["found"]
    assert "is a server running" in check["advice"]


@pytest.mark.parametrize(
    ("flags", "what"),
    [
        (("--model", "openai/x", "--base-url", "localhost"), "subject"),
        (("--model", "nobody/x"), "subject"),
        (("--judge", "gguf:none.gguf"), "judge"),
    ],
)
def test_model_that_cannot_be_opened_exits_4(tmp_path, flags, what):
    """A named model with a wrong address, an unknown provider or no file is broken and comes with advice."""
    done = unmask("doctor", "--json", *flags, cwd=tmp_path)
    (check,) = report(done)[what]
    assert (done.returncode, check["state"], bool(check["advice"])) == (4, "broken", True)


NO_DATABASE = b'{"error": {"message": "No connected db.", "type": "no_db_connection", "param": null, "code": "400"}}'
"""What the proxy of LiteLLM says of a wrong key where it has no database."""


@pytest.mark.parametrize(("status", "body"), [(401, b""), (400, NO_DATABASE)], ids=["401", "litellm"])
def test_refused_key_names_its_variable_not_its_value(tmp_path, status, body):
    with answering(status, body) as (url, seen):
        flags = ("--json", "--model", "openai/x", "--base-url", f"{url}/v1")
        done = unmask("doctor", *flags, cwd=tmp_path, env={"OPENAI_API_KEY": "wrongkey12345"})
    (check,) = report(done)["endpoint"]
    assert done.returncode == 4
    assert "OPENAI_API_KEY" in check["found"]
    assert "wrongkey12345" not in done.stdout
    assert seen == ["Bearer wrongkey12345"]


@pytest.mark.parametrize(("path", "state"), [("", "missing"), ("/api", "missing"), ("/v1", "ok")])
def test_a_base_url_without_v1_that_lists_nothing_is_doubted(tmp_path, path, state):
    """With it, 404 only says that this server has no list."""
    with answering(404) as (url, _):
        (check,) = report(unmask("doctor", "--json", "--base-url", f"{url}{path}", cwd=tmp_path))["endpoint"]
    assert check["state"] == state
    assert ("/v1?" in (check["advice"] or "")) is (state == "missing")


@pytest.mark.parametrize(("by", "flags"), [("flag", ()), ("variable", ("--json",))], ids=["flag-text", "variable-json"])
def test_the_secrets_of_an_address_are_not_shown(tmp_path, silent, by, flags):
    """A query is sent; an address with user and password is refused, with the variable to use."""
    for url, said in (
        (f"http://{silent}/v1?region=topsecret", f"http://{silent} cannot be reached: timeout: no answer within 5 s"),
        (f"http://user12:topsecret@{silent}/v1?key=topsecret", "UNMASK_API_KEY"),
    ):
        given = ("--base-url", url) if by == "flag" else ("--model", "openai/x")
        done = unmask("doctor", *given, *flags, cwd=tmp_path, env={} if by == "flag" else {"UNMASK_BASE_URL": url})
        assert done.returncode == 4
        assert said in done.stdout
        assert not any(secret in done.stdout + done.stderr for secret in ("topsecret", "user12"))


def test_a_cache_folder_that_cannot_be_made_is_said_with_the_variable_that_moves_it(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    done = unmask("doctor", "--json", cwd=tmp_path, env={"UNMASK_CACHE": str(tmp_path / "file" / "cache")})
    (check,) = report(done)["cache folder"]
    assert (check["state"], "UNMASK_CACHE" in check["advice"]) == ("missing", True)
