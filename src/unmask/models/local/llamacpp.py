"""llama.cpp's server engine, by way of xllamacpp: starting it, asking it, and putting its stream together.

What it does by default and must not do here is turned off in `engine_parameters` and `body_of`, each with the reason.
"""

from __future__ import annotations

import json
import math
import secrets
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from unmask.errors import MissingError, RequestRefusedError, TransientModelError
from unmask.models.local.openmp import load_bundled_openmp
from unmask.records import Choice, Completion, Record, Request, Stop, Usage
from unmask.whitebox.chat import list_spellings
from unmask.whitebox.load import waiting_without_spinning

OPTION_TOKENS = 16
"""Room for one option word; a grammar ends the answer before that."""
TOP_TOKENS = 500
"""How many first tokens are looked at for the probability of an option. One rarer than these counts as 0."""
BATCH = 64
"""Tokens of prompts that are worked through at a time. The engine hears between two batches that it should stop."""


PARAMS = (
    "chat_template_kwargs",
    "frequency_penalty",
    "min_p",
    "presence_penalty",
    "repeat_last_n",
    "repeat_penalty",
    "top_k",
    "typical_p",
)
"""What else the engine takes, as its server names it, and refuses where the value has the wrong type."""


class Setup(Record, frozen=True, kw_only=True):
    """How a model is run. `context` is per slot, in tokens, and never more than the model was trained for.

    On two cores SmolLM2 135M wrote 26, 32 and 30 replies a minute with 1, 4 and 8 slots, in 267, 556 and 945 MB. 4,096
    tokens hold every scenario of the bundled sets and an answer of 1,000.
    """

    threads: int
    slots: int = 4
    context: int = 4096


def is_installed() -> bool:
    from importlib.util import find_spec

    return find_spec("xllamacpp") is not None


def engine() -> ModuleType:
    """Imports xllamacpp, which loads OpenMP."""
    try:
        with waiting_without_spinning():
            return _import_engine()
    except ModuleNotFoundError:
        raise MissingError("embedded models need xllamacpp", advice="pip install 'unmask[embedded]'") from None
    except ImportError as error:  # installed, but without a library of the system
        raise MissingError(
            f"xllamacpp cannot be loaded: {error}", advice="On Debian and Ubuntu: apt-get install libgomp1"
        ) from None


def _import_engine() -> ModuleType:
    try:
        return import_module("xllamacpp")
    except ImportError as error:
        if "libgomp" not in str(error) or not load_bundled_openmp():
            raise
        return import_module("xllamacpp")


def engine_parameters(path: Path, setup: Setup, *, adapter: Path | None = None) -> Any:
    params = engine().CommonParams()
    params.model.path = str(path)
    if adapter is not None:
        params.lora_adapters = [engine().CommonAdapterLoraInfo(str(adapter), 1.0)]
    params.n_parallel = setup.slots
    params.n_ctx = setup.context * setup.slots
    for threads in (params.cpuparams, params.cpuparams_batch):
        threads.n_threads = setup.threads
        threads.poll = 0  # builds without OpenMP spin on this one instead
    params.n_batch = BATCH
    params.verbosity = -1
    params.warmup = False
    params.cache_ram_mib = 0  # by default up to 8 GB of old prompts are kept
    # The engine also listens on a loopback port. Nobody else is to use it.
    params.api_keys = [secrets.token_hex(32)]
    params.cors_origins = "null"
    params.ui = False
    params.endpoint_slots = False
    return params


def body_of(request: Request) -> dict[str, Any]:
    """The request as the engine takes it.

    By default it samples with top-k 40, top-p 0.95 and min-p 0.05; only with all three off is temperature 1 the
    model's own distribution. The answer is streamed because only the stream counts the tokens of every choice.
    """
    sampling = request.sampling
    body: dict[str, Any] = {
        "messages": [{"role": message.role, "content": message.content} for message in request.messages],
        "n": request.n,
        "top_k": 0,
        "top_p": 1.0 if sampling.top_p is None else sampling.top_p,
        "min_p": 0.0,
        "stream": True,
        "stream_options": {"include_usage": True},
        "return_progress": True,  # a piece after every batch of the prompt: only a piece can tell the engine to stop
    }
    settings = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens, "seed": sampling.seed}
    body |= {key: value for key, value in settings.items() if value is not None} | sampling.params
    if request.schema is not None:
        body["json_schema"] = request.schema
    if request.options:
        words = [word for option in request.options for word in list_spellings(option, request.options)]
        grammar = "root ::= " + " | ".join(json.dumps(word, ensure_ascii=False) for word in words)
        body |= {"grammar": grammar, "max_tokens": OPTION_TOKENS, "logprobs": True, "top_logprobs": TOP_TOKENS}
    if request.schema is not None or request.options:
        # A constrained answer has no room for thoughts, unless the user says otherwise.
        body["chat_template_kwargs"] = {"enable_thinking": False} | sampling.params.get("chat_template_kwargs", {})
    return body


def without_adapter(body: dict[str, Any]) -> dict[str, Any]:
    """The same request, to be answered as if the engine had no adapter."""
    return body | {"lora": [{"id": 0, "scale": 0.0}]}


class StreamedAnswer:
    """Collects the stream of one request. `take` is called by the engine for every piece."""

    def __init__(self, request: Request, *, ended: Callable[[], bool]) -> None:
        self.options = request.options
        self.ended = ended
        self.error: dict[str, Any] | None = None
        self._choices = [_PartialChoice() for _ in range(request.n)]
        self._usages: list[dict[str, Any]] = []

    def take(self, piece: dict[str, Any]) -> bool:
        """Returns whether the engine should stop."""
        if "error" in piece:
            self.error = piece["error"]
            return True
        for part in piece.get("choices", ()):
            self._choices[part["index"]].add(part)
        if piece.get("usage"):
            self._usages.append(piece["usage"])
        return self.ended()

    def build_completion(self, *, model: str, latency: float) -> Completion:
        """The prompt is worked through once, whatever `n`; what was written counts for every choice."""
        usage = Usage()
        if len(self._usages) == len(self._choices):
            cached = [counts.get("prompt_tokens_details", {}).get("cached_tokens") for counts in self._usages]
            usage = Usage(
                input=self._usages[0]["prompt_tokens"],
                output=sum(counts["completion_tokens"] for counts in self._usages),
                cached=min((tokens for tokens in cached if tokens is not None), default=None),
            )
        choices = tuple(choice.build_choice(self.options) for choice in self._choices)
        return Completion(choices=choices, usage=usage, model=model, latency=latency)


class _PartialChoice:
    def __init__(self) -> None:
        self.text: list[str] = []
        self.reasoning: list[str] = []
        self.reason: str | None = None
        self.first: list[dict[str, Any]] | None = None

    def add(self, part: dict[str, Any]) -> None:
        delta = part.get("delta", {})
        self.text.append(delta.get("content") or "")
        self.reasoning.append(delta.get("reasoning_content") or "")
        self.reason = part.get("finish_reason") or self.reason
        tokens = (part.get("logprobs") or {}).get("content")
        if tokens and self.first is None:
            self.first = tokens[0].get("top_logprobs") or []

    def build_choice(self, options: tuple[str, ...]) -> Choice:
        text = "".join(self.text)
        if options:
            text = next((option for option in options if text in list_spellings(option, options)), text)
        return Choice(
            text=text,
            reasoning="".join(self.reasoning) or None,
            stop={"stop": Stop.END, "length": Stop.LENGTH}.get(self.reason or "", Stop.OTHER),
            probabilities=option_probabilities(self.first or [], options) if options else None,
        )


def option_probabilities(first: list[dict[str, Any]], options: tuple[str, ...]) -> dict[str, float] | None:
    """The probability of each option among the options, from the likeliest first tokens of an answer.

    A token counts for an option if it begins one of its spellings and those of no other option. `None` if no option
    has such a token.
    """
    weights = dict.fromkeys(options, 0.0)
    for token in first:
        text = str(token["token"]).lstrip()
        owners = [
            option for option in options if text and any(w.startswith(text) for w in list_spellings(option, options))
        ]
        if len(owners) == 1:
            weights[owners[0]] += math.exp(token["logprob"])
    total = sum(weights.values())
    return {option: weight / total for option, weight in weights.items()} if total > 0 else None


def as_model_error(error: dict[str, Any], *, name: str) -> RequestRefusedError | TransientModelError:
    """An error of the engine as one of ours."""
    if error.get("type") == "exceed_context_size_error":
        needs, holds = error.get("n_prompt_tokens"), error.get("n_ctx")
        return RequestRefusedError(
            f"{name}: the request has {needs} tokens, the context of a slot holds {holds}",
            advice="UNMASK_EMBEDDED_CONTEXT=8192 makes slots larger, if the model was trained for it",
        )
    message = f"{name}: {error.get('message', error)}"
    refused = 400 <= int(error.get("code", 500)) < 500
    return RequestRefusedError(message) if refused else TransientModelError(message)
