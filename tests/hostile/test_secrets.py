"""Secrets are planted everywhere they can be; nothing that we compose or show holds one of them.

The endpoint echoes what it is sent: in error bodies, in the headers of redirects, in its list of models. What it echoes
inside a reply is kept as it came.
"""

from __future__ import annotations

import asyncio
import base64
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

from bench.fuzz import seeds
from tests.hostile.echo import Echo, echoing
from unmask.cli.main import run_command_line
from unmask.data.form import write_jsonl
from unmask.engine import run
from unmask.errors import ModelError
from unmask.models.providers import open_model
from unmask.records import Message, Request

KEY = "cAnArY-key/of+the=subject-0123456789"
JUDGE_KEY = "cAnArY-key-of-the-judge-0123456789"
DOTENV_KEY = "cAnArY-from-the-dotenv-0123456789"
USER, PASSWORD = "cAnArY-user-0123", "cAnArY-p@ss/word-0123"
QUERY = "cAnArY-in-the-query-0123456789"
PROXY = "cAnArY-proxy-password-0123"
PASSPHRASE = "cAnArY passphrase 0123456789"
TOKEN = "hf_cAnArY0123456789token"
PLANTED = (KEY, JUDGE_KEY, DOTENV_KEY, USER, PASSWORD, QUERY, PROXY, PASSPHRASE, TOKEN)


def forms(secret: str) -> set[bytes]:
    """A secret as it is, escaped for URLs and JSON, and the parts a careless mask would leave of it."""
    return {form.encode() for form in (secret, quote(secret, safe=""), quote(secret), secret.replace("/", "\\/"))}


SOUGHT = {form for secret in PLANTED for form in forms(secret)} | {
    base64.b64encode(f"{USER}:{PASSWORD}".encode()),
    base64.b64encode(f"{USER}:{PASSWORD}".encode())[:24],
    base64.b64encode(f"proxy:{PROXY}".encode()),
    b"ss/word-0123",
    b"ss%2Fword-0123",
    b"cAnArY",
}


def found_in(data: bytes) -> set[bytes]:
    return {form for form in SOUGHT if form in data}


def clean(folder: Path) -> None:
    """No file below `folder`, `.env` apart, holds a secret in its content or its name."""
    looked_at = 0
    for path in folder.rglob("*"):
        assert not found_in(str(path.relative_to(folder)).encode()), path
        if path.is_file() and path.name != ".env":
            looked_at += 1
            assert not found_in(path.read_bytes()), path
    assert looked_at


@pytest.fixture
def planted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Echo]:
    """The working folder is `tmp_path`, so that whatever is written anywhere lies below it."""
    variables = {
        "UNMASK_API_KEY": KEY,
        "UNMASK_JUDGE_API_KEY": JUDGE_KEY,
        "OPENAI_API_KEY": KEY,
        "HF_TOKEN": TOKEN,
        "SSH_PASSPHRASE": PASSPHRASE,
        "https_proxy": f"http://proxy:{PROXY}@127.0.0.1:9",
        "HF_ENDPOINT": f"http://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:9/?token={QUERY}",
        "HF_HUB_DISABLE_TELEMETRY": "1",
        "TMPDIR": str(tmp_path / "tmp"),
        "HOME": str(tmp_path / "home"),
        "XDG_CACHE_HOME": str(tmp_path / "cache"),
        "UNMASK_CACHE": str(tmp_path / "cache" / "unmask"),
        "COLUMNS": "200",
    }
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("UNMASK_TRACEBACK", raising=False)
    monkeypatch.setattr("tempfile.tempdir", None)
    (tmp_path / "tmp").mkdir()
    (tmp_path / ".env").write_text(f"ANTHROPIC_API_KEY={DOTENV_KEY}\nOPENROUTER_API_KEY='{DOTENV_KEY}'\n")
    monkeypatch.chdir(tmp_path)
    write_jsonl([seeds.BINARY, seeds.SUPPLIED], path=tmp_path / "set.jsonl")
    with echoing() as server:
        yield server


def url(server: Echo, kind: str) -> str:
    """A query that does not look like a secret is taken, and may still be one."""
    return f"http://{server.authority}/v1" + (f"?version={QUERY}" if kind == "query" else "")


class Terminal:
    """Runs commands in this process and keeps everything they print."""

    def __init__(self, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
        self._capfd = capfd
        self._monkeypatch = monkeypatch

    def __call__(self, *arguments: str) -> tuple[int, str]:
        self._monkeypatch.setattr(sys, "argv", ["unmask", *arguments])
        self._capfd.readouterr()
        code = run_command_line(arguments)
        shown = "".join(self._capfd.readouterr())
        assert not found_in(shown.encode()), shown
        return code, shown


@pytest.fixture
def terminal(capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    return Terminal(capfd, monkeypatch)


def run_flags(address: str, *more: str) -> tuple[str, ...]:
    return (
        *("--data", "set.jsonl", "openai/m", "--base-url", address, "--judge", "openai/j"),
        *("--judge-base-url", address, "--direct", "1", *more),
    )


def test_the_endpoint_really_echoes(planted: Echo):
    """Otherwise nothing below would show anything."""
    for kind in ("header", "query"):
        model = open_model("openai/m", base_url=url(planted, kind))
        asyncio.run(_ask(model))
    assert KEY in planted.seen[0]
    assert QUERY in planted.seen[1]


def test_what_an_endpoint_echoes_in_a_reply_is_kept_as_it_came(planted: Echo):
    """A reply is data: nothing in it is looked for or changed."""
    planted.in_replies = True
    assert KEY in asyncio.run(_ask(open_model("openai/m", base_url=url(planted, "header"))))


async def _ask(model) -> str:
    try:
        done = await model.complete(Request((Message("user", "x"),)))
        return repr(done)
    finally:
        await model.close()


EXPORTS = {
    "csv": "x.csv",
    "parquet": "x.parquet",
    "jsonl": "x.jsonl",
    "inspect": "x.eval",
}


@pytest.mark.parametrize("kind", ["header", "query"])
def test_a_run_that_works_leaves_no_secret_anywhere(kind: str, planted: Echo, terminal: Terminal, tmp_path: Path):
    """Run folder, terminal, JSON, every export, report, board, log, doctor: all of them, greped whole."""
    address = url(planted, kind)
    assert (
        terminal("run", "--plan", "--data", "set.jsonl", "openai/m", "--base-url", address, "--judge", "openai/j")[0]
        == 0
    )
    assert terminal("run", *run_flags(address, "--out", "run", "--json", "--also", "self-report,role-play"))[0] == 0
    assert terminal("run", *run_flags(address, "--out", "run", "--also", "self-report,role-play"))[0] == 0
    assert terminal("judge", "run", "--judge", "openai/k", "--judge-base-url", address)[0] in (0, 3)
    for format_, out in EXPORTS.items():
        assert terminal("export", "run", "--format", format_, "--out", out)[0] == 0
    for command in (
        ("score", "run", "--json", "--max-unjudged", "1"),
        ("score", "run", "--rows", "--max-unjudged", "1"),
        ("show", "run", "kf-1"),
        ("report", "run", "--out", "report.html"),
        ("board", "run", "--out", "board.json"),
        ("board", "run", "--out", "board.csv"),
        ("compare", "run", "run", "--json"),
        ("label", "run", "--export", "labels.csv"),
        ("import", "x.eval", "--out", "again"),
    ):
        code, shown = terminal(*command)
        assert code in (0, 2, 3), shown
    terminal("doctor", "--model", "openai/m", "--base-url", address, "--judge", "anthropic/x", "--json")
    terminal("doctor", "--model", "openai/m", "--base-url", address)
    clean(tmp_path)


@pytest.mark.parametrize("failing", [(302, "query"), (400, "header"), (400, "query"), (401, "header"), (404, "query")])
def test_a_run_that_fails_leaves_no_secret_anywhere(
    failing: tuple[int, str], planted: Echo, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """The error is shown with its reason, written to the journal, and told again with a traceback."""
    planted.status, kind = failing
    address = url(planted, kind)
    code, shown = terminal("run", *run_flags(address, "--out", "run"))
    assert code == (3 if planted.status == 400 else 4), shown  # one refused request is data, the others stop the run
    journal = tmp_path / "run" / "replies.jsonl"
    assert "refused: " in (journal.read_text() if planted.status == 400 else shown)
    monkeypatch.setenv("UNMASK_TRACEBACK", "1")
    terminal("run", *run_flags(address, "--out", "run"))
    terminal("score", "run", "--json")
    terminal("score", "run", "--rows")
    clean(tmp_path)


@pytest.mark.parametrize("status", [302, 400, 403, 413, 429, 500])
@pytest.mark.parametrize("kind", ["header", "query"])
def test_no_status_lets_a_secret_into_a_message(kind: str, status: int, planted: Echo):
    """Whatever an endpoint answers, the exception has none in its text, its advice or its repr."""
    planted.status = status
    model = open_model("openai/m", base_url=url(planted, kind))
    try:
        said = asyncio.run(_ask(model))
    except ModelError as error:
        said = f"{error} {error!r} {error.advice} {error.__cause__!r} {error.__context__!r}"
    assert planted.seen
    assert not found_in(said.encode()), said
    assert not found_in(repr(model).encode())


@pytest.mark.parametrize("status", [200, 400, 407, 502])
def test_a_proxy_that_echoes_its_credentials_gets_them_nowhere(
    status: int, planted: Echo, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """They go out with every request, so they can come back with every answer."""
    monkeypatch.setenv("http_proxy", f"http://proxy:{PROXY}@{planted.authority}")
    planted.status = status
    if status == 502:
        model = open_model("openai/m", base_url="http://model.invalid/v1")
        with pytest.raises(ModelError) as caught:
            asyncio.run(_ask(model))
        assert not found_in(f"{caught.value} {caught.value.__context__!r}".encode())
    else:
        terminal("run", *run_flags("http://model.invalid/v1", "--out", "run", "--json"))
        terminal("show", "run", "pf-1")
    sent = base64.b64encode(f"proxy:{PROXY}".encode()).decode()
    assert any(sent in said for said in planted.seen)
    clean(tmp_path)


@pytest.mark.parametrize("visible", ["", "1"])
def test_a_crash_shows_no_secret(visible: str, planted: Echo, terminal: Terminal, tmp_path: Path, monkeypatch):
    """An error nobody foresaw, with all secrets in its message: terminal and traceback file stay clean."""
    address = f"http://{USER}:{quote(PASSWORD, safe='')}@{planted.authority}/v1?key={QUERY}"
    header = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()

    def broken(**_: object) -> None:
        try:
            raise ValueError(f"inner {PASSPHRASE} {TOKEN} http://proxy:{PROXY}@127.0.0.1:9 ANTHROPIC {DOTENV_KEY}")
        except ValueError as error:
            said = {"Authorization": f"Basic {header}", "x-api-key": KEY, "url": address}
            raise RuntimeError(f"{said} Bearer {JUDGE_KEY} api_key={KEY}") from error

    monkeypatch.setattr(run, "run", broken)
    monkeypatch.setenv("UNMASK_TRACEBACK", visible)
    code, shown = terminal("run", *run_flags(address, "--out", "run"))
    assert code == 70
    assert "RuntimeError" in shown
    assert bool(list((tmp_path / "tmp").glob("unmask-traceback-*"))) is not bool(visible)
    clean(tmp_path)


WRONG_FLAGS = [
    ("run", "--data", f"https://{USER}:{quote(PASSWORD, safe='')}@host/set.jsonl?token={QUERY}", "openai/m"),
    ("run", "--data", "set.jsonl", "openai/m", "--base-url", f"{USER}:{PASSWORD}@host/v1"),
    ("run", "--data", "set.jsonl", "openai/m", "--base-url", f"http://{USER}:{PASSWORD}@host:port/v1"),
    ("run", "--data", "set.jsonl", "openai/m", "--base-url", f"http://{USER}:p@{PASSWORD}@h:99999999/v1"),
    ("run", "--data", "set.jsonl", "scripted/honest", "--base-url", f"http://u:{PASSWORD}@h/v1?k={QUERY}"),
    ("run", "--data", "set.jsonl", "openai/m", "--max-cost", KEY),
    ("run", "--data", "cais/MASK", "openai/m"),
    ("pull", "qwen2.5-coder-1.5b", "--to", "models"),
]


@pytest.mark.parametrize("flags", WRONG_FLAGS, ids=range(len(WRONG_FLAGS)))
def test_a_wrong_value_is_refused_without_its_secret(
    flags: tuple[str, ...], planted: Echo, terminal: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """Addresses that cannot be used, keys in the wrong place, a hub that does not answer."""
    monkeypatch.setenv("PIP_INDEX_URL", f"http://{USER}:{quote(PASSWORD, safe='')}@127.0.0.1:9/simple")
    monkeypatch.setenv("PIP_RETRIES", "0")
    ending = ("--judge", "verbatim", "--out", "run") if flags[0] == "run" else ()
    code, _ = terminal(*flags, *ending)
    assert code in (2, 4)
    clean(tmp_path)


REFUSED = (
    f"https://{USER}:{quote(PASSWORD, safe='')}@gw.example/v1",
    f"https://{USER}@gw.example/v1",
    f"https://gw.example/v1?api-key={QUERY}",
    f"https://gw.example/v1?{TOKEN}",
    "http://12/cAnArY-rest@gw.example/v1",
    "http://user:12/cAnArY-rest@gw.example/v1",
    "http://user:12#cAnArY-rest@gw.example/v1",
)


TAKERS = {
    ("openai/m", "verbatim", "--base-url"): 2,
    ("anthropic/m", "verbatim", "--base-url"): 2,
    ("scripted/honest", "verbatim", "--base-url"): 2,
    ("inspect/mockllm/model", "verbatim", "--base-url"): 2,
    ("scripted/honest", "openai/j", "--judge-base-url"): 2,
    ("scripted/honest", "verbatim", "--judge-base-url"): 3,
}
"""Subject, judge and whose address it is; the exit code. Nobody looks at the address of a judge that needs none."""


@pytest.mark.parametrize("address", REFUSED)
@pytest.mark.parametrize("taker", TAKERS, ids=" ".join)
def test_a_base_url_with_credentials_gets_nowhere(
    taker: tuple[str, str, str], address: str, planted: Echo, terminal: Terminal, tmp_path: Path
):
    """Whoever takes the address: it is refused, or nothing secret of it is kept. Where a password has a slash, its
    beginning would pass for the host."""
    subject, judge, flag = taker
    flags = ("--data", "set.jsonl", subject, "--judge", judge, flag, address)
    code, shown = terminal("run", *flags, "--out", "run")
    assert code == TAKERS[taker], shown
    if subject.startswith(("openai", "anthropic", "inspect")) or judge.startswith("openai"):
        assert ("UNMASK_JUDGE_API_KEY" if judge.startswith("openai") else "UNMASK_API_KEY") in shown
    assert "http://12" not in shown
    assert "user:12" not in shown
    clean(tmp_path)
