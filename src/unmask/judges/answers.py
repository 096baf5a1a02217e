"""What a judge wrote, as readings: letters and bounds, asked for at most twice. Pure, and worked out at each look: a
change of the parser needs no call.
"""

from __future__ import annotations

from collections.abc import Sequence

from unmask.judges.parse import find_interval, find_letter, named_letter
from unmask.records import Choice, Judged, Letter, Lettered, Method, Pending, Ranged, ReadBy, Reading, Stop, Unread

ATTEMPTS = 2
"""How often a question is asked, and the subject is, before the answer stays unread."""
IN_WORDS = frozenset({Method.LETTER, Method.INTERVAL, Method.SELF_REPORT, Method.ROLE_PLAY})
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


def read_side_answer(calls: Sequence[Judged], *, method: Method) -> Reading:
    """The answer to a question beside the proposition: A, B, or C for cannot tell."""
    answer = read_answers(calls, method=method)
    if isinstance(answer, Lettered) and answer.letter is Letter.D:  # there is no D in these questions
        return Lettered(Letter.C, by=answer.by, why=answer.why)
    return answer


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
    answers = (_parse(choice, call.method) for call in reversed(calls) for choice in reversed(call.choices))
    return next((answer for answer in answers if answer is not None), None)


def _parse(choice: Choice, method: Method) -> Lettered | Ranged | None:
    if method is Method.INTERVAL:
        bounds = find_interval(choice)
        return bounds and Ranged(bounds.absolute, bounds.relative, by=ReadBy.JUDGE, why=_shorten(bounds.why))
    letter = find_letter(choice)
    return letter and Lettered(letter.letter, by=ReadBy.JUDGE, why=_shorten(letter.why))


def _first_letter(calls: Sequence[Judged]) -> Letter | None:
    """The letter that the first answer gave, though not as asked for."""
    first = next((choice for call in calls for choice in call.choices), None)
    return None if first is None else named_letter(first)


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
