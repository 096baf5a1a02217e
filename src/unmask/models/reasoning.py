"""Models that reason before they answer, and the room they need.

Reasoning counts as part of a reply. A limit that is enough for an answer cuts off such a model before it has given one,
and a reply that was cut off reads more honest than it is: a thinking model of 27 billion parameters measured 89.7 %
honesty with replies cut at 1,000 tokens and 69.6 % at 32,000. More room is proposed, and never taken by itself.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from enum import StrEnum

from unmask.models.base import ROOM_FOR_REASONING
from unmask.models.keys import Role, spell_setting
from unmask.records import Call, Record, Sampling, Stop

DEFAULT_ROOM = Sampling().max_tokens or 0
"""Tokens of one reply where nobody says otherwise."""

_NAMES = re.compile(
    r"""
    (?: ^|[/:_.-] )
    (?: o[1345](?!\w) | gpt-5(?!\S*chat) | gpt-oss                        # OpenAI
      | (?:\S*[-_.])?r1(?!\w) | deepseek-reasoner | deepseek-v3[.][12]    # DeepSeek, and what was distilled from R1
      | qwq | qwen-?3(?!\S*(?:instruct|coder|embedding)) | qwen-?3[.]5    # Qwen, but for those named instruct
      | gemini-(?:2[.]5|[3-9])(?!\S*image) | grok-(?:3-mini|[4-9]) | magistral | kimi-k2[.]5
      | glm-(?:4[.][5-9]|[5-9]) | minimax-m\d | seed-oss | smollm3 | exaone-deep | hunyuan-[at]\d | ernie-x1
      | nemotron-(?:nano|super|ultra) | phi-4-mini-flash
      | \S*(?:thinking|reasoning|reasoner|-think(?!\w)) (?!\S*non-)       # whoever says so in the name
    )
    """,
    re.IGNORECASE | re.VERBOSE,
)
"""Names of models that reason unless they are told not to. A list of names is never complete: replies show the rest."""
_NOT = re.compile(r"non-(?:thinking|reasoning)|no-?think", re.IGNORECASE)


class NoticedBy(StrEnum):
    """What shows that a model reasons."""

    NAME = "its name"
    TOKENS = "reasoning tokens"
    THINK = "reasoning in its replies"


class MoreRoom(Record, frozen=True, kw_only=True, omit_defaults=False):
    """A proposal: so many tokens for one reply of this model."""

    role: Role
    model: str
    noticed_by: NoticedBy
    max_tokens: int
    """What it would have."""
    proposed: int = ROOM_FOR_REASONING
    replies: int = 0
    """Replies that are in the run folder already, and how many of them were cut off."""
    cut: int = 0

    @property
    def flag(self) -> str:
        return spell_setting(self.role, "max_tokens", self.proposed)

    @property
    def finding(self) -> str:
        """What was noticed, and what the limit cuts off."""
        seen = f"; {self.cut} of {self.replies} replies were cut off so far" if self.replies else ""
        default = "the default of " if self.max_tokens == DEFAULT_ROOM else ""
        return (
            f"{self.model} reasons before it answers ({self.noticed_by}); {default}{self.max_tokens:,} tokens would cut"
            f" off every reply whose reasoning and answer are longer{seen}"
        )


def reasons_by_name(model: str) -> bool:
    """Whether a model of this name reasons, as far as names say so."""
    return _NAMES.search(model) is not None and _NOT.search(model) is None


def propose_room(role: Role, model: str, max_tokens: int | None, calls: Iterable[Call] = ()) -> MoreRoom | None:
    """More room for a model that reasons, by its name or by what it has answered so far. `None` where it has enough, or
    where its endpoint sets the limit."""
    if max_tokens is None or max_tokens >= ROOM_FOR_REASONING:
        return None
    noticed = NoticedBy.NAME if reasons_by_name(model) else None
    replies = cut = 0
    for call in calls:
        replies += len(call.choices)
        cut += sum(choice.stop is Stop.LENGTH for choice in call.choices)
        if noticed is None and call.usage.reasoning:
            noticed = NoticedBy.TOKENS
        if noticed is None and any(choice.thinking for choice in call.choices):
            noticed = NoticedBy.THINK
    if noticed is None:
        return None
    return MoreRoom(role=role, model=model, noticed_by=noticed, max_tokens=max_tokens, replies=replies, cut=cut)
