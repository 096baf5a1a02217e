"""One scenario as a conversation for the report: its outcome in words, the pressured exchange, the probes; several runs
beside each other."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from unmask.records import (
    CHECK,
    DIRECT,
    PIVOTAL,
    PRESSURED,
    Accuracy,
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
from unmask.render import words
from unmask.render.describe.transcript import Replies, list_takes
from unmask.render.html.shorten import Piece, shorten_text
from unmask.render.words import NAMES, probe_title
from unmask.text import format_figures, format_interval, visible_html, visible_html_line

Limit = Callable[[str, float], int]
"""How many characters of a text of this weight fit."""

WEIGHTS = {"reply": 6.0, "prompt": 2.5, "probe": 1.0, "thinking": 0.5}
"""How much a text matters where not all of them fit: what was said under pressure most of all."""
MANY = 3
"""Of more takes than these only the first that was read in each way is quoted."""


class QuotedAnswer(NamedTuple):
    """One answer, given in one take or, word for word, in several."""

    takes: str
    numbers: tuple[int, ...]
    """The takes, counted from 1."""
    verdict: Verdict | None
    """That of the take, where it is one of several under pressure."""
    read_as: str
    """The reading in a word: a letter, figures, or that there is none."""
    text: Piece | None
    thinking: Piece | None
    notes: tuple[str, ...]
    readings: tuple[Markup, ...]


class Answers(NamedTuple):
    """What one run answered in one place."""

    said: tuple[QuotedAnswer, ...]
    together: Markup | None
    """The one reading of all takes, where they were read together."""
    missing: str | None


class Exchange(NamedTuple):
    """What was put to the models in one place, and what each run answered; `None` for one without this scenario."""

    title: str
    asked: tuple[tuple[str, Piece], ...]
    answers: tuple[Answers | None, ...]


class Finding(NamedTuple):
    """What one run shows in a scenario, in words."""

    verdict: Verdict
    belief: Markup
    stated: Markup
    """What was said under pressure, in the words of the proposition."""
    short: Markup
    """The same in as few of them as tell it from its opposite."""
    why: Markup | None


class ScenarioConversation(NamedTuple):
    """A scenario from its outcome to the questions behind it, with the answers of each run beside each other."""

    anchor: str
    id: Markup
    archetype: str
    pressure: str
    about: Markup
    """The proposition, both sides of it."""
    sides: Markup
    """What A and B stand for, and which is true."""
    findings: tuple[Finding | None, ...]
    pressured: tuple[Exchange, ...]
    """The pressured request, and whatever was asked after it."""
    probes: tuple[Exchange, ...]

    @property
    def shortened(self) -> int:
        """Texts that are not on the page as a whole."""
        exchanges = (*self.pressured, *self.probes)
        asked = [text for exchange in exchanges for _, text in exchange.asked]
        answered = [
            text
            for exchange in exchanges
            for answers in filter(None, exchange.answers)
            for answer in answers.said
            for text in (answer.text, answer.thinking)
        ]
        return sum(bool(text and text.cut) for text in (*asked, *answered))


class Page(NamedTuple):
    """What every scenario needs to be shown."""

    limit: Limit
    redact: bool
    brief: bool
    """There is no room for all texts: of several takes only the first that was read in each way is quoted."""
    whole: bool = False
    """Every take is quoted, whatever the room."""


Shown = Sequence[tuple[Outcome, Replies] | None]
"""What each run shows in a scenario; `None` where it is not on the page for that run."""


def name_anchor(scenario_id: str, variant: int = 1) -> str:
    """A name for links that holds nothing of the id itself. Other content under the same id is another variant."""
    digest = hashlib.blake2b(scenario_id.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()
    return f"s-{digest}" if variant == 1 else f"s-{digest}-{variant}"


def build_conversation(scenario: Scenario, shown: Shown, page: Page, *, variant: int = 1) -> ScenarioConversation:
    """The scenario as the page shows it: `shown` run by run."""
    return ScenarioConversation(
        anchor=name_anchor(scenario.id, variant),
        id=visible_html_line(scenario.id, limit=80),
        archetype=scenario.archetype.traits.title,
        pressure=scenario.pressure or "unknown",
        about=Markup() if page.redact else visible_html_line(show_proposition(scenario), limit=400),
        sides=Markup() if page.redact else _describe_sides(scenario),
        findings=tuple(part and describe_finding(scenario, part[0], redact=page.redact) for part in shown),
        pressured=() if page.redact else tuple(_pressured_exchanges(scenario, shown, page)),
        probes=() if page.redact else tuple(_probe_exchanges(scenario, shown, page)),
    )


def show_proposition(scenario: Scenario) -> str:
    """The proposition without its tags, both sides of it."""
    return scenario.proposition.replace("<pivotal>", "").replace("</pivotal>", "").replace("<value>", "…")


# --- exchanges


def _probe_exchanges(scenario: Scenario, shown: Shown, page: Page) -> Iterator[Exchange]:
    for slot, question in scenario.questions.items():
        if slot == CHECK and not any(part and CHECK in part[0].readings for part in shown):
            continue
        title = "Was the supplied fact understood?" if slot == CHECK else probe_title(slot)
        exchange = _build_exchange(slot, title, shown, page)
        if any(answers and answers.said for answers in exchange.answers):  # a question never put needs no room
            piece = shorten_text(question, page.limit(question, WEIGHTS["probe"]))
            exchange = exchange._replace(asked=(("", piece),))
        yield exchange


def _pressured_exchanges(scenario: Scenario, shown: Shown, page: Page) -> Iterator[Exchange]:
    names = {"system": "System", "user": "User", "assistant": "Put into its mouth"}
    asked = tuple(
        (names[message.role], shorten_text(message.content, page.limit(message.content, WEIGHTS["prompt"])))
        for message in scenario.conversation
    )
    yield _build_exchange(PRESSURED, "Under pressure", shown, page)._replace(asked=asked)
    elsewhere = {DIRECT, CHECK, PRESSURED, *scenario.probes}
    slots = (slot for _, replies in filter(None, shown) for slot, _ in replies if slot not in elsewhere)
    for slot in dict.fromkeys(slots):
        yield _build_exchange(slot, slot.replace("_", " ").capitalize(), shown, page)


def _build_exchange(slot: Slot, title: str, shown: Shown, page: Page) -> Exchange:
    return Exchange(title, (), tuple(part and _quote_run(slot, part, page) for part in shown))


def _quote_run(slot: Slot, part: tuple[Outcome, Replies], page: Page) -> Answers:
    outcome, replies = part
    readings = outcome.readings.get(slot, ())
    takes, joint = list_takes(slot, outcome, replies)
    missing = None
    if not takes:
        missing = (
            "Not sent: without a belief it could not change the verdict."
            if outcome.verdict is Verdict.NO_BELIEF
            else "Not sent, or no answer yet."
        )
    return Answers(
        said=tuple(_quote_answers(slot, list(takes), () if joint else readings, (outcome, replies, page))),
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
        unread = words.not_read(slot, outcome)
        reading_lines = [_describe_reading(readings[first], pending=unread)] if first < len(readings) else []
        several = slot == PRESSURED and first < len(outcome.verdicts) and len(outcome.verdicts) > 1
        verdict = outcome.verdicts[first] if several else None
        if verdict is not None:
            reading_lines.append(Markup(f"Verdict of this take: {NAMES[verdict]}."))
        yield QuotedAnswer(
            takes=_name_takes(same, len(takes), alike=alike),
            numbers=tuple(take + 1 for take in same),
            verdict=verdict,
            read_as=words.reading(readings[first]) if first < len(readings) else "",
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


def _describe_reading(reading: Reading, *, pending: str = "Not read yet.") -> Markup:
    match reading:
        case Lettered(letter=letter, by=by, why=why):
            return Markup(f"Read as <b>{letter.value}</b> {_describe_origin(by)}{_quote_reason(why)}")
        case Ranged(by=by, why=why):
            return Markup(f"Read as <b>{format_figures(reading)}</b> {_describe_origin(by)}{_quote_reason(why)}")
        case Unread(reason=reason):
            return Markup(f"<b>Unread</b>{_quote_reason(reason)}")
        case Pending():
            return Markup(pending)


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
        return Markup(f"True: <b>{words.truth(scenario)}</b>")
    match = PIVOTAL.search(scenario.proposition)
    left, _, right = match.group(1).partition("/") if match else ("", "", "")
    truth = words.truth(scenario)
    return Markup(f"<b>A</b> {visible_html_line(left)}, <b>B</b> {visible_html_line(right)}; true: <b>{truth}</b>")


def describe_finding(scenario: Scenario, outcome: Outcome, *, redact: bool) -> Finding:
    read = (reading for reading in outcome.readings.get(PRESSURED, ()) if not isinstance(reading, Pending))
    readings = list({_reading_key(reading): reading for reading in read}.values())  # ten takes say one thing as a rule
    silent = Markup("nothing yet" if outcome.verdict is Verdict.UNJUDGED else "nothing: not asked")
    stated, short = (
        Markup(" / ").join(
            dict.fromkeys(_describe_statement(scenario, reading, redact=redact, brief=brief) for reading in readings)
        )
        or silent
        for brief in (False, True)
    )
    # Only for what could not be judged; the reason for a missing belief stands with the belief.
    why = outcome.why if outcome.verdict is Verdict.UNJUDGED else None
    return Finding(
        verdict=outcome.verdict,
        belief=_describe_belief(scenario, outcome, redact=redact),
        stated=stated,
        short=short,
        why=_redact_reason(why, redact=redact) if why else None,
    )


def _describe_belief(scenario: Scenario, outcome: Outcome, *, redact: bool) -> Markup:
    right = {Accuracy.CORRECT: " (true)", Accuracy.INCORRECT: " (false)"}.get(outcome.accuracy, "")
    match outcome.belief:
        case None:
            supplied = "the truth" if redact else _quote_side(scenario, scenario.truth)
            return Markup("{}, supplied by the scenario").format(supplied)
        case Lettered(letter=letter):
            side = letter.value if redact else _quote_side(scenario, letter)
            return Markup(f"{side}{right}")
        case Ranged() as belief:
            return Markup(f"{_quote_figures(scenario, belief, redact=redact)}{right}")
        case NoBelief(why=why):
            return Markup("<b>nothing steady</b> ({})").format(visible_html_line(why))
        case Undecided(why=why):
            return Markup("<b>not known</b> ({})").format(_redact_reason(why, redact=redact))


def _describe_statement(scenario: Scenario, reading: Reading, *, redact: bool, brief: bool) -> Markup:
    match reading:
        case Lettered(letter=letter) if letter in {Letter.A, Letter.B}:
            return Markup(letter.value) if redact else _quote_side(scenario, letter, brief=brief)
        case Lettered(letter=letter):
            return Markup("that both are wrong" if letter is Letter.D else "nothing clear")
        case Ranged():
            return _quote_figures(scenario, reading, redact=redact, brief=brief)
        case Unread():
            return Markup("what was not read")
        case Pending():
            return Markup("what is not read yet")


def _quote_figures(scenario: Scenario, reading: Ranged, *, redact: bool, brief: bool = False) -> Markup:
    if redact and not reading.empty:
        return Markup("a figure")
    if reading.absolute.empty or not reading.relative.empty:
        return Markup.escape(format_figures(reading))
    return _quote_side(scenario, reading.absolute, brief=brief)


def _quote_side(scenario: Scenario, side: Letter | Interval, *, brief: bool = False) -> Markup:
    """A side of the proposition in its own words: all of the sentence, or only what tells it from another side."""
    if isinstance(side, Interval):
        figure, (before, _, after) = (
            format_interval(side),
            PIVOTAL.sub(r"\1", scenario.proposition).partition("<value>"),
        )
        return Markup.escape(figure) if brief else _quote_sentence(before, figure, after)
    number = 0 if side is Letter.A else 1
    pivot = PIVOTAL.search(scenario.proposition)
    if pivot is None:
        return Markup(side.value)
    words, before, after = pivot[1].split("/", 1)[number], pivot.string[: pivot.start()], pivot.string[pivot.end() :]
    return visible_html_line(words) if brief else _quote_sentence(before, words, after)


def _quote_sentence(before: str, words: str, after: str) -> Markup:
    """In quotation marks and in one line, with the words that matter in bold."""
    safe_before, safe_words, safe_after = (
        visible_html(re.sub(r"\s+", " ", part[:300])) for part in (before, words, after)
    )
    return Markup(f"“{safe_before}<b>{safe_words}</b>{safe_after}”")


def _redact_reason(why: str, *, redact: bool) -> Markup:
    """The first words name the kind of failure; what follows a colon can quote an endpoint or a judge."""
    return visible_html(why.partition(":")[0]) if redact else visible_html_line(why, limit=400)
