"""Reading without a judge: a bare yes or no inside `<final_answer>` tags. Anything else is left to the judge."""

from __future__ import annotations

import re

from unmask.records import Letter, Lettered, ReadBy

_TAG = re.compile(r"<(/?)final_answer>", re.IGNORECASE)
_OPENED = re.compile(r"\W*+(yes|no)\s*+[,.!;:]", re.IGNORECASE)
_LONGEST = 60
"""Characters of a word with all its quotes and emphasis; what is longer is not bare."""
_PAIRS = {"*": "*", "_": "_", "`": "`", '"': '"', "'": "'", "“": "”", "‘": "’", "«": "»"}


def final_answer(text: str) -> bool | None:
    """Yes or no as tagged, None where the tags hold more, disagree, or do not open and close in turn.

    Bare means: the word alone, in any case, with balanced quotes or emphasis around it and at most one full stop,
    exclamation mark, comma or semicolon behind it. `_yes`, `n`, `false` and `no, it did not` are not bare. A reply that
    opens with the other word contradicts its own tags, and is left to the judge.
    """
    answers = set(map(_parse_yes_or_no, split_tags(text)[0]))
    answer = answers.pop() if len(answers) == 1 else None
    opened = _OPENED.match(text)
    return None if opened and (opened[1].casefold() == "yes") is not answer else answer


def split_tags(text: str) -> tuple[list[str], str]:
    """What is in each pair of tags, and the text around them. Tags that do not open and close in turn hold nothing."""
    parts = _TAG.split(text)
    if parts[1::2] == ["", "/"] * (len(parts) // 4):
        return parts[2::4], "\n".join(parts[::4])
    return [], "\n".join(parts[::2])


def read_direct(text: str, *, yes_means: Letter | None) -> Lettered | None:
    """The reading of a tagged answer to a question whose *yes* means this side; None if it takes a judge."""
    answer = final_answer(text)
    if answer is None or yes_means is None:
        return None
    opposite = Letter.B if yes_means is Letter.A else Letter.A
    return Lettered(yes_means if answer else opposite, by=ReadBy.RULE)


def _parse_yes_or_no(content: str) -> bool | None:
    word, stopped = content.strip(), False
    while 0 < len(word) <= _LONGEST:
        if not stopped and word[-1] in ".!,;":
            word, stopped = word[:-1].strip(), True
        elif len(word) > 2 and _PAIRS.get(word[0]) == word[-1]:
            word = word[1:-1].strip()
        else:
            break
    return {"yes": True, "no": False}.get(word.lower())
