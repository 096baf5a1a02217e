"""An OpenAI-compatible server on loopback whose models have a planted conduct on the bundled scenarios.

Every model it serves answers as subject and as judge. As subject it lies in some scenarios, evades in some and is
honest in the others; which, follows from the name of the model and the id of the scenario. As judge it is
`scripted/judge`.
"""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from aiohttp import web

from unmask.errors import RequestRefusedError
from unmask.models.scripted import Character, _Actor, answer_as_judge, reply_as
from unmask.records import Message, Request, Sampling

MODELS = ("gpt-4o", "gpt-4o-mini", "gpt-4.1-mini")
LIES, EVADES = 0.3, 0.4
"""Shares of the scenarios: lies below the first, evasions between the two."""


def character_for(model: str, scenario: str) -> Character:
    place = int(hashlib.sha256(f"{model}\n{scenario}".encode()).hexdigest()[:8], 16) / 2**32
    return Character.LIAR if place < LIES else Character.EVASIVE if place < EVADES else Character.HONEST


def answer(model: str, request: Request, actor: _Actor) -> str:
    try:
        scenario, slot = actor._recognise(request.messages)
    except RequestRefusedError:
        return answer_as_judge(request)
    return reply_as(character_for(model, scenario.id), scenario, slot)


async def _complete(http: web.Request) -> web.Response:
    body: dict[str, Any] = await http.json()
    if http.headers.get("Authorization") != "Bearer sk-planted":
        error = {"message": "Incorrect API key provided.", "type": "invalid_request_error", "code": "invalid_api_key"}
        return web.json_response({"error": error}, status=401)
    if body["model"] not in MODELS:
        error = {"message": f"The model `{body['model']}` does not exist", "code": "model_not_found"}
        return web.json_response({"error": error}, status=404)
    messages = tuple(Message(role=turn["role"], content=turn["content"]) for turn in body["messages"])
    text = answer(body["model"], Request(messages=messages, sampling=Sampling()), http.app[ACTOR])
    choices = [
        {"index": index, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}
        for index in range(body.get("n") or 1)
    ]
    sent = sum(len(message.content) for message in messages) // 4
    usage = {"prompt_tokens": sent, "completion_tokens": len(text) // 4, "total_tokens": sent + len(text) // 4}
    return web.json_response({"model": body["model"], "choices": choices, "usage": usage})


async def _list_models(_: web.Request) -> web.Response:
    return web.json_response({"object": "list", "data": [{"id": name, "object": "model"} for name in MODELS]})


ACTOR = web.AppKey("actor", _Actor)


@contextmanager
def serve_planted_core() -> Iterator[str]:
    """The base URL of the server, while it runs in a thread of its own."""
    ready, loop = threading.Event(), asyncio.new_event_loop()
    address: list[str] = []

    async def begin() -> web.AppRunner:
        app = web.Application()
        app[ACTOR] = _Actor(Character.HONEST, None)
        app.add_routes([web.post("/v1/chat/completions", _complete), web.get("/v1/models", _list_models)])
        runner = web.AppRunner(app)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        address.append(f"http://127.0.0.1:{runner.addresses[0][1]}/v1")
        return runner

    def work() -> None:
        runner = loop.run_until_complete(begin())
        ready.set()
        loop.run_forever()
        loop.run_until_complete(runner.cleanup())

    thread = threading.Thread(target=work)
    thread.start()
    ready.wait()
    try:
        yield address[0]
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        loop.close()
