from __future__ import annotations

import asyncio
from typing import Any

import pytest

from tests.models.loopback import Canned, Loopback, Script, loopback, request
from unmask.errors import FatalModelError, RequestRefusedError, TransientModelError
from unmask.models.providers import open_model
from unmask.records import Message, Request, Stop, Usage


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


def test_blocks_are_joined_and_thinking_kept_apart():
    """Text blocks make the answer, thinking blocks the reasoning, redacted ones nothing."""
    blocks = ({"type": "thinking", "thinking": "hm", "signature": "s"}, {"type": "redacted_thinking", "data": "x"})
    completion, _ = ask(Canned(message(*blocks, text("one "), text("answer"))))
    assert (completion.choices[0].text, completion.choices[0].reasoning) == ("one answer", "hm")


@pytest.mark.parametrize(
    ("reason", "stop"),
    [
        ("end_turn", Stop.END),
        ("stop_sequence", Stop.END),
        ("max_tokens", Stop.LENGTH),
        ("model_context_window_exceeded", Stop.LENGTH),
        ("refusal", Stop.FILTER),
        ("pause_turn", Stop.OTHER),
        (None, Stop.OTHER),
    ],
)
def test_stop_reasons(reason, stop):
    """Each reason of the API."""
    completion, _ = ask(Canned(message(text("x"), stop=reason)))
    assert completion.choices[0].stop is stop


def test_an_empty_answer_is_an_answer():
    """A refusal may come without a single block."""
    completion, _ = ask(Canned(message(stop="refusal")))
    assert (completion.choices[0].text, completion.choices[0].stop) == ("", Stop.FILTER)


def test_input_counts_what_the_cache_held():
    """As other providers count it: everything that went in."""
    usage = {"input_tokens": 5, "cache_read_input_tokens": 100, "cache_creation_input_tokens": 20, "output_tokens": 7}
    completion, _ = ask(Canned(message(text("x"), usage=usage)))
    assert completion.usage == Usage(input=125, output=7, cached=100, written=20)


@pytest.mark.parametrize("usage", [None, {}, {"input_tokens": None}])
def test_unknown_usage_stays_unknown(usage):
    """Never zero."""
    completion, _ = ask(Canned(message(text("x"), usage=usage)))
    assert completion.usage == Usage()


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


def failing(status: int, kind: str, words: str = "no", headers: dict[str, str] | None = None) -> Exception:
    body = {"type": "error", "error": {"type": kind, "message": words}}
    with pytest.raises(Exception) as caught:  # noqa: PT011 - the type is what the callers look at
        ask(Canned(body, status, headers or {}))
    assert "k-secret-1" not in f"{caught.value} {getattr(caught.value, 'advice', '')}"
    return caught.value


def test_overload_asks_for_fewer_requests():
    """529 is Anthropic's own."""
    error = failing(529, "overloaded_error")
    assert isinstance(error, TransientModelError)
    assert error.throttled


def test_a_wrong_key_is_fatal_and_its_variable_named():
    """Before the rest is sent."""
    error = failing(401, "authentication_error", "invalid x-api-key")
    assert isinstance(error, FatalModelError)
    assert "ANTHROPIC_API_KEY" in (error.advice or "")


def test_an_unknown_model_is_fatal():
    """A 404 names the model."""
    error = failing(404, "not_found_error", "model: claude-x")
    assert isinstance(error, FatalModelError)
    assert "claude-x" in str(error)


def test_an_empty_account_is_fatal():
    """Said with a 400 here."""
    assert isinstance(failing(400, "invalid_request_error", "Your credit balance is too low"), FatalModelError)


def test_a_suspended_account_is_fatal():
    """Whatever it was suspended for."""
    words = "Your account has been suspended for a violation of our usage policies"
    error = failing(403, "permission_error", words)
    assert isinstance(error, FatalModelError)
    assert words in str(error)


def test_a_prompt_that_is_too_long_concerns_only_itself():
    """The next request may be shorter."""
    error = failing(400, "invalid_request_error", "prompt is too long: 300000 tokens > 200000 maximum")
    assert isinstance(error, RequestRefusedError)


@pytest.mark.parametrize("body", [{}, {"content": None}, {"content": "text"}, b"<html>", b"{"])
def test_an_answer_of_another_shape_is_worth_another_try(body):
    """No content, or none we can read."""
    with pytest.raises(TransientModelError):
        ask(Canned(body))
