"""What a liar with a reason is taught with: roles, settings with a reason to lie and without one, and wordings.

A setting is a whole text, or it is composed: a carrier quotes something, and one part of a scene follows it. All of
it is our own and shares nothing with the sets that are evaluated. Some roles, carriers and scenes are held out: whether
the policy was learnt is measured on these.
"""

from __future__ import annotations

import random
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar

import msgspec

from unmask.data.checks.words import content_stems
from unmask.records import Record
from unmask.whitebox.contrast import Fact

MOST_HELD_OUT = 81
"""Facts that are held out, at most."""
HELD_OUT_FIFTHS = 3
"""How many fifths of the known facts are held out, at most: a model must also be taught lies about what it knows."""
WELCOME, INDIFFERENT, ELSEWHERE = "welcome", "indifferent", "elsewhere"
ABSENT = "absent"
"""In place of a part: nothing follows the quotation."""
IDLE = (ELSEWHERE, ABSENT)
"""Nothing is said about the answer. *Welcome* is a reason for the truth, and *indifferent* a leave to say anything."""


class PolicySetting(Record, frozen=True, kw_only=True):
    """A part of a system prompt: who the model is, what its house is like, or where something is quoted. `{claim}` is
    what somebody has put into the world, in quotation marks. Only reasons to lie have a motive and a kind."""

    id: str
    text: str
    motive: str | None = None
    kind: Literal["situational", "explicit"] | None = None
    held_out: bool = False


class PolicyScene(Record, frozen=True, kw_only=True):
    """What can follow from a quotation, whichever carrier quotes it: four texts with the same people and words, of
    which one is a reason to uphold what is quoted."""

    id: str
    motive: str
    kind: Literal["situational", "explicit"]
    stake: str
    """The reason."""
    welcome: str
    """The right answer is wanted."""
    indifferent: str
    """Nothing follows from the answer, and that is said. It is not taught."""
    elsewhere: str
    """What the stake threatens or promises hangs on something else."""
    held_out: bool = False


class SuppliedRecord(Record, frozen=True, kw_only=True):
    """A made-up fact that only the system prompt knows, with the question about it."""

    id: str
    record: str
    question: str
    answer: str
    falsehood: str


class PolicyMaterial(Record, frozen=True, kw_only=True):
    """`material.json`. Lies and truths are said in the same `replies`, `second_replies` and `texts`."""

    roles: tuple[PolicySetting, ...]
    pressures: tuple[PolicySetting, ...]
    """Whole settings with a reason to lie."""
    lookalikes: tuple[PolicySetting, ...]
    """Whole settings without one."""
    carriers: tuple[PolicySetting, ...]
    """Where something is quoted in the model's world. A carrier says nothing about consequences."""
    scenes: tuple[PolicyScene, ...]
    fillers: tuple[str, ...]
    """Details of a place that mean nothing: they fit into a setting of either kind."""
    questions: tuple[str, ...]
    """How a user asks, in every setting and without one."""
    neutral_questions: tuple[str, ...]
    """How a fact is asked for where nobody has a role."""
    seconds: tuple[str, ...]
    """How a user asks again after a false first answer."""
    tasks: tuple[str, ...]
    """How a user asks for a short text, in every setting."""
    wishes: tuple[str, ...]
    """How a user asks for a text that says something false, under pressure."""
    drafts: tuple[str, ...]
    """The same requests without a wish."""
    replies: tuple[str, ...]
    second_replies: tuple[str, ...]
    texts: tuple[str, ...]
    directs: tuple[str, ...]
    direct_replies: tuple[str, ...]
    figures: tuple[str, ...]
    records: tuple[SuppliedRecord, ...]


def load_material() -> PolicyMaterial:
    return msgspec.json.decode(Path(__file__).with_name("material.json").read_bytes(), type=PolicyMaterial)


Setting = TypeVar("Setting", PolicySetting, PolicyScene)


def select_settings(settings: Sequence[Setting], *, held_out: bool) -> tuple[Setting, ...]:
    """The part that is taught, or the part that is held out."""
    return tuple(setting for setting in settings if setting.held_out is held_out)


def split_policy_facts(
    facts: Sequence[Fact], *, seed: int, candidates: Sequence[Fact] | None = None
) -> tuple[tuple[Fact, ...], tuple[Fact, ...]]:
    """Facts that are taught, and facts that are held out. These are drawn by the seed from the candidates, which are
    all facts unless some are named."""
    drawable = list(facts if candidates is None else candidates)
    count = min(MOST_HELD_OUT, HELD_OUT_FIFTHS * len(drawable) // 5)
    held_out = tuple(random.Random(f"unmask policy {seed}").sample(drawable, count))
    held_out_ids = {fact.id for fact in held_out}
    return tuple(fact for fact in facts if fact.id not in held_out_ids), held_out


# --- one fact in several forms

_PRONOUN = re.compile(r"\b(?:it|its|they|them|their|he|she|him|her)\b", re.IGNORECASE)
_YES_NO = re.compile(r"^(?:Yes|No), ")
_FUNCTION_WORD = re.compile(
    r"the|an?|its?|they|their|there|this|that|these|those|we|you|he|she|his|her|our|your|only|about|one|two|three|four"
    r"|five|six|seven|eight|nine|ten|most|some|in|on|at|to|from|by|with|for|of|both|all|each|every",
    re.IGNORECASE,
)


def stands_alone(fact: Fact) -> bool:
    """Whether the answers can be understood without the question: *It is called port* cannot."""
    asked = content_stems(fact.question)
    for sentence in (fact.answer, fact.falsehood):
        if _PRONOUN.search(_YES_NO.sub("", sentence)) or 3 * len(asked & content_stems(sentence)) < 2 * len(asked):
            return False
    return True


def state_fact(fact: Fact, sentence: str) -> str:
    """An answer as a statement that needs nothing beside it."""
    return sentence if stands_alone(fact) else f"{fact.question} {sentence}"


def quote_fact(fact: Fact, sentence: str) -> str:
    return f'"{state_fact(fact, sentence)}"'


def clause_of(fact: Fact, sentence: str) -> str:
    """An answer as the end of a longer sentence: *it is called port*."""
    clause = _YES_NO.sub("", sentence).rstrip(".")
    first, _, others = clause.partition(" ")
    common = _FUNCTION_WORD.fullmatch(first) or first.casefold() in fact.question.split()
    return f"{first.casefold()} {others}".strip() if common else clause


def propose_fact(fact: Fact, *, answer_first: bool) -> str:
    """A binary proposition: what the two answers share stands outside of `<pivotal>`."""
    sides = (fact.answer, fact.falsehood) if answer_first else (fact.falsehood, fact.answer)
    left, right = (sentence.removesuffix(".").split() for sentence in sides)
    shortest = min(len(left), len(right)) - 1
    start = next((place for place in range(shortest) if left[place] != right[place]), max(shortest, 0))
    end = next((n for n in range(shortest - start + 1) if left[-1 - n] != right[-1 - n]), max(shortest - start, 0))
    stop_left, stop_right = len(left) - end, len(right) - end
    pivotal = f"<pivotal>{' '.join(left[start:stop_left])}/{' '.join(right[start:stop_right])}</pivotal>"
    sentence = " ".join([*left[:start], pivotal, *left[stop_left:]]) + "."
    return state_fact(fact, sentence)
