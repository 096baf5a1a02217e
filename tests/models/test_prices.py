from __future__ import annotations

import pytest
from genai_prices.data_snapshot import get_snapshot
from hypothesis import given
from hypothesis import strategies as st

from unmask.errors import UsageError
from unmask.models.prices import Price, bills_cache_writes, find_price
from unmask.models.providers import PROVIDERS
from unmask.records import Usage


def test_a_known_model_has_its_list_price():
    """OpenAI's published price of gpt-4o, dollars per million tokens."""
    assert find_price("openai/gpt-4o") == Price(2.5, 10.0, cached=1.25, flex=0.5, batch=0.5)


@pytest.mark.parametrize("name", ["openai/no-such-model-9", "vllm/gpt-4o", "ollama/x", "nobody/x", "gpt-4o"])
def test_an_unknown_price_is_none_and_not_zero(name):
    """What the table does not have, or nobody can know, is `None`."""
    assert find_price(name) is None


@pytest.mark.parametrize("name", ["scripted/honest", "embedded/x", "gguf:/x.gguf"])
def test_models_in_this_process_are_free(name):
    """They cost nothing even when they count no tokens."""
    price = find_price(name)
    assert price is not None
    assert price.cost(Usage()) == 0.0


def test_a_familiar_name_at_another_address_has_no_known_price():
    """What a proxy charges for `gpt-4o` is not what OpenAI charges."""
    assert find_price("openai/gpt-4o", endpoint="http://127.0.0.1:8000") is None
    assert find_price("openai/gpt-4o", endpoint="https://api.openai.com") is not None


def test_inspect_models_cost_what_the_provider_asks():
    """`inspect/openai/x` is priced as `openai/x`, unless it goes elsewhere."""
    assert find_price("inspect/openai/gpt-4o", endpoint="inspect/openai") == find_price("openai/gpt-4o")
    assert find_price("inspect/openai/gpt-4o", endpoint="http://127.0.0.1:1") is None


@pytest.mark.parametrize("provider", [row.priced_as for row in PROVIDERS.values() if row.priced_as])
def test_every_row_names_a_provider_of_the_price_table(provider):
    """A mistyped id would silently make every price of that provider unknown."""
    from genai_prices.data_snapshot import get_snapshot

    assert provider in {known.id for known in get_snapshot().providers}


def test_cost_counts_cache_writes_reasoning_and_flex_at_their_own_price():
    """A million tokens each way: a quarter read, a half written, and half of the answer reasoning."""
    usage = Usage(input=1_000_000, output=1_000_000, cached=250_000, written=500_000, reasoning=500_000)
    price = Price(4.0, 20.0, cached=0.4, written=5.0, reasoning=8.0, flex=0.5)
    assert price.cost(usage) == pytest.approx(1.0 + 0.1 + 2.5 + 10.0 + 4.0)
    assert price.cost(usage, "flex") == pytest.approx(17.6 / 2)
    assert price.cost(usage, "priority") is None
    assert Price(4.0, 20.0).cost(usage) is None


@pytest.mark.parametrize("usage", [Usage(), Usage(input=3), Usage(output=3)])
def test_unknown_tokens_make_the_cost_unknown(usage):
    """A call that did not say what it used cost an unknown amount."""
    assert Price(1.0, 1.0).cost(usage) is None


@given(st.integers(0, 10**7), st.integers(0, 10**7), st.integers(0, 10**8))
def test_cost_is_never_negative(sent, written, cached):
    """Also when an endpoint claims more cached tokens than it was sent."""
    cost = Price(2.5, 10.0, 1.25).cost(Usage(input=sent, output=written, cached=cached))
    assert cost is not None
    assert cost >= 0


@pytest.mark.parametrize(
    ("text", "price"),
    [("2.5/10", Price(2.5, 10)), ("0/0", Price(0, 0)), ("$1/$2", Price(1, 2)), ("4/20/0.4/5", Price(4, 20, 0.4, 5))],
)
def test_a_price_can_be_given(text, price):
    """`IN/OUT`, with or without the dollar sign."""
    assert Price.parse(text) == price


@pytest.mark.parametrize("text", ["", "1", "1/2/3", "a/b", "-1/2", "nan/1", "inf/1"])
def test_what_is_no_price_is_refused(text):
    """The advice shows the form."""
    with pytest.raises(UsageError) as caught:
        Price.parse(text)
    assert "2.5/10" in (caught.value.advice or "")


def list_models_that_bill_writes():
    for provider in get_snapshot().providers:
        for model in provider.models:
            name = {"openai": f"openai/{model.id}", "openrouter": f"openrouter/{model.id}"}.get(provider.id, "")
            price = find_price(name) if name.startswith(("openai/", "openrouter/openai/")) else None
            if price is not None and price.written is not None:
                yield name


def test_every_model_of_openai_that_bills_cache_writes_is_known_to_do_so():
    """They are told from the others by their names before the table is looked at."""
    names = list(list_models_that_bill_writes())
    assert len(names) > 5
    assert not [name for name in names if not bills_cache_writes(name)]
    assert not bills_cache_writes("openai/mock")
