"""What an HTTP answer that is no answer means: stop, try again, or give up this one request."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from unmask.errors import FatalModelError, ModelError, RequestRefusedError, TransientModelError
from unmask.models.keys import Target
from unmask.records import Record
from unmask.text import replace_surrogates_in_tree

FOREVER = 86_400.0
"""Seconds: nobody is made to wait for longer than a day, nor for ever."""
LONGEST = 1 << 20
"""Bytes of an error page that are looked at."""
THROTTLED = frozenset({429, 498, 503, 529})
TRY_AGAIN = frozenset({408, 409, 425, *THROTTLED})

_UNKNOWN_MODEL = re.compile(
    r"model_not_found|not a valid model|(?:invalid|unknown|unsupported) model\b|no such model"
    r"|\bmodels?\b.{0,120}?(?:\bnot found\b|(?:do|does|did)(?: not|n't) exist|\bnot exist\b)",
    re.IGNORECASE | re.DOTALL,
)
_NO_MONEY = re.compile(
    r"insufficient_quota|insufficient (?:balance|credits?|funds)|billing_hard_limit|credit balance is too low"
    r"|requires more credits|budget.{0,20}exceeded|exceeded ?budget|crossed budget",
    re.IGNORECASE,
)
_LOCKED = r"(?<![a-z])(?:suspended|terminated|deactivated|disabled|blocked|banned|revoked)(?![a-z])"
_LOCKED_OUT = re.compile(
    rf"(?<![a-z])(?:account|organi[sz]ation|key|ip)(?![a-z])[^!?\n]{{0,60}}?{_LOCKED}"
    r"|(?<![a-z])(?:account|organi[sz]ation)(?![a-z])[^.!?\n]{0,30}?(?<![a-z])flagged"
    r"|(?<![a-z])access(?: to (?:the|this|our) (?:api|service|platform))?[ _](?:(?:is|was|has been) )?" + _LOCKED,
    re.IGNORECASE,
)
"""Looked for where access is refused (401, 403). Why an account is locked is often said in the words of a filter."""
_FILTERED = re.compile(
    r"content_filter|content[ _-](?:management )?policy|content_policy_violation|responsibleai|prohibited_content"
    r"|flagged|moderation|safety (?:filter|system|settings)|usage (?:guidelines|policies)|data_inspection_failed"
    r"|content exists risk",
    re.IGNORECASE,
)
TOO_LONG = re.compile(
    r"context[ _](?:length|window|size)|maximum (?:context|input|prompt)|too many tokens|prompt is too long"
    r"|input (?:is too long|token count|length)|longer than the (?:maximum|model)|reduce the length",
    re.IGNORECASE,
)
_WAIT = re.compile(
    r"(?:retry|try again)\s+(?:after|in)\s+(?:(\d{1,6})m)?(\d{1,9}(?:\.\d{1,9})?)\s*(ms|s)\b", re.IGNORECASE
)


class ProviderProblem(Record, frozen=True):
    """What a provider said went wrong, whatever shape it said it in. Not yet scrubbed."""

    status: int
    message: str = ""
    code: str = ""
    param: str = ""
    retry_after: float | None = None

    @property
    def words(self) -> str:
        return f"{self.code} {self.message}"

    @property
    def out_of_money(self) -> bool:
        """Credit or a budget is spent."""
        refused = self.status in (400, 403, 404, 422, 429) and bool(_NO_MONEY.search(self.words))
        return refused or self.status == 402

    @property
    def locked_out(self) -> bool:
        """Account, organisation, key or address are suspended, whatever for."""
        return self.status in (401, 403) and bool(_LOCKED_OUT.search(self.words))

    @property
    def refuses_key(self) -> bool:
        """LiteLLM's proxy without a database answers 400 `no_db_connection` to every key but its own."""
        return self.status in (401, 403, 407) or (self.status == 400 and "no_db_connection" in self.code)

    @property
    def filtered(self) -> bool:
        """The provider would not look at this prompt."""
        concerns_all = self.out_of_money or self.locked_out or self.too_long
        return self.status in (400, 403, 422, 451) and bool(_FILTERED.search(self.words)) and not concerns_all

    @property
    def too_long(self) -> bool:
        return self.status in (413, 414) or bool(TOO_LONG.search(self.words))

    @property
    def unexplained(self) -> bool:
        """The request is refused, and neither its length nor a filter nor money is the reason."""
        return self.status in (400, 422) and not (
            self.too_long or self.filtered or self.out_of_money or self.refuses_key
        )


def parse_problem(status: int, body: bytes, headers: Mapping[str, str]) -> ProviderProblem:
    """Reads the error shapes of OpenAI, Anthropic, Google, FastAPI servers, or plain text."""
    import json

    text = body[:LONGEST].decode("utf-8", "replace")
    try:
        content = replace_surrogates_in_tree(json.loads(text))
    except (ValueError, RecursionError):
        content = None
    message, code, param = error_fields(content)
    if not message:
        message = "an HTML page" if looks_like_html(body) else text.strip()
    wait = retry_after(headers)
    if wait is None and (match := _WAIT.search(message)):
        minutes, number, unit = match.groups()
        wait = int(minutes or 0) * 60 + float(number) / (1000 if unit.lower() == "ms" else 1)
    return ProviderProblem(status, message, code, param, wait)


def looks_like_html(body: bytes) -> bool:
    return body.lstrip()[:14].lower().startswith((b"<!doctype", b"<html", b"<head", b"<body"))


def error_fields(content: Any) -> tuple[str, str, str]:
    """Message, code and parameter of an error object, empty where it has none."""
    if isinstance(content, list) and content:
        content = content[0]
    if not isinstance(content, dict):
        return (content if isinstance(content, str) else ""), "", ""
    inner = content.get("error") or content.get("detail") or content.get("errors") or content
    if isinstance(inner, list):
        return "; ".join(_format_detail(item) for item in inner[:4]), "", ""
    if not isinstance(inner, dict):
        return str(inner), "", ""
    message = inner.get("message") or inner.get("msg") or inner.get("error") or ""
    if not message and inner is not content:
        message = content.get("message") or ""
    # OpenRouter keeps what the upstream provider said one level down, and it is the part that helps.
    metadata = inner.get("metadata")
    raw = metadata.get("raw") if isinstance(metadata, dict) else None
    code = " ".join(str(inner[name]) for name in ("code", "type", "status") if isinstance(inner.get(name), str))
    param = inner.get("param")
    return f"{message}: {raw}" if raw else str(message), code, param if isinstance(param, str) else ""


def _format_detail(item: Any) -> str:
    """FastAPI lists one object per bad field: where it is, and what is wrong with it."""
    if not isinstance(item, dict):
        return str(item)
    where = item.get("loc")
    place = ".".join(str(part) for part in where) if isinstance(where, list) else ""
    return f"{place}: {item.get('msg') or item.get('message') or item.get('type') or ''}"


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds a server asks us to wait: `retry-after-ms`, or `Retry-After` as seconds or as a date."""
    for name, scale in (("retry-after-ms", 1000.0), ("retry-after", 1.0)):
        written = headers.get(name)
        if written is None:
            continue
        try:
            seconds = float(written) / scale
        except ValueError:
            seconds = _seconds_until(written, now=headers.get("date"))
        # The comparison is false for nan, so an unusable figure is no figure.
        if seconds >= 0:
            return min(seconds, FOREVER)
    return None


def _seconds_until(written: str, *, now: str | None) -> float:
    """Seconds until an HTTP date, by the server's own clock where it shows one, so that ours may be wrong."""
    from email.utils import parsedate_to_datetime

    try:
        start = parsedate_to_datetime(now) if now else datetime.now(UTC)
        return max(0.0, (parsedate_to_datetime(written) - start).total_seconds())
    except (ValueError, OverflowError, TypeError):
        return float("nan")


_ROOM = re.compile(r"max_(?:completion_|new_|output_)?tokens|(?:completion|output) tokens", re.IGNORECASE)
_CONTEXT = re.compile(r"context[ _](?:length|window|size)\D{0,20}(\d+)", re.IGNORECASE)
_PROMPT = re.compile(
    r"(\d+) (?:tokens )?(?:in (?:the|your) (?:messages|prompt|input)|(?:input|prompt) tokens)"
    r"|(?:input|prompt|messages) (?:has|have|is|of) (\d+)|(\d+) `?inputs?\b",
    re.IGNORECASE,
)
_SUM = re.compile(r"(\d+) \+ (\d+) > (\d+)")
_NUMBER = re.compile(r"(?<![\w.-])\d+(?![\w-])")


def find_most_tokens(problem: ProviderProblem, asked: int | None) -> int | None:
    """The limit of a reply that an endpoint names where it refuses the one `asked` for: of the model, or what the
    prompt leaves of the context. Half of it where the refusal is about it without a number; `None` where the prompt
    alone is too long, or something else is refused."""
    if asked is None or problem.status not in (400, 422):
        return None
    words = re.sub(r"(?<=\d),(?=\d{3})", "", problem.message)
    if both := _SUM.search(words):
        left = int(both[3]) - int(both[1])
        return left if 0 < left < asked else None
    context, prompt = _CONTEXT.search(words), _PROMPT.search(words)
    if context is not None and prompt is not None:
        left = int(context[1]) - int(next(filter(None, prompt.groups())))
        return left if 0 < left < asked else None
    if not (_ROOM.search(problem.words) or _ROOM.fullmatch(problem.param)):
        return None
    return max((number for number in map(int, _NUMBER.findall(words)) if 1 < number < asked), default=asked // 2)


def exception_for(problem: ProviderProblem, target: Target, *, asked: int | None = None) -> ModelError:
    """The exception for a status that is not 200, after the parameters have been looked at. `asked` is how many tokens
    the reply might have had."""
    message = target.scrub(problem.message)
    what = f"{target.name} at {target.shown}: HTTP {problem.status}" + (f": {message}" if message else "")
    status = problem.status
    account = f"The account behind {f'the key from {target.key_source}' if target.key_source else target.endpoint}"
    if problem.out_of_money:
        return FatalModelError(what, advice=f"{account} has no credit or budget left; top it up")
    if problem.locked_out:
        advice = f"{account} is locked. Settle that with the provider, then run the same command again: it continues"
        return FatalModelError(what, advice=advice)
    if problem.filtered:
        return RequestRefusedError(what, may_be_all=True)
    if problem.refuses_key:
        if target.key_source is None:
            wanted = " or ".join(dict.fromkeys(reversed(target.variables)))
            return FatalModelError(what, advice=f"no key was sent; set {wanted}")
        advice = f"the key came from {target.key_source}; check that it is right for {target.endpoint}"
        return FatalModelError(what, advice=advice)
    if status in (404, 405, 410) or (status in (400, 422) and _UNKNOWN_MODEL.search(problem.words)):
        model = target.name.partition("/")[2]
        advice = f"check that {target.endpoint} serves {model!r} and that {target.shown} is its path"
        return FatalModelError(what, advice=f"{advice}; most base URLs end in /v1")
    if 300 <= status < 400:
        advice = f"The server redirects; give the base URL it really serves, not {target.shown}"
        return FatalModelError(what, advice=advice)
    if status in TRY_AGAIN or status >= 500 or status < 300:
        return TransientModelError(
            what,
            retry_after=problem.retry_after,
            throttled=status in THROTTLED,
            starting=status == 503,
        )
    shorter = "Make the request shorter" if problem.too_long else None
    return RequestRefusedError(
        what,
        may_be_all=not problem.too_long,
        most_tokens=find_most_tokens(problem, asked),
        advice=shorter,
    )
