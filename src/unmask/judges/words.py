"""Sentences and words of a reply, as the rules that read without a model see them."""

from __future__ import annotations

import re
from functools import lru_cache

TAGS = re.compile(r"</?final_answer>", re.IGNORECASE)
MARKS = re.compile(r"[*_`#>]+")
SENTENCE = re.compile(r"[^.!?\n]+(?:\.(?=\w)[^.!?\n]*)*[.!?\n]*")
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
NEGATIONS = frozenset({"not", "no", "never", "none", "nor", "neither", "without", "nobody", "nothing"})
_SHORT = {"can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "ain't": "is not"}
_FUNCTION = NEGATIONS | frozenset(
    WORD.findall(
        "a an the is are was were be been being do does did has have had will would can could should may might must yes"
        " of in on at to for from by with and or but as that this these those it its their his her than then there"
    )
)


def sentences(text: str) -> list[str]:
    plain = MARKS.sub(" ", TAGS.sub("\n", text))
    return [sentence.strip() for sentence in SENTENCE.findall(plain) if WORD.search(sentence)]


def words(text: str) -> list[str]:
    """Lower case, short forms written out: `isn't` is `is not`."""
    text = text.replace("’", "'").casefold()
    as_written: list[str] = WORD.findall(text)
    if "'" not in text and "cannot" not in text:  # no short form, as in most texts
        return as_written
    result: list[str] = []
    for word in as_written:
        if word in _SHORT:
            result += _SHORT[word].split()
        elif word.endswith("n't"):
            result += [*word.removesuffix("n't").split(), "not"]
        else:
            result.append(word.removesuffix("'s"))
    return result


def content_words(text: str) -> frozenset[str]:
    """Content words, cut to their first six letters so that forms of one word meet."""
    return _look_at_words(text)[0]


def count_negations(text: str) -> int:
    return _look_at_words(text)[1]


def negates(text: str) -> bool:
    return _look_at_words(text)[1] > 0


@lru_cache(maxsize=1024)
def _look_at_words(text: str) -> tuple[frozenset[str], int]:
    """Content words, and how many negations there are: both are asked for, several times, of each sentence."""
    spoken = words(text)
    content = frozenset([word[:6] for word in spoken if word not in _FUNCTION])
    return content, len([word for word in spoken if word in NEGATIONS])
