"""One scenario as a conversation for the report: probes, readings, belief, the pressured exchange, the verdict."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping
from typing import NamedTuple

from markupsafe import Markup

from unmask.records import (
    CHECK,
    DIRECT,
    PIVOTAL,
    PRESSURED,
    Choice,
    Interval,
    Kind,
    Letter,
    Lettered,
    NoBelief,
    Outcome,
    Pending,
    Ranged,
    Reading,
    Scenario,
    Slot,
    Stop,
    Undecided,
    Unread,
    Verdict,
)
from unmask.render.colours import NAMES, probe_title
from unmask.render.html.shorten import Piece, piece
from unmask.text import figures, interval, visible, visible_line

Replies = Mapping[tuple[Slot, int], Choice]
Limit = Callable[[str, float], int]
"""How many characters of a text of this weight fit."""

WEIGHTS = {"reply": 6.0, "prompt": 2.5, "probe": 1.0, "thinking": 0.5}
"""How much a text matters where not all of them fit: what was said under pressure most of all."""


MANY = 3
"""Of more takes than these only the first that was read in each way is quoted."""


class Said(NamedTuple):
    """One answer, given in one take or, word for word, in several."""

    takes: str
    text: Piece | None
    thinking: Piece | None
    notes: tuple[str, ...]
    readings: tuple[Markup, ...]


class Exchange(NamedTuple):
    """What was put to the model in one place, and every answer to it."""

    title: str
    asked: tuple[tuple[str, Piece], ...]
    said: tuple[Said, ...]
    together: Markup | None
    """The one reading of all takes, where they were read together."""
    missing: str | None


class Talk(NamedTuple):
    """A scenario from question to verdict."""

    anchor: str
    id: Markup
    archetype: str
    verdict: Verdict
    pressure: str
    about: Markup
    """The proposition, both sides of it."""
    sides: Markup
    """What A and B stand for, and which is true."""
    probes: tuple[Exchange, ...]
    pressured: tuple[Exchange, ...]
    """The pressured request, and whatever was asked after it."""
    belief: Markup
    stated: str | None
    why: Markup | None
    accuracy: str

    @property
    def shortened(self) -> int:
        """Texts that are not on the page as a whole."""
        return sum(
            bool(text and text.cut)
            for exchange in (*self.probes, *self.pressured)
            for text in (
                *(asked for _, asked in exchange.asked),
                *(text for said in exchange.said for text in (said.text, said.thinking)),
            )
        )


class Page(NamedTuple):
    """What every scenario of one run needs to be shown."""

    prefix: str
    limit: Limit
    redact: bool
    brief: bool
    """There is no room for all texts: of several takes only the first that was read in each way is quoted."""
    whole: bool = False
    """Every take is quoted, whatever the room."""


def anchor(prefix: str, scenario_id: str) -> str:
    """A name for links that holds nothing of the id itself."""
    return f"{prefix}-{hashlib.blake2b(scenario_id.encode('utf-8', 'surrogatepass'), digest_size=5).hexdigest()}"


def talk(scenario: Scenario, outcome: Outcome, replies: Replies, page: Page) -> Talk:
    stated = outcome.readings.get(PRESSURED, ())
    told = dict.fromkeys(_stated(one, redact=page.redact) for one in stated if not isinstance(one, Pending))
    return Talk(
        anchor=anchor(page.prefix, scenario.id),
        id=visible_line(scenario.id, limit=80),
        archetype=scenario.archetype.traits.title,
        verdict=outcome.verdict,
        pressure=scenario.pressure or "unknown",
        about=Markup() if page.redact else visible_line(_plain(scenario), limit=400),
        sides=Markup() if page.redact else _sides(scenario),
        probes=() if page.redact else tuple(_probes(scenario, outcome, replies, page)),
        pressured=() if page.redact else tuple(_pressured(scenario, outcome, replies, page)),
        belief=_belief(scenario, outcome, redact=page.redact),
        stated="; ".join(told) or None,
        why=_why(outcome, redact=page.redact),
        accuracy=outcome.accuracy.value.replace("_", " "),
    )


# --- exchanges


def _probes(scenario: Scenario, outcome: Outcome, replies: Replies, page: Page) -> Iterator[Exchange]:
    for slot, question in scenario.questions.items():
        if slot == CHECK and CHECK not in outcome.readings:
            continue
        title = "Was the supplied fact understood?" if slot == CHECK else probe_title(slot)
        found = _exchange(slot, title, (), (outcome, replies, page))
        if found.said:  # a question that was never put needs no room
            shown = piece(question, page.limit(question, WEIGHTS["probe"]))
            found = found._replace(asked=(("", shown),))
        yield found


def _pressured(scenario: Scenario, outcome: Outcome, replies: Replies, page: Page) -> Iterator[Exchange]:
    names = {"system": "System", "user": "User", "assistant": "Put into its mouth"}
    asked = tuple(
        (names[message.role], piece(message.content, page.limit(message.content, WEIGHTS["prompt"])))
        for message in scenario.conversation
    )
    held = outcome, replies, page
    yield _exchange(PRESSURED, "Under pressure", asked, held)
    elsewhere = {DIRECT, CHECK, PRESSURED, *scenario.probes}
    for slot in dict.fromkeys(slot for slot, _ in replies if slot not in elsewhere):
        yield _exchange(slot, slot.replace("_", " ").capitalize(), (), held)


def _exchange(
    slot: Slot, title: str, asked: tuple[tuple[str, Piece], ...], held: tuple[Outcome, Replies, Page]
) -> Exchange:
    outcome, replies, _ = held
    readings = outcome.readings.get(slot, ())
    answered = sorted(take for where, take in replies if where == slot)
    joint = slot == DIRECT and outcome.kind is Kind.NUMERIC and len(readings) == 1 and len(answered) > 1
    tried = [take for take, reading in enumerate(readings) if not isinstance(reading, Pending)]
    takes = range(max([*answered, *([] if joint else tried)], default=-1) + 1)
    missing = None
    if not takes:
        missing = (
            "Not sent: without a belief it could not change the verdict."
            if outcome.verdict is Verdict.NO_BELIEF
            else "Not sent, or no answer yet."
        )
    return Exchange(
        title=title,
        asked=asked,
        said=tuple(_said(slot, list(takes), () if joint else readings, held)),
        together=_reading(readings[0]) if joint else None,
        missing=missing,
    )


def _said(
    slot: Slot, takes: list[int], readings: tuple[Reading, ...], held: tuple[Outcome, Replies, Page]
) -> Iterator[Said]:
    """Answers in the order of their first take, each with all takes that said the same, or were read alike."""
    outcome, replies, page = held
    alike = (len(takes) > MANY or page.brief) and not page.whole
    groups: dict[object, list[int]] = {}
    for take in takes:
        choice = replies.get((slot, take))
        reading = readings[take] if take < len(readings) else None
        verdict = outcome.verdicts[take] if slot == PRESSURED and take < len(outcome.verdicts) else None
        text = choice and (choice.text, choice.reasoning, choice.stop)
        key = (_sort(reading), verdict) if alike else (text, reading, verdict)
        groups.setdefault(key, []).append(take)
    for same in groups.values():
        first = same[0]
        choice = replies.get((slot, first))
        found = [_reading(readings[first])] if first < len(readings) else []
        if slot == PRESSURED and first < len(outcome.verdicts) and len(outcome.verdicts) > 1:
            found.append(Markup(f"Verdict of this take: {NAMES[outcome.verdicts[first]]}."))
        yield Said(
            takes=_takes(same, len(takes), alike=alike),
            text=_shown(choice.answer if choice else None, "reply" if slot == PRESSURED else "probe", page),
            thinking=_shown(choice.thinking if choice else None, "thinking", page),
            notes=tuple(_notes(choice)),
            readings=tuple(found),
        )


def _shown(text: str | None, weight: str, page: Page) -> Piece | None:
    return piece(text, page.limit(text, WEIGHTS[weight])) if text else None


def _sort(reading: Reading | None) -> object:
    """What two readings share that say the same."""
    match reading:
        case Lettered(letter=letter):
            return letter
        case Ranged(absolute=absolute, relative=relative):
            return absolute, relative
        case _:
            return type(reading)


def _takes(same: list[int], total: int, *, alike: bool) -> str:
    if total == 1:
        return "Reply"
    numbers = [str(take + 1) for take in same]
    if len(same) == 1:
        return f"Take {numbers[0]}"
    if not alike:
        return f"Takes {', '.join(numbers)}, word for word the same"
    return f"Take {numbers[0]}; read like it: {', '.join(numbers[1:])}"


def _notes(choice: Choice | None) -> Iterator[str]:
    if choice is None:
        yield "No answer came back."
        return
    if not choice.answer:
        yield "The answer is empty."
    if choice.stop is Stop.LENGTH:
        yield "It was cut off: no room left for more tokens."
    elif choice.stop is not Stop.END:
        yield f"It ended early: {choice.stop.value}."


# --- what it comes to


def _reading(reading: Reading) -> Markup:
    match reading:
        case Lettered(letter=letter, by=by, why=why):
            return Markup(f"Read as <b>{letter.value}</b> {_by(by)}{_because(why)}")
        case Ranged(by=by, why=why):
            return Markup(f"Read as <b>{figures(reading)}</b> {_by(by)}{_because(why)}")
        case Unread(reason=reason):
            return Markup(f"<b>Unread</b>{_because(reason)}")
        case Pending():
            return Markup("Not read yet.")


def _by(by: str) -> Markup:
    known = {
        "judge": "by the judge",
        "rule": "by rule",
        "silent": "because it is silent",
        "person": "by a person",
    }
    return Markup(known[by]) if by in known else visible_line(f"by {by}", limit=60)


# Nothing is given back: three rows of marks side by side would be divided in every way there is.
_ONLY_ANSWER = re.compile(r"[\W_]*+(?:answer|option)?[\W_]*+[a-d]?+[\W_]*+", re.IGNORECASE)


def _because(why: str | None) -> Markup:
    """What the judge said besides its answer, which stands before it."""
    if not why or _ONLY_ANSWER.fullmatch(why):
        return Markup(".")
    return Markup(f": <q>{visible_line(why, limit=400)}</q>")


def _plain(scenario: Scenario) -> str:
    """The proposition in one line, both sides of it."""
    text = scenario.proposition
    for tag in ("<pivotal>", "</pivotal>"):
        text = text.replace(tag, "")
    return text.replace("<value>", "…")


def _sides(scenario: Scenario) -> Markup:
    if scenario.kind is Kind.NUMERIC:
        return Markup(f"True: <b>{_truth(scenario)}</b>")
    found = PIVOTAL.search(scenario.proposition)
    left, _, right = found.group(1).partition("/") if found else ("", "", "")
    sides = f"<b>A</b> {visible_line(left)}, <b>B</b> {visible_line(right)}; true: <b>{_truth(scenario)}</b>"
    return Markup(sides)


def _truth(scenario: Scenario) -> str:
    return interval(scenario.truth) if isinstance(scenario.truth, Interval) else scenario.truth.value


def _belief(scenario: Scenario, outcome: Outcome, *, redact: bool) -> Markup:
    match outcome.belief:
        case None:
            supplied = "the truth" if redact else _truth(scenario)
            return Markup("{}, supplied by the scenario").format(supplied)
        case Lettered(letter=letter):
            return Markup(letter.value)
        case Ranged() as held:
            return Markup("a figure") if redact and not held.empty else Markup.escape(figures(held))
        case NoBelief(why=why):
            return Markup("none: {}").format(visible_line(why))
        case Undecided(why=why):
            return Markup("undecided: {}").format(_reason(why, redact=redact))


def _stated(reading: Reading, *, redact: bool) -> str:
    match reading:
        case Lettered(letter=letter):
            return {Letter.C: "C (nothing clear)", Letter.D: "D (denies both)"}.get(letter, letter.value)
        case Ranged():
            return "a figure" if redact and not reading.empty else figures(reading)
        case Unread():
            return "unread"
        case Pending():
            return "not read yet"


def _why(outcome: Outcome, *, redact: bool) -> Markup | None:
    """Only for what could not be judged; the reason for a missing belief stands with the belief."""
    if outcome.verdict is not Verdict.UNJUDGED or not outcome.why:
        return None
    return _reason(outcome.why, redact=redact)


def _reason(why: str, *, redact: bool) -> Markup:
    """The first words name the kind of failure; what follows a colon can quote an endpoint or a judge."""
    return visible(why.partition(":")[0]) if redact else visible_line(why, limit=400)
