"""What a call costs, from an offline table. A price that is not known is `None`, never zero."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any

from unmask.errors import UsageError
from unmask.models.providers import PROVIDERS, provider_of
from unmask.records import Record, Usage

_FREE = ("scripted", "embedded", "gguf", "hf")


class Price(Record, frozen=True):
    """US dollars per million tokens. `cached` is the price of input tokens the endpoint had in its cache."""

    input: float
    output: float
    cached: float | None = None

    @property
    def free(self) -> bool:
        """Models inside this process: nobody sends a bill, whether or not they count their tokens."""
        return self.input == 0 and self.output == 0

    def cost(self, usage: Usage) -> float | None:
        """Dollars for one call; `None` when the endpoint did not say how many tokens it used.

        Output tokens include the reasoning, input tokens the cached ones, as endpoints report them.
        """
        if self.free:
            return 0.0
        if usage.input is None or usage.output is None:
            return None
        cached = min(usage.cached or 0, usage.input) if self.cached is not None else 0
        fresh = usage.input - cached
        return (fresh * self.input + cached * (self.cached or 0.0) + usage.output * self.output) / 1e6

    @classmethod
    def parse(cls, text: str) -> Price:
        """`IN/OUT`, dollars per million tokens, as in `2.5/10`."""
        parts = text.replace("$", "").split("/")
        try:
            numbers = [float(part) for part in parts]
        except ValueError:
            numbers = []
        if len(numbers) != 2 or not all(math.isfinite(number) and number >= 0 for number in numbers):
            raise UsageError(
                f"price {text!r} is not IN/OUT in dollars per million tokens", advice="Write it like 2.5/10"
            )
        return cls(input=numbers[0], output=numbers[1])


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
    row = PROVIDERS.get(provider or "")
    if row is None or row.priced_as is None or (endpoint is not None and not row.is_home(endpoint)):
        return None
    return _look_up_price(row.priced_as, name.partition("/")[2])


@lru_cache(maxsize=256)
def _look_up_price(provider: str, model: str) -> Price | None:
    from genai_prices.data_snapshot import get_snapshot

    try:
        _, info = get_snapshot().find_provider_model(model, None, provider, None)
        prices = info.get_prices(datetime.now(tz=UTC))
    except LookupError:
        return None
    spent, written = _dollars(prices.input_mtok), _dollars(prices.output_mtok)
    if spent is None or written is None:
        return None
    return Price(spent, written, _dollars(prices.cache_read_mtok))


def _dollars(price: Any) -> float | None:
    """Tiered prices begin far above the length of any request we send, so their base is the price."""
    return None if price is None else float(getattr(price, "base", price))
