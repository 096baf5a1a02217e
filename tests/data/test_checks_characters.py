"""Look-alike and invisible characters."""

from __future__ import annotations

import unicodedata

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.data.complete import binary
from unmask.data.checks.characters import LOOKS_LIKE, find_oddity, no_look_alikes

CYRILLIC_A = "\N{CYRILLIC SMALL LETTER A}"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (f"p{CYRILLIC_A}y", "mixes scripts"),
        ("the \u0410\u0422\u041c is closed", "only looks Latin"),
        ("\N{FULLWIDTH LATIN SMALL LETTER Y}es", "instead of 'y'"),
        ("\N{MATHEMATICAL BOLD SMALL A}nswer", "instead of 'a'"),
        ("\N{LATIN SMALL LIGATURE FI}ne", "instead of 'fi'"),
        ("six\N{DIVISION SLASH}eight", "looks like '/'"),
        ("\N{MATHEMATICAL LEFT ANGLE BRACKET}pivotal>", "looks like '<'"),
        ("zero\N{ZERO WIDTH SPACE}width", "invisible character U+200B"),
        ("soft\N{SOFT HYPHEN}ly", "invisible character U+00AD"),
        ("turn \N{RIGHT-TO-LEFT OVERRIDE}round", "invisible character U+202E"),
        ("join\N{ZERO WIDTH JOINER}ed", "invisible character U+200D"),
        ("em\N{EM SPACE}space", "plain space"),
        ("line\N{LINE SEPARATOR}end", "plain space"),
        ("bell\x07", "control character U+0007"),
        ("next\x85line", "no agreed meaning"),
        ("private\ue000", "no agreed meaning"),
        ("nai\N{COMBINING DIAERESIS}ve", "NFC"),
    ],
)
def test_a_suspicious_text_is_named(text: str, words: str):
    """With the code point, since nobody can see it."""
    assert words in (find_oddity(text) or "")


@pytest.mark.parametrize(
    "text",
    [
        "plain\ttext\nin lines",
        "naïve café, Ødegård, Łódź",
        "“quotes” – dashes — and … 5\N{NO-BREAK SPACE}% ½ ² °C € № ×",
        "fingers crossed 🤞 and a family 👩\N{ZERO WIDTH JOINER}👩\N{ZERO WIDTH JOINER}👧",
        "5 μm, 10 Ω, λ and π",
        "Война и мир",
        "食べる、カタカナ、漢字 and words",
        "می\N{ZERO WIDTH NON-JOINER}خواهم",
        "the Russian word \N{CYRILLIC SMALL LETTER EM}\N{CYRILLIC SMALL LETTER I}\N{CYRILLIC SMALL LETTER ER}",
    ],
)
def test_honest_typing_is_not_suspicious(text: str):
    """Accents, typography, emoji, units and other languages."""
    assert find_oddity(text) is None


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_ascii_is_never_suspicious(text: str):
    """Whatever it says."""
    assert find_oddity(text) is None


@given(st.sampled_from(sorted(LOOKS_LIKE)), st.text("abcxyz", min_size=1))
def test_a_look_alike_inside_a_latin_word_is_always_found(double: str, word: str):
    """Wherever it stands."""
    assert find_oddity(word + double)
    assert find_oddity(double + word)


def test_every_look_alike_is_a_letter_of_another_alphabet():
    """The table holds what it says: not a Latin letter among them, and each stands for one."""
    for double, plain in LOOKS_LIKE.items():
        assert unicodedata.name(double).split()[0] in {"CYRILLIC", "GREEK"}
        assert plain.isascii()


@pytest.mark.parametrize("field", ["id", "proposition", "direct", "indirect", "check", "evidence", "domain"])
def test_every_text_is_looked_at(field: str):
    """One problem, under the id, with the name of the text."""
    text = f"p{CYRILLIC_A}y"
    spoilt = msgspec.structs.replace(binary(), **{field: (text,) if field == "indirect" else text})
    (problem,) = no_look_alikes([spoilt])
    assert problem.code == "look_alike"
    assert problem.message.startswith(field)
