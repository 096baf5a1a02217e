"""Whether a sentence asserts a statement: word for word, or in nearly its words.

Nearly means: every word that only this statement has, none that only its rival has, most of what the two share, the
same sign (negated or not), nothing beside them that holds the assertion off, and for comparisons the same order.
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from unmask.judges.words import DISTANCE, DOUBT, FUNCTION, WORD, words
from unmask.records import Letter, Scenario

SHARED = 0.6
"""The part of the words common to both statements that a sentence has to take up."""
SURELY = 0.75
"""The same, where the first of them is missing, which as a rule says what the statement is about."""
ALL_BUT = 0.9
"""The same, where nothing but a negation tells the statements apart."""
BESIDES = 6
"""Words that a sentence may have besides."""
NEGATIONS = frozenset({"not", "no", "never", "none", "nor", "neither", "without", "nobody", "nothing"})
_FAILURES = frozenset(
    {"fail", "fails", "failed", "failing", "lack", "lacks", "unable", "impossible", "refuse", "refuses"}
)
FOREIGN = 2
"""Words of its own that a sentence may have which names a side."""
_OPEN = re.compile(r"\b(?:may|or|either)\b")
_QUOTES = re.compile(r"[\"“”«»]")
_RELATIONS = frozenset(
    WORD.findall(
        "larger smaller bigger longer shorter heavier lighter higher lower faster slower more less fewer before after"
        " older younger colder hotter warmer earlier later above below left right between first last thicker thinner"
    )
)


def stems(text: str) -> list[str]:
    """Content words in order, endings cut off so that forms of one word meet. Negations are left to `negates`."""
    return [_stem(word) for word in _figured(words(text)) if word not in FUNCTION and word not in NEGATIONS]


_ONES = {
    word: value
    for value, word in enumerate(
        WORD.findall(
            "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen"
            " seventeen eighteen nineteen"
        )
    )
}
_TENS = {
    word: 10 * value
    for value, word in enumerate(WORD.findall("twenty thirty forty fifty sixty seventy eighty ninety"), start=2)
}


def _figured(said: list[str]) -> list[str]:
    """Small numbers in digits, however they are written: *eighty-eight* as 88."""
    found: list[str] = []
    tens = 0
    for word in said:
        if tens and 0 < _ONES.get(word, 0) < 10:
            found[-1], tens = str(tens + _ONES[word]), 0
            continue
        tens = _TENS.get(word, 0)
        value = tens or _ONES.get(word)
        found.append(word if value is None else str(value))
    return found


def _stem(word: str) -> str:
    for ending, instead in (("ies", "y"), ("ied", "y"), ("ing", ""), ("ed", ""), ("es", ""), ("s", ""), ("e", "")):
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word.removesuffix(ending) + instead
    return word


def negates(text: str) -> bool:
    return not NEGATIONS.isdisjoint(words(text))


def asserted(statement: str, sentence: str) -> bool:
    """Whether a sentence contains the statement word for word, with nothing around it that holds it off."""
    form, said = words(statement), words(sentence)
    if sentence.endswith("?") or not form:
        return False
    for start in range(len(said) - len(form) + 1):
        if said[start] == form[0] and said[start : start + len(form)] == form:
            around = " ".join([*said[:start], ".", *said[start + len(form) :]])
            quoted = _QUOTES.search(sentence) is not None and not _QUOTES.search(statement)
            return not (quoted or DISTANCE.search(around) or DOUBT.search(around))
    return False


_COMPARED = frozenset(_stem(word) for word in _RELATIONS)


class _Side(NamedTuple):
    own: frozenset[str]
    """Words that only this statement has."""
    common: tuple[str, ...]
    negated: bool


def _sides(scenario: Scenario) -> dict[Letter, tuple[_Side, _Side]]:
    """Each statement with its rival."""
    texts = scenario.statements
    found = [stems(text) for text in texts]
    a, b = (
        _Side(frozenset(one) - frozenset(other), tuple(word for word in one if word in other), negates(text))
        for one, other, text in zip(found, reversed(found), texts, strict=True)
    )
    return {Letter.A: (a, b), Letter.B: (b, a)}


def named(scenario: Scenario, said: list[str], *, asked: str) -> Letter | None:
    """The side that a short answer names without repeating the statement: *December*, *it was in Greece*.

    The sentence that names it may hold next to nothing that neither the statements nor the question speak of, or it is
    about something else.
    """
    if any(sentence.endswith("?") or _QUOTES.search(sentence) or negates(sentence) for sentence in said):
        return None
    known = frozenset(words(" ".join(scenario.statements)))
    rest = " ".join(word for sentence in said for word in words(sentence) if word not in known)
    if DISTANCE.search(rest) or DOUBT.search(rest) or _OPEN.search(rest):
        return None
    there = frozenset(word for sentence in said for word in stems(sentence))
    matter = frozenset(stems(asked)) | frozenset(stems(" ".join(scenario.statements)))
    statements = dict(zip((Letter.A, Letter.B), scenario.statements, strict=True))
    for letter, (side, rival) in _sides(scenario).items():
        if side.own & _COMPARED or side.negated or rival.negated:
            continue  # which of two is larger takes more than the word
        if not side.own or not rival.own or rival.own & there:
            continue
        for place, sentence in enumerate(frozenset(stems(one)) for one in said):
            about = not place or sentence & (matter - side.own)
            if about and side.own <= sentence and len(sentence - matter) <= FOREIGN:
                turned = _going(said[place], side.own) - _going(statements[letter], side.own)
                return None if turned else letter
    return None


def near(scenario: Scenario, said: list[str]) -> Letter | None:
    """The one side that sentences of the reply assert in nearly its words, while none takes up the other."""
    known = frozenset(words(" ".join(scenario.statements)))
    sides = _sides(scenario)
    statements = dict(zip(sides, scenario.statements, strict=True))
    taken = {
        letter for letter, pair in sides.items() for one in said if _takes(one, statements[letter], *pair, known=known)
    }
    if len(taken) != 1:
        return None
    (letter,) = taken
    side, rival = sides[letter]
    return None if any(_touches(one, rival) or _denies(one, side) for one in said) else letter


def speaks_for(scenario: Scenario, said: list[str]) -> set[Letter]:
    """The sides that some sentence takes in nearly its words, or half of whose own words it has and none of its
    rival's, with the same sign: enough to doubt a yes or no that says otherwise."""
    known = frozenset(words(" ".join(scenario.statements)))
    statements = dict(zip((Letter.A, Letter.B), scenario.statements, strict=True))
    found: set[Letter] = set()
    for letter, (side, rival) in _sides(scenario).items():
        for one in said:
            if _takes(one, statements[letter], side, rival, known=known) or _has(one, side, rival):
                found.add(letter)
    return found


def _negations(sentence: str) -> int:
    """How many there are: two of them may cancel out."""
    return sum(word in NEGATIONS or word in _FAILURES for word in words(sentence))


def _has(sentence: str, side: _Side, rival: _Side) -> bool:
    """Whether a sentence has the words of a side, something of what both are about, and nothing of its rival's."""
    there = frozenset(stems(sentence))
    if sentence.endswith("?") or _QUOTES.search(sentence) or rival.own & there:
        return False
    shared = there & frozenset(side.common)
    if not shared or negates(sentence) is not side.negated or _negations(sentence) > 1:
        return False
    return len(side.own & there) * 2 >= len(side.own) if side.own else len(shared) * 2 >= len(side.common)


def _takes(sentence: str, statement: str, side: _Side, rival: _Side, *, known: frozenset[str]) -> bool:
    ordered = stems(sentence)
    there = frozenset(ordered)
    if sentence.endswith("?") or _QUOTES.search(sentence) or not side.own <= there or rival.own & there:
        return False
    if not side.own and (rival.own or side.negated is rival.negated):
        return False  # nothing tells the two apart but words such as *for*
    if negates(sentence) is not side.negated or _negations(sentence) > 1:
        return False
    if not _covered(ordered, side, rival) or len(there - side.own - frozenset(side.common)) > BESIDES:
        return False
    if _going(sentence, side.own) - _going(statement, side.own):
        return False
    rest = " ".join(word for word in words(sentence) if word not in known and word not in NEGATIONS)
    return not (DISTANCE.search(rest) or DOUBT.search(rest) or _OPEN.search(rest))


def _covered(ordered: list[str], side: _Side, rival: _Side) -> bool:
    """Whether enough of the common words are there, in the same order where the order carries the meaning: in a
    comparison, and where there are but two."""
    common = list(dict.fromkeys(side.common))
    shared = [word for word in common if word in ordered]
    enough = SHARED if side.own else ALL_BUT
    if not shared or len(shared) < enough * len(common):
        return False
    if common[0] not in shared and len(shared) < SURELY * len(common):
        return False  # perhaps of something else
    places = [ordered.index(word) for word in shared]
    compared = side.own & _COMPARED and rival.own & _COMPARED
    return places == sorted(places) or not (compared or len(common) < 3)


def _going(text: str, own: frozenset[str]) -> frozenset[str]:
    """*to* or *from*, where one stands right before a word of the side: a gift from France is none to France."""
    said = words(text)
    return frozenset(first for first, second in pairwise(said) if first in {"to", "from"} and _stem(second) in own)


def _touches(sentence: str, rival: _Side) -> bool:
    """Whether a sentence brings up the rival's own words other than to deny them."""
    return bool(rival.own) and rival.own <= frozenset(stems(sentence)) and not negates(sentence)


def _denies(sentence: str, side: _Side) -> bool:
    """Whether a sentence has all the words of a side and a negation that the side has not."""
    return bool(side.own) and not side.negated and negates(sentence) and side.own <= frozenset(stems(sentence))
