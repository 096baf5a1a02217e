"""A model behind a vLLM server: chat completions, and choices in one token.

`structured_outputs.choice` allows nothing but the options, and the log probabilities of the answer are those after that
mask: one token says how likely each option is. A version without it passes the field over: the first answer shows it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import msgspec

from unmask.errors import FatalModelError
from unmask.models.base import Capabilities
from unmask.models.http import Channel
from unmask.models.keys import Target
from unmask.models.openai import ChatChoice, OpenAI
from unmask.records import Choice, Completion, Request, Stop

TOP_LOGPROBS = 20
"""What vLLM gives at most unless it is started otherwise; no question here has as many options."""


class Vllm(OpenAI):
    """A model that is called as the judge that ships is taken for it: its weights with its adapter. Questions that it
    was not trained for go to the model below the adapter, if the server has it as an adapter."""

    def __init__(self, target: Target, *, timeout: float = 1800.0, max_n: int = 1, flex: bool = False) -> None:
        from unmask.models.local.catalogue import is_trained_judge

        super().__init__(target, timeout=timeout, max_n=max_n)
        self.capabilities = Capabilities(
            max_n=max_n,
            supports_options=True,
            trained_to_read=is_trained_judge(target.name),
            params=None,
            headers=True,
        )
        self._base: str | None = None
        """What is below the adapter, once it was looked for."""

    async def complete(self, request: Request) -> Completion:
        if self.capabilities.trained_to_read and not request.options and self._base is None:
            self._base = await self._find_base()
        return await super().complete(request)

    def _make_payload(self, request: Request) -> tuple[dict[str, Any], tuple[str, ...]]:
        payload, notes = super()._make_payload(request)
        if request.options:
            payload |= {
                "structured_outputs": {"choice": list(request.options)},
                "max_tokens": 1,
                "logprobs": True,
                "top_logprobs": TOP_LOGPROBS,
            }
        elif self.capabilities.trained_to_read:
            payload["model"] = self._base or self.served_name
        if request.options or request.schema is not None:
            # A constrained answer has no room for thoughts, unless the user says otherwise.
            asked = request.sampling.params.get("chat_template_kwargs", {})
            payload["chat_template_kwargs"] = {"enable_thinking": False, **asked}
        return payload, notes

    def _read_choice(self, option: ChatChoice, request: Request) -> Choice:
        choice = super()._read_choice(option, request)
        if not request.options:
            return choice
        shares = _read_shares(option.logprobs, request.options)
        begun = bool(choice.text) and any(option.startswith(choice.text) for option in request.options)
        if shares is None or not begun:
            raise FatalModelError(
                f"{self.name} at {self.target.shown} was asked for one of {', '.join(request.options)} and answered "
                f"{choice.text[:80]!r}, without probabilities of these",
                advice="Use vLLM 0.11 or newer, which honours structured_outputs.",
            )
        # One token may be only the beginning of an option.
        return msgspec.structs.replace(
            choice, text=max(shares, key=shares.__getitem__), stop=Stop.END, probabilities=shares
        )

    async def _find_base(self) -> str:
        url = self.target.url.replace("/chat/completions", "/models")
        channel = Channel(replace(self.target, url=url), timeout=60.0)
        try:
            answer = await channel.send("GET", None)
        finally:
            await channel.close()
        return _read_parent(answer.body, self.served_name) if answer.status == 200 else self.served_name


def _read_parent(body: bytes, model: str) -> str:
    """The model that an adapter changes, as `/v1/models` names it; the model itself where it is no adapter."""
    try:
        cards = msgspec.json.decode(body)["data"]
        return next((card["parent"] for card in cards if card["id"] == model and card.get("parent")), model)
    except (msgspec.DecodeError, LookupError, TypeError, AttributeError):
        return model


def _read_shares(logprobs: Any, options: tuple[str, ...]) -> dict[str, float] | None:
    """The probability of each option among the options."""
    from unmask.models.local.llamacpp import option_probabilities

    try:
        first = logprobs["content"][0]["top_logprobs"]
        return option_probabilities([token for token in first if token["logprob"] > -9000], options)
    except (LookupError, TypeError):
        return None
