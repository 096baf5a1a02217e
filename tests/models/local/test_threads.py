"""Runs in several threads at a time, each with an event loop of its own: none sees what another received."""

from __future__ import annotations

import asyncio
import threading
from concurrent.futures import ThreadPoolExecutor

from tests.models.loopback import Canned, Sent, chat, loopback, request
from unmask.models.providers import open_model

THREADS, CALLS = 8, 60


def echo(sent: Sent) -> Canned:
    return Canned(chat(sent.body["messages"][-1]["content"] * 200))


def asked(url: str, name: str) -> list[str]:
    """What one thread was answered, call by call."""

    async def main() -> list[str]:
        model = open_model("openai/m", base_url=url)
        try:
            answers = await asyncio.gather(*(model.complete(request(f"{name}-{call}|")) for call in range(CALLS)))
        finally:
            await model.close()
        return [answer.choices[0].text for answer in answers]

    return asyncio.run(main())


def test_answers_of_several_event_loops_never_mix():
    """Every thread gets its own answers, whole: what arrives is put where no other thread writes."""
    ready, done, address = threading.Event(), threading.Event(), list[str]()

    async def serve() -> None:
        async with loopback(echo) as server:
            address.append(server.url)
            ready.set()
            await asyncio.to_thread(done.wait)

    with ThreadPoolExecutor(THREADS + 1) as pool:
        serving = pool.submit(asyncio.run, serve())
        assert ready.wait(30)
        try:
            found = {f"thread{number}": pool.submit(asked, address[0], f"thread{number}") for number in range(THREADS)}
            for name, answers in found.items():
                assert answers.result(60) == [f"{name}-{call}|" * 200 for call in range(CALLS)]
        finally:
            done.set()
        serving.result(30)
