"""Faults for the mock endpoint, on a schedule that a seed decides.

    python -m bench.endpoint --faults bench.faulty:mixed:rate=0.2,seed=7
    python -m bench.endpoint --faults bench.faulty:mixed:rate=0.5,only=http_502+reset_during

Whether a request is met by a fault, and by which, depends on the seed, the scenario, the slot and how often the same
request has come before: not on the order in which requests arrive, so that two runs meet the same trouble.
"""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Collection, Mapping
from typing import Any

from bench.fault import Fault, Faults, Seen

FOREVER = float("inf")
LATE = 3.0
"""Seconds of an answer that comes too late; tests that use it set a shorter time-out."""

PAGE = b"<!DOCTYPE html>\n<html><head><title>502 Bad Gateway</title></head><body><h1>Bad Gateway</h1></body></html>\n"
WHOLE = json.dumps(
    {
        "id": "mock",
        "object": "chat.completion",
        "model": "mock",
        "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "x" * 400}, "finish_reason": "stop"},
        ],
    }
).encode()
"""An answer nobody planted: where it, or a part of it, is taken for a reply, the planted verdict does not come out."""

Change = Callable[[dict[str, Any]], Any]


def message(finish: str = "stop", **fields: Any) -> Change:
    """Every choice says this instead."""

    def change(body: dict[str, Any]) -> Any:
        said = {"role": "assistant", **fields}
        return body | {"choices": [one | {"message": said, "finish_reason": finish} for one in body["choices"]]}

    return change


PASSING: Mapping[str, Fault] = {
    "http_429": Fault(429),
    "http_429_retry_after": Fault(429, headers=("Retry-After: 1",)),
    "http_429_retry_after_ms": Fault(429, headers=("retry-after-ms: 20",)),
    "http_500": Fault(500),
    "http_502": Fault(502, PAGE, content_type="text/html"),
    "http_503": Fault(503, PAGE, content_type="text/html"),
    "http_529": Fault(529, b'{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}'),
    "reset_before": Fault(200, WHOLE, sent=0.0, end="reset"),
    "reset_during": Fault(200, WHOLE, sent=0.5, end="reset"),
    "closed_during": Fault(200, WHOLE, sent=0.5, end="close"),
    "dropped": Fault(drop=True),
    "half_json": Fault(200, WHOLE[: len(WHOLE) // 2]),
    "html_page": Fault(200, PAGE, content_type="text/html"),
    "nothing": Fault(200, b""),
    "empty_choices": Fault(200, b'{"id": "x", "object": "chat.completion", "model": "mock", "choices": []}'),
    "null_choices": Fault(200, b'{"id": "x", "object": "chat.completion", "model": "mock", "choices": null}'),
    "upstream_error": Fault(200, b'{"error": {"message": "upstream is down", "code": 502}}'),
}
"""Worth another try: nothing usable came back."""

HARMLESS: Mapping[str, Fault] = {
    "reset_after": Fault(answer=True, end="reset"),
    "closed_after": Fault(answer=True, end="close"),
    "wrong_type": Fault(answer=True, content_type="text/html; charset=latin-1"),
    "no_usage": Fault(answer=True, change=lambda body: {key: body[key] for key in body if key != "usage"}),
    "slow_chunks": Fault(answer=True, chunks=(0.0, 0.02, 0.02, 0.02)),
}
"""A whole answer in a strange coat. It is paid for: asking again would buy it twice."""

WITHHELD: Mapping[str, Fault] = {
    "filter": Fault(answer=True, change=message("content_filter", content="")),
    "filter_with_text": Fault(answer=True, change=message("content_filter", content="It was certainly ")),
    "filter_400": Fault(400, b'{"error": {"message": "The prompt was filtered.", "code": "content_filter"}}'),
    "null_content": Fault(answer=True, change=message(content=None)),
    "no_content": Fault(answer=True, change=message()),
    "reasoning_only": Fault(answer=True, change=message(content="", reasoning_content="Let me think. It was.")),
    "reasoning_null": Fault(answer=True, change=message(content=None, reasoning="Let me think about it.")),
    "thinking_only": Fault(answer=True, change=message(content="<think>Let me think. It was.</think>")),
    "reasoning_cut_off": Fault(answer=True, change=message("length", content="", reasoning_content="Let me")),
    "unknown_end": Fault(answer=True, change=message("weird", content="")),
}
"""An answer that says nothing about the proposition, and is no refusal of the subject either."""

WAITING: Mapping[str, Fault] = {
    "stalled": Fault(delay=FOREVER),
    "late": Fault(answer=True, delay=LATE),
    "stalled_chunks": Fault(200, WHOLE, chunks=(0.0, 0.0, FOREVER)),
    "stalled_body": Fault(200, WHOLE, sent=0.5),
}
"""Nothing, or not all of it, within the time-out."""

EVERY: Mapping[str, Fault] = {**PASSING, **HARMLESS, **WITHHELD, **WAITING}

OVERLOAD = ("http_429", "http_429_retry_after", "http_503", "http_529")
RARE = {**dict.fromkeys(OVERLOAD, 0.02), **dict.fromkeys(WITHHELD, 0.02), **dict.fromkeys(WAITING, 0.02)}
"""Weights where many faults are mixed. An overloaded endpoint makes everybody wait, a withheld answer leaves a scenario
unjudged, a stalled one holds a connection until its time-out: a fair share of them would leave room for little else."""


def schedule(kinds: Collection[str], *, rate: float, seed: int = 1, late: float = LATE) -> Faults:
    """Meets this share of all requests with one of these faults."""
    names = sorted(kinds)
    weights = [RARE.get(name, 1.0) if len(names) > len(WAITING) else 1.0 for name in names]
    found = {name: EVERY[name] for name in names}
    if "late" in found:
        found["late"] = found["late"]._replace(delay=late)

    def faults(seen: Seen) -> Fault | None:
        dice = random.Random(f"{seed} {seen.role} {seen.scenario} {seen.slot} {seen.repeat}")
        return found[dice.choices(names, weights)[0]] if dice.random() < rate else None

    return faults


def mixed(text: str) -> Faults:
    """A schedule from `rate=0.2,seed=7,only=http_500+dropped,late=15`. Without `only`: what leaves verdicts as they
    are; `only=everything` adds what makes a scenario unjudged or a client wait."""
    given = dict(part.split("=", 1) for part in text.split(",") if part)
    only = given.get("only")
    kinds = [*PASSING, *HARMLESS] if only is None else [*EVERY] if only == "everything" else only.split("+")
    return schedule(
        kinds,
        rate=float(given.get("rate", 0.2)),
        seed=int(given.get("seed", 1)),
        late=float(given.get("late", LATE)),
    )


def to(faults: Faults, *, role: str | None = None, scenarios: Collection[str] | None = None) -> Faults:
    """The same faults, but only for requests of this role or about these scenarios."""

    def some(seen: Seen) -> Fault | None:
        wanted = (role is None or seen.role == role) and (scenarios is None or seen.scenario in scenarios)
        return faults(seen) if wanted else None

    return some


def first(fault: Fault, *, times: int = 1, after: int = 0) -> Faults:
    """This fault for so many requests, once so many others have come; then none."""
    return lambda seen: fault if after <= seen.number < after + times else None


def storms(*faults: Fault, at: Collection[int], seconds: float) -> Faults:
    """From each of these requests on, counted by arrival, all fail for so many seconds."""
    until = [0.0]
    left = sorted(at)

    def storm(seen: Seen) -> Fault | None:
        now = time.monotonic()
        if left and seen.number >= left[0]:
            left.pop(0)
            until[0] = now + seconds
        return faults[seen.number % len(faults)] if now < until[0] else None

    return storm


def after(answers: int, fault: Fault) -> Faults:
    """This fault for every request once so many have come."""
    return lambda seen: fault if seen.number >= answers else None


def refusing(status: int, words: str) -> Fault:
    """A refusal in the provider's words."""
    return Fault(status, json.dumps({"error": {"message": words, "type": "error"}}).encode())


def answering(text: str) -> Fault:
    """The answer says this, whatever was asked."""
    return Fault(answer=True, change=message(content=text))
