"""What a call costs, from an offline table. A price that is not known is `None`, never zero."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from msgspec.structs import replace

from unmask.errors import UsageError
from unmask.models.providers import Provider, provider_of, row_of
from unmask.models.tiers import BATCH
from unmask.records import Record, Usage

_FREE = ("scripted", "embedded", "gguf", "hf")


class Price(Record, frozen=True):
    """US dollars per million tokens. `cached` is the price of input that the endpoint had in its cache, `written` of
    input that it has put there, `reasoning` that of output nobody sees, where they have one of their own."""

    input: float
    output: float
    cached: float | None = None
    written: float | None = None
    reasoning: float | None = None
    flex: float | None = None
    """The part of all these that the tier `flex` costs; `None` where nobody knows."""
    batch: float | None = None
    """The same for answers of a batch."""

    @property
    def free(self) -> bool:
        """Models inside this process: nobody sends a bill, whether or not they count their tokens."""
        return self.input == 0 and self.output == 0

    def cost(self, usage: Usage, tier: str | None = None) -> float | None:
        """Dollars for one call; `None` when the endpoint did not say how many tokens it used, or wrote some to a cache
        or answered at a tier whose price nobody knows. Reads from a cache whose price is not known
        count as input, which is dearer."""
        if self.free:
            return 0.0
        if usage.input is None or usage.output is None or (usage.written and self.written is None):
            return None
        factor = 1.0 if tier is None else {"flex": self.flex, BATCH: self.batch}.get(tier)
        if factor is None:
            return None
        written = min(usage.written or 0, usage.input)
        cached = min(usage.cached or 0, usage.input - written) if self.cached is not None else 0
        reasoning = min(usage.reasoning or 0, usage.output) if self.reasoning is not None else 0
        parts = (
            (usage.input - written - cached) * self.input,
            written * (self.written or 0.0),
            cached * (self.cached or 0.0),
            (usage.output - reasoning) * self.output,
            reasoning * (self.reasoning or 0.0),
        )
        return factor * sum(parts) / 1e6

    def bound(self, *, sent: int, answered: int) -> float:
        """Dollars that a call with so many tokens costs at most, whatever is done with them."""
        dearest_input = max(self.input, self.written or 0.0)
        return (sent * dearest_input + answered * max(self.output, self.reasoning or 0.0)) / 1e6

    @classmethod
    def parse(cls, text: str) -> Price:
        """`IN/OUT` or `IN/OUT/READ/WRITE`, dollars per million tokens, as in `2.5/10`: the last two are those of what
        is read from a cache and written to one."""
        parts = text.replace("$", "").split("/")
        try:
            numbers = [float(part) for part in parts]
        except ValueError:
            numbers = []
        if len(numbers) not in (2, 4) or not all(math.isfinite(number) and number >= 0 for number in numbers):
            raise UsageError(
                f"price {text!r} is not IN/OUT in dollars per million tokens",
                advice="Write it like 2.5/10, or with the prices of cache reads and writes: 2.5/10/0.25/3.1",
            )
        return cls(*numbers)


def find_price(name: str, *, endpoint: str | None = None) -> Price | None:
    """The price of a model by the name the user writes, or `None` when the table does not have it.

    With `endpoint` (`Model.endpoint`), a model served from anywhere but its provider's own host has no known price:
    what a proxy or a rented machine charges is not in any table. In-process models are free and say so.
    """
    provider = provider_of(name)
    if provider in _FREE:
        return Price(0.0, 0.0)
    if provider == "inspect":
        elsewhere = endpoint is not None and not endpoint.startswith("inspect/")
        return None if elsewhere else find_price(name.removeprefix("inspect/"))
    row = row_of(name)
    if row is None or row.priced_as is None or (endpoint is not None and not row.is_home(endpoint)):
        return None
    price = _look_up_price(row.priced_as, name.partition("/")[2])
    return None if price is None else _with_tiers(price, row)


def price_of(name: str, *, endpoint: str | None, text: str | None) -> Price | None:
    """The price that the user gives, else that of the table. Flex is the same part of both."""
    if not text:
        return find_price(name, endpoint=endpoint)
    row = row_of(name)
    return Price.parse(text) if row is None else _with_tiers(Price.parse(text), row)


def _with_tiers(price: Price, row: Provider) -> Price:
    return replace(price, flex=row.flex, batch=None if row.batch is None else row.batch.part)


def bills_cache_writes(name: str) -> bool:
    """Whether a model of OpenAI, served by whomever, asks more for prompts that it writes to its cache by itself. Those
    of others do so only where a request marks what to keep, and no request here does. All of these are called GPT: for
    a model of one's own behind `openai/` the table, which takes a fifth of a second to load, is not needed."""
    if not name.startswith(("openai/", "openrouter/openai/")) or "gpt" not in name.casefold():
        return False
    price = find_price(name)
    return price is not None and price.written is not None


@lru_cache(maxsize=256)
def _look_up_price(provider: str, model: str) -> Price | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, info = get_snapshot().find_provider_model(model, None, provider, None)
        prices = info.get_prices(datetime.now(tz=UTC))
    except LookupError:
        return None
    sent, answered = _dollars(prices.input_mtok), _dollars(prices.output_mtok)
    if sent is None or answered is None:
        return None
    return Price(
        sent,
        answered,
        cached=_dollars(prices.cache_read_mtok),
        written=_dollars(prices.cache_write_mtok),
        reasoning=_dollars(prices.output_reasoning_mtok),
    )


def _dollars(price: Any) -> float | None:
    """Tiered prices begin far above the length of any request we send, so their base is the price."""
    return None if price is None else float(getattr(price, "base", price))
