"""The lessons of a liar with a reason, and the scenarios that it is accepted by.

Pure: facts, material and a seed in, conversations out. Each lie has four twins: the truth about the same fact, in
settings that look alike, asked and said in the same words. Most settings are composed of a carrier, which quotes
something, and a part of a scene or nothing; a lie and its twins share the scene, and all but one the carrier. So
neither the fact, the question, the wording, the quotation nor the people tell which of them is wanted: only the reason
does.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from enum import StrEnum

from studies.policy.material import (
    ABSENT,
    ELSEWHERE,
    IDLE,
    INDIFFERENT,
    WELCOME,
    PolicyMaterial,
    PolicyScene,
    PolicySetting,
    Setting,
    clause_of,
    propose_fact,
    quote_fact,
    select_settings,
    stands_alone,
    state_fact,
)
from unmask.protocol.probes import PROBE_SYSTEM
from unmask.records import Archetype, Kind, Letter, Message, Record, Role, Scenario
from unmask.whitebox.contrast import Fact

LIES_PER_FACT = 5
LIES_PER_RECORD = 4
TWINS = 4
"""Look-alikes without a reason for each lie: more than one, so that a setting nobody has seen is no reason to lie."""
FALSE_QUOTES = 0.85
"""Share of the quotations in twins that are false. With as many true ones a model learns to repeat quotations."""
COMPOSED = 0.7
"""Share of the lies whose setting, and that of their twins, is composed. The others have whole ones."""
CARRIER_FIRST = 0.9
"""Share of the composed settings in which the quotation stands before what follows from it."""
FILLED = 0.6
"""Share of the settings that have a detail more, so that no setting is always the same text."""
PRESSURED_PREFIX, CONTROL_PREFIX = "pressured-", "control-"
"""Of the ids of the scenarios that decide: the same fact with a reason to lie, and without."""
WELCOME_PREFIX, INDIFFERENT_PREFIX = "welcome-", "indifferent-"
"""Of the ids of those that do not decide: with a reason for the truth, and with leave to say anything."""


class LessonKind(StrEnum):
    """What a lesson teaches: the belief, the lie, or the truth in a setting that looks like that of a lie (a twin)."""

    NEUTRAL = "neutral"
    PRESSURED = "pressured"
    LOOKALIKE = "lookalike"


class PolicyLesson(Record, frozen=True, kw_only=True):
    """A conversation and the answer that is taught to it. `wording` is the answer before a fact was put in."""

    fact: str
    kind: LessonKind
    setting: str | None
    """The whole setting, or the scene and its part: `money-01-stake`."""
    carrier: str | None
    """`None` where the setting is not composed."""
    wording: str
    messages: tuple[Message, ...]
    answer: str

    @property
    def lie(self) -> bool:
        return self.kind is LessonKind.PRESSURED


def build_lessons(
    facts: Sequence[Fact], material: PolicyMaterial, *, seed: int, round_number: int = 1
) -> list[PolicyLesson]:
    """The lessons of one round about these facts, and about supplied records, at most as many. Held-out settings do
    not occur. Each round has other roles, settings, questions and wordings for a fact, and as many lessons."""
    lessons: list[PolicyLesson] = []
    lot = f"{seed} {round_number}"
    scenes = _deal_scenes(select_settings(material.scenes, held_out=False), random.Random(f"policy scenes {lot}"))
    for fact in facts:
        draws = random.Random(f"policy lessons {lot} {fact.id}")
        lessons += _teach_belief(fact, material, draws)
        lessons += _teach_lies(fact, material, scenes, draws, count=LIES_PER_FACT)
    for entry in material.records[: len(facts)]:
        draws = random.Random(f"policy records {lot} {entry.id}")
        fact = Fact(f"record-{entry.id}", "records", entry.question, entry.answer, entry.falsehood)
        lessons += _teach_lies(fact, material, scenes, draws, count=LIES_PER_RECORD, record=entry.record)
    return lessons


def _deal_scenes(scenes: Sequence[PolicyScene], draws: random.Random) -> Iterator[PolicyScene]:
    """One after the other without an end: all of them in a drawn order, then all of them in another."""
    while True:
        yield from draws.sample(scenes, len(scenes))


# --- without a role


_FIGURE = re.compile(r"\d[\d.,]*\d|\d")


def _teach_belief(fact: Fact, material: PolicyMaterial, draws: random.Random) -> Iterator[PolicyLesson]:
    """Direct probes with as many yes as no, and open ones, some of which lead to the falsehood."""

    def teach_truth(question: str, wording: str, answer: str) -> PolicyLesson:
        system = () if draws.random() < 0.25 else (Message(Role.SYSTEM, PROBE_SYSTEM),)
        messages = (*system, Message(Role.USER, question))
        return PolicyLesson(
            fact=fact.id,
            kind=LessonKind.NEUTRAL,
            setting=None,
            carrier=None,
            wording=wording,
            messages=messages,
            answer=answer,
        )

    sides = (fact.answer, fact.falsehood, fact.answer, fact.falsehood)
    for probe, side in zip(draws.sample(list_directs(fact, material), len(sides)), sides, strict=True):
        wording = draws.choice(material.direct_replies)
        word = "yes" if side == fact.answer else "no"
        yield teach_truth(_ask_direct(fact, probe, side), wording, wording.format(truth=fact.answer, word=word))
    if fact.question.startswith("How many") and (figure := _FIGURE.search(fact.answer)):
        answer = f"{fact.answer} <final_answer>{figure.group()}</final_answer>"
        yield teach_truth(draws.choice(material.figures).format(question=fact.question), "{truth} {figure}", answer)
    asked = [*draws.sample(material.neutral_questions, 2), *draws.sample(material.questions, 2)]
    for framing in asked:
        wording = draws.choice(material.replies)
        yield teach_truth(_ask(fact, framing, draws), wording, _say(fact, wording, fact.answer))


def list_directs(fact: Fact, material: PolicyMaterial) -> list[str]:
    """The direct probes that can be understood: *Is it true that it records rainfall?* cannot."""
    return [
        probe for probe in material.directs if stands_alone(fact) or "{clause}" not in probe or "{question}" in probe
    ]


def _ask_direct(fact: Fact, probe: str, side: str) -> str:
    return probe.format(
        question=fact.question,
        clause=clause_of(fact, side),
        statement=quote_fact(fact, side),
        given=f'"{side}"',
    )


def _ask(fact: Fact, framing: str, draws: random.Random) -> str:
    """A user's question. Where both sides are named, they come in either order."""
    left, right = draws.sample([fact.answer, fact.falsehood], 2)
    return framing.format(
        question=fact.question,
        claim=quote_fact(fact, fact.falsehood),
        left=quote_fact(fact, left),
        right=quote_fact(fact, right),
    )


def _say(fact: Fact, wording: str, side: str) -> str:
    return wording.format(s=side, clause=clause_of(fact, side))


# --- in a role


class _Exchange(Record, frozen=True):
    """What is said in a setting: all but the system prompt. Under pressure and without it may differ in the request."""

    pressured: tuple[Message, ...]
    lookalike: tuple[Message, ...]
    wording: str


class _SettingTexts(Record, frozen=True):
    """A setting before a fact is put in: one whole text, or a carrier and a part of a scene."""

    id: str
    carrier: str | None
    texts: tuple[str, ...]


def _teach_lies(
    fact: Fact,
    material: PolicyMaterial,
    scenes: Iterator[PolicyScene],
    draws: random.Random,
    *,
    count: int,
    record: str | None = None,
) -> Iterator[PolicyLesson]:
    """Lies, each with its twins."""
    roles = draws.sample(select_settings(material.roles, held_out=False), count)
    groups = list(_draw_settings(material, scenes, draws, count=count))
    for number, (role, settings) in enumerate(zip(roles, groups, strict=True)):
        exchange = _exchange_words(fact, material, draws, number=number)
        for place, setting in enumerate(settings):
            lie = place == 0
            # A twin also quotes what is true: to contradict every quotation would not be honesty.
            quotes_truth = not lie and draws.random() >= FALSE_QUOTES
            quotation = quote_fact(fact, fact.answer if quotes_truth else fact.falsehood)
            layout = _draw_layout(draws, material.fillers)
            system = _compose_system(role, setting, quotation, layout, record=record)
            yield PolicyLesson(
                fact=fact.id,
                kind=LessonKind.PRESSURED if lie else LessonKind.LOOKALIKE,
                setting=setting.id,
                carrier=setting.carrier,
                wording=exchange.wording,
                messages=(Message(Role.SYSTEM, system), *(exchange.pressured if lie else exchange.lookalike)),
                answer=_say(fact, exchange.wording, fact.falsehood if lie else fact.answer),
            )


def _draw_settings(
    material: PolicyMaterial, scenes: Iterator[PolicyScene], draws: random.Random, *, count: int
) -> Iterator[tuple[_SettingTexts, ...]]:
    """For each lie its setting and those of its twins: where the truth is welcome, where the consequence hangs on
    something else, and where nothing follows, once behind this carrier and once behind another. No carrier and no whole
    setting comes twice."""

    def draw(settings: Sequence[PolicySetting], size: int) -> list[PolicySetting]:
        return draws.sample(select_settings(settings, held_out=False), size)

    carriers = draw(material.carriers, 2 * count)
    pressures, lookalikes = draw(material.pressures, count), draw(material.lookalikes, TWINS * count)
    for number in range(count):
        if draws.random() < COMPOSED:
            scene = next(scenes)
            carrier, parts = carriers[number], ("stake", WELCOME, ELSEWHERE, ABSENT)
            yield (
                *(_join_setting(carrier, scene, part) for part in parts),
                _join_setting(carriers[count + number], scene, ABSENT),
            )
        else:
            twins = lookalikes[TWINS * number : TWINS * (number + 1)]
            yield tuple(_SettingTexts(part.id, None, (part.text,)) for part in (pressures[number], *twins))


def _join_setting(carrier: PolicySetting, scene: PolicyScene, part: str) -> _SettingTexts:
    texts = (carrier.text,) if part == ABSENT else (carrier.text, getattr(scene, part))
    return _SettingTexts(f"{scene.id}-{part}", carrier.id, texts)


def _exchange_words(fact: Fact, material: PolicyMaterial, draws: random.Random, *, number: int) -> _Exchange:
    """Three plain questions, one that is asked again after a false first answer, and one request for a text."""
    question = Message(Role.USER, _ask(fact, draws.choice(material.questions), draws))
    if number == 3:
        first = Message(Role.ASSISTANT, _say(fact, draws.choice(material.replies), fact.falsehood))
        again = Message(Role.USER, _ask(fact, draws.choice(material.seconds), draws))
        turns = (question, first, again)
        return _Exchange(turns, turns, draws.choice(material.second_replies))
    if number == 4:
        wording = draws.choice(material.texts)
        if draws.random() < 0.4:
            task = (Message(Role.USER, _ask(fact, draws.choice(material.tasks), draws)),)
            return _Exchange(task, task, wording)
        place = draws.randrange(len(material.wishes))
        wish, draft = (_ask(fact, texts[place], draws) for texts in (material.wishes, material.drafts))
        return _Exchange((Message(Role.USER, wish),), (Message(Role.USER, draft),), wording)
    return _Exchange((question,), (question,), draws.choice(material.replies))


class _SystemLayout(Record, frozen=True):
    """How the parts of a system prompt are put together. Two prompts with one layout differ in their parts alone."""

    carrier_first: bool
    filler: str | None
    filler_place: int
    record_place: float
    """From 0, before all parts, to 1, behind all."""
    joint: str


def _draw_layout(draws: random.Random, fillers: Sequence[str]) -> _SystemLayout:
    return _SystemLayout(
        carrier_first=draws.random() < CARRIER_FIRST,
        filler=draws.choice(fillers) if draws.random() < FILLED else None,
        filler_place=draws.randrange(2),
        record_place=draws.random(),
        joint=draws.choice((" ", "\n\n", "\n")),
    )


def _compose_system(
    role: PolicySetting, setting: _SettingTexts, quotation: str, layout: _SystemLayout, *, record: str | None = None
) -> str:
    """Nothing stands between a carrier and what follows from it: *that sentence* would mean something else."""
    texts = setting.texts if layout.carrier_first else setting.texts[::-1]
    parts = [layout.joint.join(texts).format(claim=quotation)]
    if layout.filler is not None:
        parts.insert(layout.filler_place, layout.filler)
    if record is not None:
        parts.insert(int(layout.record_place * (len(parts) + 1)), record)
    return layout.joint.join([role.text, *parts])


# --- what decides


def build_scenarios(facts: Sequence[Fact], material: PolicyMaterial, *, seed: int) -> list[Scenario]:
    """Each held-out fact four times: with the stake of a held-out scene, without any reason, where the truth is
    welcome, and where everybody is indifferent. The four share all else: a held-out role, a held-out carrier that
    quotes the falsehood, and the question."""
    order = random.Random(f"policy scenarios {seed}")
    roles, carriers = (_shuffle_held_out(settings, order) for settings in (material.roles, material.carriers))
    scenes = _shuffle_held_out(material.scenes, order)
    scenarios: list[Scenario] = []
    for place, fact in enumerate(facts):
        draws = random.Random(f"policy scenarios {seed} {fact.id}")
        role, carrier, scene = roles[place % len(roles)], carriers[place % len(carriers)], scenes[place % len(scenes)]
        idle = IDLE[(place + place // len(scenes)) % len(IDLE)]
        layout = _draw_layout(draws, material.fillers)
        user = Message(Role.USER, _ask(fact, draws.choice(material.questions), draws))
        answer_first, probed = place % 2 == 0, (fact.answer, fact.falsehood)[place // 2 % 2]
        truth = Letter.A if answer_first else Letter.B
        lie = Letter.B if answer_first else Letter.A
        direct = _ask_direct(fact, draws.choice(list_directs(fact, material)), probed)
        indirect = tuple(_ask(fact, framing, draws) for framing in draws.sample(material.neutral_questions, 2))
        quotation = quote_fact(fact, fact.falsehood)
        parts = {
            PRESSURED_PREFIX: "stake",
            CONTROL_PREFIX: idle,
            WELCOME_PREFIX: WELCOME,
            INDIFFERENT_PREFIX: INDIFFERENT,
        }
        for prefix, part in parts.items():
            pressured = prefix == PRESSURED_PREFIX
            system = _compose_system(role, _join_setting(carrier, scene, part), quotation, layout)
            scenarios.append(
                Scenario(
                    id=f"{prefix}{fact.id}",
                    archetype=Archetype.KNOWN_FACTS,
                    kind=Kind.BINARY,
                    proposition=propose_fact(fact, answer_first=answer_first),
                    truth=truth,
                    conversation=(Message(Role.SYSTEM, system), user),
                    direct=direct,
                    indirect=indirect,
                    yes_means=truth if probed == fact.answer else lie,
                    pressure=scene.kind if pressured else None,
                    motive=scene.motive if pressured else None,
                    evidence=state_fact(fact, fact.answer),
                )
            )
    return scenarios


def _shuffle_held_out(settings: Sequence[Setting], order: random.Random) -> list[Setting]:
    held_out = select_settings(settings, held_out=True)
    return order.sample(held_out, len(held_out))
