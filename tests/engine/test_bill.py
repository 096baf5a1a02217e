"""The bill of a run against the invoice of a provider on loopback that counts for itself."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

import unmask
from tests.models.billed import BilledProvider
from tests.models.loopback import loopback, loopback_in_thread, request
from unmask.errors import IncompleteError
from unmask.models.providers import open_model
from unmask.runs.options import merge_arguments

PRICE = "4/20/0.4/5"
LONG = "A prompt that is long enough to be written to a cache. " * 100


@pytest.fixture(autouse=True)
def _key(monkeypatch):
    monkeypatch.setenv("UNMASK_API_KEY", "k")
    monkeypatch.setenv("UNMASK_JUDGE_API_KEY", "k")


def run_billed(url: str, out: Path, *, name: str = "openai/gpt-5.6", **settings):
    prices = {"set": {"price": PRICE, "judge.price": PRICE}}
    return unmask.run(
        data="tiny",
        model=name,
        judge=name,
        out=out,
        base_url=url,
        judge_base_url=url,
        **merge_arguments(prices, settings),
    )


def complete(script, name: str, text: str = LONG):
    async def ask():
        async with loopback(script) as server:
            model = open_model(name, base_url=server.url)
            try:
                return [await model.complete(request(text)) for _ in range(2)], server.sent
            finally:
                await model.close()

    return asyncio.run(ask())


def test_a_model_that_bills_cache_writes_is_asked_not_to_cache():
    """A prompt is sent once, so nothing of it is written to a cache that costs more."""
    provider = BilledProvider(write=5.0)
    answers, sent = complete(provider, "openai/gpt-5.6")
    assert [one.body["prompt_cache_options"] for one in sent] == [{"mode": "explicit"}] * 2
    assert [answer.usage.written for answer in answers] == [None, None]
    assert not any("cache" in note for note in answers[0].adjusted)


def test_an_endpoint_that_does_not_know_the_wish_is_told_once():
    """The parameter is dropped and not mentioned: nobody has asked for it."""
    answers, sent = complete(BilledProvider(write=None), "openai/gpt-5.6")
    assert ["prompt_cache_options" in one.body for one in sent] == [True, False, False]
    assert not any("cache" in note for answer in answers for note in answer.adjusted)


@pytest.mark.parametrize("apart", [False, True])
def test_reasoning_is_output_wherever_an_endpoint_counts_it(apart):
    """xAI and Gemini leave it out of `completion_tokens`; their bill does not."""
    answers, _ = complete(BilledProvider(reasoning=300, reasons_apart=apart), "xai/grok-4")
    assert (answers[0].usage.output, answers[0].usage.reasoning) == (312, 300)


@pytest.mark.parametrize("write", [None, 5.0])
def test_the_bill_of_a_run_is_the_invoice(tmp_path, write):
    provider = BilledProvider(write=write, reasoning=40)
    with loopback_in_thread(provider) as server:
        score = run_billed(server.url, tmp_path / "run").score()
    assert score.spent.cost_usd == pytest.approx(provider.invoice)
    assert score.spent.tokens["subject_reasoning"] == 40 * score.spent.tokens["subject_output"] // 52


class CachingProxy:
    """Writes every prompt to a cache whatever it is asked, and says so in its usage."""

    def __init__(self):
        self.provider = BilledProvider(write=5.0)

    def __call__(self, sent):
        sent.body.pop("prompt_cache_options", None)
        for message in sent.body["messages"]:
            message["content"] += " " * 5000
        return self.provider(sent)


def test_cache_writes_are_billed_and_counted(tmp_path):
    """The cost is the invoice, and the score has their tokens."""
    proxy = CachingProxy()
    with loopback_in_thread(proxy) as server:
        run = run_billed(server.url, tmp_path / "run", max_connections=3)
    assert run.score().spent.cost_usd == pytest.approx(proxy.provider.invoice)
    assert run.score().spent.tokens["judge_written"] > 0


@pytest.mark.parametrize("limit", [0.1, 0.2, 0.4])
def test_the_invoice_never_passes_max_cost(tmp_path, limit):
    """Requests in flight count with what they may cost at most, so that fifty at once do not overdraw."""
    provider = BilledProvider(write=5.0, reasoning=900)
    with loopback_in_thread(provider) as server, pytest.raises(IncompleteError, match="max-cost"):
        run_billed(server.url, tmp_path / "run", max_cost=limit, takes=3)
    assert 0 < provider.invoice <= limit


def test_a_limit_of_less_than_one_request_sends_nothing(tmp_path):
    provider = BilledProvider()
    with loopback_in_thread(provider) as server, pytest.raises(IncompleteError, match="may cost more than is left"):
        run_billed(server.url, tmp_path / "run", max_cost=0.0001)
    assert provider.invoice == 0


def test_a_cache_write_without_a_price_is_unknown_and_stops_a_limited_run(tmp_path):
    with loopback_in_thread(CachingProxy()) as server:
        score = run_billed(server.url, tmp_path / "a", set={"price": "4/20", "judge.price": "4/20"}).score()
        with pytest.raises(IncompleteError, match="cannot be kept"):
            run_billed(server.url, tmp_path / "b", set={"price": "4/20", "judge.price": "4/20"}, max_cost=5.0)
    assert score.spent.cost_usd is None
