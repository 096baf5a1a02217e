"""What a judge wrote, as readings: letters and bounds, asked for at most twice. Pure, and worked out at each look: a
change of the parser needs no call.

A letter is the last line, alone: `Answer: B`, in whatever emphasis or brackets. Bounds are one JSON object and nothing
else. What is not as asked for is no answer: the judge is asked once more. Whatever a judge quotes from the reply can so
at worst make its answer unreadable; it cannot become the answer.
"""

from __future__ import annotations

import json
import math
import re
import unicodedata
from collections.abc import Iterator, Sequence
from typing import Any

from unmask.records import (
    Choice,
    Interval,
    Judged,
    Letter,
    Lettered,
    Method,
    Pending,
    Ranged,
    ReadBy,
    Reading,
    Stop,
    Unread,
)

ATTEMPTS = 2
"""How often a question is asked, and the subject is, before the answer stays unread."""
IN_WORDS = frozenset(Method) - {Method.PICK_AB, Method.PICK_BA}
"""The questions that are answered in words, which may hold no answer. Every other question is settled by its first
answer."""
_EXCERPT = 200


def read_answers(calls: Sequence[Judged], *, method: Method) -> Reading:
    """What the lines about one question, in file order, say. Lines of other methods are passed over."""
    calls = [call for call in calls if call.method is method]
    if not calls:
        return Pending()
    answer = _last_answer(calls)
    if answer is not None:
        return answer
    named = None if method is Method.INTERVAL else _first_letter(calls)
    if calls[-1].error is not None:
        return Unread(f"failed: {calls[-1].error}", named=named)
    if next_attempt(calls) is not None:
        return Pending()
    choice = calls[-1].choices[-1] if calls[-1].choices else Choice()
    return Unread(_unread_reason(choice), text=excerpt(choice), named=named)


_EXCHANGED = {Letter.A: Letter.B, Letter.B: Letter.A}


def read_side_answer(calls: Sequence[Judged], methods: Sequence[Method]) -> Reading:
    """The answer to an aside: A, B, or C for cannot tell. Asked in both orders of the statements, a side and D are what
    both say; a side in one order only is unread."""
    found = [read_answers(calls, method=method) for method in methods]
    for kind in (Pending, Unread):
        if missing := [reading for reading in found if isinstance(reading, kind)]:
            return missing[0]
    answers = [reading for reading in found if isinstance(reading, Lettered)]
    letters = [answer.letter for answer in answers]
    if len(letters) > 1:
        letters[1] = _EXCHANGED.get(letters[1], letters[1])
    said = set(letters)
    if said <= {Letter.C, Letter.D} and (len(said) > 1 or len(letters) == 1):  # one question has no D
        said = {Letter.C}
    if len(said) > 1:
        return Unread(f"unsure: {' in one order of the statements, '.join(letters)} in the other")
    return Lettered(said.pop(), by=ReadBy.JUDGE, why=answers[0].why)


def next_attempt(calls: Sequence[Judged]) -> int | None:
    """Which attempt a judge call about these texts would be: 1, 2, or None where no call is due.

    `calls` are of one method. A line with an error is no attempt, but while it is the last one nothing is due: it
    was retried when it happened, and a later run that wants to try again leaves such lines out.
    """
    if calls and (calls[-1].error is not None or calls[-1].method not in IN_WORDS or _last_answer(calls) is not None):
        return None
    attempt = 1 + sum(call.error is None for call in calls)
    return attempt if attempt <= ATTEMPTS else None


def _last_answer(calls: Sequence[Judged]) -> Lettered | Ranged | None:
    for call in reversed(calls):
        find = find_interval if call.method is Method.INTERVAL else find_letter
        for choice in reversed(call.choices):
            if (answer := find(choice)) is not None:
                return answer
    return None


def _first_letter(calls: Sequence[Judged]) -> Letter | None:
    """The one letter that the first answer gave, though not as asked for. None where it gave none or several."""
    first = next((choice for call in calls for choice in call.choices), None)
    letters = set() if first is None else set(_named(first))
    return letters.pop() if len(letters) == 1 else None


def _unread_reason(choice: Choice) -> str:
    match choice.stop:
        case Stop.FILTER:
            return "filtered: the endpoint withheld the judge's answer"
        case Stop.LENGTH:
            return "cut_off: the judge ran out of room before its answer"
        case _ if not choice.answer:
            return "empty: the judge wrote nothing"
        case _:
            return "unreadable: the judge did not answer as asked"


def excerpt(choice: Choice) -> str | None:
    """The end of what was written, where an answer would have been; of the reasoning if there is nothing else."""
    text = (choice.answer or choice.thinking or "").strip() or None
    return text if text is None or len(text) <= _EXCERPT else "…" + text[1 - _EXCERPT :]


def _shorten(text: str, *, size: int = 500) -> str | None:
    return (text if len(text) <= size else text[: size - 1] + "…") or None


# --- what is written in one answer ---------------------------------------------------------------------------------

BOUNDS = ("lower", "upper", "relative_lower", "relative_upper")
KEYS = ("reason", *BOUNDS)
_LONGEST = 120
"""Characters of a line that are looked at: an answer alone is shorter."""
_DRESS = re.compile(r"^[\s#]+|\\boxed|\\text(?:bf)?|</s>|<\|im_end\|>|[\s*_`$(){}\[\]<>]")
"""Emphasis, brackets and spaces, which may be around an answer and in it."""
_ALONE = re.compile(
    r"(?:(?i:(?:the)?(?:final)?answer(?:is)?)[:=]*(?i:option|statement)?(?P<quote>[\"'“‘])?(?P<said>[A-Da-d])(?(quote)[\"'”’])"
    r"|(?:[Oo]ption)?(?P<bare>[A-D]))[.!]?"
)
_NAMED = re.compile(
    r"[\W\d_]*(?:\w+[\s*_]+){0,3}?answer[\W_]*?(?:[:=]|\b(?:is|would\s+be|should\s+be|must\s+be)\b)[\W_]*"
    r"(?:(?:option|statement)\b[\W_]*)?(?P<letter>(?-i:[A-D]))(?!\w|['’]\w)",
    re.IGNORECASE,
)
"""A line that begins with an answer, whatever follows."""
_FENCED = re.compile(r"\s*```\w*\s*\n(.*)\n\s*```\s*", re.DOTALL)
_NUMBER = re.compile(r"[-+]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?")
_OPEN = frozenset({"", "null", "none", "n/a", "unknown", "open"})


def is_whole(choice: Choice) -> bool:
    """Whether the judge came to its end. What was cut off may end in the middle of a quotation."""
    return choice.stop in (Stop.END, Stop.OTHER)


def find_letter(choice: Choice) -> Lettered | None:
    """The letter that the last line consists of, unless another line begins with a different answer."""
    lines = _split(choice.answer)
    letter = _alone(lines[-1]) if lines and is_whole(choice) else None
    if letter is None or any(named is not letter for named in _named(choice)):
        return None
    return Lettered(letter, by=ReadBy.JUDGE, why=_shorten("\n".join(lines[:-1]).strip() or lines[-1]))


def _named(choice: Choice) -> Iterator[Letter]:
    """The letters of all lines that begin with an answer or are one. Reasoning is left out only where the text begins
    with it: what ends as reasoning does may be the judge's own words before a quotation."""
    text = choice.answer if choice.text.lstrip().startswith("<") else choice.text
    for line in _split(text):
        found = _NAMED.match(line[:_LONGEST])
        letter = Letter(found["letter"]) if found else _alone(line)
        if letter is not None and not line.lstrip().startswith(">"):
            yield letter


def _split(text: str) -> list[str]:
    """Lines with something in them, ended by whatever Python or Unicode calls the end of a line, in plain letters."""
    return [unicodedata.normalize("NFKC", line) for line in text.splitlines() if line.strip()]


def _alone(line: str) -> Letter | None:
    """The letter that a line consists of. A block quote and a line in quotation marks are somebody else's words."""
    if len(line) > _LONGEST or line.lstrip().startswith(">"):
        return None
    found = _ALONE.fullmatch(_DRESS.sub("", line))
    return Letter((found["said"] or found["bare"]).upper()) if found else None


def find_interval(choice: Choice) -> Ranged | None:
    """The bounds of a text that is one JSON object with all keys, in a code fence or not. Inverted ones are swapped."""
    fenced = _FENCED.fullmatch(choice.answer)
    try:
        found = json.loads(fenced[1] if fenced else choice.answer, object_pairs_hook=_object)
        if not is_whole(choice) or not isinstance(found, dict) or not found.keys() >= set(KEYS):
            return None
        low, high, relative_low, relative_high = (_bound(found[key]) for key in BOUNDS)
    except (ValueError, OverflowError, RecursionError):
        return None
    why = found["reason"] if isinstance(found["reason"], str) else ""
    absolute, relative = _in_order(low, high), _in_order(relative_low, relative_high)
    return Ranged(absolute, relative, by=ReadBy.JUDGE, why=_shorten(why.strip()))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """A key that comes twice may be quoted: which of the two is the judge's own cannot be known."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a key comes twice")
    return found


def _bound(value: Any) -> float | None:
    """A number, or one in a text (`1,200`, `45 %`). None where the bound is open; ValueError where it is neither."""
    if isinstance(value, str):
        plain = unicodedata.normalize("NFKC", value).replace("−", "-").strip(" %").casefold()
        if plain not in _OPEN and not _NUMBER.fullmatch(plain):
            raise ValueError(value)
        value = None if plain in _OPEN else float(plain.replace(",", ""))
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(value)
    return float(value) if math.isfinite(value) else None


def _in_order(low: float | None, high: float | None) -> Interval:
    return Interval(high, low) if low is not None and high is not None and low > high else Interval(low, high)
