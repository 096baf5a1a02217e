"""The judge that writes reasons and then a letter, or bounds: what it is sent, and what its words mean.

It is sent constant instructions in the system message, quoted material in the user message.

Everything a stranger wrote (replies, drafts, prompts, statements) is between `[BEGIN label code]` and
`[END label code]` lines. The codes are derived from the quoted texts and occur in none of them, so no text can
close its own block. The scenario has a code of its own and the reply comes behind it with another, so that all takes of
a scenario are asked about in the same words up to the reply: a provider works these through once. Behind a long reply
the statements are quoted once more.

The wording lives in `texts/*.md`. `prompts_hash` names it: one hash for each style of judge, over the texts that it is
sent. Two runs with the same hash asked their judges in the same words. `run.json` holds it, and a run is continued only
in the words it began with.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

from unmask.judges import answers, tagged
from unmask.judges.base import Style, Tags
from unmask.records import (
    CHECK,
    DIRECT,
    PRESSURED,
    Choice,
    Judged,
    Kind,
    Letter,
    Message,
    Method,
    Reading,
    Request,
    Role,
    Sampling,
    Scenario,
    Slot,
    is_indirect,
)

LAYOUT = 1
"""Version of how texts are put together; part of `prompts_hash`, raised when the layout changes."""

LONG = 2_000
"""Characters of reply text behind which the statements, or the proposition, are quoted once more."""
LONGEST = 60_000
"""Characters of reply text quoted whole, over all replies of one request. Of a longer reply the first two thirds
of the allowance and the last third are kept, with a line `[GAP … code]` that says how much is left out: a judge's
context is finite, and what a reply settles on is at its start or its end."""

_NUMBER_OR_NULL = {"type": ["number", "null"]}
SCHEMA: dict[str, Any] = {
    "title": "reading",
    "type": "object",
    "properties": {
        "reason": {"type": "string"},
        "lower": _NUMBER_OR_NULL,
        "upper": _NUMBER_OR_NULL,
        "relative_lower": _NUMBER_OR_NULL,
        "relative_upper": _NUMBER_OR_NULL,
    },
    "required": ["reason", "lower", "upper", "relative_lower", "relative_upper"],
    "additionalProperties": False,
}
"""`reason` comes first so that a judge under structured output still thinks before it fixes a figure."""


class _Block(NamedTuple):
    label: str
    text: str


def questions(kind: Kind) -> tuple[Method, ...]:
    """One question: for a letter, or for bounds."""
    return (Method.LETTER,) if kind is Kind.BINARY else (Method.INTERVAL,)


def request(
    method: Method, scenario: Scenario, slot: Slot, texts: tuple[str, ...], *, sampling: Sampling, attempt: int = 1
) -> Request:
    """The judge request about these replies to one slot of a scenario: a pure function, byte for byte. A second attempt
    ends with a reminder of the form.

    `LETTER` takes one text, `INTERVAL` one or more that are read as one belief.
    """
    match method:
        case Method.LETTER:
            ask, remind, schema = "ask_letter", "remind_letter", None
            shown = [_statements_block(scenario), *_context_blocks(scenario, slot)]
        case Method.INTERVAL:
            ask, remind, schema = "numeric_rules", "remind_interval", SCHEMA
            shown = _figure_blocks(scenario, slot)
        case _:
            return _side_request(method, scenario, texts, sampling=sampling, attempt=attempt)
    system = _join(*_rules_about(scenario, slot), "quoted", ask)
    quoted = _quote(shown, texts, repeated=shown[0])
    messages = (Message(Role.SYSTEM, system), _closed(quoted, remind, method, attempt))
    return Request(messages, sampling=sampling, schema=schema)


def _rules_about(scenario: Scenario, slot: Slot) -> tuple[str, ...]:
    """The texts that say how a reply in this slot is read."""
    if slot == PRESSURED:
        own = scenario.archetype.traits.judge_text
        return f"{scenario.kind}_pressured", *([own] if own else [])
    return ("binary_indirect" if is_indirect(slot) and scenario.kind is Kind.BINARY else f"{scenario.kind}_direct",)


def reading(calls: Sequence[Judged], *, kind: Kind) -> Reading:
    """The last letter or bounds that the judge wrote about these texts."""
    return answers.read_answers(calls, method=questions(kind)[0])


def by_rule(scenario: Scenario, slot: Slot, text: str, *, tags: Tags) -> Reading | None:
    """A bare yes or no in tags, where the reader is `auto` and the scenario says which side *yes* means."""
    if tags is not Tags.RULE or scenario.kind is not Kind.BINARY or slot not in {DIRECT, CHECK}:
        return None
    return tagged.read_direct(text, yes_means=scenario.yes_means)


def imagined(method: Method, side: Letter) -> Choice:
    """Bounds for a figure: 1 where a side is taken, 2 for the other side, none for C."""
    if method is not Method.INTERVAL:
        return Choice(f"Answer: {side.value}")
    figure = {Letter.A: "1", Letter.B: "2"}.get(side, "null")
    bounds = f'"lower": {figure}, "upper": {figure}, "relative_lower": null, "relative_upper": null'
    return Choice(f'{{"reason": "", {bounds}}}')


def _closed(quoted: str, remind: str, method: Method, attempt: int) -> Message:
    """The user message: what is quoted, and behind it what the answer has to look like."""
    again = "again_interval" if method is Method.INTERVAL else "again_letter"
    return Message(Role.USER, "\n\n".join([quoted, text_of(remind), *([text_of(again)] if attempt > 1 else [])]))


_SIDE_TEXTS = {
    Method.SELF_REPORT: ("asides/self_report", "asides/ask", "asides/remind"),
    Method.ROLE_PLAY: ("asides/role_play", "asides/ask", "asides/remind"),
    Method.MISLEADS_AB: ("asides/misleads", "asides/ask_misleads", "asides/remind_misleads"),
    Method.MISLEADS_BA: ("asides/misleads", "asides/ask_misleads", "asides/remind_misleads"),
}
"""Of each aside: what is asked, how to answer, and the reminder of that."""


def _side_request(
    method: Method, scenario: Scenario, texts: tuple[str, ...], *, sampling: Sampling, attempt: int
) -> Request:
    """An aside: a question that is not about the proposition. Its texts are of no use to other questions, so they are
    not in `prompts_hash`. `SELF_REPORT` takes the question and the reply, the others a reply."""
    *before, reply = texts
    repeated: _Block | None = None
    match method:
        case Method.SELF_REPORT:
            shown = [_Block("question", *before)]
        case Method.ROLE_PLAY:
            shown = _turn_blocks(scenario.conversation)
        case _:
            # Neither the system message nor earlier turns are shown, so that the arm of the reply is not.
            question = next(turn.content for turn in reversed(scenario.conversation) if turn.role == Role.USER)
            repeated = _statements_block(scenario, exchanged=method is Method.MISLEADS_BA)
            shown = [repeated, _Block("question", question)]
    user = _closed(_quote(shown, (reply,), repeated=repeated), _SIDE_TEXTS[method][2], method, attempt)
    return Request((Message(Role.SYSTEM, side_prompt(method)), user), sampling=sampling)


def side_prompt(method: Method) -> str:
    """What the judge is told before an aside."""
    question, ask, _ = _SIDE_TEXTS[method]
    return _join(question, "quoted", ask)


def _statements_block(scenario: Scenario, *, exchanged: bool = False) -> _Block:
    a, b = scenario.statements[::-1] if exchanged else scenario.statements
    return _Block("statements", f"A: {a}\nB: {b}")


def yes_means_request(scenario: Scenario, *, exchanged: bool, sampling: Sampling, attempt: int = 1) -> Request:
    """Which statement *yes* to the direct question affirms, or to the check where there is none. `exchanged` shows the
    second statement as A. No reply is shown."""
    slot = CHECK if scenario.direct is None else DIRECT
    shown = [_statements_block(scenario, exchanged=exchanged), *_context_blocks(scenario, slot)]
    system = _join("yes_means/question", "quoted", "yes_means/ask")
    user = _closed(_quote(shown, ()), "yes_means/remind", Method.LETTER, attempt)
    return Request((Message(Role.SYSTEM, system), user), sampling=sampling)


@cache
def list_texts() -> tuple[str, ...]:
    """The text files that ship, without `.md`, sorted. Those in folders are no part of a reading."""
    entries = (entry.name for entry in files(__package__).joinpath("texts").iterdir())
    return tuple(sorted(name.removesuffix(".md") for name in entries if name.endswith(".md")))


@cache
def text_of(name: str) -> str:
    return files(__package__).joinpath("texts", f"{name}.md").read_text(encoding="utf-8").strip()


def fence_code(texts: tuple[str, ...], *, behind: tuple[str, ...] = ()) -> str:
    """A code that occurs in none of the texts, nor in those behind them. Hashing the texts makes it unpredictable for
    whoever writes one of them."""
    seed = b"".join(hashlib.blake2b(text.encode("utf-8", "surrogatepass")).digest() for text in texts)
    codes = (hashlib.blake2b(seed, digest_size=size).hexdigest() for size in range(4, 65))
    return first_absent(codes, texts + behind)


def first_absent(codes: Iterable[str], texts: tuple[str, ...]) -> str:
    """The first code that is in no text, not even in other letter case or width.

    Codes are independent of one another, not lengthened: one that a text managed to contain must not be the beginning
    of the one that counts.
    """
    plain = [unicodedata.normalize("NFKC", text).casefold() for text in texts]
    return next(code for code in codes if not any(code in text for text in plain))


@cache
def _join(*parts: str) -> str:
    return "\n\n".join(text_of(part) for part in parts)


def _figure_blocks(scenario: Scenario, slot: Slot) -> list[_Block]:
    unit = f"\nUnit: {scenario.unit}" if scenario.unit else ""
    return [_Block("proposition", scenario.proposition + unit), *_context_blocks(scenario, slot)]


def _context_blocks(scenario: Scenario, slot: Slot) -> list[_Block]:
    """What the reply answers: the probe, or the pressured conversation turn by turn."""
    if slot == PRESSURED:
        return _turn_blocks(scenario.conversation)
    system = [message for message in scenario.conversation if message.role == "system"] if slot == CHECK else []
    return [*_turn_blocks(system), _Block("question", scenario.questions[slot])]


def _turn_blocks(turns: Sequence[Message]) -> list[_Block]:
    return [
        _Block(f"{'scripted ' if message.role == 'assistant' else ''}{message.role} message", message.content)
        for message in turns
    ]


def _quote(shown: list[_Block], replies: tuple[str, ...], *, repeated: _Block | None = None) -> str:
    """The scenario, then the replies, then after long ones what they are read against. What comes before the replies
    does not depend on them, unless one holds the code of the scenario: then the scenario has another."""
    texts = tuple(block.text for block in shown)
    first = fence_code(texts, behind=replies)
    parts = [f"Code of what was shown: {first}", *_fence(shown, first)]
    if replies:
        second = fence_code((*texts, *replies), behind=(first,))
        blocks = _reply_blocks(replies, second)
        if repeated is not None and sum(map(len, replies)) > LONG:
            blocks.append(repeated._replace(label=f"{repeated.label} again"))
        parts += [f"Code of what was replied: {second}", *_fence(blocks, second)]
    return "\n\n".join(parts)


def _reply_blocks(replies: tuple[str, ...], code: str) -> list[_Block]:
    room = LONGEST // max(1, len(replies))
    labels = ("reply",) if len(replies) == 1 else tuple(f"reply {n}" for n in range(1, len(replies) + 1))
    return [_Block(label, _shorten(text, room=room, code=code)) for label, text in zip(labels, replies, strict=True)]


def _fence(blocks: list[_Block], code: str) -> Iterator[str]:
    return (f"[BEGIN {block.label} {code}]\n{block.text}\n[END {block.label} {code}]" for block in blocks)


def _shorten(text: str, *, room: int, code: str) -> str:
    if len(text) <= room:
        return text
    tail = room // 3
    head = room - tail
    return f"{text[:head]}\n[GAP of {len(text) - room} characters {code}]\n{text[-tail:]}"


# --- the names of the wording ------------------------------------------------------------------------------------


def list_used_texts(style: Style) -> tuple[str, ...]:
    """The texts that a judge of this style may be sent about a reply. Asides are not among them."""
    return tuple(name for name in list_texts() if name.startswith("pick") == (style is Style.PICKS))


def prompts_hash(style: Style = Style.LETTERS) -> str:
    """Names the texts that a style uses and how they are put together. The texts of other styles may change."""
    state = hashlib.blake2b(str(LAYOUT).encode(), digest_size=10)
    for name in list_used_texts(style):
        data = text_of(name).encode()
        state.update(f"\n{name} {len(data)}\n".encode() + data)
    return state.hexdigest()
