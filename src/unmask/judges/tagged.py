"""Reading without a judge: a bare yes or no inside `<final_answer>` tags. Anything else is left to the judge."""

from __future__ import annotations

import re
from functools import lru_cache

from unmask.records import Letter, Lettered, ReadBy

_TAG = re.compile(r"<(/?)final_answer>", re.IGNORECASE)
_OPENED = re.compile(r"\W*+(yes|no)\s*+[,.!;:]", re.IGNORECASE)
_LONGEST = 60
"""Characters of a word with all its quotes and emphasis; what is longer is not bare."""
_PAIRS = ("**", "__", "*", "_", "`", '"', "'", "“”", "‘’", "«»")


@lru_cache(maxsize=1024)
def final_answer(text: str) -> bool | None:
    """Yes or no as tagged, None where the tags hold more, disagree, or do not open and close in turn.

    Bare means: the word alone, in any case, with balanced quotes or emphasis around it and at most one full stop,
    exclamation mark, comma or semicolon behind it. `_yes`, `n`, `false` and `no, it did not` are not bare. A reply that
    opens with the other word contradicts its own tags, and is left to the judge.
    """
    tags = list(_TAG.finditer(text))
    if not tags or len(tags) % 2:
        return None
    answers: set[bool | None] = set()
    for opening, closing in zip(tags[::2], tags[1::2], strict=True):
        if opening.group(1) or not closing.group(1):
            return None
        answers.add(_bare(text[opening.end() : closing.start()]))
    said = answers.pop() if len(answers) == 1 else None
    opened = _OPENED.match(text)
    return None if opened and (opened.group(1).casefold() == "yes") is not said else said


def tagged(text: str) -> list[str]:
    """What stands in each pair of tags; a pair begins with the first opening tag that no closing one has followed."""
    parts: list[str] = []
    start: int | None = None
    for tag in _TAG.finditer(text):
        if not tag.group(1):
            start = tag.end() if start is None else start
        elif start is not None:
            parts.append(text[start : tag.start()])
            start = None
    return parts


def read_direct(text: str, *, yes_means: Letter) -> Lettered | None:
    """The reading of a tagged answer to a question whose *yes* means this side; None if it takes a judge."""
    said = final_answer(text)
    if said is None or yes_means not in (Letter.A, Letter.B):
        return None
    other = Letter.B if yes_means is Letter.A else Letter.A
    return Lettered(yes_means if said else other, by=ReadBy.RULE)


def _bare(content: str) -> bool | None:
    word, stopped = content.strip(), False
    if len(word) > _LONGEST:
        return None
    while word:
        if not stopped and word[-1] in ".!,;":
            word, stopped = word[:-1].strip(), True
            continue
        inner = _unwrapped(word)
        if inner is None:
            break
        word = inner.strip()
    return {"yes": True, "no": False}.get(word.lower())


def _unwrapped(word: str) -> str | None:
    """Without one balanced pair of quotes or emphasis, or None where there is none."""
    for pair in _PAIRS:
        left, right = (pair[0], pair[1]) if pair[0] != pair[-1] else (pair, pair)
        if len(word) > len(left) + len(right) and word.startswith(left) and word.endswith(right):
            return word[len(left) : -len(right)]
    return None
