from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.models.loopback import Canned, Loopback, Script, chat, loopback, request
from unmask.errors import FatalModelError, RequestRefusedError, TransientModelError
from unmask.models.base import Model
from unmask.models.openai import split_content, stop_of, token_count
from unmask.models.providers import MANY, open_model
from unmask.records import Choice, Request, Stop, Usage

SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def ask(
    script: Script | Canned | list[Canned], *requests: Request, name: str = "openai/m"
) -> tuple[Any, Loopback, Model]:
    """The completions of these requests one after the other, the server with what it saw, and the model."""

    async def go() -> tuple[Any, Loopback, Model]:
        async with loopback(script) as server:
            model = open_model(name, base_url=server.url)
            try:
                done = [await model.complete(one) for one in requests or (request(),)]
            finally:
                await model.close()
            return done if len(done) > 1 else done[0], server, model

    return asyncio.run(go())


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch):
    for name in ("UNMASK_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)


def refuse(name: str, message: str, **more: str) -> Script:
    """A server that refuses requests with the parameter `name` and answers the others."""

    def script(sent: Any) -> Canned:
        if name in sent.body:
            return Canned({"error": {"message": message, "param": name, **more}}, 400)
        return Canned(chat("fine"))

    return script


def test_what_is_sent():
    """Exactly the settings of the request, under the names of the API."""
    full = request(temperature=0.5, max_tokens=7, top_p=0.9, seed=3, n=2, schema=SCHEMA)
    _, server, _ = ask(Canned(chat("a", "b")), full, name="openai/org/m")
    assert server.sent[0].path == "/v1/chat/completions"
    assert server.sent[0].body == {
        "model": "org/m",
        "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Is water wet?"}],
        "temperature": 0.5,
        "max_tokens": 7,
        "top_p": 0.9,
        "seed": 3,
        "n": 2,
        "response_format": {"type": "json_schema", "json_schema": {"name": "answer", "strict": True, "schema": SCHEMA}},
    }


def test_what_is_left_to_the_endpoint_is_not_sent():
    """`None` means absent, and one choice needs no `n`."""
    _, server, _ = ask(Canned(chat("a")), request(temperature=None, max_tokens=None))
    assert set(server.sent[0].body) == {"model", "messages"}


@pytest.mark.parametrize(
    ("keys", "sent"),
    [
        ({}, None),
        ({"OPENAI_API_KEY": "k-123456"}, "Bearer k-123456"),
        ({"OPENAI_API_KEY": "k-123456", "UNMASK_API_KEY": "k-ours-1"}, "Bearer k-ours-1"),
    ],
)
def test_our_key_beats_the_providers_and_none_is_sent_without(monkeypatch, keys, sent):
    for name, value in keys.items():
        monkeypatch.setenv(name, value)
    assert ask(Canned(chat("a")))[1].sent[0].headers.get("Authorization") == sent


THINKING = [{"type": "thinking", "thinking": [{"type": "text", "text": "thought"}]}, {"type": "text", "text": "answer"}]
"""As Mistral sends it."""


@pytest.mark.parametrize(
    ("body", "choice"),
    [
        (chat("  kept \n exactly "), Choice("  kept \n exactly ")),
        (chat(""), Choice("")),
        (chat(None), Choice("", stop=Stop.OTHER)),
        (chat([{"type": "text", "text": "two "}, {"type": "text", "text": "parts"}]), Choice("two parts")),
        (chat(["bare", {"type": "image"}, None, 7]), Choice("bare")),
        (chat({"odd": 1}), Choice("")),
        (chat("answer", reasoning_content="thought"), Choice("answer", "thought")),
        (chat("answer", reasoning="thought"), Choice("answer", "thought")),
        (chat(THINKING), Choice("answer", "thought")),
        (chat(None, refusal="I will not."), Choice("I will not.")),
        *(
            (chat("x", finish=reason), Choice("x", stop=stop))
            for reason, stop in [
                ("eos", Stop.END),
                ("length", Stop.LENGTH),
                ("content_filter", Stop.FILTER),
                ("SAFETY", Stop.FILTER),
                ("tool_calls", Stop.OTHER),
                (None, Stop.OTHER),
                (7, Stop.OTHER),
            ]
        ),
    ],
)
def test_answers_of_every_form(body, choice):
    """The text is not touched, reasoning is kept apart, a reason that nobody knows is `other`, and so is null: a model
    that says nothing says an empty string, null is an endpoint that lost what was said."""
    completion, _, _ = ask(Canned(body))
    assert completion.choices == (choice,)
    assert (completion.model, (completion.latency or 0) > 0) == ("served-model", True)


DETAILED = {
    "prompt_tokens": 10,
    "completion_tokens": 20,
    "completion_tokens_details": {"reasoning_tokens": 15},
    "prompt_tokens_details": {"cached_tokens": 4},
}


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        (DETAILED, Usage(input=10, output=20, reasoning=15, cached=4)),
        (None, Usage()),
        ({}, Usage()),
        ("lots", Usage()),
        ({"prompt_tokens": None, "completion_tokens_details": None}, Usage()),
        ({"prompt_tokens": "10", "completion_tokens": -1, "prompt_tokens_details": []}, Usage()),
    ],
)
def test_usage_that_says_nothing_is_unknown(counts, usage):
    """Absent, null or of an odd type: unknown, never zero, never a failure."""
    assert ask(Canned(chat("x", usage=counts)))[0].usage == usage


@pytest.mark.parametrize(("texts", "output"), [(["one"], 4), (["one", "two"], None)])
def test_a_server_of_llama_cpp_counts_only_the_first_choice(texts, output):
    """`completion_tokens` of several choices is that of one, so what was written is unknown."""
    body = chat(*texts, usage={"prompt_tokens": 9, "completion_tokens": 4, "total_tokens": 13})
    completion, _, _ = ask(Canned(body | {"timings": {"predicted_n": 4}}), request(n=len(texts)))
    assert (len(completion.choices), completion.usage) == (len(texts), Usage(input=9, output=output))


@given(st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text()))
def test_a_count_is_a_whole_number_or_nothing(value):
    """No odd value passes for a number of tokens."""
    found = token_count({"a": value}, "a")
    assert found is None or (type(found) is int and found >= 0)


@given(st.recursive(st.none() | st.integers() | st.text(), lambda x: st.lists(x) | st.dictionaries(st.text(), x)))
def test_content_of_any_shape_gives_text(content):
    """Nothing a server could send as content breaks the reading of it."""
    assert all(isinstance(part, str) for part in split_content(content))
    assert isinstance(stop_of(content), Stop)


@pytest.mark.parametrize(
    ("name", "texts", "n", "asked", "max_n"),
    [
        ("openai/m", ["a", "b", "c"], 3, 3, MANY),
        ("openai/m", ["a", "b"], 1, None, MANY),
        ("openai/m", ["only"], 3, 3, 1),
        ("openrouter/m", ["only"], 3, None, 1),
    ],
    ids=["several", "more than asked", "ignores n", "known to ignore n"],
)
def test_choices_come_as_they_were_asked_for(name, texts, n, asked, max_n):
    """A take is what was asked for, not what was thrown in; who ignores `n` is not asked for several again."""
    completion, server, model = ask(Canned(chat(*texts)), request(n=n), name=name)
    assert [choice.text for choice in completion.choices] == texts[:n]
    assert (server.sent[0].body.get("n"), model.capabilities.max_n) == (asked, max_n)


@pytest.mark.parametrize("name", ["temperature", "top_p", "seed", "response_format"])
def test_a_refused_parameter_is_dropped_at_once_remembered_and_recorded(name):
    """Three sends for two requests, and both answers say what was changed."""
    wanted = request(temperature=0.0, top_p=0.5, seed=1, schema=SCHEMA)
    (first, second), server, _ = ask(refuse(name, f"Unsupported parameter: '{name}'"), wanted, wanted)
    assert [name in sent.body for sent in server.sent] == [True, False, False]
    assert first.adjusted == second.adjusted == (f"{name}: refused, not sent",)


def test_a_refused_token_limit_is_renamed():
    """The value goes out under the other name."""
    (first, second), server, _ = ask(
        refuse("max_tokens", "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead."),
        request(max_tokens=77),
        request(max_tokens=78),
    )
    assert [sent.body.get("max_completion_tokens") for sent in server.sent] == [None, 77, 78]
    assert first.adjusted == second.adjusted == ("max_tokens: sent as max_completion_tokens",)


def test_a_refused_n_leaves_one_choice():
    """The request is answered once, and `max_n` falls."""
    completion, server, model = ask(refuse("n", "'n' is not supported"), request(n=4))
    assert len(completion.choices) == 1
    assert model.capabilities.max_n == 1
    assert [sent.body.get("n") for sent in server.sent] == [4, None]


def test_a_model_without_system_role_gets_the_prompt_as_user():
    """Templates that know no system role lose nothing, and it is recorded."""

    def script(sent: Any) -> Canned:
        if any(message["role"] == "system" for message in sent.body["messages"]):
            return Canned({"object": "error", "message": "System role not supported", "code": 400}, 400)
        return Canned(chat("fine"))

    completion, server, _ = ask(script)
    assert server.sent[-1].body["messages"] == [{"role": "user", "content": "Be brief.\n\nIs water wet?"}]
    assert completion.adjusted == ("system: refused, sent inside the first user message",)


def test_several_refusals_are_worked_off_one_by_one():
    """A model that takes nothing but messages ends up with them."""

    def script(sent: Any) -> Canned:
        extra = next((name for name in sent.body if name not in ("model", "messages")), None)
        if extra:
            return Canned({"error": {"message": f"Unrecognized argument: {extra}"}}, 400)
        return Canned(chat("fine"))

    completion, server, _ = ask(script, request(top_p=0.5, seed=1, n=2, schema=SCHEMA))
    assert set(server.sent[-1].body) == {"model", "messages"}
    assert [len(completion.choices), len(completion.adjusted)] == [1, 5]


@pytest.mark.parametrize("name", ["o1", "o3-mini", "o4-mini-2025-04-16", "gpt-5", "gpt-5-mini", "gpt-5.1"])
def test_reasoning_models_of_openai_are_known_beforehand(name):
    """No call is spent on finding out what they refuse."""
    completion, server, _ = ask(Canned(chat("x")), request(temperature=0.0, max_tokens=9), name=f"openai/{name}")
    assert len(server.sent) == 1
    assert "temperature" not in server.sent[0].body
    assert server.sent[0].body["max_completion_tokens"] == 9
    assert completion.adjusted == ("temperature: not sent", "max_tokens: sent as max_completion_tokens")


LONG = "max_tokens is too large: this model's maximum context length is 100 tokens"
BROKEN = {"choices": [{"message": {"content": "ha"}, "finish_reason": "error", "error": {"message": "broke"}}]}


def filtered(status: int) -> Canned:
    return Canned({"error": {"message": "Try another prompt", "code": 403, "type": "content_filter"}}, status)


@pytest.mark.parametrize(
    ("answer", "kind", "marks"),
    [
        (filtered(400), RequestRefusedError, {"may_be_all": True}),
        (filtered(200), RequestRefusedError, {"may_be_all": True}),
        (Canned({"error": {"message": LONG}}, 400), RequestRefusedError, {"may_be_all": False}),
        (Canned({"error": {"code": 429, "message": "slow down"}}), TransientModelError, {"throttled": True}),
        (Canned({"error": {"code": 401, "message": "who?"}}), FatalModelError, {}),
        (Canned(BROKEN), TransientModelError, {}),
        *(
            (Canned({"error": {"message": "slow"}}, 429, headers), TransientModelError, {"retry_after": seconds})
            for headers, seconds in [({"Retry-After": "3"}, 3.0), ({"retry-after-ms": "250"}, 0.25), ({}, None)]
        ),
    ],
)
def test_failures_are_what_they_say(answer, kind, marks):
    """Also inside a 200, as OpenRouter reports them, and in place of a choice. A prompt that is too long concerns only
    itself, and no parameter is dropped for it."""
    with pytest.raises(kind) as caught:
        ask(answer)
    assert {name: getattr(caught.value, name) for name in marks} == marks
