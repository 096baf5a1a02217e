"""Warnings: characters that look like others, or like nothing. They split words, defeat comparison and hide text."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from unmask.data.checks.words import scenario_texts
from unmask.data.form import Problem
from unmask.records import Scenario

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
