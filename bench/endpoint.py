"""A mock OpenAI-compatible endpoint with planted behaviour, fast enough to measure a client with.

    python -m bench.endpoint --scenarios 1000 --latency 0.5 --port 0 [--spread 0.5]

prints `{"url": "http://127.0.0.1:PORT/v1", …}` once it listens. A model whose name starts with `judge` reads, every
other model is the subject; `judge-final` answers in the form that other harnesses ask for. A request does not say which
take it is, so takes are handed out in the order in which answers leave, per scenario and slot; a request nobody waits
for any more uses none up.

    POST /v1/chat/completions   GET /v1/models   GET /stats   POST /reset
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import random
import re
import socket
import struct
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from hashlib import blake2b
from importlib import import_module
from typing import Any, NamedTuple

import msgspec

from bench import prose, replies
from bench.fault import Fault, Faults, Seen
from bench.planted import Plant, climb, plant
from unmask.protocol.probes import PROBE_SYSTEM

LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
SERVER_CHECK = b"unmask-server-check"
"""How the supervisor of a server signs what it asks. Its questions are answered at once and not counted."""
READY = b'{"choices": [{"message": {"role": "assistant", "content": "ready"}, "finish_reason": "stop"}]}'
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)


class Turn(msgspec.Struct):
    role: str
    content: str


class Body(msgspec.Struct):
    """The part of a chat request that this endpoint looks at."""

    model: str
    messages: list[Turn]
    n: int | None = None
    stream: bool | None = None


class Asked(NamedTuple):
    """A chat request that waits for its answer."""

    role: str
    key: tuple[str, str]
    n: int
    size: int
    tokens: tuple[tuple[bytes, bytes, bytes], ...]
    digest: bytes
    final: bool = False
    """Whether the judge is to answer as other harnesses ask it to."""
    shown: str = ""
    """What the judge is shown, where the answer depends on the order of the statements."""
    model: str = "mock"


class Endpoint:
    """The state behind all connections: what is planted, what was asked, what left."""

    def __init__(self, plants: tuple[Plant, ...], *, latency: float, planned: tuple[int, int], faults: Faults | None):
        self.plants: Mapping[str, Plant] = {item.scenario.id: item for item in plants}
        self.latency = latency
        self.planned = {"direct": planned[0], "pressured": planned[1], "control": planned[1]}
        self.faults = faults
        self.spread = 0.0
        """Of a lognormal latency: the standard deviation of its logarithm. The mean stays what `latency` says."""
        self.in_flight = 0
        self.reset()

    def delay(self) -> float:
        if not self.spread:
            return self.latency
        return self.latency * self.dice.lognormvariate(-self.spread * self.spread / 2, self.spread)

    def reset(self) -> None:
        self.takes: Counter[tuple[str, str]] = Counter()
        self.arrived: Counter[str] = Counter()
        self.answered: Counter[str] = Counter()
        self.slots: Counter[str] = Counter()
        self.faulted = self.abandoned = self.max_in_flight = self.leaked = self.unknown = 0
        self.tokens_in = self.tokens_out = 0
        self.bodies: Counter[bytes] = Counter()
        self.judged: Counter[bytes] = Counter()
        self.dice = random.Random(1)
        self.waited = 0.0
        self.first: float | None = None
        self.cpu = time.process_time()

    def stats(self) -> dict[str, Any]:
        """Everything counted since the last reset."""
        beyond = sum(max(0, count - self.planned.get(slot, 1)) for (_, slot), count in self.takes.items())
        return {
            "calls": {role: self.arrived[role] for role in ("subject", "judge")},
            "answered": {role: self.answered[role] for role in ("subject", "judge")},
            "slots": dict(sorted(self.slots.items())),
            "duplicates": {"subject": beyond, "judge": sum(count - 1 for count in self.judged.values())},
            "distinct_bodies": len(self.bodies),
            "abandoned": self.abandoned,
            "faulted": self.faulted,
            "leaked_reasoning": self.leaked,
            "unknown": self.unknown,
            "max_in_flight": self.max_in_flight,
            "in_flight": self.in_flight,
            "tokens": {"input": self.tokens_in, "output": self.tokens_out},
            "waited": self.waited,
            "first": self.first,
            "cpu": time.process_time() - self.cpu,
        }

    def take(self, head: bytes, body: bytes) -> tuple[Asked | None, Fault | None]:
        """Counts a chat request; gives what to answer, or the fault to show instead."""
        try:
            given = msgspec.json.decode(body, type=Body)
        except msgspec.MsgspecError as error:
            return None, Fault(400, json.dumps({"error": {"message": f"bad request: {error}"}}).encode(), delay=0.0)
        role = "judge" if given.model.startswith("judge") else "subject"
        digest = blake2b(body, digest_size=12).digest()
        tokens = tuple(prose.TOKEN.findall(body)) if role == "judge" else ()
        marks = prose.MARK.findall(body) if not tokens else []
        name, slot = (part.decode() for part in (tokens[0][:2] if tokens else marks[-1] if marks else (b"", b"")))
        if role == "subject" and given.messages[-2:-1] and given.messages[-2].role == "assistant":
            # After the subject's own reply comes a question without a mark.
            slot = slot if prose.MARK.search(given.messages[-1].content.encode()) else replies.SELF_REPORT
        if slot == "pressured" and role == "subject" and given.messages[0].content == PROBE_SYSTEM:
            slot = "control"
        kind = slot if role == "subject" or tokens else "yes_means"
        if tokens and replies.PLAYS_A_PART in body:
            kind = replies.ROLE_PLAY
        elif tokens and replies.LEAVES_A_READER in body:
            kind = replies.MISLEADS
        seen = Seen(self.arrived.total(), role, given.model, name, kind, self.bodies[digest], head)
        self.arrived[role] += 1
        self.slots[f"{role} {kind}"] += 1
        self.bodies[digest] += 1
        self.tokens_in += len(body) // 4
        if role == "judge" and prose.THOUGHT in body:
            self.leaked += 1
        fault = self.faults(seen) if self.faults else None
        if fault is None and (
            name not in self.plants
            or (role == "subject" and slot not in (*self.plants[name].readings, replies.SELF_REPORT))
        ):
            self.unknown += 1
            fault = Fault(400, b'{"error": {"message": "no planted scenario in this request"}}')
        final = given.model == replies.FINAL
        shown = given.messages[-1].content if kind in ("yes_means", replies.MISLEADS) else ""
        return Asked(role, (name, kind), given.n or 1, len(body), tokens, digest, final, shown, given.model), fault

    def answer(self, asked: Asked) -> bytes:
        """The JSON of a completion. Hands out the takes, so it must run only for a client that is still there."""
        self.answered[asked.role] += 1
        if asked.role == "subject":
            first = self.takes[asked.key]
            self.takes[asked.key] += asked.n
            name, slot = asked.key
            said = [replies.reply(self.plants[name], slot, take) for take in range(first, first + asked.n)]
        else:
            self.judged[asked.digest] += 1
            plants, name = self.plants, asked.key[0]
            judged = replies.judged_final if asked.final else replies.judgement
            judged = replies.role_play if asked.key[1] == replies.ROLE_PLAY else judged
            if not asked.tokens:
                text = replies.yes_means(plants[name], asked.shown)
            elif asked.key[1] == replies.MISLEADS:
                text = replies.misleads(plants, asked.tokens, asked.shown)
            else:
                text = judged(plants, asked.tokens)
            said = [replies.Said(text)] * asked.n
        written = sum(len(one.text) + len(one.reasoning or "") for one in said) // 4
        self.tokens_out += written
        return msgspec.json.encode(
            {
                "id": f"mock-{self.answered.total()}",
                "object": "chat.completion",
                "created": 0,
                "model": asked.model,
                "choices": [
                    {"index": i, "message": _message(one), "finish_reason": "stop"} for i, one in enumerate(said)
                ],
                "usage": {
                    "prompt_tokens": asked.size // 4,
                    "completion_tokens": written,
                    "total_tokens": asked.size // 4 + written,
                },
            }
        )


def _message(said: replies.Said) -> dict[str, str]:
    message = {"role": "assistant", "content": said.text}
    return message | {"reasoning_content": said.reasoning} if said.reasoning else message


class Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive, one request at a time: just enough of it, and no more work than that."""

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self.buffer = bytearray()
        self.transport: asyncio.Transport | None = None
        self.waiting: asyncio.TimerHandle | None = None
        self.busy = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, exc: Exception | None) -> None:
        self.transport = None
        if self.waiting is not None:
            self.waiting.cancel()
        if self.busy:
            self.endpoint.abandoned += 1
            self.endpoint.in_flight -= 1

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        if not self.busy:
            self._next()

    def _next(self) -> None:
        end = self.buffer.find(b"\r\n\r\n")
        if end < 0:
            return
        head = bytes(self.buffer[:end])
        if CHUNKED.search(head):
            self._send(411, b'{"error": {"message": "send a Content-Length"}}')
            return
        found = LENGTH.search(head)
        stop = end + 4 + (int(found[1]) if found else 0)
        if len(self.buffer) < stop:
            return
        body = bytes(self.buffer[end + 4 : stop])
        del self.buffer[:stop]
        self._serve(head, body)

    def _serve(self, head: bytes, body: bytes) -> None:
        method, path, *_ = head.split(b" ", 2)
        match method, path:
            case b"POST", b"/v1/chat/completions" if SERVER_CHECK in head:
                self._send(200, READY)
            case b"POST", b"/v1/chat/completions":
                self._chat(head, body)
            case b"GET", b"/stats":
                self._send(200, msgspec.json.encode(self.endpoint.stats()))
            case b"POST", b"/reset":
                self.endpoint.reset()
                self._send(200, b"{}")
            case ((b"GET" | b"HEAD"), b"/v1/models"):
                known = [{"id": name, "object": "model"} for name in ("mock", "judge")]
                self._send(200, msgspec.json.encode({"object": "list", "data": known}), hide=method == b"HEAD")
            case _:
                self._send(404, b'{"error": {"message": "no such path"}}')

    def _chat(self, head: bytes, body: bytes) -> None:
        endpoint = self.endpoint
        asked, fault = endpoint.take(head, body)
        self.busy = True
        endpoint.in_flight += 1
        endpoint.max_in_flight = max(endpoint.max_in_flight, endpoint.in_flight)
        delay = endpoint.delay() if fault is None or fault.delay is None else fault.delay
        endpoint.waited += delay
        endpoint.first = endpoint.first or time.time()
        if delay != float("inf"):
            self.waiting = asyncio.get_running_loop().call_later(delay, self._finish, asked, fault)

    def _finish(self, asked: Asked | None, fault: Fault | None) -> None:
        self.busy, self.waiting = False, None
        self.endpoint.in_flight -= 1
        if fault is None and asked is not None:
            self._send(200, self.endpoint.answer(asked))
            return
        self.endpoint.faulted += 1
        assert fault is not None
        assert self.transport is not None
        if fault.drop:
            self.transport.abort()
            return
        body = fault.body
        if fault.answer and asked is not None:
            body = self.endpoint.answer(asked)
            if fault.change is not None:
                body = json.dumps(fault.change(json.loads(body))).encode()
        self._misbehave(fault, body)

    def _misbehave(self, fault: Fault, body: bytes) -> None:
        status = 200 if fault.answer else fault.status
        lines = fault.headers
        if fault.chunks:
            self._write(_head(status, fault.content_type, (*lines, "Transfer-Encoding: chunked")))
            size = -(-len(body) // len(fault.chunks))
            self.busy = True
            self.endpoint.in_flight += 1
            self._trickle([body[at * size : (at + 1) * size] for at in range(len(fault.chunks))], fault)
            return
        cut = body[: round(len(body) * fault.sent)]
        self._write(_head(status, fault.content_type, (*lines, f"Content-Length: {len(body)}")) + cut)
        self._end(fault.end)

    def _trickle(self, parts: list[bytes], fault: Fault) -> None:
        """Sends what is left in chunks, each after its pause, and then the end."""
        pause = fault.chunks[len(fault.chunks) - len(parts)] if parts else 0.0
        if pause != float("inf"):
            self.waiting = asyncio.get_running_loop().call_later(pause, self._chunk, parts, fault)

    def _chunk(self, parts: list[bytes], fault: Fault) -> None:
        self.waiting = None
        if parts:
            if parts[0]:
                self._write(b"%x\r\n%s\r\n" % (len(parts[0]), parts[0]))
            self._trickle(parts[1:], fault)
            return
        self.busy = False
        self.endpoint.in_flight -= 1
        if fault.sent >= 1:
            self._write(b"0\r\n\r\n")
        self._end(fault.end)

    def _end(self, how: str) -> None:
        assert self.transport is not None
        match how:
            case "reset":
                raw = self.transport.get_extra_info("socket")
                raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.transport.abort()
            case "close":
                self.transport.close()
            case _ if self.buffer:
                self._next()

    def _send(self, status: int, body: bytes, *, hide: bool = False) -> None:
        self._write(_head(status, "application/json", (f"Content-Length: {len(body)}",)) + (b"" if hide else body))
        if self.buffer:
            self._next()

    def _write(self, data: bytes) -> None:
        assert self.transport is not None
        self.transport.write(data)


def _head(status: int, kind: str, lines: tuple[str, ...]) -> bytes:
    extra = "".join(f"{line}\r\n" for line in lines)
    return f"HTTP/1.1 {status} .\r\nContent-Type: {kind}\r\n{extra}\r\n".encode()


async def serve(endpoint: Endpoint, *, host: str, port: int, connection: type[Connection] = Connection) -> None:
    """Listens until cancelled. The line with the URL is printed once connections are accepted."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(lambda: connection(endpoint), host, port, backlog=1024)
    chosen = server.sockets[0].getsockname()[1]
    print(
        json.dumps({"url": f"http://{host}:{chosen}/v1", "root": f"http://{host}:{chosen}", "pid": os.getpid()}),
        flush=True,
    )
    async with server:
        await server.serve_forever()


@contextmanager
def listening(endpoint: Endpoint, *, port: int = 0) -> Iterator[int]:
    """The endpoint in a thread of this process; gives its port. At the end all connections are cut."""
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    connections: list[Connection] = []

    def accept() -> Connection:
        connections.append(Connection(endpoint))
        return connections[-1]

    async def listen() -> asyncio.Server:
        return await loop.create_server(accept, "127.0.0.1", port, backlog=1024)

    async def hang_up() -> None:
        server.close()
        for connection in connections:
            if connection.transport is not None:
                connection.transport.abort()
        await server.wait_closed()

    server = asyncio.run_coroutine_threadsafe(listen(), loop).result()
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        asyncio.run_coroutine_threadsafe(hang_up(), loop).result()
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--host", default="127.0.0.1")
    for flag, default in (("--port", 0), ("--scenarios", 1000), ("--seed", 1), ("--takes", 1), ("--direct", 3)):
        parser.add_argument(flag, type=int, default=default)
    parser.add_argument("--rungs", type=int, default=1, help="of each fact: more make a ladder of the scenarios")
    parser.add_argument("--latency", type=float, default=0.0, help="seconds between request and answer")
    parser.add_argument("--spread", type=float, default=0.0, help="lognormal latency: deviation of its logarithm")
    parser.add_argument("--profile", choices=("mixed", "steady"), default="mixed")
    parser.add_argument("--cpu", type=int, help="run on this core only")
    parser.add_argument(
        "--faults",
        metavar="MODULE:NAME[:TEXT]",
        help="a callable Seen -> Fault | None; with a text, what makes one of that text",
    )
    given = parser.parse_args()
    if given.cpu is not None and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {given.cpu})
    faults: Faults | None = None
    if given.faults:
        module, name, *text = given.faults.split(":", 2)
        found = getattr(import_module(module), name)
        faults = found(*text) if text else found
    planned = (given.direct, given.takes)
    plants = plant(given.scenarios, seed=given.seed, takes=given.takes, direct=given.direct, profile=given.profile)
    endpoint = Endpoint(climb(plants, given.rungs), latency=given.latency, planned=planned, faults=faults)
    endpoint.spread = given.spread
    try:
        asyncio.run(serve(endpoint, host=given.host, port=given.port))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
