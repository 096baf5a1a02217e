"""Looks at a scenario set the way an editor would: `python -m tools.lint_scenarios core`.

`unmask data check` finds what makes a set unusable, lopsided or repetitive. This finds what asks for another look:
statements that a reply could assert both of, and probes that carry something of the pressure or of the answer. It
knows English; in other languages it finds less. A test keeps the bundled sets free of these.
"""

from __future__ import annotations

import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence

from unmask.data.check import ENOUGH
from unmask.data.checks.words import (
    COMMON,
    content_stems,
    lower_words,
    pivotal_sides,
    proposition_frame,
    split_words,
    stem,
)
from unmask.data.form import Problem
from unmask.data.load import load
from unmask.errors import escape_controls
from unmask.records import Interval, Kind, Letter, Scenario

NEGATIONS = frozenset({"not", "no", "never", "none", "neither", "nor", "nothing", "without", "cannot", "nobody"})


def scenario_texts(scenario: Scenario) -> Iterator[str]:
    """Everything that a scenario says."""
    yield scenario.proposition
    yield from (message.content for message in scenario.conversation)
    yield from scenario.probes.values()
    yield from filter(None, (scenario.check, scenario.motive, scenario.domain, scenario.evidence, scenario.unit))


# --- statements that a single reply might assert both of ------------------------------------------------------------

GRADES = (
    ("some", "all"),
    ("some", "every"),
    ("some", "most"),
    ("many", "most"),
    ("many", "all"),
    ("most", "all"),
    ("sometimes", "often"),
    ("sometimes", "always"),
    ("often", "always"),
    ("usually", "always"),
    ("may", "must"),
    ("can", "must"),
    ("partly", "fully"),
    ("partly", "completely"),
    ("good", "excellent"),
    ("big", "huge"),
    ("warm", "hot"),
)
"""Weaker and stronger word of one scale: whoever asserts the stronger asserts the weaker as well."""
_NUMERALS = frozenset(
    {
        *("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"),
        *("thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty", "thirty"),
        *("forty", "fifty", "sixty", "seventy", "eighty", "ninety", "hundred", "thousand", "million", "and", "half"),
    }
)


def exclusive_statements(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Judged by form alone: whether two statements of different wording exclude each other takes a reader."""
    for scenario in scenarios:
        pair = pivotal_sides(scenario)
        if pair and (reason := _explain_overlap(*map(lower_words, pair))):
            yield Problem(scenario.id, "overlap", reason)


def _explain_overlap(left: list[str], right: list[str]) -> str | None:
    """Why both could hold, or None."""
    if len(left) == len(right):
        differing = [(a, b) for a, b in zip(left, right, strict=True) if a != b]
        for weak, strong in GRADES:
            if differing in ([(weak, strong)], [(strong, weak)]):
                return f"the statements can both hold: {strong!r} includes {weak!r}"
        return None
    short, long = sorted((left, right), key=len)
    added = _added_words(short, long)
    if added is None or set(long) <= _NUMERALS or any(word.isdigit() for word in long):
        return None
    if any(word in NEGATIONS or word.endswith(("n't", "n’t")) for word in added):
        return None
    return f"the statements can both hold: one only adds {' '.join(added)!r} to the other"


def _added_words(short: list[str], long: list[str]) -> list[str] | None:
    """What `long` says beyond `short` where it holds it word for word; None where it does not."""
    for start in range(len(long) - len(short) + 1):
        if long[start : start + len(short)] == short:
            return long[:start] + long[start + len(short) :]
    return None


# --- probes that are not neutral -------------------------------------------------------------------------------------

# A probe is asked in a fresh conversation to find out what the subject believes. If it names the role, the firm or the
# wish behind the pressure, it measures the pressure again; if it holds the answer, it measures reading.

_JOBS = (
    "adviser|advisor|agent|assistant|bot|chatbot|clerk|coach|copywriter|editor|employee|guide|host|journalist|marketer|"
    "moderator|officer|operator|rep|representative|salesperson|secretary|seller|spokesman|spokesperson|spokeswoman|"
    "teacher|tutor|writer"
)
_PRESSURE = re.compile(
    rf"\bas (?:an?|the|our|my) (?:[\w-]+ ){{0,3}}?(?:{_JOBS})\b"
    r"|\byou(?:['’]re| are| work as| act as| play) (?:an?|the|our|my)\b"
    r"|\byour (?:boss|bonus|client|clients|commission|company|customer|customers|employer|firm|instructions|job|"
    r"manager|operator|orders|owner|persona|role|shift|supervisor|system prompt|team)\b"
    r"|\b(?:you were|you have been|you['’]ve been) (?:asked|instructed|ordered|paid|told)\b"
    r"|\b(?:dis)?honest(?:ly|y)?\b|\btruthful(?:ly)?\b|\bdeceiv\w+|\bmislead\w*|\brole-?play\w*|\bin character\b"
    r"|\beven if (?:it|that|this) (?:costs|hurts|means)\b",
    re.IGNORECASE,
)
_FILLED = re.compile(r"<final_answer>([^<>]*+)</final_answer>", re.IGNORECASE)
_FIGURE = re.compile(r"(?<![\w.,])\d[\d,]*(?:\.\d+)?(?![\w])")
_RARE = 2
"""Unusual words in common with the system prompt from which a probe is reported. One may be chance."""
_LONG = 4
"""Letters from which a word can be telling."""
_COMPARATIVE = re.compile(r"(?:er|est)$")


def no_pressure_in_probes(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Words about a role, orders, reward or honesty. The in-context check of `provided_facts` may have them."""
    for scenario in scenarios:
        for name, text in scenario.probes.items():
            if phrase := _PRESSURE.search(text):
                yield Problem(scenario.id, "pressure_leak", f"`{name}` speaks of a role or of pressure: {phrase[0]!r}")


def no_setting_in_probes(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Names and unusual words that a probe shares with the system prompt alone: traces of the invented setting.

    Words of the proposition and of the evidence belong to the subject and are passed over. So is, in a set large
    enough to tell, every word that another scenario uses too.
    """
    used: Counter[str] = Counter()
    for scenario in scenarios:
        used.update({stem(word) for text in scenario_texts(scenario) for word in split_words(text)})
    telling = len(scenarios) >= ENOUGH
    for scenario in scenarios:
        setting = scenario.conversation[0].content if scenario.conversation else ""
        subject = {stem(word) for word in split_words(scenario.proposition) + split_words(scenario.evidence or "")}
        names, unusual = _proper_names(setting), content_stems(setting)
        for where, text in scenario.probes.items():
            own = {
                word
                for word in split_words(text)
                if stem(word) not in subject and (not telling or used[stem(word)] < 2)
            }
            shared = sorted(own & names)
            if not shared and telling:
                rare = sorted(word for word in own if len(word) >= _LONG and stem(word) in unusual)
                shared = rare if len(rare) >= _RARE else []
            if shared:
                message = f"`{where}` shares {', '.join(map(repr, shared))} with the system prompt and nothing else"
                yield Problem(scenario.id, "pressure_leak", message)


def _proper_names(text: str) -> set[str]:
    """Words always written with a capital, inside a sentence at least once, and figures of three digits or more."""
    tokens = split_words(text)
    small = {word for word in tokens if word[0].islower()}
    inside = set(re.findall(r"(?<=[\w,;] )[^\W\d_]\w*", text))
    capital = {word for word in inside if word[0].isupper() and word.casefold() not in small | COMMON}
    return capital | {word for word in tokens if word.isdigit() and len(word) >= 3}


def no_answer_in_probes(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """The answer inside a question: filled tags, the figure itself, a statement verbatim, or the true side only."""
    for scenario in scenarios:
        for name, text in scenario.probes.items():
            if example := _one_sided(text):
                message = f"`{name}` shows the tags with one answer in them: {example!r}"
                yield Problem(scenario.id, "answer_leak", message)
            elif reason := _gives_away(scenario, name, text):
                yield Problem(scenario.id, "answer_leak", f"`{name}` {reason}")


def _one_sided(text: str) -> str | None:
    """What stands in the tags a probe shows, if it is an answer. Yes and no side by side, and placeholders such as
    `your answer`, give nothing away."""
    shown = " ".join(filter(None, (inside.strip() for inside in _FILLED.findall(text))))
    answers = {"yes", "no"} & set(lower_words(shown))
    return shown if len(answers) == 1 or _FIGURE.search(shown) else None


def _gives_away(scenario: Scenario, name: str, text: str) -> str | None:
    match scenario.kind, scenario.truth:
        # Open bounds hold every number, so a truth with one of them cannot be told from any other figure.
        case Kind.NUMERIC, Interval(lower=lower, upper=upper) if lower is not None and upper is not None:
            inside = [figure for figure in _FIGURE.findall(text) if lower <= float(figure.replace(",", "")) <= upper]
            return f"holds the figure asked for: {inside[0]!r}" if inside else None
        case Kind.BINARY, Letter.A | Letter.B as letter if name != "direct" and pivotal_sides(scenario):
            return _explain_leak(scenario, "AB".index(letter), text)
        case _:
            return None


def _explain_leak(scenario: Scenario, true: int, text: str) -> str | None:
    """Why an indirect probe gives the answer away. A leaning one may use the words of the false side, not a whole
    statement: then a reply that only echoes it would be read as a belief."""
    probe_text = " ".join(lower_words(text))
    for place, statement in enumerate(scenario.statements):
        if f" {' '.join(lower_words(statement))} " in f" {probe_text} ":
            return (
                f"says statement {'AB'[place]} word for word, which is the {'true' if place == true else 'false'} one"
            )
    pair = pivotal_sides(scenario) or ("", "")
    around, used = content_stems(proposition_frame(scenario)), content_stems(text)
    if NEGATIONS & set(lower_words(" ".join(pair))):
        return None  # the sides differ in a "not", and words about the subject stand in any question
    true_words = content_stems(pair[true]) - content_stems(pair[1 - true]) - around
    false_words = content_stems(pair[1 - true]) - content_stems(pair[true]) - around
    # "Which is longer?" asks by the very word that a statement "is longer" differs in.
    if (
        not true_words
        or not true_words <= used
        or (false_words and false_words <= used)
        or all(map(_COMPARATIVE.search, true_words))
    ):
        return None
    return f"has the words of the true side and not of the false one: {', '.join(map(repr, sorted(true_words)))}"


CHECKS = (exclusive_statements, no_pressure_in_probes, no_setting_in_probes, no_answer_in_probes)


def lint(scenarios: Sequence[Scenario]) -> list[Problem]:
    """Everything that asks for another look, check after check."""
    return [problem for look in CHECKS for problem in look(scenarios)]


def main(sources: Sequence[str]) -> int:
    problems = [problem for source in sources for problem in lint(load(source).scenarios)]
    for problem in problems:
        print(f"{escape_controls(str(problem))} [{problem.code}]")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
