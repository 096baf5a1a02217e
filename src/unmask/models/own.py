"""Models of the user's own: a function from messages to a text, or an object with the one method `complete`."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from functools import partial
from inspect import isawaitable
from typing import Any, Protocol

from unmask.errors import FatalModelError, ModelError, RequestRefusedError, UsageError
from unmask.models.base import Capabilities, Model
from unmask.models.daemon import DaemonPool
from unmask.models.providers import OWN_PREFIX
from unmask.records import Choice, Completion, Request

Answer = Callable[[list[dict[str, str]]], str | Awaitable[str]]
"""Gets the messages as dictionaries with `role` and `content`, gives the reply."""


class Completing(Protocol):
    """An object with one method. A text is as good as a Completion, and the method may be `async`."""

    def complete(self, request: Request) -> str | Completion | Awaitable[str | Completion]: ...


AnyModel = Model | Completing | Answer

MOST_WORDS = 300
"""Characters that are kept of what an exception says."""


def as_model(own: AnyModel) -> Model:
    """What the user passed, as a model. One that has all of the protocol is left as it is."""
    method: Any = getattr(own, "complete", None)
    if isinstance(own, type):
        raise UsageError(f"{own.__name__} is a class, not a model", advice=f"Pass an object: {own.__name__}()")
    if callable(method):
        meets_protocol = all(hasattr(own, name) for name in ("name", "endpoint", "close"))
        return own if meets_protocol else OwnModel(own, method)  # type: ignore[return-value]
    if not callable(own):
        raise UsageError(
            f"{type(own).__name__} is not a model",
            advice="Give a name such as openai/gpt-4o, a function from messages to a text, or an object with a method "
            "complete(request).",
        )
    function: Answer = own
    return OwnModel(own, lambda request: function([_to_plain(message) for message in request.messages]))


def _to_plain(message: Any) -> dict[str, str]:
    return {"role": message.role.value, "content": message.content}


class OwnModel:
    """Asks a function of the user's. One that is not `async` is called in a thread, one call at a time: it need not be
    safe to call twice at once."""

    def __init__(self, own: object, answer: Callable[[Request], Any]) -> None:
        self.name = name_of(own)
        self.endpoint = self.name
        self.capabilities: Capabilities = getattr(own, "capabilities", Capabilities())
        self._answer = answer
        self._pool = DaemonPool(1, name="unmask-own-model")

    async def complete(self, request: Request) -> Completion:
        begin = time.perf_counter()
        answer = await self._pool.run(lambda: self._call(request))
        if isawaitable(answer):
            with self._as_failed_request():
                answer = await answer
        if isinstance(answer, Completion):
            return answer
        if not isinstance(answer, str):
            raise FatalModelError(
                f"{self.name} returned {type(answer).__name__}, not a text",
                advice='Return a str; "" is an empty reply.',
            )
        return Completion((Choice(answer),), latency=time.perf_counter() - begin, model=self.name)

    async def close(self) -> None:
        self._pool.drop()

    def _call(self, request: Request) -> Any:
        with self._as_failed_request():
            return self._answer(request)

    @contextmanager
    def _as_failed_request(self) -> Iterator[None]:
        try:
            yield
        except ModelError:
            raise
        except Exception as error:
            words = " ".join(f"{type(error).__name__}: {error}".split())[:MOST_WORDS].rstrip(": ")
            raise RequestRefusedError(f"{self.name} raised {words}", may_be_all=True) from error


def name_of(own: Any) -> str:
    """A name itself, the attribute `name` where there is one, else that of the function or class."""
    if isinstance(own, str):
        return own
    if isinstance(name := getattr(own, "name", None), str) and name:
        return name
    while isinstance(own, partial):
        own = own.func
    qualified: str = getattr(own, "__qualname__", type(own).__qualname__)
    return OWN_PREFIX + qualified.rpartition("<locals>.")[2]
