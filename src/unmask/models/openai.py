"""Chat completions, as OpenAI and everybody compatible with it serve them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, ClassVar

import msgspec

from unmask.errors import FatalModelError, ModelError, TransientModelError
from unmask.models.base import Capabilities
from unmask.models.failures import ProviderProblem, error_fields, exception_for, parse_problem
from unmask.models.http import Channel, HttpAnswer, bound_bytes, decode_answer
from unmask.models.keys import Target
from unmask.models.parameters import (
    MAX_COMPLETION_TOKENS,
    MAX_TOKENS,
    PROMPT_CACHE,
    REFUSABLE,
    Adjustments,
    refusable_parameters,
    refused_addition,
    refused_parameter,
)
from unmask.models.prices import bills_cache_writes
from unmask.models.tiers import FLEX, SERVICE_TIER, read_tier
from unmask.models.user_params import refusal_of
from unmask.records import Choice, Completion, Request, Stop, Usage

_REASONS_BY_ITSELF = re.compile(r"(?:openai/)?(?:o\d(?:$|-)|gpt-5(?!.*chat))")
"""Models of OpenAI known to refuse `temperature` and `max_tokens`: asking first would cost a call."""

_ABOUT_TIER = re.compile(r"service[ _]tier|\bflex\b", re.IGNORECASE)

STOPS = {
    "stop": Stop.END,
    "eos": Stop.END,
    "eos_token": Stop.END,
    "end_turn": Stop.END,
    "stop_sequence": Stop.END,
    "length": Stop.LENGTH,
    "max_tokens": Stop.LENGTH,
    "model_length": Stop.LENGTH,
    "model_context_window_exceeded": Stop.LENGTH,
    "content_filter": Stop.FILTER,
    "refusal": Stop.FILTER,
    "safety": Stop.FILTER,
}


class _ChatMessage(msgspec.Struct):
    content: Any = None
    reasoning_content: Any = None
    reasoning: Any = None
    refusal: Any = None


class ChatChoice(msgspec.Struct):
    message: _ChatMessage | None = None
    finish_reason: Any = None
    error: Any = None
    logprobs: Any = None


class _ChatBody(msgspec.Struct):
    """Only what is used, and strict only where nothing could be done with anything else."""

    choices: list[ChatChoice] | None = None
    usage: Any = None
    model: Any = None
    error: Any = None
    service_tier: Any = None
    timings: Any = None
    """Sent by llama.cpp's server, which counts the tokens of the first choice only."""


_DECODER = msgspec.json.Decoder(_ChatBody)


class ChatModel:
    """A model behind one URL. Remembers which parameters its endpoint refuses."""

    capabilities: Capabilities
    chat_path: ClassVar = "/chat/completions"
    """Below the base URL: where a request is posted to."""
    models_path: ClassVar = "/models"
    """Below the base URL: where `unmask doctor` asks for the list of models."""
    key_header: ClassVar = "Authorization"
    headers: ClassVar[Mapping[str, str]] = {}
    """What every request also carries."""
    refusable: ClassVar = REFUSABLE
    """What this API may refuse without refusing the request."""

    def __init__(self, target: Target, *, timeout: float = 1800.0, max_n: int = 1, flex: bool = False) -> None:
        self.name = target.name
        self.endpoint = target.endpoint
        self.target = target
        self.served_name = target.name.partition("/")[2]
        self.asks_flex = flex
        self._channel = Channel(target, timeout=timeout)
        self._adjustments = Adjustments()
        self._answered = False

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.target!r})"

    async def complete(self, request: Request) -> Completion:
        while True:
            payload, notes = self.prepare(request)
            tier = {SERVICE_TIER: FLEX} if self.asks_flex else {}
            most, headers = bound_bytes(request), request.sampling.headers
            answer = await self._channel.post(payload | tier, most=most, headers=headers)
            # Each round takes one parameter away for good, so there are only as many rounds as parameters.
            sent = frozenset[str]() if answer.is_success else refusable_parameters(payload)
            completion = self.interpret(answer, request, sent=sent, notes=notes)
            if completion is not None:
                return completion

    def prepare(self, request: Request) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The payload of a request without what the endpoint refuses, and what was changed about it."""
        wanted, fixed = self._make_payload(request)
        payload, notes = self._adjustments.apply(wanted)
        return payload, fixed + notes

    def interpret(
        self, answer: HttpAnswer, request: Request, *, sent: frozenset[str], notes: tuple[str, ...]
    ) -> Completion | None:
        """What an answer says; `None` where the request is to be prepared again, without what was refused. `sent` are
        the parameters that the endpoint may refuse."""
        if answer.is_success:
            completion = self._parse_answer(answer, request, notes=notes)
            self._answered = True
            return completion
        problem = parse_problem(answer.status, answer.body, answer.headers)
        sent &= self.refusable
        self._refuse_additions(problem, sent, request)
        name = refused_parameter(problem, sent)
        if name is None:
            if self.asks_flex:
                self._refuse_tier(problem)
            raise exception_for(problem, self.target, asked=request.sampling.max_tokens)
        self._drop_parameter(name)
        return None

    async def close(self) -> None:
        await self._channel.close()

    def _make_payload(self, request: Request) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The body of a request, and what cannot be sent as it was asked for."""
        raise NotImplementedError

    def _parse_answer(self, answer: HttpAnswer, request: Request, *, notes: tuple[str, ...]) -> Completion:
        raise NotImplementedError

    def _refuse_additions(self, problem: ProviderProblem, refusable: frozenset[str], request: Request) -> None:
        """Raises where the endpoint refuses a parameter or header of the user. A message that names one of ours first
        is about ours, which can be left out."""
        name = refused_addition(problem, request.sampling, answered=self._answered)
        if name is None or problem.param in refusable or refused_parameter(problem, refusable | {name}) in refusable:
            return
        raise refusal_of(name, request.sampling, str(exception_for(problem, self.target)))

    def _refuse_tier(self, problem: ProviderProblem) -> None:
        """Raises where the endpoint does not know the tier flex. One without room is asked again, as with any
        overload."""
        if problem.status in (400, 422) and (problem.param == SERVICE_TIER or _ABOUT_TIER.search(problem.message)):
            target = self.target
            raise FatalModelError(
                f"{target.name} at {target.shown} refuses the tier flex: {target.scrub(problem.message)}",
                advice="Leave the tier out: not every model has it",
            )

    def _drop_parameter(self, name: str) -> None:
        """The endpoint refuses this parameter: never send it again."""
        self._adjustments.learn(name)


class OpenAI(ChatModel):
    """A model behind `{base}/chat/completions`."""

    def __init__(self, target: Target, *, timeout: float = 1800.0, max_n: int = 1, flex: bool = False) -> None:
        super().__init__(target, timeout=timeout, flex=flex)
        self.capabilities = Capabilities(max_n=max_n, params=None, headers=True)
        # A prompt is sent once: writing it to a cache is billed, and nobody reads it there.
        self._unasked = {PROMPT_CACHE: {"mode": "explicit"}} if bills_cache_writes(target.name) else {}
        if target.name.startswith("openai/") and _REASONS_BY_ITSELF.match(self.served_name):
            refused = frozenset({"temperature", "top_p"})
            self._adjustments = Adjustments(dropped=refused, limit_name=MAX_COMPLETION_TOKENS)

    def _make_payload(self, request: Request) -> tuple[dict[str, Any], tuple[str, ...]]:
        n = min(request.n, self.capabilities.max_n)
        return _payload(request, model=self.served_name, n=n) | self._unasked, ()

    def _read_choice(self, option: ChatChoice, request: Request) -> Choice:
        return _parse_choice(option)

    def _drop_parameter(self, name: str) -> None:
        if name == "n":
            self._ask_one_at_a_time()
        else:
            super()._drop_parameter(name)

    def _ask_one_at_a_time(self) -> None:
        """The endpoint refuses `n`, or ignores it."""
        self.capabilities = msgspec.structs.replace(self.capabilities, max_n=1)

    def _parse_answer(self, answer: HttpAnswer, request: Request, *, notes: tuple[str, ...]) -> Completion:
        body = decode_answer(answer, _DECODER, self.target)
        options = body.choices
        if not options:
            raise self._explain_error(body.error, request)
        broken = next((option.error for option in options if option.error), None)
        if broken is not None or any(option.message is None for option in options):
            raise self._explain_error(broken, request)
        if len(options) < min(request.n, self.capabilities.max_n):
            self._ask_one_at_a_time()
        return Completion(
            choices=tuple([self._read_choice(option, request) for option in options[: request.n]]),
            usage=_usage(body.usage, counts_all=len(options) == 1 or body.timings is None),
            latency=answer.latency,
            model=body.model if isinstance(body.model, str) else None,
            adjusted=notes,
            tier=read_tier(body.service_tier),
        )

    def _explain_error(self, error: Any, request: Request) -> ModelError:
        """A 200 without an answer: OpenRouter reports upstream failures this way, with the status as `code`."""
        if error is None:
            return TransientModelError(f"{self.name} at {self.target.shown}: the answer holds no choices", paid=True)
        message, code, param = error_fields({"error": error})
        status = error.get("code") if isinstance(error, dict) else None
        if not isinstance(status, int) or not 400 <= status < 600:
            status = 500
        problem = ProviderProblem(status, message, code, param)
        self._refuse_additions(problem, frozenset(), request)
        return exception_for(problem, self.target)


def _payload(request: Request, *, model: str, n: int) -> dict[str, Any]:
    sampling = request.sampling
    payload: dict[str, Any] = {**sampling.params, "model": model, "messages": request.messages}
    settings = {
        "temperature": sampling.temperature,
        MAX_TOKENS: sampling.max_tokens,
        "top_p": sampling.top_p,
        "seed": sampling.seed,
        "n": n if n > 1 else None,
    }
    payload |= {name: value for name, value in settings.items() if value is not None}
    if request.schema is not None:
        shape = {"name": "answer", "strict": True, "schema": request.schema}
        payload["response_format"] = {"type": "json_schema", "json_schema": shape}
    return payload


def _parse_choice(option: ChatChoice) -> Choice:
    message = option.message or _ChatMessage()
    text, thoughts = split_content(message.content)
    if not text and isinstance(message.refusal, str):
        text = message.refusal
    reasoning = split_content(message.reasoning_content)[0] or split_content(message.reasoning)[0] or thoughts
    stop = stop_of(option.finish_reason)
    if message.content is None and not text and not reasoning and stop is Stop.END:
        stop = Stop.OTHER  # a model that says nothing says ""; null is an endpoint that lost what it said
    return Choice(text=text, reasoning=reasoning or None, stop=stop)


def stop_of(reason: Any) -> Stop:
    return STOPS.get(reason.lower(), Stop.OTHER) if isinstance(reason, str) else Stop.OTHER


def split_content(content: Any) -> tuple[str, str]:
    """Answer and reasoning of a message's content, which may be a string, a list of parts, or nothing."""
    if isinstance(content, str):
        return content, ""
    answer, reasoning = [], []
    for part in content if isinstance(content, list) else ():
        if isinstance(part, str):
            answer.append(part)
        elif isinstance(part, dict):
            if isinstance(text := part.get("text"), str):
                answer.append(text)
            if thinking := part.get("thinking"):
                reasoning.append(split_content(thinking)[0])
            if isinstance(refusal := part.get("refusal"), str):
                answer.append(refusal)
    return "".join(answer), "".join(reasoning)


def token_count(counts: Any, *path: str) -> int | None:
    """A token count somewhere in a stranger's object; `None` where there is no whole number."""
    for name in path:
        counts = counts.get(name) if isinstance(counts, dict) else None
    if isinstance(counts, float) and counts.is_integer():
        counts = int(counts)
    return counts if isinstance(counts, int) and not isinstance(counts, bool) and 0 <= counts < 2**53 else None


def _usage(counts: Any, *, counts_all: bool) -> Usage:
    """Some endpoints (xAI, Gemini) leave the reasoning out of `completion_tokens`, and only their total has it. Unless
    the endpoint `counts_all` choices, nobody knows how much was written."""
    cached = token_count(counts, "prompt_tokens_details", "cached_tokens")
    sent, output = token_count(counts, "prompt_tokens"), token_count(counts, "completion_tokens")
    reasoning = token_count(counts, "completion_tokens_details", "reasoning_tokens")
    total = token_count(counts, "total_tokens")
    if sent is not None and output is not None and total is not None and total > sent + output:
        reasoning, output = reasoning or total - sent - output, total - sent
    return Usage(
        input=sent,
        output=output if counts_all else None,
        reasoning=reasoning,
        cached=token_count(counts, "prompt_cache_hit_tokens") if cached is None else cached,
        written=token_count(counts, "prompt_tokens_details", "cache_write_tokens") or None,
    )
