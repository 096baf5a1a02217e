"""The judge for small models: one choice among three, asked in four orders, instead of a letter with reasons.

A model of a billion parameters is poor at explaining and then choosing among four letters, and it leans towards
whatever stands first or last. So it is shown the reply and three lines (statement A, statement B, neither), may answer
only 1, 2 or 3, and is asked four times with the lines in different orders. What is averaged are logarithms of
probabilities. What does not change stands first, then the reply, then the lines: what requests have in common
at their beginning is worked through once.

Such a model names a side too readily, so *neither* is given a start. How much is one number, fitted on the tuning half
of the labelled replies by `python -m bench.judges.fit`, which writes `choose.json`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files

import msgspec

from unmask.judges import letters, verbatim
from unmask.judges.letters import fence_code, text_of
from unmask.judges.quoting import simplify, without_copied_sentences
from unmask.records import (
    Choice,
    Judged,
    Kind,
    Letter,
    Lettered,
    Message,
    Method,
    Pending,
    ReadBy,
    Reading,
    Record,
    Request,
    Role,
    Sampling,
    Scenario,
    Slot,
    Unread,
)

OPTIONS = ("1", "2", "3")
ORDERS: dict[Method, tuple[Letter, Letter, Letter]] = {
    Method.CHOOSE_ABN: (Letter.A, Letter.B, Letter.C),
    Method.CHOOSE_BAN: (Letter.B, Letter.A, Letter.C),
    Method.CHOOSE_NAB: (Letter.C, Letter.A, Letter.B),
    Method.CHOOSE_NBA: (Letter.C, Letter.B, Letter.A),
}
"""Which line each number stands for; C is *neither*. Both sides stand in every place equally often."""
LONGEST = 5_000
"""Characters of a reply that are quoted: what a slot of 4,096 tokens surely holds."""

_LEAST = 1e-6


class FittedBias(Record, frozen=True):
    """`choose.json`. `neither` is added to the mean log-probability of that line."""

    neither: float
    replies: int
    """Replies of the tuning half that were left to the model, on which it was fitted."""
    agrees: int
    model: str


@cache
def load_fitted_bias() -> FittedBias:
    return msgspec.json.decode(files(__package__).joinpath("choose.json").read_bytes(), type=FittedBias)


def questions(kind: Kind) -> tuple[Method, ...]:
    """The choice in all orders. Figures are asked for in words."""
    return tuple(ORDERS) if kind is Kind.BINARY else letters.questions(kind)


by_rule = verbatim.by_rule
"""What needs no model, whoever the reader is: the rule is more often right than a small model."""


def imagined(method: Method, side: Letter) -> Choice:
    return imagined_choice(ORDERS, OPTIONS, method, side)


def imagined_choice(
    orders: Mapping[Method, tuple[Letter, ...]], options: tuple[str, ...], method: Method, side: Letter
) -> Choice:
    """The number of the line that stands for this side, with certainty."""
    if method not in orders:
        return letters.imagined(method, side)
    number = options[orders[method].index(side)]
    return Choice(number, probabilities={option: float(option == number) for option in options})


def request(method: Method, scenario: Scenario, slot: Slot, texts: tuple[str, ...], *, sampling: Sampling) -> Request:
    """Which of the lines, in the order of this method, says what the reply tells its reader."""
    if method is Method.INTERVAL:
        return letters.request_figure(scenario, slot, texts, sampling=sampling)
    if method not in ORDERS:
        return letters.request(method, scenario, slot, texts, sampling=sampling)
    if len(texts) != 1:
        raise ValueError(f"a choice is asked about one text, not {len(texts)}")
    lines = dict(zip((Letter.A, Letter.B), scenario.statements, strict=True)) | {Letter.C: text_of("choose_neither")}
    listed = "\n".join(f"{number}) {lines[line]}" for number, line in zip(OPTIONS, ORDERS[method], strict=True))
    reply = shorten(prepare_reply(scenario, slot, texts[0]))
    code = fence_code((reply,))
    asked = f"[REPLY {code}]\n{reply}\n[END {code}]\n{text_of('choose_ask')}\n{listed}\nNumber:"
    messages = (Message(Role.SYSTEM, text_of("choose")), Message(Role.USER, asked))
    return Request(messages, sampling=sampling, options=OPTIONS)


def prepare_reply(scenario: Scenario, slot: Slot, text: str) -> str:
    """The reply as the model sees it: plain, and of a continuation only what it adds to the draft."""
    without_orders = simplify(text)
    return without_copied_sentences(scenario, slot, without_orders) or without_orders


def reading(calls: Sequence[Judged], *, kind: Kind, neither: float | None = None) -> Reading:
    """The four answers as one letter. Pending while one is missing, unread if one could not be had."""
    if kind is not Kind.BINARY:
        return letters.reading(calls, kind=kind)
    lines = score_lines(calls)
    if not isinstance(lines, dict):
        return lines
    return likeliest_line(lines, neither=load_fitted_bias().neither if neither is None else neither)


def likeliest_line(lines: dict[Letter, float], *, neither: float) -> Lettered:
    """The likeliest line. D is never given: *neither* cannot tell a text that denies both from one that leaves it open,
    and the second is far commoner."""
    ahead = {line: value + (neither if line is Letter.C else 0.0) for line, value in lines.items()}
    best = max(ahead.values())
    leaders = [line for line, value in ahead.items() if value == best]
    letter = leaders[0] if len(leaders) == 1 else Letter.C
    why = ", ".join(f"{'neither' if line is Letter.C else line} {math.exp(value):.2f}" for line, value in lines.items())
    return Lettered(letter, by=ReadBy.JUDGE, why=why)


def score_lines(calls: Sequence[Judged]) -> dict[Letter, float] | Pending | Unread:
    """The mean log-probability of each line over the four orders."""
    return mean_log_probabilities(calls, ORDERS, OPTIONS)


def mean_log_probabilities(
    calls: Sequence[Judged], orders: Mapping[Method, tuple[Letter, ...]], options: tuple[str, ...]
) -> dict[Letter, float] | Pending | Unread:
    """The mean log-probability of each line over the orders in which it was asked."""
    answers = [last_probabilities([call for call in calls if call.method is method], options) for method in orders]
    for shares in answers:
        if isinstance(shares, Unread):
            return shares
    total = dict.fromkeys(sorted({line for order in orders.values() for line in order}), 0.0)
    for order, shares in zip(orders.values(), answers, strict=True):
        if not isinstance(shares, dict):
            return Pending()
        for number, line in zip(options, order, strict=True):
            total[line] += math.log(max(shares[number], _LEAST)) / len(orders)
    return total


def last_probabilities(calls: Sequence[Judged], options: tuple[str, ...]) -> dict[str, float] | Pending | Unread:
    """The probability of each number in the last answer to one of the questions."""
    if not calls:
        return Pending()
    last = calls[-1]
    if last.error is not None or not last.choices:
        return Unread(f"failed: {last.error or 'no answer'}")
    shares = last.choices[-1].probabilities
    if shares is None or not set(options) <= set(shares):
        return Unread("unreadable: the judge gave no probabilities", text=last.choices[-1].text or None)
    return shares


def shorten(text: str, *, longest: int = LONGEST) -> str:
    """The first two thirds and the last third of what is allowed."""
    if len(text) <= longest:
        return text
    tail = longest // 3
    return f"{text[: longest - tail]}\n[…]\n{text[-tail:]}"
