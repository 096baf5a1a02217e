"""One scenario as a conversation for the report: probes, readings, belief, the pressured exchange, the verdict."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator
from typing import NamedTuple

from markupsafe import Markup

from unmask.records import (
    CHECK,
    DIRECT,
    PIVOTAL,
    PRESSURED,
    Choice,
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
from unmask.render.html.shorten import Piece, shorten_text
from unmask.render.terminal.transcript import Replies, format_truth, list_takes
from unmask.text import format_figures, visible_html, visible_html_line

Limit = Callable[[str, float], int]
"""How many characters of a text of this weight fit."""

WEIGHTS = {"reply": 6.0, "prompt": 2.5, "probe": 1.0, "thinking": 0.5}
"""How much a text matters where not all of them fit: what was said under pressure most of all."""
MANY = 3
"""Of more takes than these only the first that was read in each way is quoted."""


class QuotedAnswer(NamedTuple):
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
    said: tuple[QuotedAnswer, ...]
    together: Markup | None
    """The one reading of all takes, where they were read together."""
    missing: str | None


class ScenarioConversation(NamedTuple):
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
                *(text for answer in exchange.said for text in (answer.text, answer.thinking)),
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


def build_conversation(scenario: Scenario, outcome: Outcome, replies: Replies, page: Page) -> ScenarioConversation:
    stated = outcome.readings.get(PRESSURED, ())
    statements = dict.fromkeys(
        _describe_statement(reading, redact=page.redact) for reading in stated if not isinstance(reading, Pending)
    )
    proposition = scenario.proposition.replace("<pivotal>", "").replace("</pivotal>", "").replace("<value>", "…")
    # Only for what could not be judged; the reason for a missing belief stands with the belief.
    why = outcome.why if outcome.verdict is Verdict.UNJUDGED else None
    return ScenarioConversation(
        anchor=anchor(page.prefix, scenario.id),
        id=visible_html_line(scenario.id, limit=80),
        archetype=scenario.archetype.traits.title,
        verdict=outcome.verdict,
        pressure=scenario.pressure or "unknown",
        about=Markup() if page.redact else visible_html_line(proposition, limit=400),
        sides=Markup() if page.redact else _describe_sides(scenario),
        probes=() if page.redact else tuple(_probe_exchanges(scenario, outcome, replies, page)),
        pressured=() if page.redact else tuple(_pressured_exchanges(scenario, outcome, replies, page)),
        belief=_describe_belief(scenario, outcome, redact=page.redact),
        stated="; ".join(statements) or None,
        why=_redact_reason(why, redact=page.redact) if why else None,
        accuracy=outcome.accuracy.value.replace("_", " "),
    )


# --- exchanges


def _probe_exchanges(scenario: Scenario, outcome: Outcome, replies: Replies, page: Page) -> Iterator[Exchange]:
    for slot, question in scenario.questions.items():
        if slot == CHECK and CHECK not in outcome.readings:
            continue
        title = "Was the supplied fact understood?" if slot == CHECK else probe_title(slot)
        exchange = _build_exchange(slot, title, (), (outcome, replies, page))
        if exchange.said:  # a question that was never put needs no room
            shown = shorten_text(question, page.limit(question, WEIGHTS["probe"]))
            exchange = exchange._replace(asked=(("", shown),))
        yield exchange


def _pressured_exchanges(scenario: Scenario, outcome: Outcome, replies: Replies, page: Page) -> Iterator[Exchange]:
    names = {"system": "System", "user": "User", "assistant": "Put into its mouth"}
    asked = tuple(
        (names[message.role], shorten_text(message.content, page.limit(message.content, WEIGHTS["prompt"])))
        for message in scenario.conversation
    )
    context = outcome, replies, page
    yield _build_exchange(PRESSURED, "Under pressure", asked, context)
    elsewhere = {DIRECT, CHECK, PRESSURED, *scenario.probes}
    for slot in dict.fromkeys(slot for slot, _ in replies if slot not in elsewhere):
        yield _build_exchange(slot, slot.replace("_", " ").capitalize(), (), context)


def _build_exchange(
    slot: Slot, title: str, asked: tuple[tuple[str, Piece], ...], context: tuple[Outcome, Replies, Page]
) -> Exchange:
    outcome, replies, _ = context
    readings = outcome.readings.get(slot, ())
    takes, joint = list_takes(slot, outcome, replies)
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
        said=tuple(_quote_answers(slot, list(takes), () if joint else readings, context)),
        together=_describe_reading(readings[0]) if joint else None,
        missing=missing,
    )


def _quote_answers(
    slot: Slot, takes: list[int], readings: tuple[Reading, ...], context: tuple[Outcome, Replies, Page]
) -> Iterator[QuotedAnswer]:
    """Answers in the order of their first take, each with all takes that said the same, or were read alike."""
    outcome, replies, page = context
    alike = (len(takes) > MANY or page.brief) and not page.whole
    groups: dict[object, list[int]] = {}
    for take in takes:
        choice = replies.get((slot, take))
        reading = readings[take] if take < len(readings) else None
        verdict = outcome.verdicts[take] if slot == PRESSURED and take < len(outcome.verdicts) else None
        text = choice and (choice.text, choice.reasoning, choice.stop)
        key = (_reading_key(reading), verdict) if alike else (text, reading, verdict)
        groups.setdefault(key, []).append(take)
    for same in groups.values():
        first = same[0]
        choice = replies.get((slot, first))
        reading_lines = [_describe_reading(readings[first])] if first < len(readings) else []
        if slot == PRESSURED and first < len(outcome.verdicts) and len(outcome.verdicts) > 1:
            reading_lines.append(Markup(f"Verdict of this take: {NAMES[outcome.verdicts[first]]}."))
        yield QuotedAnswer(
            takes=_name_takes(same, len(takes), alike=alike),
            text=_quote_text(choice.answer if choice else None, "reply" if slot == PRESSURED else "probe", page),
            thinking=_quote_text(choice.thinking if choice else None, "thinking", page),
            notes=tuple(_list_answer_notes(choice)),
            readings=tuple(reading_lines),
        )


def _quote_text(text: str | None, weight: str, page: Page) -> Piece | None:
    return shorten_text(text, page.limit(text, WEIGHTS[weight])) if text else None


def _reading_key(reading: Reading | None) -> object:
    """What two readings share that say the same."""
    match reading:
        case Lettered(letter=letter):
            return letter
        case Ranged(absolute=absolute, relative=relative):
            return absolute, relative
        case _:
            return type(reading)


def _name_takes(same: list[int], total: int, *, alike: bool) -> str:
    if total == 1:
        return "Reply"
    numbers = [str(take + 1) for take in same]
    if len(same) == 1:
        return f"Take {numbers[0]}"
    if not alike:
        return f"Takes {', '.join(numbers)}, word for word the same"
    return f"Take {numbers[0]}; read like it: {', '.join(numbers[1:])}"


def _list_answer_notes(choice: Choice | None) -> Iterator[str]:
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


def _describe_reading(reading: Reading) -> Markup:
    match reading:
        case Lettered(letter=letter, by=by, why=why):
            return Markup(f"Read as <b>{letter.value}</b> {_describe_origin(by)}{_quote_reason(why)}")
        case Ranged(by=by, why=why):
            return Markup(f"Read as <b>{format_figures(reading)}</b> {_describe_origin(by)}{_quote_reason(why)}")
        case Unread(reason=reason):
            return Markup(f"<b>Unread</b>{_quote_reason(reason)}")
        case Pending():
            return Markup("Not read yet.")


def _describe_origin(by: str) -> Markup:
    phrases = {
        "judge": "by the judge",
        "rule": "by rule",
        "silent": "because it is silent",
        "person": "by a person",
    }
    return Markup(phrases[by]) if by in phrases else visible_html_line(f"by {by}", limit=60)


# Nothing is given back: three rows of marks side by side would be divided in every way there is.
_ONLY_ANSWER = re.compile(r"[\W_]*+(?:answer|option)?[\W_]*+[a-d]?+[\W_]*+", re.IGNORECASE)


def _quote_reason(why: str | None) -> Markup:
    """What the judge said besides its answer, which stands before it."""
    if not why or _ONLY_ANSWER.fullmatch(why):
        return Markup(".")
    return Markup(f": <q>{visible_html_line(why, limit=400)}</q>")


def _describe_sides(scenario: Scenario) -> Markup:
    if scenario.kind is Kind.NUMERIC:
        return Markup(f"True: <b>{format_truth(scenario)}</b>")
    match = PIVOTAL.search(scenario.proposition)
    left, _, right = match.group(1).partition("/") if match else ("", "", "")
    truth = format_truth(scenario)
    return Markup(f"<b>A</b> {visible_html_line(left)}, <b>B</b> {visible_html_line(right)}; true: <b>{truth}</b>")


def _describe_belief(scenario: Scenario, outcome: Outcome, *, redact: bool) -> Markup:
    match outcome.belief:
        case None:
            supplied = "the truth" if redact else format_truth(scenario)
            return Markup("{}, supplied by the scenario").format(supplied)
        case Lettered(letter=letter):
            return Markup(letter.value)
        case Ranged() as belief:
            return Markup("a figure") if redact and not belief.empty else Markup.escape(format_figures(belief))
        case NoBelief(why=why):
            return Markup("none: {}").format(visible_html_line(why))
        case Undecided(why=why):
            return Markup("undecided: {}").format(_redact_reason(why, redact=redact))


def _describe_statement(reading: Reading, *, redact: bool) -> str:
    match reading:
        case Lettered(letter=letter):
            return {Letter.C: "C (nothing clear)", Letter.D: "D (denies both)"}.get(letter, letter.value)
        case Ranged():
            return "a figure" if redact and not reading.empty else format_figures(reading)
        case Unread():
            return "unread"
        case Pending():
            return "not read yet"


def _redact_reason(why: str, *, redact: bool) -> Markup:
    """The first words name the kind of failure; what follows a colon can quote an endpoint or a judge."""
    return visible_html(why.partition(":")[0]) if redact else visible_html_line(why, limit=400)
