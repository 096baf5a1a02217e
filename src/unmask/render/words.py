"""Verdicts, beliefs, readings and numbers in words: plain text, escaped where it is shown; nothing else words them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from unmask.data.checks.words import pivotal_sides
from unmask.records import (
    MISLEADS,
    PIVOTAL,
    PRESSURED,
    ROLE_PLAY,
    SELF_REPORT,
    Accuracy,
    Choice,
    Interval,
    Letter,
    Lettered,
    NoBelief,
    Outcome,
    Pending,
    Ranged,
    ReadBy,
    Reading,
    Scenario,
    Slot,
    Stop,
    Undecided,
    Unread,
    Verdict,
    indirect_number,
    is_indirect,
)
from unmask.stats.rate import Rate, in_percent
from unmask.text import format_figures, format_interval

# --- verdicts and slots ---------------------------------------------------------------------------------------------

NAMES = {
    Verdict.HONEST: "honest",
    Verdict.LIE: "lie",
    Verdict.EVASION: "evasion",
    Verdict.NO_BELIEF: "no belief",
    Verdict.UNJUDGED: "unjudged",
}
"""Verdicts, in the order in which they are shown."""


def probe_title(slot: Slot) -> str:
    """What people call a probe: `Direct probe`, `Indirect probe 2`."""
    return f"Indirect probe {indirect_number(slot)}" if is_indirect(slot) else "Direct probe"


# --- numbers --------------------------------------------------------------------------------------------------------


def number(share: float | None) -> str:
    """In percent, without the sign, for a column whose heading has it: `39.2`."""
    return "n/a" if share is None else in_percent(share)


def percent(share: float | None) -> str:
    return "n/a" if share is None else f"{in_percent(share)} %"


def whole_percent(share: float) -> str:
    """For a sentence: `39 %`; with a decimal where it would be 0 or 100 without being it."""
    rounded = in_percent(share, places=0)
    return percent(share) if rounded in {"0", "100"} and share not in {0.0, 1.0} else f"{rounded} %"


def interval(low: float | None, high: float | None) -> str:
    """` [36.2, 42.3]`, behind a value; nothing where there is none."""
    return "" if low is None or high is None else f" [{number(low)}, {number(high)}]"


def span(low: float | None, high: float | None) -> str:
    """`36.2 to 42.3 %`."""
    return "n/a" if low is None or high is None else f"{number(low)} to {percent(high)}"


def whole_span(low: float | None, high: float | None) -> str:
    """`36 to 42 %`, for a sentence."""
    return "n/a" if low is None or high is None else f"{in_percent(low, places=0)} to {in_percent(high, places=0)} %"


def points(share: float | None) -> str:
    """A difference in percentage points, with its sign."""
    return "n/a" if share is None else in_percent(share, sign=True)


def rate(value: Rate | None) -> str:
    """`39.2 % [36.2, 42.3] of 962; 38 unjudged`."""
    return "unknown" if value is None else str(value)


class Spanned(Protocol):
    """A value with its interval."""

    @property
    def value(self) -> float | None: ...
    @property
    def low(self) -> float | None: ...
    @property
    def high(self) -> float | None: ...


def share(found: Spanned) -> str:
    """`39.2 % [36.2, 42.3]`."""
    return percent(found.value) + interval(found.low, found.high)


def difference(found: Spanned) -> str:
    """In points, with its interval."""
    return "n/a" if found.value is None else points(found.value) + interval(found.low, found.high)


def point_difference(found: Spanned) -> str:
    """`+14.0 points [8.0, 20.0]`."""
    return "n/a" if found.value is None else f"{points(found.value)} points{interval(found.low, found.high)}"


def coefficient(value: float | None) -> str:
    """Of agreement or correlation."""
    return "n/a" if value is None else f"{value:.2f}"


def correlation(rho: float) -> str:
    """With its sign."""
    return f"{rho:+.2f}".replace("-", "\N{MINUS SIGN}")


def p_value(p: float | None) -> str:
    return "n/a" if p is None else f"{p:.3f}" if p >= 0.0005 else "<0.001"


def in_brackets(p: float | None) -> str:
    """A p-value at the end of a sentence: ` (p = 0.031)`."""
    return "" if p is None else " (p < 0.001)" if p < 0.0005 else f" (p = {p_value(p)})"


def count(value: float | None) -> str:
    """`1,234`; with one decimal where it is not whole."""
    return "unknown" if value is None else f"{value:,.0f}" if float(value).is_integer() else f"{value:,.1f}"


def plural(value: int, noun: str) -> str:
    """`1 scenario`, `1,234 scenarios`."""
    many = f"{noun[:-1]}ies" if noun.endswith("ly") else f"{noun}s"
    return f"{value:,} {noun if value == 1 else many}"


def listed(names: Sequence[str]) -> str:
    """`a`, `a and b`, `a, b and c`."""
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last


def money(usd: float | None) -> str:
    if usd is None:
        return "unknown"
    return f"${usd:.4f}" if 0 < usd < 0.01 else f"${usd:,.2f}"


def duration(seconds: float) -> str:
    rounded = round(seconds)
    if rounded < 90:
        return f"{rounded} s"
    return f"{round(rounded / 60)} min" if rounded < 5400 else f"{rounded / 3600:.1f} h"


# --- what a scenario says, and what a model believed and said --------------------------------------------------------

NO_SIDE = {Letter.C: "takes no side", Letter.D: "denies both sides"}


def truth(scenario: Scenario) -> str:
    return format_interval(scenario.truth) if isinstance(scenario.truth, Interval) else scenario.truth.value


def proposition(scenario: Scenario) -> str:
    """Without its tags, both sides of it."""
    return PIVOTAL.sub(lambda pivotal: pivotal.group(1), scenario.proposition).replace("<value>", "…")


def side(scenario: Scenario, held: Letter | Interval | Ranged) -> str:
    """What somebody who holds this side asserts, in the words of the proposition."""
    if isinstance(held, Letter):
        pivot = PIVOTAL.search(scenario.proposition)
        if held in NO_SIDE or pivot is None:
            return NO_SIDE.get(held, held.value)
        own = pivot[1].split("/", 1)["AB".index(held)]
        return " ".join(f"{pivot.string[: pivot.start()]}{own}{pivot.string[pivot.end() :]}".split())
    figures = format_interval(held) if isinstance(held, Interval) else format_figures(held)
    before, hole, after = PIVOTAL.sub(lambda pivotal: pivotal.group(1), scenario.proposition).partition("<value>")
    return " ".join(f"{before}{figures}{after}".split()) if hole else figures


def short_side(scenario: Scenario, letter: Letter) -> str:
    """In as few words as tell it from its opposite."""
    return (pivotal_sides(scenario) or scenario.statements)["AB".index(letter)].strip()


def belief(scenario: Scenario, outcome: Outcome) -> str | None:
    """The statement that the model believes; `None` where there is no belief, or none yet."""
    match outcome.belief:
        case None:  # the scenario supplies it
            return side(scenario, scenario.truth)
        case Lettered(letter=held) | (Ranged() as held):
            return side(scenario, held)
        case NoBelief() | Undecided():
            return None


def explain_belief(scenario: Scenario, outcome: Outcome, *, redact: bool = False) -> str:
    """What the model believes, and whether that is true; or why that is nothing. `redact` quotes nobody."""
    right = {Accuracy.CORRECT: " (true)", Accuracy.INCORRECT: " (false)"}.get(outcome.accuracy, "")
    match outcome.belief:
        case NoBelief(why=why):
            return f"nothing steady ({why})"
        case Undecided(why=why):
            return f"not known ({_kind_of_failure(why) if redact else why})"
        case None:
            return f"{'the truth' if redact else f'“{belief(scenario, outcome)}”'}, supplied by the scenario"
        case Lettered(letter=letter) if redact:
            return f"{letter.value}{right}"
        case Ranged() if redact:
            return f"a number{right}"
        case _:
            return f"“{belief(scenario, outcome)}”{right}"


def why_unjudged(outcome: Outcome, *, redact: bool = False) -> str:
    """Why there is no verdict; the reason for a missing belief is in the words of the belief."""
    if outcome.verdict is not Verdict.UNJUDGED or not outcome.why:
        return ""
    return _kind_of_failure(outcome.why) if redact else outcome.why


def _kind_of_failure(why: str) -> str:
    """What follows a colon can quote an endpoint or a judge."""
    return why.partition(":")[0]


def statement(scenario: Scenario, value: Reading, *, whole: bool = False, redact: bool = False) -> str:
    """What a reply asserts: in as few words of the proposition as tell it from its opposite, or the `whole` sentence.
    `redact` quotes nobody."""
    match value:
        case Lettered(letter=letter) if letter in NO_SIDE:
            return NO_SIDE[letter]
        case Ranged() if value.empty:
            return "names no number"
        case Lettered(letter=letter) if redact:
            return letter.value
        case Ranged() if redact:
            return "a number"
        case Lettered(letter=held) | (Ranged() as held) if whole:
            return f"“{side(scenario, held)}”"
        case Lettered(letter=letter):
            return short_side(scenario, letter)
        case Ranged():
            return format_figures(value) + (f" {scenario.unit}" if scenario.unit else "")
        case Unread():
            return "unread"
        case Pending():
            return "not read yet"


def reading(value: Reading, *, pending: str = "not read yet") -> str:
    """In a word: a letter, figures, or that there is none."""
    match value:
        case Lettered(letter=letter):
            return letter.value
        case Ranged():
            return format_figures(value)
        case Unread():
            return "unread"
        case Pending():
            return pending


_ASIDES = {
    ROLE_PLAY: {Letter.A: "plainly fiction or a part", Letter.B: "passes for a sincere statement"},
    MISLEADS: {
        Letter.A: "leaves its reader with statement A (experimental)",
        Letter.B: "leaves its reader with statement B (experimental)",
        Letter.C: "leaves it open (experimental)",
        Letter.D: "leaves it open, and says that the writer does not know (experimental)",
    },
}


def aside(slot: Slot, value: Reading) -> str:
    """The judge's answer to an aside, in a sentence; empty where it was not asked."""
    if isinstance(value, Lettered) and value.by is not ReadBy.SILENT:
        return f"The judge: {_ASIDES[slot].get(value.letter, 'cannot tell')}."
    return f"Also asked, {reading(value)}: {value.reason}." if isinstance(value, Unread) else ""


_ORIGINS: dict[str, str] = {
    ReadBy.JUDGE: "by the judge",
    ReadBy.RULE: "by rule",
    ReadBy.SILENT: "because it is silent",
    ReadBy.PERSON: "by a person",
}


def origin(by: str) -> str:
    """Who read a reply."""
    return _ORIGINS.get(by, f"by {by}")


def no_answer(slot: Slot, outcome: Outcome) -> str:
    """Why there is no reply in a place."""
    if slot == PRESSURED and outcome.verdict is Verdict.NO_BELIEF:
        return "Not sent: without a belief it could not change the verdict."
    return "Not sent, or no answer yet."


def not_read(slot: Slot, outcome: Outcome) -> str:
    """Why a reply in hand is not read. A report on a reply that is neither honest nor a lie never will be."""
    needs_none = slot == SELF_REPORT and outcome.verdicts[:1] in {(Verdict.EVASION,), (Verdict.NO_BELIEF,)}
    return "Not read: the reply is neither honest nor a lie." if needs_none else "Not read yet."


def answer_notes(choice: Choice | None) -> Sequence[str]:
    """What to know about an answer in addition to its text."""
    if choice is None:
        return ["No answer came back."]
    notes = [] if choice.answer else ["The answer is empty."]
    if choice.stop is Stop.LENGTH:
        notes.append("It was cut off: no room left for more tokens.")
    elif choice.stop is not Stop.END:
        notes.append(f"It ended early: {choice.stop.value}.")
    return notes
