"""`unmask doctor`: what it reports, what it contacts, when it fails."""

from __future__ import annotations

import http.server
import json
import socket
import threading
from collections.abc import Iterator

import pytest

from bench.process import Served, serving
from tests.cli.terminal import unmask

CLOSED = "http://127.0.0.1:9/v1"


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Served]:
    with serving(scenarios=6) as served:
        yield served


NO_DATABASE = b'{"error": {"message": "No connected db.", "type": "no_db_connection", "param": null, "code": "400"}}'
"""What the proxy of LiteLLM says of a wrong key where it has no database."""


@pytest.fixture(params=[(401, b""), (400, NO_DATABASE)], ids=["401", "litellm"])
def refusing(request: pytest.FixtureRequest) -> Iterator[tuple[str, list[str | None]]]:
    """A server that refuses every key, and the Authorization headers it saw."""
    seen: list[str | None] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.headers.get("Authorization"))
            status, body = request.param
            self.send_response(status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}/v1", seen
    server.shutdown()
    server.server_close()


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
    """No key and no flag: exit 0, and the key, which is optional, comes with advice."""
    done = unmask("doctor", "--json", cwd=tmp_path)
    assert done.returncode == 0
    found = report(done)
    assert found["key"][0]["state"] == "optional"
    assert "OPENAI_API_KEY" in found["key"][0]["advice"]
    assert "endpoint" not in found
    assert {"python", "unmask", "extra hub", "working folder", "cache folder"} <= set(found)


def test_text_and_json_say_the_same(tmp_path):
    """Every finding of the JSON stands in the table."""
    table = unmask("doctor", cwd=tmp_path).stdout
    for checks in report(unmask("doctor", "--json", cwd=tmp_path)).values():
        for check in checks:
            assert check["found"] in table


def test_keys_by_name_only(tmp_path):
    """Keys from the environment and .env are named with their source; no value is printed."""
    (tmp_path / ".env").write_text("ANTHROPIC_API_KEY=valuetwo222\n")
    done = unmask("doctor", cwd=tmp_path, env={"OPENAI_API_KEY": "valueone111"})
    assert "OPENAI_API_KEY from the environment" in done.stdout
    assert "ANTHROPIC_API_KEY from .env" in done.stdout
    assert "value" not in done.stdout + done.stderr


def test_answering_endpoint_is_ok(tmp_path, endpoint):
    """A base URL that answers is ok, also for a model it lists."""
    done = unmask("doctor", "--json", "--model", "openai/mock", "--base-url", endpoint.url, cwd=tmp_path)
    assert done.returncode == 0
    found = report(done)
    assert found["endpoint"][0]["state"] == "ok"
    assert found["subject"][0] == {"what": "subject", "state": "ok", "found": "openai/mock", "advice": None}


def test_an_endpoint_of_two_models_is_shown_once(tmp_path):
    flags = ("--model", "openai/x", "--base-url", CLOSED, "--judge", "openai/x", "--judge-base-url", CLOSED)
    (check,) = report(unmask("doctor", "--json", *flags, cwd=tmp_path))["endpoint"]
    assert "is a server running" in check["advice"]


def test_model_not_listed_is_said(tmp_path, endpoint):
    """A model the endpoint does not list is reported with those it does, and is no failure."""
    done = unmask("doctor", "--json", "--model", "openai/other", "--base-url", endpoint.url, cwd=tmp_path)
    assert done.returncode == 0
    (check,) = report(done)["endpoint"]
    assert check["state"] == "missing"
    assert "other" in check["found"]
    assert "mock" in check["advice"]


@pytest.mark.parametrize(
    ("flags", "env"),
    [
        (("--base-url", CLOSED), {}),
        (("--model", "openai/x", "--base-url", CLOSED), {}),
        (("--judge", "openai/x", "--judge-base-url", CLOSED), {}),
        (("--model", "openai/x"), {"UNMASK_BASE_URL": CLOSED}),
        (("--judge", "openai/x"), {"OPENAI_BASE_URL": CLOSED}),
        (("--model", "vllm/x"), {"VLLM_BASE_URL": CLOSED}),
    ],
)
def test_configured_endpoint_that_is_down_exits_4(tmp_path, flags, env):
    """Wherever the URL was given, an endpoint that refuses the connection is broken."""
    done = unmask("doctor", "--json", *flags, cwd=tmp_path, env=env)
    assert done.returncode == 4
    (check,) = report(done)["endpoint"]
    assert check["state"] == "broken"
    assert "127.0.0.1:9" in check["found"]


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
    assert done.returncode == 4
    (check,) = report(done)[what]
    assert check["state"] == "broken"
    assert check["advice"]


def test_refused_key_names_its_variable_not_its_value(tmp_path, refusing):
    """A 401 is broken; the report says which variable the key came from."""
    url, seen = refusing
    env = {"OPENAI_API_KEY": "wrongkey12345"}
    done = unmask("doctor", "--json", "--model", "openai/x", "--base-url", url, cwd=tmp_path, env=env)
    (check,) = report(done)["endpoint"]
    assert done.returncode == 4
    assert "OPENAI_API_KEY" in check["found"]
    assert "wrongkey12345" not in done.stdout
    assert seen == ["Bearer wrongkey12345"]


@pytest.mark.parametrize(("by", "flags"), [("flag", ()), ("variable", ("--json",))], ids=["flag-text", "variable-json"])
def test_a_slow_endpoint_is_named_without_the_secrets_of_its_url(tmp_path, silent, by, flags):
    """A query is sent and never shown, wherever the URL was given."""
    url = f"http://{silent}/v1?region=topsecretquery"
    given = ("--base-url", url) if by == "flag" else ("--model", "openai/x")
    done = unmask("doctor", *given, *flags, cwd=tmp_path, env={} if by == "flag" else {"UNMASK_BASE_URL": url})
    assert done.returncode == 4
    assert f"http://{silent} cannot be reached: timeout: no answer within 5 s" in done.stdout
    assert "topsecretquery" not in done.stdout + done.stderr


@pytest.mark.parametrize("flags", [(), ("--json",)], ids=["text", "json"])
@pytest.mark.parametrize("by", ["flag", "variable"])
def test_an_address_with_credentials_is_refused_without_showing_them(tmp_path, silent, by, flags):
    """Neither user nor password nor key, wherever the URL was given; the variable to use is named."""
    url = f"http://user12:hunter2secret@{silent}/v1?key=topsecretquery"
    given = ("--base-url", url) if by == "flag" else ("--model", "openai/x")
    done = unmask("doctor", *given, *flags, cwd=tmp_path, env={} if by == "flag" else {"UNMASK_BASE_URL": url})
    assert done.returncode == 4
    assert "UNMASK_API_KEY" in done.stdout
    for secret in ("user12", "hunter2secret", "topsecretquery"):
        assert secret not in done.stdout + done.stderr


def test_unwritable_cache_is_reported(tmp_path):
    """A cache folder that cannot be made is said, with the variable that moves it."""
    (tmp_path / "file").write_text("not a folder")
    done = unmask("doctor", "--json", cwd=tmp_path, env={"UNMASK_CACHE": str(tmp_path / "file" / "cache")})
    (check,) = report(done)["cache folder"]
    assert check["state"] == "missing"
    assert "UNMASK_CACHE" in check["advice"]


def test_extras_for_developers_are_not_shown(tmp_path):
    found = report(unmask("doctor", "--json", cwd=tmp_path))
    assert not {"extra dev", "extra site"} & set(found)


@pytest.mark.parametrize(("path", "state"), [("", "missing"), ("/api", "missing"), ("/v1", "ok")])
def test_a_base_url_without_v1_that_lists_nothing_is_doubted(tmp_path, path, state):
    """With it, 404 only says that this server has no list."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_error(404)

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_address[1]}{path}"
        (check,) = report(unmask("doctor", "--json", "--base-url", url, cwd=tmp_path))["endpoint"]
        server.shutdown()
    assert check["state"] == state
    assert ("/v1?" in (check["advice"] or "")) is (state == "missing")
