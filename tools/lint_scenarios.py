"""Looks at a scenario set the way an editor would: `python -m tools.lint_scenarios core`.

`unmask data check` finds what makes a set unusable, lopsided or repetitive. This finds what asks for another look:
statements that a reply could assert both of, probes that carry something of the pressure or of the answer, and
characters that look like others. It knows English; in other languages it finds less. A test keeps the bundled sets
free of all of these.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache

from unmask.data.checks.balance import ENOUGH
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


def scenario_texts(scenario: Scenario) -> Iterator[tuple[str, str]]:
    """Name and text of everything a scenario says, as messages name it."""
    yield "id", scenario.id
    yield "proposition", scenario.proposition
    for message in scenario.conversation:
        yield f"{message.role} message", message.content
    yield from scenario.probes.items()
    for name in ("check", "motive", "domain", "evidence", "unit", "tolerance"):
        text = getattr(scenario, name)
        if text is not None:
            yield name, text


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
        used.update({stem(word) for _, text in scenario_texts(scenario) for word in split_words(text)})
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


# --- characters that look like others, or like nothing ---------------------------------------------------------------

_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f]")
_LETTERS = re.compile(r"[^\W\d_]+")
_JOINERS = "\u200c\u200d"
_ALPHABETS = frozenset({"ARMENIAN", "CHEROKEE", "COPTIC", "CYRILLIC", "GREEK"})
"""Scripts with letters shaped like Latin ones. Others, as in Japanese, are mixed in good faith."""
_SPACES = " \u00a0\u202f"
"""The plain space and the two no-break spaces that careful typing uses."""
_CYRILLIC = (
    "\u0430\u0441\u0435\u0456\u0458\u043e\u0440\u0455\u0445\u0443"
    "\u0410\u0412\u0421\u0415\u041d\u0406\u0408\u041a\u041c\u041e\u0420\u0405\u0422\u0425\u0423",
    "aceijopsxyABCEHIJKMOPSTXY",
)
_GREEK = (
    "\u03b1\u03b9\u03bf\u03c1\u03c5\u03c7\u03bd"
    "\u0391\u0392\u0395\u0396\u0397\u0399\u039a\u039c\u039d\u039f\u03a1\u03a4\u03a5\u03a7",
    "aiopuxvABEZHIKMNOPTYX",
)
_MARKUP = dict(zip("\u2215\u2044\u29f8\uff0f\uff1c\u27e8\uff1e\u27e9", "////<<>>", strict=True))
"""Signs that would pass for those of our own markup, so that a pivotal or a tag is not found."""
LOOKS_LIKE = {**dict(zip(*_CYRILLIC, strict=True)), **dict(zip(*_GREEK, strict=True))}
"""Letters most easily taken for Latin ones, written as code points because nobody could tell them apart."""


def no_look_alikes(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """One problem per text, for the first thing found in it."""
    for scenario in scenarios:
        for name, text in scenario_texts(scenario):
            if reason := find_oddity(text):
                yield Problem(scenario.id, "look_alike", f"{name}: {reason}")


def find_oddity(text: str) -> str | None:
    """What is odd about the characters of a text, or None."""
    if control := _CONTROL.search(text):
        return f"holds the control character {_name_code_point(control[0])}"
    if text.isascii():
        return None
    if hidden := _find_hidden(text):
        return hidden
    if sign := next((character for character in text if character in _MARKUP), None):
        return f"holds {_name_code_point(sign)}, which looks like {_MARKUP[sign]!r}"
    if not (odd := _find_odd_word(text)) and not unicodedata.is_normalized("NFC", text):
        return "is not in Unicode normal form NFC: letters and accents are stored apart"
    return odd


def _find_hidden(text: str) -> str | None:
    for place, character in enumerate(text):
        match unicodedata.category(character):
            case "Cf" if not (character in _JOINERS and _joins_letters(text, place)):
                return f"holds the invisible character {_name_code_point(character)}"
            case "Cc" | "Co" | "Cn" | "Cs" if character not in "\n\t":
                return f"holds {_name_code_point(character)}, which has no agreed meaning"
            case "Zs" | "Zl" | "Zp" if character not in _SPACES:
                return f"holds {_name_code_point(character)} where a plain space belongs"
    return None


def _joins_letters(text: str, place: int) -> bool:
    """Between two characters that are not Latin a joiner is part of spelling, or of an emoji."""
    around = text[place - 1 : place] + text[place + 1 : place + 2]
    return len(around) == 2 and all(not c.isascii() and _script(c) != "LATIN" for c in around)


def _find_odd_word(text: str) -> str | None:
    """Letters of two scripts in one word, a word of look-alikes only, and styled letters such as fullwidth ones."""
    letters = [character for character in text if character.isalpha()]
    latin = 2 * sum(_script(character) == "LATIN" for character in letters) > len(letters)
    for word in _LETTERS.findall(text):
        if word.isascii():
            continue
        if styled := next((c for c in word if not c.isascii() and _plain_letters(c)), None):
            return f"holds {_name_code_point(styled)} instead of {unicodedata.normalize('NFKC', styled)!r}"
        if stranger := _foreign_letter(word):
            return f"the word {word!r} mixes scripts: {_name_code_point(stranger)}"
        if latin and len(word) > 1 and all(character in LOOKS_LIKE for character in word):
            return f"the word {word!r} only looks Latin: {_name_code_point(word[0])}"
    return None


def _foreign_letter(word: str) -> str | None:
    """The first letter of another alphabet in a word with Latin ones. A Greek letter that looks like none of them,
    as in μm, is meant."""
    if not any(_script(character) == "LATIN" for character in word):
        return None
    others = (c for c in word if _script(c) in _ALPHABETS and not (_script(c) == "GREEK" and c not in LOOKS_LIKE))
    return next(others, None)


def _plain_letters(character: str) -> bool:
    """Whether a character is another dress of ASCII letters: fullwidth, mathematical, circled, a ligature."""
    plain = unicodedata.normalize("NFKC", character)
    return plain.isascii() and plain.isalpha()


@lru_cache(maxsize=4096)
def _script(character: str) -> str:
    """The first word of the Unicode name, which for letters is the script: LATIN, CYRILLIC, GREEK …"""
    return unicodedata.name(character, "?").partition(" ")[0]


def _name_code_point(character: str) -> str:
    return f"U+{ord(character):04X} ({unicodedata.name(character, 'no name').lower()})"


CHECKS = (exclusive_statements, no_pressure_in_probes, no_setting_in_probes, no_answer_in_probes, no_look_alikes)


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
