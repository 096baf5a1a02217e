"""A real HTTP server on loopback that answers what a test tells it to, and remembers what it was sent."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager
from typing import Any, NamedTuple

from aiohttp import web

from unmask.records import Message, Request, Sampling


class Sent(NamedTuple):
    """One request as the server saw it."""

    path: str
    headers: Mapping[str, str]
    body: dict[str, Any]


class Canned(NamedTuple):
    """One answer. A dict or list is sent as JSON, bytes as they are."""

    body: Any
    status: int = 200
    headers: Mapping[str, str] = {}
    delay: float = 0.0
    """Seconds before it is sent."""


Script = Callable[[Sent], Canned]


class Loopback:
    """`script` may be replaced while the server runs."""

    def __init__(self, script: Script, port: int) -> None:
        self.script = script
        self.port = port
        self.sent: list[Sent] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/v1"


@asynccontextmanager
async def loopback(script: Script | Canned | list[Canned], *, port: int = 0) -> AsyncIterator[Loopback]:
    """Serves a script, the same answer always, or a list of answers of which the last repeats."""
    server = Loopback(_script(script), 0)

    async def handle(request: web.Request) -> web.Response:
        sent = Sent(request.path_qs, dict(request.headers), json.loads(await request.read() or b"{}"))
        server.sent.append(sent)
        answer = server.script(sent)
        await asyncio.sleep(answer.delay)
        if isinstance(answer.body, bytes):
            return web.Response(body=answer.body, status=answer.status, headers=dict(answer.headers))
        return web.json_response(answer.body, status=answer.status, headers=dict(answer.headers))

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", port, reuse_address=True)
    await site.start()
    server.port = runner.addresses[0][1]
    try:
        yield server
    finally:
        await runner.cleanup()


def _script(script: Script | Canned | list[Canned]) -> Script:
    if isinstance(script, Canned):
        return lambda _: script
    if isinstance(script, list):
        left = list(script)
        return lambda _: left.pop(0) if len(left) > 1 else left[0]
    return script


@asynccontextmanager
async def raw(reply: bytes, *, reset: bool = False, silent: bool = False) -> AsyncIterator[str]:
    """A server that writes these bytes, whatever they are, and closes or resets the connection."""
    hold = asyncio.Event()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(reply)
        await writer.drain()
        if silent:
            await hold.wait()
        if reset:
            writer.transport.abort()
        else:
            writer.close()

    server = await asyncio.start_server(handle, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
    finally:
        hold.set()
        server.close()
        await server.wait_closed()


@contextmanager
def loopback_in_thread(script: Script | Canned | list[Canned]) -> Iterator[Loopback]:
    """The same server for code that blocks: it runs in a thread of its own."""
    ready, done = threading.Event(), asyncio.Event()
    started: list[tuple[Loopback, asyncio.AbstractEventLoop]] = []

    async def serve() -> None:
        async with loopback(script) as server:
            started.append((server, asyncio.get_running_loop()))
            ready.set()
            await done.wait()

    thread = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    thread.start()
    ready.wait(10)
    server, loop = started[0]
    try:
        yield server
    finally:
        loop.call_soon_threadsafe(done.set)
        thread.join(10)


# --- what providers do with parameters --------------------------------------------------------------------

USUAL = frozenset(
    {"model", "messages", "system", "temperature", "max_tokens", "max_completion_tokens", "top_p", "seed", "n"}
    | {"response_format"}
)
"""What every chat API has."""

INVALID = {"type": "invalid_request_error"}
REFUSALS: dict[str, Callable[[str], Canned]] = {
    "openai": lambda name: Canned(
        {"error": {"message": f"Unrecognized request argument supplied: {name}", **INVALID, "param": None}}, 400
    ),
    "groq": lambda name: Canned({"error": {"message": f"property '{name}' is unsupported", **INVALID}}, 400),
    "mistral": lambda name: Canned(
        {"detail": [{"type": "extra_forbidden", "loc": ["body", name], "msg": "Extra inputs are not permitted"}]}, 422
    ),
    "google": lambda name: Canned(
        [
            {
                "error": {
                    "code": 400,
                    "message": f'Unknown name "{name}": Cannot find field.',
                    "status": "INVALID_ARGUMENT",
                }
            }
        ],
        400,
    ),
    "anthropic": lambda name: Canned(
        {"type": "error", "error": {"message": f"{name}: Extra inputs are not permitted", **INVALID}}, 400
    ),
}
"""How a provider refuses a parameter that it does not know. vLLM and OpenRouter refuse none: they pass it over."""


def provider_taking(
    names: Collection[str],
    *,
    like: str = "openai",
    values: Mapping[str, Collection[Any]] | None = None,
    answer: Canned | None = None,
) -> Script:
    """An endpoint that takes these parameters besides the usual ones, some of them with certain values only."""

    def script(sent: Sent) -> Canned:
        for name, value in sent.body.items():
            if like in REFUSALS and name not in USUAL and name not in names:
                return REFUSALS[like](name)
            if values and name in values and value not in values[name]:
                message = f"Unsupported value: '{name}' does not support {json.dumps(value)} with this model."
                error = {"message": message, "type": "invalid_request_error", "param": name}
                return Canned({"error": error | {"code": "unsupported_value"}}, 400)
        return answer or Canned(chat("I would rather not say."))

    return script


def request(text: str = "Is water wet?", **changes: Any) -> Request:
    """A small request; `sampling` fields and `n` or `schema` by keyword."""
    kept = {name: changes.pop(name) for name in ("n", "schema") if name in changes}
    messages = (Message("system", "Be brief."), Message("user", text))
    return Request(messages, Sampling(**changes), **kept)


def chat(*texts: Any, finish: Any = "stop", usage: Any = None, **message: Any) -> dict[str, Any]:
    """A chat completion with these contents as its choices."""
    said = [{"role": "assistant", "content": text, **message} for text in texts]
    return {
        "id": "x",
        "model": "served-model",
        "choices": [{"index": at, "message": one, "finish_reason": finish} for at, one in enumerate(said)],
        "usage": usage,
    }
