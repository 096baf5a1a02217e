"""What can go wrong between us and a server, and how it is reached. All against real servers on loopback."""

from __future__ import annotations

import asyncio
import gc
import gzip
import socket
import ssl
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.models.loopback import Canned, chat, loopback, raw, request
from unmask.errors import ModelError, RequestRefusedError, TransientModelError
from unmask.models import http
from unmask.models.http import Channel
from unmask.models.providers import open_model

KEY = "k-very-secret-123"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
BODY = b'{"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("UNMASK_API_KEY", KEY)
    for name in ("http_proxy", "https_proxy", "no_proxy", "all_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


async def ask(url: str, *, within: float = 60.0) -> str:
    model = open_model("openai/m", base_url=url, timeout=within)
    try:
        return (await model.complete(request())).choices[0].text
    finally:
        await model.close()


async def refused(url: str, *, within: float = 30.0) -> TransientModelError:
    """The error of one request to `url`, already checked for what every error has to keep."""
    with pytest.raises(TransientModelError) as caught:
        await ask(url, within=within)
    assert KEY not in f"{caught.value} {caught.value.advice} {caught.value!r}"
    return caught.value


class Counted:
    """A server that counts connections and answers every request on them in the same way."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = answers or (ANSWER,) * 1000
        self.connections = self.requests = 0
        self.heads: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            for answer in self.answers:
                head = await reader.readuntil(b"\r\n\r\n")
                self.heads.append(head)
                _, _, length = head.lower().partition(b"content-length:")
                await reader.readexactly(int(length.split()[0]) if length else 0)
                writer.write(answer)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], object], tls: ssl.SSLContext | None = None
) -> AsyncIterator[int]:
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)  # type: ignore[arg-type]
    async with server:
        yield server.sockets[0].getsockname()[1]


def free_port() -> int:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


# --- answers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        *(b"{", b'{"choices": [{"mess', b"", b"ok", b"\xff\xfe", b"[1, 2]", b"null"),
        *({}, {"choices": []}, {"choices": "words"}, {"choices": [{}]}, {"choices": [{"message": "words"}]}),
    ],
)
def test_a_body_that_is_no_answer_is_worth_another_try(body):
    """Half a JSON text, none at all, JSON of another shape, or nothing usable in the right one."""

    async def go() -> None:
        async with loopback(Canned(body)) as server:
            error = await refused(server.url)
            assert (error.throttled, error.unreachable) == (False, False)

    asyncio.run(go())


@pytest.mark.parametrize("status", [200, 502])
def test_an_html_page_is_named_and_not_poured_out(status):
    """A 200 with a web page is most often the wrong address: the advice doubts it."""

    async def go() -> None:
        async with loopback(Canned(b"<!doctype html><html>" + b"x" * 5000, status)) as server:
            error = await refused(server.url)
            assert ("HTML" if status == 200 else "502") in str(error)
            assert len(str(error)) < 500
            assert status != 200 or "/v1" in (error.advice or "")

    asyncio.run(go())


HALF = HEAD + b'Content-Length: 500\r\n\r\n{"choices": [{"message"'
CUT = gzip.compress(BODY, mtime=0)[:-12]


@pytest.mark.parametrize(
    ("reply", "reset"),
    [
        *((reply, reset) for reply in (b"", HALF) for reset in (False, True)),
        (HEAD + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"cho\r\n', False),
        (HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n%b" % (len(CUT), CUT), False),
        (b"SSH-2.0-OpenSSH_9.6\r\n", False),
    ],
    ids=["closed", "reset", "closed in the middle", "reset in the middle", "no last chunk", "cut gzip", "no HTTP"],
)
def test_a_connection_that_breaks_or_is_none_of_http_is_worth_another_try(reply, reset):
    async def go() -> None:
        async with raw(reply, reset=reset) as url:
            await refused(url)

    asyncio.run(go())


@pytest.mark.parametrize("begun", [b"", ANSWER[:-5]])
def test_no_request_is_sent_again_by_the_connection(begun: bytes):
    """It may have been paid for; whether it is tried again is decided, and counted, by the limiter."""
    server = Counted(ANSWER, begun)

    async def go() -> None:
        async with listening(server.serve) as port:
            model = open_model("openai/m", base_url=f"http://127.0.0.1:{port}/v1")
            await model.complete(request())
            with pytest.raises(TransientModelError, match=r"before it answered|broke off"):
                await model.complete(request())
            await model.close()

    asyncio.run(go())
    assert (server.connections, len(server.heads)) == (1, 2)


def test_the_time_limit_covers_the_whole_answer():
    """A server that says nothing, or sends a piece every moment, is not waited for without end."""

    async def drip(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        try:
            while True:
                writer.write(b" ")
                await writer.drain()
                await asyncio.sleep(0.02)
        except ConnectionError:
            writer.close()

    async def go() -> None:
        async with listening(drip) as port, raw(b"", silent=True) as silent:
            for url in (f"http://127.0.0.1:{port}/v1", silent):
                assert str(await refused(url, within=0.3)).startswith("timeout: no answer within 0.3 s")

    asyncio.run(go())


@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_is_read_to_its_end_and_one_that_is_too_large_names_the_limit(packed):
    """Also one that is packed unasked, as some gateways do to everybody."""
    body = b"x" * 300_000
    sent, coding = (gzip.compress(body), b"Content-Encoding: gzip\r\n") if packed else (body, b"")
    answer = b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (coding, len(sent), sent)

    async def go(most: int) -> bytes:
        async with listening(Counted(answer).serve) as port:
            model = open_model("openai/m", base_url=f"http://127.0.0.1:{port}/v1")
            channel = Channel(model.target, timeout=60)
            try:
                return (await channel.send("GET", None, most=most)).body
            finally:
                await channel.close()

    assert asyncio.run(go(300_000)) == body
    with pytest.raises(RequestRefusedError, match="an answer beyond 299999 bytes"):
        asyncio.run(go(299_999))


def test_half_an_emoji_is_not_a_failure_in_an_answer_and_not_sent_in_a_request():
    """A server that cut a surrogate pair in two still answered; nothing that is no UTF-8 reaches the wire."""
    body = b'{"choices": [{"message": {"content": "well \\ud83d"}, "finish_reason": "length"}]}'

    async def go() -> int:
        async with loopback(Canned(body)) as server:
            assert await ask(server.url) == "well \ufffd"
            model = open_model("openai/m", base_url=server.url)
            with pytest.raises(ModelError):
                await model.complete(request("half \ud83d"))
            return len(server.sent)

    assert asyncio.run(go()) == 1


def test_a_redirect_is_not_followed():
    """A key is never carried to wherever a server points."""

    async def go() -> int:
        async with loopback(Canned(chat("stolen"))) as other:
            async with loopback(Canned(b"", 307, {"Location": other.url + "/chat/completions"})) as server:
                with pytest.raises(ModelError):
                    await ask(server.url)
            return len(other.sent)

    assert asyncio.run(go()) == 0


# --- connections --------------------------------------------------------------------------------------------------


def test_a_refused_connection_and_an_unknown_host_are_unreachable():
    """`.invalid` never resolves."""
    for url, said, advice in (
        (f"http://127.0.0.1:{free_port()}/v1", "refused", "running"),
        ("http://nobody.invalid/v1", "nobody.invalid", "online"),
    ):
        error = asyncio.run(refused(url))
        assert error.unreachable
        assert said in str(error)
        assert advice in (error.advice or "")


def test_more_than_a_hundred_connections_are_open_at_once():
    """aiohttp stops at a hundred unless it is told not to. Nobody is answered before all have asked."""

    async def go() -> int:
        everybody = asyncio.Barrier(150)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            await everybody.wait()
            writer.write(ANSWER.replace(b"\r\n", b"\r\nConnection: close\r\n", 1))
            await writer.drain()
            writer.close()

        async with listening(serve) as port:
            model = open_model("openai/m", base_url=f"http://127.0.0.1:{port}/v1", timeout=60)
            answers = await asyncio.gather(*(model.complete(request()) for _ in range(150)))
            await model.close()
            return len(answers)

    assert asyncio.run(go()) == 150


@pytest.mark.parametrize(("keep_alive", "connections"), [(4.0, 1), (0.0, 3)])
def test_a_connection_is_used_again_but_not_one_that_was_idle_for_too_long(monkeypatch, keep_alive, connections):
    """Servers close idle connections, and a request sent into that is lost."""
    monkeypatch.setattr(http, "KEEP_ALIVE", keep_alive)
    server = Counted()

    async def go() -> None:
        async with listening(server.serve) as port:
            model = open_model("openai/m", base_url=f"http://127.0.0.1:{port}/v1")
            for _ in range(3):
                await model.complete(request())
            await model.close()

    asyncio.run(go())
    assert server.connections == connections


def test_a_model_may_be_used_on_one_loop_after_another():
    """As happens in a notebook, or when two runs follow each other."""
    port = free_port()
    model = open_model("openai/m", base_url=f"http://127.0.0.1:{port}/v1")

    async def go(words: str) -> str:
        async with loopback(Canned(chat(words)), port=port):
            return (await model.complete(request())).choices[0].text

    assert [asyncio.run(go("first")), asyncio.run(go("second"))] == ["first", "second"]
    asyncio.run(model.close())
    gc.collect()  # what the loops left behind is reported here and not in the middle of another test


def test_the_file_netrc_is_not_read(monkeypatch, tmp_path: Path):
    """What stands there for a host is no key of this program."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login alice password hunter22\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.delenv("UNMASK_API_KEY")
    server = Counted()

    async def go() -> str:
        async with listening(server.serve) as port:
            return await ask(f"http://127.0.0.1:{port}/v1")

    assert asyncio.run(go()) == "hello"
    assert b"authorization" not in server.heads[0].lower()


# --- TLS and proxies ----------------------------------------------------------------------------------------------

CERTIFICATE = Path(__file__).parent / "localhost.pem"
"""A certificate for localhost and its key, signed by itself."""


def server_side() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    return context


@pytest.mark.parametrize("trusted", [True, False])
def test_https_works_with_a_certificate_that_is_trusted_and_with_no_other(monkeypatch, trusted):
    """`SSL_CERT_FILE` names who is trusted, as for every program. Else nothing is sent, and the message says why."""
    if trusted:
        monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))
    server = Counted()

    async def go() -> None:
        async with listening(server.serve, server_side()) as port:
            url = f"https://localhost:{port}/v1"
            if trusted:
                assert await ask(url) == "hello"
            else:
                assert "certificate" in str(await refused(url)).lower()

    asyncio.run(go())
    assert bool(server.heads) is trusted


class Tunnel:
    """A proxy that gives a way through to one port, or refuses it."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.heads: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        if not self.port:
            writer.write(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(b"HTTP/1.1 200 Go ahead\r\n\r\n")
        await asyncio.gather(_pour(reader, back), _pour(there, writer), return_exceptions=True)


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


def test_https_goes_through_the_tunnel_of_a_proxy(monkeypatch):
    """The proxy sees where to, its own password, and nothing else. One that refuses is named, without its password."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))

    async def go(gate: int) -> str:
        monkeypatch.setenv("https_proxy", f"http://alice:hunter22@127.0.0.1:{gate}")
        return await ask("https://models.invalid/v1")

    async def both() -> bytes:
        async with listening(Counted().serve, server_side()) as port:
            tunnel, closed = Tunnel(port), Tunnel(0)
            async with listening(tunnel.serve) as gate, listening(closed.serve) as refusing:
                assert await go(gate) == "hello"
                with pytest.raises(TransientModelError, match="407") as caught:
                    await go(refusing)
                assert "hunter22" not in str(caught.value)
        return tunnel.heads[0]

    head = asyncio.run(both())
    assert head.startswith(b"CONNECT models.invalid:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic YWxpY2U6aHVudGVyMjI=" in head
    assert b"Bearer" not in head


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    """Requests to a host that is not this machine go through it."""

    async def go() -> list[str]:
        async with loopback(Canned(chat("through the proxy"))) as proxy:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
            return [await ask("http://models.invalid/v1"), proxy.sent[0].headers["Host"]]

    assert asyncio.run(go()) == ["through the proxy", "models.invalid"]
