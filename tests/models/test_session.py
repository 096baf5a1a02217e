"""Connections: shared, kept, given up, and reached through proxies and TLS. All against real servers on loopback."""

from __future__ import annotations

import asyncio
import gzip
import os
import socket
import ssl
import subprocess
import sys
import zlib
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, asynccontextmanager, contextmanager
from pathlib import Path

import pytest

from tests.models.loopback import Canned, chat, loopback, request
from unmask.errors import RequestRefusedError, TransientModelError
from unmask.models import http
from unmask.models.http import Channel
from unmask.models.providers import open_model

BODY = b'{"choices": [{"message": {"content": "hello"}, "finish_reason": "stop"}]}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(BODY), BODY)
CLOSING = ANSWER.replace(b"\r\n", b"\r\nConnection: close\r\n", 1)


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch):
    monkeypatch.setenv("UNMASK_API_KEY", "k")
    monkeypatch.setenv("UNMASK_JUDGE_API_KEY", "k")
    for name in ("http_proxy", "https_proxy", "HTTPS_PROXY", "all_proxy", "ALL_PROXY", "no_proxy", "NO_PROXY"):
        monkeypatch.delenv(name, raising=False)


class Counted:
    """A server that counts connections and answers every request on them in the same way."""

    def __init__(self, answer: bytes = ANSWER, *, close: bool = False) -> None:
        self.answer = answer
        self.close = close
        self.connections = 0
        self.heads: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                self.heads.append(head)
                length = next(
                    (int(line[15:]) for line in head.split(b"\r\n") if line.startswith(b"Content-Length:")), 0
                )
                await reader.readexactly(length)
                writer.write(self.answer)
                await writer.drain()
                if self.close:
                    break
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()


@asynccontextmanager
async def listening(
    serve: Callable[[asyncio.StreamReader, asyncio.StreamWriter], object],
    tls: ssl.SSLContext | None = None,
    *,
    place: tuple[str, int] = ("127.0.0.1", 0),
) -> AsyncIterator[int]:
    server = await asyncio.start_server(serve, *place, ssl=tls)  # type: ignore[arg-type]
    async with server:
        yield server.sockets[0].getsockname()[1]


def test_a_connection_that_the_server_closed_is_not_used_again():
    """Even if it does not say so in its answer."""
    server = Counted(close=True)

    async def go() -> list[str]:
        async with listening(server.serve) as port:
            model = open_model("openai/a", base_url=f"http://127.0.0.1:{port}/v1")
            said = []
            for _ in range(3):
                said.append((await model.complete(request())).choices[0].text)
                await asyncio.sleep(0.05)
            await model.close()
            return said

    assert asyncio.run(go()) == ["hello"] * 3
    assert server.connections == 3


def test_a_connection_idle_for_too_long_is_not_used_again(monkeypatch):
    """Servers close idle connections, and a request sent into that is lost."""
    monkeypatch.setattr(http, "KEEP_ALIVE", 0.0)
    server = Counted()

    async def go() -> None:
        async with listening(server.serve) as port:
            model = open_model("openai/a", base_url=f"http://127.0.0.1:{port}/v1")
            for _ in range(3):
                await model.complete(request())
            await model.close()

    asyncio.run(go())
    assert server.connections == 3


def test_a_cancelled_request_gives_its_connection_up():
    """Its late answer must not be taken for the next one's."""
    heard = asyncio.Event

    async def go() -> str:
        arrived = heard()

        async def slow_first(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            arrived.set()
            await Counted(ANSWER).serve(reader, _late(writer)) if first else await Counted().serve(reader, writer)

        first = True
        async with listening(slow_first) as port:
            model = open_model("openai/a", base_url=f"http://127.0.0.1:{port}/v1")
            task = asyncio.create_task(model.complete(request()))
            await arrived.wait()
            first = False
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
            said = (await model.complete(request())).choices[0].text
            await model.close()
            return said

    assert asyncio.run(go()) == "hello"


def test_the_time_limit_covers_the_whole_answer():
    """A server that sends a piece every moment is not waited for without end."""

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

    async def go() -> str:
        async with listening(drip) as port:
            with pytest.raises(TransientModelError) as caught:
                await ask(f"http://127.0.0.1:{port}/v1", within=0.5)
            return str(caught.value)

    assert asyncio.run(go()).startswith("timeout: no answer within 0.5 s")


class Closing:
    """A server that answers the first request of a connection; of the second it sends `begun`, and closes."""

    def __init__(self, begun: bytes = b"") -> None:
        self.begun = begun
        self.requests = 0
        self.connections = 0

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        for reply in (ANSWER, self.begun):
            try:
                head = await reader.readuntil(b"\r\n\r\n")
            except asyncio.IncompleteReadError:
                break
            await reader.readexactly(int(head.lower().partition(b"content-length:")[2].split()[0]))
            self.requests += 1
            writer.write(reply)
            await writer.drain()
        writer.close()


@pytest.mark.parametrize("begun", [b"", b"H", b"HTTP/1.1 200 OK\r\n", ANSWER[:-5]])
def test_no_request_is_sent_again_by_the_connection(begun: bytes):
    """It may have been paid for; whether it is tried again is decided, and counted, by the limiter."""
    server = Closing(begun)

    async def go() -> None:
        async with listening(server.serve) as port:
            model = open_model("openai/a", base_url=f"http://127.0.0.1:{port}/v1")
            await model.complete(request())
            with pytest.raises(TransientModelError, match=r"before it answered|broke off|no answer in HTTP"):
                await model.complete(request())
            await model.close()

    asyncio.run(go())
    assert (server.connections, server.requests) == (1, 2)


def test_more_than_a_hundred_connections_are_open_at_once():
    """aiohttp stops at a hundred unless it is told not to. Nobody is answered before all have asked."""

    async def go() -> int:
        everybody = asyncio.Barrier(150)

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            await everybody.wait()
            writer.write(CLOSING)
            await writer.drain()
            writer.close()

        async with listening(serve) as port:
            model = open_model("openai/a", base_url=f"http://127.0.0.1:{port}/v1", timeout=60)
            answers = await asyncio.gather(*(model.complete(request()) for _ in range(150)))
            await model.close()
            return len(answers)

    assert asyncio.run(go()) == 150


def test_the_file_netrc_is_not_read(monkeypatch, tmp_path: Path):
    """What stands there for a host is no key of this program."""
    (tmp_path / ".netrc").write_text("machine 127.0.0.1 login alice password hunter22\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("NETRC", str(tmp_path / ".netrc"))
    monkeypatch.delenv("UNMASK_API_KEY")
    server = Counted()

    async def go() -> str:
        async with listening(server.serve) as port:
            model = open_model("vllm/a", base_url=f"http://127.0.0.1:{port}/v1")
            said = (await model.complete(request())).choices[0].text
            await model.close()
            return said

    assert asyncio.run(go()) == "hello"
    assert b"authorization" not in server.heads[0].lower()


@contextmanager
def black_hole(port: int) -> Iterator[None]:
    """An address where a connection is never refused and never made: whoever listens has all the guests it takes."""
    with ExitStack() as open_sockets:
        listener = open_sockets.enter_context(socket.create_server(("127.0.0.1", port), backlog=0))
        for _ in range(4):
            guest = open_sockets.enter_context(socket.socket())
            guest.setblocking(False)
            guest.connect_ex(listener.getsockname())
        yield


@pytest.mark.skipif(sys.platform != "linux", reason="needs 127.0.0.2, and a full queue that answers nothing")
def test_an_address_that_stops_answering_is_not_the_only_one_tried(monkeypatch):
    """It answered before, and the name has another one that still does."""

    def look_up(host, port, **_):
        return [(socket.AF_INET, socket.SOCK_STREAM, 0, "", (place, port)) for place in ("127.0.0.1", "127.0.0.2")]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    first, second = Counted(CLOSING, close=True), Counted(CLOSING, close=True)

    async def go() -> str:
        async with listening(first.serve) as port:
            model = open_model("openai/a", base_url=f"http://models.invalid:{port}/v1")
            await model.complete(request())
        with black_hole(port):
            async with listening(second.serve, place=("127.0.0.2", port)):
                said = (await model.complete(request())).choices[0].text
                await model.close()
        return said

    assert asyncio.run(go()) == "hello"
    assert (first.connections, second.connections) == (1, 1)


class _Late:
    """A writer that never writes."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self.close = writer.close

    def write(self, data: bytes) -> None:
        """Nothing is sent."""

    async def drain(self) -> None:
        await asyncio.sleep(30)


def _late(writer: asyncio.StreamWriter) -> asyncio.StreamWriter:
    return _Late(writer)  # type: ignore[return-value]


CERTIFICATE = Path(__file__).parent / "localhost.pem"
"""A certificate for localhost and its key, signed by itself."""


def server_side() -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(CERTIFICATE)
    return context


async def ask(url: str, *, within: float = 60.0) -> str:
    model = open_model("openai/a", base_url=url, timeout=within)
    try:
        return (await model.complete(request())).choices[0].text
    finally:
        await model.close()


def test_https_works_with_a_certificate_that_is_trusted(monkeypatch):
    """`SSL_CERT_FILE` names who is trusted, as for every program."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))

    async def go() -> str:
        async with listening(Counted().serve, server_side()) as port:
            return await ask(f"https://localhost:{port}/v1")

    assert asyncio.run(go()) == "hello"


def test_https_is_refused_with_a_certificate_that_is_not_trusted():
    """Nothing is sent, and the message says why."""
    server = Counted()

    async def go() -> str:
        async with listening(server.serve, server_side()) as port:
            with pytest.raises(TransientModelError) as caught:
                await ask(f"https://localhost:{port}/v1")
            return str(caught.value)

    assert "certificate" in asyncio.run(go()).lower()
    assert not server.heads


class Tunnel:
    """A proxy that gives a way through to one port, or refuses it."""

    def __init__(self, port: int, *, refuse: bool = False, says: bytes = b"HTTP/1.1 200 Go ahead\r\n\r\n") -> None:
        self.port = port
        self.refuse = refuse
        self.says = says
        self.heads: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.heads.append(await reader.readuntil(b"\r\n\r\n"))
        if self.refuse:
            writer.write(b"HTTP/1.1 407 Who are you\r\nContent-Length: 0\r\n\r\n")
            writer.close()
            return
        there, back = await asyncio.open_connection("127.0.0.1", self.port)
        writer.write(self.says)
        await asyncio.gather(_pour(reader, back), _pour(there, writer), return_exceptions=True)


async def _pour(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()
    writer.close()


def test_https_goes_through_the_tunnel_of_a_proxy(monkeypatch):
    """The proxy sees where to, its own password, and nothing else."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))

    async def go() -> tuple[str, bytes]:
        async with listening(Counted().serve, server_side()) as port:
            tunnel = Tunnel(port)
            async with listening(tunnel.serve) as gate:
                monkeypatch.setenv("https_proxy", f"http://alice:hunter22@127.0.0.1:{gate}")
                return await ask("https://models.invalid/v1"), tunnel.heads[0]

    said, head = asyncio.run(go())
    assert said == "hello"
    assert head.startswith(b"CONNECT models.invalid:443 HTTP/1.1\r\n")
    assert b"Proxy-Authorization: Basic YWxpY2U6aHVudGVyMjI=" in head
    assert b"Bearer" not in head


@pytest.mark.parametrize(
    "says",
    [
        b"HTTP/1.0 200 Connection established\r\n\r\n",
        b"HTTP/1.0 200 Connection established\r\nProxy-agent: tinyproxy/1.11.1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n",
    ],
)
def test_a_tunnel_stays_open_whatever_the_proxy_says_of_its_connection(monkeypatch, says: bytes):
    """HTTP/1.0 and `Connection: close` end a connection after the answer, and a tunnel only begins there."""
    monkeypatch.setenv("SSL_CERT_FILE", str(CERTIFICATE))

    async def go() -> str:
        async with (
            listening(Counted().serve, server_side()) as port,
            listening(Tunnel(port, says=says).serve) as gate,
        ):
            monkeypatch.setenv("https_proxy", f"http://127.0.0.1:{gate}")
            return await ask("https://models.invalid/v1")

    assert asyncio.run(go()) == "hello"


def test_a_proxy_that_refuses_is_named(monkeypatch):
    """With its status, and without its password."""

    async def go() -> str:
        async with listening(Tunnel(1, refuse=True).serve) as gate:
            monkeypatch.setenv("https_proxy", f"http://alice:hunter22@127.0.0.1:{gate}")
            with pytest.raises(TransientModelError) as caught:
                await ask("https://models.invalid/v1")
            return str(caught.value)

    said = asyncio.run(go())
    assert "407" in said
    assert "hunter22" not in said


def test_a_key_with_a_line_break_is_refused_before_anything_is_sent(monkeypatch):
    """It would end the header and begin another one."""
    server = Counted()
    monkeypatch.setenv("UNMASK_API_KEY", "k\r\nX-Evil: 1")

    async def go() -> str:
        async with listening(server.serve) as port:
            with pytest.raises(Exception, match=r"line break|key") as caught:
                await ask(f"http://127.0.0.1:{port}/v1")
            return str(caught.value)

    assert "X-Evil" not in asyncio.run(go())
    assert not any(b"X-Evil" in head for head in server.heads)


def test_a_long_answer_is_read_to_its_end():
    """A megabyte comes in many pieces."""

    async def go() -> int:
        async with loopback(Canned(chat("x" * 1_000_000))) as server:
            return len(await ask(server.url))

    assert asyncio.run(go()) == 1_000_000


def packed(body: bytes, coding: str) -> bytes:
    return b"HTTP/1.1 200 OK\r\nContent-Encoding: %b\r\nContent-Length: %d\r\n\r\n%b" % (
        coding.encode(),
        len(body),
        body,
    )


@pytest.mark.parametrize(("coding", "pack"), [("gzip", gzip.compress), ("deflate", zlib.compress)])
def test_an_answer_packed_unasked_is_unpacked(coding: str, pack: Callable[[bytes], bytes]):
    """Some gateways do it to everybody."""

    async def go() -> str:
        async with listening(Counted(packed(pack(BODY), coding)).serve) as port:
            return await ask(f"http://127.0.0.1:{port}/v1")

    assert asyncio.run(go()) == "hello"


@pytest.mark.parametrize(
    ("coding", "body"),
    [("gzip", b"not packed"), ("gzip", gzip.compress(BODY)[:-12]), ("br", BODY)],
    ids=["not packed", "cut off", "another coding"],  # a packed body has the time in it, and ids must not change
)
def test_an_answer_that_cannot_be_unpacked_is_no_answer(coding: str, body: bytes):
    """Broken, cut short, or packed in a way that nobody asked for; it is not handed on as bytes."""

    async def go() -> None:
        async with listening(Counted(packed(body, coding)).serve) as port:
            with pytest.raises(TransientModelError, match=r"broke off|no answer|no JSON"):
                await ask(f"http://127.0.0.1:{port}/v1")

    asyncio.run(go())


def test_what_comes_before_the_answer_is_passed_over():
    """`100 Continue` and early hints are not the answer."""
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"

    async def go() -> str:
        async with listening(Counted(early + ANSWER).serve) as port:
            return await ask(f"http://127.0.0.1:{port}/v1")

    assert asyncio.run(go()) == "hello"


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: -1",
        b"Content-Length: five",
        b"X-Long: " + b"a" * 200_000,
        b"\r\n".join(b"X-%d: a" % number for number in range(5000)),
    ],
    ids=["two lengths", "negative", "no number", "long line", "many lines"],
)
def test_a_head_that_cannot_be_believed_or_does_not_end_is_refused(head: bytes):
    """Before it fills the memory."""

    async def go() -> None:
        async with listening(Counted(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n" + BODY).serve) as port:
            with pytest.raises(TransientModelError, match="no answer in HTTP"):
                await ask(f"http://127.0.0.1:{port}/v1")

    asyncio.run(go())


def test_aiohttp_is_imported_by_the_first_request_and_not_before():
    """It takes longer to import than most commands take."""
    program = (
        "import sys; from unmask.models.providers import open_model; import unmask.cli.main;"
        "open_model('openai/m', base_url='http://127.0.0.1:9/v1'); print('aiohttp' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_a_model_that_nobody_closed_leaves_no_noise_when_its_loop_has_ended():
    """As in a notebook that asks twice, each time in a loop of its own, and closes at the end."""
    program = """
import asyncio, gc, sys
from tests.models.loopback import Canned, chat, loopback, request
from unmask.models.providers import open_model

async def ask(model, port):
    async with loopback(Canned(chat("x")), port=port):
        await model.complete(request())

model = open_model("openai/m", base_url=f"http://127.0.0.1:{sys.argv[1]}/v1")
asyncio.run(ask(model, int(sys.argv[1])))
asyncio.run(ask(model, int(sys.argv[1])))
asyncio.run(model.close())
gc.collect()
"""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    root = Path(__file__).parents[2]
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(root), str(root / "src")])}
    command = [sys.executable, "-c", program, str(port)]
    done = subprocess.run(command, env=env, capture_output=True, text=True, check=True)
    assert done.stderr == ""


@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_that_is_too_large_names_the_limit_that_it_broke(packed):
    """A call with a limit of its own, as for the files of batches, is refused by that limit."""
    body = b"x" * 2000
    sent, coding = (gzip.compress(body), b"Content-Encoding: gzip\r\n") if packed else (body, b"")
    answer = b"HTTP/1.1 200 OK\r\n%bContent-Length: %d\r\n\r\n%b" % (coding, len(sent), sent)

    async def go(most: int) -> bytes:
        async with listening(Counted(answer).serve) as port:
            model = open_model("openai/a", base_url=f"http://127.0.0.1:{port}/v1")
            channel = Channel(model.target, timeout=60)
            try:
                return (await channel.send("GET", None, most=most)).body
            finally:
                await channel.close()
                await model.close()

    assert asyncio.run(go(2000)) == body
    with pytest.raises(RequestRefusedError, match="an answer beyond 1999 bytes"):
        asyncio.run(go(1999))
