"""One scenario as a page shows it: a row that says what it comes to, and the conversation behind it, with the answers
of several runs side by side."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from markupsafe import Markup

from unmask.judges.base import JUDGES
from unmask.records import (
    PRESSURED,
    Accuracy,
    Interval,
    Kind,
    Letter,
    Lettered,
    NoBelief,
    Outcome,
    Pending,
    Preset,
    Ranged,
    ReadBy,
    Reading,
    Scenario,
    Undecided,
    Unread,
    Verdict,
)
from unmask.render import words
from unmask.render.describe.conversation import (
    Exchange,
    Replies,
    Shown,
    pressured_exchanges,
    probe_exchanges,
    reading_key,
)
from unmask.runs.run import Run
from unmask.text import format_figures, visible_html, visible_html_line

PENDING = "pending"
"""Why what is not asked or not read so far is unread."""


class Finding(NamedTuple):
    """What one run shows in a scenario, in words."""

    verdict: Verdict
    belief: Markup
    stated: Markup
    """What was said under pressure, in the words of the proposition."""
    short: Markup
    """The same in as few of them as tell it from its opposite."""
    why: Markup | None


class ScenarioRow(NamedTuple):
    """A scenario in the list: what each run shows, and what the filter goes by."""

    scenario: Scenario
    outcomes: tuple[Outcome | None, ...]
    """`None` for a run that does not show it."""
    anchor: str
    id: Markup
    about: Markup
    """The proposition, both sides of it."""
    findings: tuple[Finding | None, ...]
    change: str = ""
    """`became` or `stopped` where it is a lie in a later run and none in the first, or the other way round."""

    @property
    def archetype(self) -> str:
        return self.scenario.archetype.traits.title

    @property
    def pressure(self) -> str:
        return self.scenario.pressure or "unknown"

    @property
    def verdicts(self) -> list[Verdict]:
        return [outcome.verdict for outcome in self.outcomes if outcome is not None]

    @property
    def reasons(self) -> list[str]:
        return sorted({reason for outcome in self.outcomes if outcome for reason in unread_reasons(outcome)})

    @property
    def keys(self) -> str:
        """What the filter goes by, for the script of the page."""
        verdicts = (words.NAMES[one.verdict] if one else "" for one in self.findings)
        return "|".join((self.archetype, ",".join(verdicts), self.pressure, self.change, ",".join(self.reasons)))


class Conversation(NamedTuple):
    """What is behind a row."""

    sides: Markup
    """What A and B are, and which is true."""
    others: tuple[str, ...]
    """For each run what other rules and judges make of it, where that is something else."""
    pressured: tuple[Exchange, ...] = ()
    """The pressured request, and whatever was asked after it."""
    probes: tuple[Exchange, ...] = ()
    judged: tuple[tuple[str, str], ...] = ()
    """What the judge was sent about the first reply under pressure, message by message."""

    @property
    def texts(self) -> Iterator[str]:
        """Everything that is quoted."""
        return (text for exchange in (*self.pressured, *self.probes) for text in exchange.texts)


def name_anchor(scenario_id: str, variant: int = 1) -> str:
    """A name for links that holds nothing of the id itself. Other content under the same id is another variant."""
    digest = hashlib.blake2b(scenario_id.encode("utf-8", "surrogatepass"), digest_size=5).hexdigest()
    return f"s-{digest}" if variant == 1 else f"s-{digest}-{variant}"


def unread_reasons(outcome: Outcome) -> set[str]:
    """Why readings of a scenario are missing."""
    readings = (reading for slot in outcome.readings.values() for reading in slot)
    reasons = {reading.reason.partition(":")[0] for reading in readings if isinstance(reading, Unread)}
    return reasons | {PENDING} if outcome.undecided else reasons


def build_row(
    scenario: Scenario, outcomes: Sequence[Outcome | None], *, variant: int = 1, change: str = "", redact: bool = False
) -> ScenarioRow:
    return ScenarioRow(
        scenario=scenario,
        outcomes=tuple(outcomes),
        anchor=name_anchor(scenario.id, variant),
        id=visible_html_line(scenario.id, limit=80),
        about=Markup() if redact else visible_html_line(words.proposition(scenario), limit=400),
        findings=tuple(one if one is None else describe_finding(scenario, one, redact=redact) for one in outcomes),
        change=change,
    )


def build_conversation(
    row: ScenarioRow, replies: Sequence[Replies | None], others: Sequence[str], *, whole: bool
) -> Conversation:
    """What was asked and answered, and what was made of it; `others` are the words of `list_other_verdicts`, `whole`
    quotes every take."""
    shown: Shown = [
        None if outcome is None or said is None else (outcome, said)
        for outcome, said in zip(row.outcomes, replies, strict=True)
    ]
    return Conversation(
        sides=_describe_sides(row.scenario),
        others=tuple(others),
        pressured=tuple(pressured_exchanges(row.scenario, shown, whole=whole)),
        probes=tuple(probe_exchanges(row.scenario, shown, whole=whole)),
    )


Readers = Sequence[tuple[str | None, Preset, str]]
"""Judges and rules by which a scenario is read, each pair with its name."""


def list_readers(run: Run, *, preset: Preset, judge: str | None) -> Readers:
    """All but the pair in use."""
    files = dict.fromkeys([judge, *filter(run.has_readings, run.definition.judges)])
    return [
        (file, rules, rules.value if file == judge else f"{run.definition.typed_judge(file)} under {rules.value}")
        for file in files
        for rules in Preset
        if (file, rules) != (judge, preset)
    ]


def list_other_verdicts(own: Outcome, others: Iterable[tuple[str, Outcome]]) -> str:
    """What other rules and other judges make of a scenario, where that is another verdict."""
    found: dict[Verdict, list[str]] = {}
    for name, outcome in others:
        if outcome.verdict is not own.verdict:
            found.setdefault(outcome.verdict, []).append(name)
    return "; ".join(f"{words.NAMES[verdict]} by {words.listed(names)}" for verdict, names in found.items())


def quote_judge(run: Run, scenario: Scenario, outcome: Outcome, judge: str | None) -> Iterator[tuple[str, str]]:
    """What the judge was sent about the first reply under pressure that it has read, message by message."""
    readings, replies = outcome.readings.get(PRESSURED, ()), run.replies(scenario.id)
    read = (take for take, reading in enumerate(readings) if getattr(reading, "by", None) == ReadBy.JUDGE)
    choice = next((replies[PRESSURED, take] for take in read if (PRESSURED, take) in replies), None)
    if choice is None or judge not in run.definition.judges:
        return
    settings = run.definition.settings(judge, kind=scenario.kind)
    asked = JUDGES[settings.style]
    for method in asked.questions(scenario.kind)[:1]:
        request = asked.request(method, scenario, PRESSURED, (choice.answer,), sampling=settings.judge_sampling)
        yield from ((message.role.capitalize(), message.content) for message in request.messages)


# --- what it comes to


def _describe_sides(scenario: Scenario) -> Markup:
    if scenario.kind is Kind.NUMERIC:
        return Markup(f"True: <b>{words.truth(scenario)}</b>")
    sides = (visible_html_line(words.quote_side(scenario, letter).words) for letter in (Letter.A, Letter.B))
    return Markup("<b>A</b> {}, <b>B</b> {}; true: <b>{}</b>").format(*sides, words.truth(scenario))


def describe_finding(scenario: Scenario, outcome: Outcome, *, redact: bool) -> Finding:
    read = (reading for reading in outcome.readings.get(PRESSURED, ()) if not isinstance(reading, Pending))
    readings = list({reading_key(reading): reading for reading in read}.values())  # ten takes say one thing as a rule
    silent = Markup("said nothing yet" if outcome.verdict is Verdict.UNJUDGED else "said nothing: not asked")
    stated, short = (
        Markup(" / ").join(
            dict.fromkeys(_describe_statement(scenario, reading, redact=redact, brief=brief) for reading in readings)
        )
        or silent
        for brief in (False, True)
    )
    # Only for what could not be judged; the reason for a missing belief is next to the belief.
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
            return Markup("{}{}").format(letter.value if redact else _quote_side(scenario, letter), right)
        case Ranged() as figures:
            return Markup("{}{}").format(_quote_figures(scenario, figures, redact=redact), right)
        case NoBelief(why=why):
            return Markup("<b>nothing steady</b> ({})").format(visible_html_line(why))
        case Undecided(why=why):
            return Markup("<b>not known</b> ({})").format(_redact_reason(why, redact=redact))


def _describe_statement(scenario: Scenario, reading: Reading, *, redact: bool, brief: bool) -> Markup:
    match reading:
        case Lettered(letter=letter) if letter in words.NO_SIDE:
            return Markup(words.NO_SIDE[letter])
        case Lettered(letter=letter):
            quoted = Markup(letter.value) if redact else _quote_side(scenario, letter, brief=brief)
        case Ranged():
            quoted = _quote_figures(scenario, reading, redact=redact, brief=brief)
        case _:
            return Markup(words.reading(reading))
    return quoted if brief else Markup("said {}").format(quoted)


def _quote_figures(scenario: Scenario, reading: Ranged, *, redact: bool, brief: bool = False) -> Markup:
    if redact and not reading.empty:
        return Markup("a number")
    if reading.absolute.empty or not reading.relative.empty:
        return Markup.escape(format_figures(reading))
    return _quote_side(scenario, reading.absolute, brief=brief)


def _quote_side(scenario: Scenario, side: Letter | Interval, *, brief: bool = False) -> Markup:
    """A side of the proposition in its own words: all of the sentence, or only what tells it from another side."""
    before, own, after = words.quote_side(scenario, side)
    if brief or not (before or after):
        return visible_html_line(own)
    parts = (visible_html(re.sub(r"\s+", " ", part[:300])) for part in (before, own, after))
    return Markup("“{}<b>{}</b>{}”").format(*parts)


def _redact_reason(why: str, *, redact: bool) -> Markup:
    """The first words name the kind of failure; what follows a colon can quote an endpoint or a judge."""
    return visible_html(why.partition(":")[0]) if redact else visible_html_line(why, limit=400)
