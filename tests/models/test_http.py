"""What can go wrong between us and a server, each against a real one on loopback."""

from __future__ import annotations

import asyncio
import gc
import socket

import pytest

from tests.models.loopback import Canned, chat, loopback, raw, request
from unmask.errors import ModelError, TransientModelError
from unmask.models.providers import open_model

KEY = "k-very-secret-123"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("UNMASK_API_KEY", KEY)
    for name in ("http_proxy", "HTTP_PROXY", "no_proxy", "NO_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)


async def refused(url: str, *, within: float = 30.0) -> TransientModelError:
    """The error of one request to `url`, already checked for what every error has to keep."""
    model = open_model("openai/m", base_url=url, timeout=within)
    try:
        with pytest.raises(TransientModelError) as caught:
            await model.complete(request())
    finally:
        await model.close()
    assert KEY not in f"{caught.value} {caught.value.advice} {caught.value!r}"
    return caught.value


def against_raw(reply: bytes, **how: bool) -> TransientModelError:
    async def go() -> TransientModelError:
        async with raw(reply, **how) as url:
            return await refused(url)

    return asyncio.run(go())


def against(answer: Canned) -> TransientModelError:
    async def go() -> TransientModelError:
        async with loopback(answer) as server:
            return await refused(server.url)

    return asyncio.run(go())


@pytest.mark.parametrize(
    "body",
    [
        *(b"{", b'{"choices": [{"mess', b"", b"ok", b"\xff\xfe", b"[1, 2]", b"null", b'"text"'),
        *({}, {"choices": []}, {"choices": None}, {"choices": "words"}),
        *({"choices": [one]} for one in ({}, {"message": None}, {"message": "words"})),
    ],
)
def test_a_body_that_is_no_answer_is_worth_another_try(body):
    """Half a JSON text, none at all, JSON of another shape, or nothing usable in the right one."""
    error = against(Canned(body))
    assert not error.throttled
    assert not error.unreachable


def test_an_html_page_is_named_and_the_advice_doubts_the_url():
    """A 200 with a web page is most often the wrong address."""
    error = against(Canned(b"<!doctype html><html><title>Hello</title></html>"))
    assert "HTML" in str(error)
    assert "/v1" in (error.advice or "")


def test_an_html_error_page_is_not_poured_out():
    """Of a gateway's error page only the status remains."""
    error = against(Canned(b"<html>" + b"x" * 5000, status=502))
    assert "502" in str(error)
    assert len(str(error)) < 400


HALF = HEAD + b'Content-Length: 500\r\n\r\n{"choices": [{"message"'


@pytest.mark.parametrize(
    ("reply", "reset"),
    [
        *((reply, reset) for reply in (b"", HALF) for reset in (False, True)),
        (HEAD + b'Transfer-Encoding: chunked\r\n\r\n5\r\n{"cho\r\n', False),
        (b"SSH-2.0-OpenSSH_9.6\r\n", False),
    ],
    ids=["closed", "reset", "closed in the middle", "reset in the middle", "no last chunk", "another protocol"],
)
def test_a_connection_that_breaks_or_is_none_of_http_is_worth_another_try(reply, reset):
    against_raw(reply, reset=reset)


def test_a_refused_connection_is_marked_unreachable():
    """Nobody listens there, and the advice asks whether a server runs."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    error = asyncio.run(refused(f"http://127.0.0.1:{port}/v1"))
    assert error.unreachable
    assert "refused" in str(error)
    assert "running" in (error.advice or "")


def test_an_unknown_host_is_marked_unreachable():
    """`.invalid` never resolves."""
    error = asyncio.run(refused("http://nobody.invalid/v1"))
    assert error.unreachable
    assert "nobody.invalid" in str(error)
    assert "online" in (error.advice or "")


def test_a_server_that_never_answers_times_out():
    """The message begins with the word the journal is searched for."""

    async def go() -> TransientModelError:
        async with raw(b"", silent=True) as url:
            return await refused(url, within=0.2)

    assert str(asyncio.run(go())).startswith("timeout: no answer within 0.2 s")


@pytest.mark.parametrize("status", [400, 401, 403, 404, 418, 429, 500, 503])
def test_no_error_ever_shows_a_secret(status, monkeypatch):
    """A server that echoes every header and the whole URL gives nothing away."""
    monkeypatch.setenv("UNMASK_JUDGE_API_KEY", KEY)

    async def go() -> list[ModelError]:
        errors = []
        async with loopback(lambda sent: Canned(f"{sent.headers} {sent.path} {KEY}".encode(), status)) as server:
            plain = open_model("openai/m", base_url=server.url, role="judge")
            with_query = open_model("openai/m", base_url=server.url + "?t=qwertz")
            for model in (plain, with_query):
                with pytest.raises(ModelError) as caught:
                    await model.complete(request())
                errors.append(caught.value)
                await model.close()
        return errors

    for error in asyncio.run(go()):
        shown = f"{error} {error.advice} {error!r}"
        assert not any(secret in shown for secret in (KEY, "qwertz"))


def test_half_an_emoji_is_not_a_failure():
    """A server that cut a surrogate pair in two still answered; the half becomes U+FFFD."""
    body = b'{"choices": [{"message": {"content": "well \\ud83d"}, "finish_reason": "length"}]}'

    async def go() -> str:
        async with loopback(Canned(body)) as server:
            model = open_model("openai/m", base_url=server.url)
            completion = await model.complete(request())
            await model.close()
            return completion.choices[0].text

    assert asyncio.run(go()) == "well \ufffd"


def test_half_an_emoji_in_a_request_is_refused_and_not_sent():
    """Nothing that cannot be written as UTF-8 reaches the wire."""

    async def go() -> int:
        async with loopback(Canned(chat("x"))) as server:
            model = open_model("openai/m", base_url=server.url)
            with pytest.raises(ModelError):
                await model.complete(request("half \ud83d"))
            return len(server.sent)

    assert asyncio.run(go()) == 0


def test_many_requests_share_connections_and_all_come_back():
    """Two hundred at once, each with its own answer."""

    async def go() -> list[str]:
        async with loopback(lambda sent: Canned(chat(sent.body["messages"][1]["content"]))) as server:
            model = open_model("openai/m", base_url=server.url)
            answers = await asyncio.gather(*(model.complete(request(str(n))) for n in range(200)))
            await model.close()
            return [answer.choices[0].text for answer in answers]

    assert asyncio.run(go()) == [str(n) for n in range(200)]


def test_a_model_may_be_used_on_one_loop_after_another():
    """As happens in a notebook, or when two runs follow each other."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    model = open_model("openai/m", base_url=f"http://127.0.0.1:{port}/v1")

    async def go(words: str) -> str:
        async with loopback(Canned(chat(words)), port=port):
            return (await model.complete(request())).choices[0].text

    assert [asyncio.run(go("first")), asyncio.run(go("second"))] == ["first", "second"]
    asyncio.run(model.close())
    gc.collect()  # what the loops left behind is reported here and not in the middle of another test


def test_a_redirect_is_not_followed():
    """A key is never carried to wherever a server points."""

    async def go() -> int:
        async with loopback(Canned(chat("stolen"))) as other:
            async with loopback(Canned(b"", 307, {"Location": other.url + "/chat/completions"})) as server:
                model = open_model("openai/m", base_url=server.url)
                with pytest.raises(ModelError):
                    await model.complete(request())
                await model.close()
            return len(other.sent)

    assert asyncio.run(go()) == 0


def test_a_proxy_of_the_environment_is_used(monkeypatch):
    """Requests to a host that is not this machine go through it."""

    async def go() -> list[str]:
        async with loopback(Canned(chat("through the proxy"))) as proxy:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy.port}")
            model = open_model("openai/m", base_url="http://models.invalid/v1")
            completion = await model.complete(request())
            await model.close()
            return [completion.choices[0].text, proxy.sent[0].headers["Host"]]

    assert asyncio.run(go()) == ["through the proxy", "models.invalid"]
