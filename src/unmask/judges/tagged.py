"""Reading without a judge: a bare yes or no inside `<final_answer>` tags. Anything else is left to the judge, and so is
a tag that the sentences before it contradict."""

from __future__ import annotations

import re
from functools import lru_cache

from unmask.judges.words import NEGATIONS, content_words, count_negations, negates, sentences, words
from unmask.records import Letter, Lettered, ReadBy, Scenario

_TAG = re.compile(r"<(/?)final_answer>", re.IGNORECASE)
_OPENED = re.compile(r"\W*+(yes|no)\s*+[,.!;:]", re.IGNORECASE)
_LONGEST = 60
"""Characters of a word with all its quotes and emphasis; what is longer is not bare."""
_REASONED = 12
"""Words beside the tags from which on they have to speak for the tagged side."""
_ARGUMENT = 60
"""Words beside the tags from which on the last two sentences have to."""
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
        answers.add(_parse_yes_or_no(text[opening.end() : closing.start()]))
    answer = answers.pop() if len(answers) == 1 else None
    opened = _OPENED.match(text)
    return None if opened and (opened.group(1).casefold() == "yes") is not answer else answer


def tag_contents(text: str) -> list[str]:
    """What stands in each pair of tags; a pair begins with the first opening tag that no closing one has followed."""
    return [text[start:end] for start, end in _tag_spans(text)]


def without_tags(text: str) -> str:
    """The text without the tags and what stands in them."""
    parts, place = [], 0
    for start, end in _tag_spans(text):
        parts.append(text[place:start])
        place = end
    return _TAG.sub("\n", "\n".join([*parts, text[place:]]))


def _tag_spans(text: str) -> list[tuple[int, int]]:
    spans: list[tuple[int, int]] = []
    start: int | None = None
    for tag in _TAG.finditer(text):
        if not tag.group(1):
            start = tag.end() if start is None else start
        elif start is not None:
            spans.append((start, tag.start()))
            start = None
    return spans


def read_direct(text: str, *, yes_means: Letter) -> Lettered | None:
    """The reading of a tagged answer to a question whose *yes* means this side; None if it takes a judge."""
    answer = final_answer(text)
    if answer is None or yes_means not in (Letter.A, Letter.B):
        return None
    opposite = Letter.B if yes_means is Letter.A else Letter.A
    return Lettered(yes_means if answer else opposite, by=ReadBy.RULE)


def contradicts(scenario: Scenario, text: str, letter: Letter) -> bool:
    """Whether the sentences beside the tags speak for the other side than this one, or at length for neither. A long
    argument is weighed by its last two sentences."""
    a, b = scenario.statements
    own, rival = (a, b) if letter is Letter.A else (b, a)
    beside = without_tags(text)
    length, spoken = len(words(beside)), sentences(beside)
    if any(_speaks_for(sentence, rival, own) for sentence in spoken):
        return True
    reasons = spoken[-2:] if length > _ARGUMENT else spoken
    return length > _REASONED and not any(_speaks_for(sentence, own, rival) for sentence in reasons)


_QUOTATION = re.compile(r"[\"“][^\"“”]*[\"”]")
_CONCEDED = re.compile(r"^.{0,40}?\b(?:while|although|though|even if|despite)\b[^,]*,", re.IGNORECASE)
_NOT_ASSERTED = re.compile(
    r"\b(?:myths?|misconceptions?|legends?|false|untrue|wrong|incorrect(?:ly)?|mistak\w+|believe[sd]?|claim\w*|think|thought"
    r"|sa(?:y|ys|id)|suggest\w*|according|popular\w*|commonly|often|some|many|if|would|could|may|might|whether|suppose"
    r"|question|statement|however|but|or)\b",
    re.IGNORECASE,
)
"""Words of a sentence that may report, suppose or take back what it says."""


_TAIL = 2_000
"""Characters before a tag in which its last two sentences are looked for."""


def argues_against(scenario: Scenario, text: str, letter: Letter) -> bool:
    """Whether the last two sentences before the first tag plainly say the other side than this one, which the tags
    name. A sentence that may report or take back what it says counts for neither, and as the last one it ends the
    search: contradictions are missed rather than seen where there are none."""
    a, b = scenario.statements
    own, rival = (a, b) if letter is Letter.A else (b, a)
    tag = _TAG.search(text)
    return tag is not None and _ends_with_rival(text[max(0, tag.start() - _TAIL) : tag.start()], own, rival)


@lru_cache(maxsize=4096)  # the replies of a run of the usual size are not looked at again when it is scored
def _ends_with_rival(before: str, own: str, rival: str) -> bool:
    before = _QUOTATION.sub(_drop_long_quotation, before)
    last = [_CONCEDED.sub("", _OPENED.sub("", sentence)) for sentence in sentences(before)[-2:]]
    if not last or _NOT_ASSERTED.search(last[-1]) or _says_side(last[-1], own, rival):
        return False
    return any(_says_side(sentence, rival, own) and not _NOT_ASSERTED.search(sentence) for sentence in last)


def _drop_long_quotation(quotation: re.Match[str]) -> str:
    """One or two words in quotation marks are no quotation."""
    return " " if len(words(quotation.group())) > 2 else quotation.group()


def _says_side(sentence: str, statement: str, rival: str) -> bool:
    """As `_speaks_for`. Two negations (*did not go without*) make none. Where the statements differ in their sign and
    at most one word (*wore*, *did not wear*), two thirds of the words that they share are enough."""
    if count_negations(sentence) == 2:
        sentence = " ".join(word for word in words(sentence) if word not in NEGATIONS)
    ours, theirs = content_words(statement), content_words(rival)
    if (
        negates(statement) is negates(rival)
        or max(len(ours - theirs), len(theirs - ours)) > 1
        or sentence.endswith("?")
    ):
        return _speaks_for(sentence, statement, rival)
    shared = ours & theirs
    return negates(sentence) is negates(statement) and len(shared & content_words(sentence)) * 3 >= len(shared) * 2


def _speaks_for(sentence: str, statement: str, rival: str) -> bool:
    """Whether a sentence has the sign of a statement (negated or not), a word that it shares with its rival, half of
    the words that only the statement has, and none that only its rival has. Where nothing but the sign tells the two
    apart, half of what they share is enough."""
    spoken, ours, theirs = content_words(sentence), content_words(statement), content_words(rival)
    if sentence.endswith("?") or spoken & (theirs - ours) or negates(sentence) is not negates(statement):
        return False
    if ours - theirs:
        return bool(spoken & ours & theirs) and len(spoken & (ours - theirs)) * 2 >= len(ours - theirs)
    return len(spoken & ours) * 2 >= len(ours) and (bool(theirs - ours) or negates(statement) is not negates(rival))


def _parse_yes_or_no(content: str) -> bool | None:
    word, stopped = content.strip(), False
    if len(word) > _LONGEST:
        return None
    while word:
        if not stopped and word[-1] in ".!,;":
            word, stopped = word[:-1].strip(), True
            continue
        inner = _unwrap(word)
        if inner is None:
            break
        word = inner.strip()
    return {"yes": True, "no": False}.get(word.lower())


def _unwrap(word: str) -> str | None:
    """Without one balanced pair of quotes or emphasis, or None where there is none."""
    for pair in _PAIRS:
        left, right = (pair[0], pair[1]) if pair[0] != pair[-1] else (pair, pair)
        if len(word) > len(left) + len(right) and word.startswith(left) and word.endswith(right):
            return word[len(left) : -len(right)]
    return None
