"""Parameters an endpoint refuses: dropped or renamed once, remembered, and told with every answer they touch."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from unmask.models.failures import ProviderProblem
from unmask.records import Message, Role, Sampling

MAX_TOKENS = "max_tokens"
MAX_COMPLETION_TOKENS = "max_completion_tokens"
RESPONSE_FORMAT = "response_format"
SYSTEM = "system"
PROMPT_CACHE = "prompt_cache_options"
"""What asks an endpoint not to write prompts to its cache. Nobody has asked for it: it is dropped without a note."""

_UNSUPPORTED = re.compile(
    r"unsupported|not supported|n[o']t support|unrecogni[sz]ed|unknown|unexpected|not permitted|not allowed|extra[_ ]"
    r"|forbidden|cannot (?:both )?be|can't be|only the default|may only be|not available|unavailable|deprecated"
    r"|not accept|not enabled|not a valid|invalid parameter|incompatible|instead\b",
    re.IGNORECASE,
)
_SCHEMA = re.compile(r"response_?format|response_?schema|json_?schema", re.IGNORECASE)
_ONE_ONLY = re.compile(r"""(?:['"`]n['"`]|\bn\b)\W.{0,40}\b(?:at most|equal to|less than|must be|only)\b.{0,20}\b1\b""")
_SYSTEM = re.compile(
    r"system (?:role|message|prompt|instruction)s?\b.{0,40}(?:not|n't)\b|(?:not|n't)\b.{0,40}[`'\"]?system['`\"]?"
    r"|developer instruction is not enabled",
    re.IGNORECASE | re.DOTALL,
)


def refused_parameter(problem: ProviderProblem, sent: frozenset[str]) -> str | None:
    """Which of the parameters we sent this endpoint will not take; `None` if it complains about something else.

    A prompt that is too long often names `max_tokens` too: that is this request's trouble, not the parameter's.
    """
    if problem.status not in (400, 422) or problem.too_long:
        return None
    words = problem.words
    if RESPONSE_FORMAT in sent and (_SCHEMA.search(words) or problem.param.startswith(RESPONSE_FORMAT)):
        return RESPONSE_FORMAT
    if "n" in sent and (_ONE_ONLY.search(words) or (problem.param == "n" and _UNSUPPORTED.search(words))):
        return "n"
    if not _UNSUPPORTED.search(words):
        return None
    if problem.param in sent:
        return problem.param
    if SYSTEM in sent and _SYSTEM.search(words) and (not problem.param or problem.param.startswith("messages")):
        return SYSTEM
    # "temperature and top_p cannot both be specified": the one we can better do without is the other.
    if {name for name in sent if _mention_pattern(name).search(problem.message)} == {"temperature", "top_p"}:
        return "top_p"
    return find_mentioned(problem, sent)


def find_mentioned(problem: ProviderProblem, names: Iterable[str]) -> str | None:
    """The name that the message has first."""
    mentions = [
        (mention.start(), name) for name in names if (mention := _mention_pattern(name).search(problem.message))
    ]
    return min(mentions)[1] if mentions else None


def _mention_pattern(name: str) -> re.Pattern[str]:
    """A one-letter name counts only where it is set off as a name."""
    return re.compile(r"""['"`.]n['"`:]|\bn:|: ?n\W*$""" if name == "n" else rf"(?<![\w-]){re.escape(name)}(?![\w-])")


def refused_addition(problem: ProviderProblem, sampling: Sampling, *, answered: bool) -> str | None:
    """Which addition of the user this endpoint refuses. Once it has `answered` a request with all of them, a word in a
    message is no sign any more; a field that names one still is."""
    if not problem.unexplained:
        return None
    names = {*sampling.params, *sampling.headers}
    if (field := re.split(r"[.\[]", problem.param)[0]) in names:
        return field
    return None if answered else find_mentioned(problem, names)


class Adjustments:
    """What one endpoint has taught us about the parameters of one model. Grows, never shrinks."""

    def __init__(self, *, dropped: frozenset[str] = frozenset(), limit_name: str = MAX_TOKENS) -> None:
        self.dropped = dropped
        self.limit_name = limit_name
        self._limit_names_refused: set[str] = set()
        self._notes: dict[str, str] = {name: f"{name}: not sent" for name in dropped}
        if limit_name != MAX_TOKENS:
            self._notes[MAX_TOKENS] = f"{MAX_TOKENS}: sent as {limit_name}"

    def learn(self, name: str) -> None:
        """Never send `name` again; the token limit changes its name first and is dropped only if both are refused."""
        if name in (MAX_TOKENS, MAX_COMPLETION_TOKENS):
            self._limit_names_refused.add(name)
            alternative = MAX_COMPLETION_TOKENS if name == MAX_TOKENS else MAX_TOKENS
            if alternative in self._limit_names_refused:
                self.dropped |= {MAX_TOKENS}
                self._notes[MAX_TOKENS] = f"{MAX_TOKENS}: refused, not sent"
            else:
                self.limit_name = alternative
                self._notes[MAX_TOKENS] = f"{MAX_TOKENS}: sent as {alternative}"
            return
        self.dropped |= {name}
        if name == PROMPT_CACHE:
            return
        sent = "refused, sent inside the first user message" if name == SYSTEM else "refused, not sent"
        self._notes[name] = f"{name}: {sent}"

    def apply(self, payload: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
        """The payload this endpoint takes, and what was changed about it."""
        if not self._notes and not self.dropped:
            return payload, ()
        notes = []
        changed: dict[str, Any] = {}
        for name, value in payload.items():
            if name in self._notes:
                notes.append(self._notes[name])
            if name not in self.dropped:
                changed[self.limit_name if name == MAX_TOKENS else name] = value
        if SYSTEM in self.dropped and any(message.role == SYSTEM for message in payload["messages"]):
            changed["messages"] = without_system(payload["messages"])
            notes.append(self._notes[SYSTEM])
        return changed, tuple(notes)


def without_system(messages: tuple[Message, ...]) -> tuple[Message, ...]:
    """The same conversation for a model whose template has no system role."""
    system = "\n\n".join(message.content for message in messages if message.role == SYSTEM)
    turns = [message for message in messages if message.role != SYSTEM]
    for at, message in enumerate(turns):
        if message.role == "user":
            turns[at] = Message(Role.USER, f"{system}\n\n{message.content}")
            return tuple(turns)
    return (Message(Role.USER, system), *turns)


_OPTIONAL = frozenset(
    {"temperature", "top_p", "seed", "n", RESPONSE_FORMAT, MAX_TOKENS, MAX_COMPLETION_TOKENS, PROMPT_CACHE}
)
REFUSABLE = _OPTIONAL | {SYSTEM}
"""Everything that an endpoint may refuse without refusing a request."""


def refusable_parameters(payload: dict[str, Any]) -> frozenset[str]:
    """The names in a payload that an endpoint may refuse without refusing the request."""
    names = set(payload.keys() & _OPTIONAL)
    if any(message.role == SYSTEM for message in payload["messages"]):
        names.add(SYSTEM)
    return frozenset(names)
