from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.models.loopback import Canned, Loopback, Script, loopback, request
from unmask.errors import FatalModelError, RequestRefusedError, TransientModelError
from unmask.models.providers import open_model
from unmask.records import Choice, Message, Request, Stop, Usage


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.delenv("UNMASK_API_KEY", raising=False)
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k-secret-1")


def message(*blocks: Any, stop: Any = "end_turn", usage: Any = None) -> dict[str, Any]:
    return {"type": "message", "model": "claude-x-1", "content": list(blocks), "stop_reason": stop, "usage": usage}


def text(words: str) -> dict[str, str]:
    return {"type": "text", "text": words}


def ask(script: Script | Canned | list[Canned], *requests: Request) -> tuple[Any, Loopback]:
    async def go() -> tuple[Any, Loopback]:
        async with loopback(script) as server:
            model = open_model("anthropic/claude-x", base_url=server.url.removesuffix("/v1"))
            try:
                done = [await model.complete(one) for one in requests or (request(),)]
            finally:
                await model.close()
            return done if len(done) > 1 else done[0], server

    return asyncio.run(go())


def test_what_is_sent():
    """System prompt lifted out, version and key in their headers, a limit always."""
    _, server = ask(Canned(message(text("x"))), request(temperature=0.5, max_tokens=7, top_p=0.9, schema={"a": 1}))
    sent = server.sent[0]
    assert sent.path == "/v1/messages"
    assert sent.headers["x-api-key"] == "k-secret-1"
    assert sent.headers["anthropic-version"]
    assert sent.body == {
        "model": "claude-x",
        "max_tokens": 7,
        "system": "Be brief.",
        "messages": [{"role": "user", "content": "Is water wet?"}],
        "temperature": 0.5,
        "top_p": 0.9,
    }


def test_a_conversation_keeps_its_order():
    """The scripted assistant turn of a doubling-down scenario stays where it is."""
    turns = (Message("system", "s"), Message("user", "u"), Message("assistant", "a"), Message("user", "v"))
    _, server = ask(Canned(message(text("x"))), Request(turns))
    assert [turn["role"] for turn in server.sent[0].body["messages"]] == ["user", "assistant", "user"]


def test_what_cannot_be_sent_is_recorded():
    """A seed has no place in this API, and a limit has to be there."""
    completion, server = ask(Canned(message(text("x"))), request(seed=4, max_tokens=None))
    assert completion.adjusted == ("max_tokens: sent as 4096", "seed: not sent")
    assert server.sent[0].body["max_tokens"] == 4096


THINKING = ({"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "x"})


@pytest.mark.parametrize(
    ("body", "choice"),
    [
        (message(*THINKING, text("one "), text("answer")), Choice("one answer", "hm")),
        (message(stop="refusal"), Choice("", stop=Stop.FILTER)),
        *(
            (message(text("x"), stop=reason), Choice("x", stop=stop))
            for reason, stop in [
                ("stop_sequence", Stop.END),
                ("max_tokens", Stop.LENGTH),
                ("model_context_window_exceeded", Stop.LENGTH),
                ("refusal", Stop.FILTER),
                ("pause_turn", Stop.OTHER),
                (None, Stop.OTHER),
            ]
        ),
    ],
)
def test_answers_of_every_form(body, choice):
    """Text blocks make the answer, thinking blocks the reasoning, redacted ones nothing; a refusal may come without a
    single block."""
    assert ask(Canned(body))[0].choices == (choice,)


CACHED = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 7}


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (CACHED, Usage(input=125, output=7, cached=100, written=20)),
        (None, Usage()),
        ({}, Usage()),
        ({"input_tokens": None}, Usage()),
    ],
)
def test_input_counts_what_the_cache_held_and_unknown_usage_stays_unknown(counts, usage):
    assert ask(Canned(message(text("x"), usage=counts)))[0].usage == usage


def test_a_refused_temperature_is_dropped_remembered_and_recorded():
    """Newer models take none."""

    def script(sent: Any) -> Canned:
        if "temperature" in sent.body:
            error = {"type": "invalid_request_error", "message": "`temperature` is deprecated for this model."}
            return Canned({"type": "error", "error": error}, 400)
        return Canned(message(text("x")))

    (first, second), server = ask(script, request(), request())
    assert ["temperature" in sent.body for sent in server.sent] == [True, False, False]
    assert first.adjusted == second.adjusted == ("temperature: refused, not sent",)


@pytest.mark.parametrize(
    ("status", "name", "words", "kind", "said"),
    [
        (529, "overloaded_error", "no", TransientModelError, "529"),
        (401, "authentication_error", "invalid x-api-key", FatalModelError, "ANTHROPIC_API_KEY"),
        (404, "not_found_error", "model: claude-x", FatalModelError, "claude-x"),
        (400, "invalid_request_error", "Your credit balance is too low", FatalModelError, "no credit"),
        (403, "permission_error", "Your account has been suspended: usage policies", FatalModelError, "suspended"),
        (400, "invalid_request_error", "prompt is too long: 300000 tokens", RequestRefusedError, "300000"),
    ],
)
def test_failures_are_what_they_say_and_show_no_key(status, name, words, kind, said):
    with pytest.raises(kind) as caught:
        ask(Canned({"type": "error", "error": {"type": name, "message": words}}, status))
    shown = f"{caught.value} {caught.value.advice}"
    assert said in shown
    assert "k-secret-1" not in shown
    assert getattr(caught.value, "throttled", False) == (status == 529)


@pytest.mark.parametrize("body", [{}, {"content": None}, {"content": "text"}, b"<html>", b"{"])
def test_an_answer_of_another_shape_is_worth_another_try(body):
    """No content, or none we can read."""
    with pytest.raises(TransientModelError):
        ask(Canned(body))
