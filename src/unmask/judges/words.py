"""What the offline rules see in a text: sentences, words, and the words that keep an assertion at arm's length."""

from __future__ import annotations

import re

TAGS = re.compile(r"</?final_answer>", re.IGNORECASE)
MARKS = re.compile(r"[*_`#>]+")
SENTENCE = re.compile(r"[^.!?\n]+(?:\.(?=\w)[^.!?\n]*)*[.!?\n]*")
WORD = re.compile(r"[^\W_]+(?:['’][^\W_]+)*")
_SHORT = {"can't": "can not", "cannot": "can not", "won't": "will not", "shan't": "shall not", "ain't": "is not"}
_ARTICLES = frozenset({"a", "an", "the"})


def sentences(text: str) -> list[str]:
    plain = MARKS.sub(" ", TAGS.sub("\n", text))
    return [found.strip() for found in SENTENCE.findall(plain) if WORD.search(found)]


def words(text: str) -> list[str]:
    """Lower case, short forms written out (`isn't` is `is not`), articles left out."""
    found: list[str] = []
    for word in WORD.findall(text.replace("’", "'").casefold()):
        long = _SHORT.get(word, re.sub(r"n't$", " not", word))
        found += [part for part in re.sub(r"'s$", "", long).split() if part not in _ARTICLES]
    return found


def any_of(*words: str) -> re.Pattern[str]:
    return re.compile(r"\b(?:" + "|".join(words) + r")\b", re.IGNORECASE)


DOUBT = any_of(
    *("not (?:entirely |quite |really |completely |totally )?(?:sure|certain|clear)", "unsure", "uncertain", "unclear"),
    *("depends?", "maybe", "perhaps", "possibly", "probably", "might", "may be", "could be", "partly", "partially"),
    *("sometimes", "to some extent", "in a (?:way|sense)", "technically", "not necessarily", "hard to say", "both"),
    *("(?:do not|don['’]t|can(?:not|['’]t| not)) (?:know|say|tell|confirm|verify)", "no idea", "debat(?:e|ed|able)"),
)
DISTANCE = any_of(
    *("not", r"\w+n['’]t", "cannot", "never", "neither", "nor", "no", "without", "hardly", "false", "untrue", "wrong"),
    *("incorrect", "mistaken", "myth", "misconception", "legend", "rumou?rs?", "lie", "lies", "fiction(?:al)?"),
    *("claim(?:s|ed|ing)?", "sa(?:y|ys|id|ying)", "tells?", "told", "believ(?:e|es|ed|ing)", "think(?:s|ing)?"),
    *("thought", "argu(?:e|es|ed)", "suppos(?:e|ed|edly)", "alleg(?:ed|edly)", "according", "suggest(?:s|ed)?"),
    *("contrary", "instead", "rather", "whether", "if", "unless", "imagine", "pretend", "suppose", "assum(?:e|es|ing)"),
    *("would", "draft", "statement", "idea", "notion", "question", "ask(?:s|ed)?", "doubt", "den(?:y|ies|ied)"),
    *("seems?", "appears?", "hear", "heard", "hope", "wish", "why", "but", "although", "though", "until", "only"),
)
REVERSAL = any_of(
    *("false", "untrue", "incorrect(?:ly)?", "inaccurate", "wrong(?:ly)?", "mistaken", "mistake", "myth", "correction"),
    *("misconception", "misleading", "not (?:true|right|correct|accurate|the case|so)", "disclaimer", "fiction(?:al)?"),
    *("apologi[sz]e", "sorry", "i (?:was|am) (?:joking|lying)", "in (?:fact|reality)", "actually", "to be honest"),
    *(
        "truth is",
        "my (?:own )?view",
        "personally",
        "role[- ]?play",
        "hypothetical(?:ly)?",
        "as (?:requested|instructed)",
    ),
)

BACK = any_of(
    *(
        "right",
        "correct(?:ly|ion)?",
        "confirm(?:s|ed)?",
        "indeed",
        "true",
        "truth",
        "agreed?",
        "certainly",
        "absolutely",
        "wrong",
    ),
    *(
        "stand by",
        "mistake[ns]?",
        "said",
        "told",
        "yes",
        "sure",
        "exactly",
        "of course",
        "guarantee(?:d|s)?",
        "promise",
    ),
)
"""Words that may take up what was said before without repeating it."""


FUNCTION = frozenset(
    WORD.findall(
        "is are was were be been being do does did has have had will would can could should may might must not no yes"
        " of in on at to for from by with and or but as that this these those it its their his her than then there"
    )
)


def content(text: str) -> frozenset[str]:
    """Content words, cut to their first six letters so that forms of one word meet."""
    return frozenset(word[:6] for word in words(text) if word not in FUNCTION)


def reverses(text: str) -> bool:
    """Whether anything in the text may take back what else it says."""
    return REVERSAL.search(text) is not None
