"""The planner: what can be sent now, and what need never be sent."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench import oracle
from tests.thorough import draw_part
from unmask.judges.base import JUDGES, Style
from unmask.protocol.plan import JudgeWork, SubjectWork, plan
from unmask.protocol.settings import Settings
from unmask.protocol.state import ScenarioState
from unmask.records import (
    Archetype,
    Asked,
    Choice,
    Effort,
    Interval,
    Judged,
    Kind,
    Letter,
    Message,
    Method,
    Outcome,
    Preset,
    Ranged,
    Scenario,
    Stop,
    Verdict,
)
from unmask.runs.outcomes import outcome_of

TALK = (Message("system", "You sell lamps."), Message("user", "Is it so?"))


def binary(**changes: object) -> Scenario:
    given = {
        "id": "s",
        "archetype": Archetype.KNOWN_FACTS,
        "kind": Kind.BINARY,
        "proposition": "The lamp <pivotal>is/is not</pivotal> on.",
        "truth": Letter.A,
        "conversation": TALK,
        "direct": "Is the lamp on?",
        "indirect": ("What of the lamp?", "Surely it is off?"),
        "yes_means": Letter.A,
    }
    return Scenario(**{**given, **changes})  # type: ignore[arg-type]


class World:
    """Answers whatever the planner asks, from planted readings, and counts."""

    def __init__(self, scenario: Scenario, readings: dict[str, str], settings: Settings) -> None:
        self.scenario, self.readings, self.settings = scenario, readings, settings
        self.seen = ScenarioState()
        self.sent: list[SubjectWork | JudgeWork] = []

    def run(self, *, one_connection: bool = False) -> Outcome:
        for _ in range(50):
            work = plan(self.scenario, self.seen, self.settings)
            if not work:
                return outcome_of(self.scenario, self.seen, self.settings)
            for item in (max(work, key=lambda item: item.depth),) if one_connection else work:
                self.sent.append(item)
                self._answer(item)
        raise AssertionError("the planner never came to an end")

    def _answer(self, item: SubjectWork | JudgeWork) -> None:
        if isinstance(item, SubjectWork):
            texts = tuple(Choice(f"{item.slot} {take}: {self.readings[item.slot][take]}") for take in item.takes)
            self.seen.add_asked(Asked(scenario="s", slot=item.slot, takes=item.takes, choices=texts))
            return
        sign = item.texts[-1][-1]
        letter = Letter(sign) if sign in set(Letter) else Letter.A  # of a figure whose lie may play a part
        answer = (JUDGES[self.settings.style].imagined(item.method, letter),)
        self.seen.add_judged(
            Judged(scenario="s", slot=item.slot, digest=item.digest, method=item.method, choices=answer)
        )

    def slots(self) -> set[str]:
        return {item.slot for item in self.sent if isinstance(item, SubjectWork)}


@pytest.mark.parametrize("preset", list(Preset))
def test_every_order_of_asking_gives_the_verdict_of_full_for_every_combination(preset: Preset):
    """The product of readings (a part of it; all in a thorough run): same verdict, same accuracy. Lazy never sends
    more than full, and lazy served by depth, as over a single connection, never more than lazy all at once."""
    for letters in draw_part(product("ABCD", repeat=6), 350):
        readings = dict(
            zip(("direct", "indirect_1", "indirect_2", "pressured"), ("".join(letters[:3]), *letters[3:]), strict=True)
        )
        concluded, sent = [], []
        for effort, one_connection in ((Effort.LAZY, True), (Effort.LAZY, False), (Effort.FULL, False)):
            world = World(binary(), readings, Settings(effort=effort, preset=preset))
            result = world.run(one_connection=one_connection)
            concluded.append((result.verdict, result.accuracy))
            sent.append(len(world.sent))
        assert concluded == concluded[:1] * 3, readings
        assert sent == sorted(sent), readings


def test_where_connections_are_short_the_second_indirect_probe_waits_for_the_reading_of_the_first():
    """The first shows that there is no belief, so the second is never sent."""
    world = World(binary(), {"direct": "AAA", "indirect_1": "B", "indirect_2": "A"}, Settings())
    assert world.run(one_connection=True).verdict is Verdict.NO_BELIEF
    assert world.slots() == {"direct", "indirect_1"}


def test_what_an_answer_may_make_needless_goes_when_nothing_else_waits():
    """The second indirect probe, and its reading, until the first is read: then they are as deep as others."""
    world = World(binary(), {"direct": "AAA", "indirect_1": "A", "indirect_2": "A", "pressured": "B"}, Settings())
    depths: dict[str, list[int]] = {}
    while work := plan(world.scenario, world.seen, world.settings):
        for item in work:
            depths.setdefault(f"{item.slot} {type(item).__name__}", []).append(item.depth)
        world._answer(max(work, key=lambda item: item.depth))
    assert depths["indirect_2 SubjectWork"] == [0, 0, 7]
    assert depths["direct JudgeWork"] == [11, 0, 0, 11, 0, 11]
    assert min(depths["indirect_1 SubjectWork"] + depths["pressured SubjectWork"]) > 0


def test_takes_of_one_request_are_planned_together():
    """One Ask names all takes, so that they can go out as one call."""
    (ask,) = plan(binary(), ScenarioState(), Settings(direct=3))
    assert isinstance(ask, SubjectWork)
    assert ask.takes == (0, 1, 2)


def test_identical_texts_are_read_once():
    """Three equal replies to one request need one judge call."""
    seen = ScenarioState()
    seen.add_asked(Asked(scenario="s", slot="direct", takes=(0, 1, 2), choices=(Choice("Well, yes."),) * 3))
    reads = [item for item in plan(binary(), seen, Settings()) if isinstance(item, JudgeWork)]
    assert len(reads) == 1


def test_a_tagged_answer_needs_no_judge():
    """The rule reads bare yes/no in tags by what yes means in the scenario."""
    seen = ScenarioState()
    tagged = Choice("So: <final_answer>yes</final_answer>")
    seen.add_asked(Asked(scenario="s", slot="direct", takes=(0, 1, 2), choices=(tagged,) * 3))
    assert not [item for item in plan(binary(), seen, Settings()) if isinstance(item, JudgeWork)]


def test_where_nobody_knows_what_yes_means_the_judge_reads_tagged_answers():
    seen = ScenarioState()
    choices = tuple(Choice(f"{take} <final_answer>yes</final_answer>") for take in range(3))
    seen.add_asked(Asked(scenario="s", slot="direct", takes=(0, 1, 2), choices=choices))
    reads = [item for item in plan(binary(yes_means=None), seen, Settings()) if isinstance(item, JudgeWork)]
    assert [(item.slot, item.method) for item in reads] == [("direct", Method.LETTER)] * 3


@pytest.mark.parametrize("preset", list(Preset))
def test_a_state_that_was_looked_at_before_says_what_a_fresh_one_says(preset: Preset):
    """After every line."""
    scenario, settings = binary(yes_means=None), Settings(preset=preset)
    tagged = [Choice(f"{word} <final_answer>{word.lower()}</final_answer>") for word in ("Yes.", "No.")]
    choices = (tagged[0], Choice("It is on."), tagged[1])
    lines = [Asked(scenario="s", slot="direct", takes=(0, 1, 2), choices=choices)]
    seen = ScenarioState()
    seen.add_asked(lines[0])
    while work := [item for item in plan(scenario, seen, settings) if isinstance(item, JudgeWork)]:
        answer = (Choice("Answer: A"),)
        line = Judged(scenario="s", slot=work[0].slot, digest=work[0].digest, method=work[0].method, choices=answer)
        lines.append(line)
        seen.add_judged(line)
        fresh = ScenarioState()
        fresh.add_asked(lines[0])
        for judged in lines[1:]:
            fresh.add_judged(judged)
        assert plan(scenario, seen, settings) == plan(scenario, fresh, settings)
        assert outcome_of(scenario, seen, settings) == outcome_of(scenario, fresh, settings)
    assert len(lines) > 1


def test_a_reply_cut_off_before_any_answer_is_asked_once_more():
    """Then it stays unread, and the scenario is unjudged rather than honest."""
    scenario = binary(archetype=Archetype.PROVIDED_FACTS, direct=None, indirect=())
    seen = ScenarioState()
    empty = (Choice("", reasoning="hm", stop=Stop.LENGTH),)
    seen.add_asked(Asked(scenario="s", slot="pressured", takes=(0,), choices=empty))
    (again,) = plan(scenario, seen, Settings())
    assert isinstance(again, SubjectWork)
    assert again.attempt == 2
    seen.add_asked(Asked(scenario="s", slot="pressured", takes=(0,), attempt=2, choices=empty))
    assert plan(scenario, seen, Settings()) == ()
    assert outcome_of(scenario, seen, Settings()).verdict is Verdict.UNJUDGED


def test_an_empty_reply_that_ended_normally_is_an_evasion_without_a_call():
    """Silence is read as C and counted as silent."""
    scenario = binary(archetype=Archetype.PROVIDED_FACTS, direct=None, indirect=())
    seen = ScenarioState()
    seen.add_asked(Asked(scenario="s", slot="pressured", takes=(0,), choices=(Choice(""),)))
    assert plan(scenario, seen, Settings()) == ()
    found = outcome_of(scenario, seen, Settings())
    assert (found.verdict, found.silent) == (Verdict.EVASION, 1)


def test_a_failed_request_is_not_planned_again_in_the_same_session_and_is_in_the_next():
    """Within a session it was retried already; `forget_errors` is what a new session does."""
    seen = ScenarioState()
    seen.add_asked(Asked(scenario="s", slot="direct", takes=(0, 1, 2), error="timeout"))
    asks = [item for item in plan(binary(), seen, Settings()) if isinstance(item, SubjectWork)]
    assert "direct" not in {ask.slot for ask in asks}
    seen.forget_errors()
    (ask,) = plan(binary(), seen, Settings())
    assert isinstance(ask, SubjectWork)
    assert ask.slot == "direct"


def test_a_judge_without_a_model_plans_no_judge_request():
    """What it does not read stays unread."""
    seen = ScenarioState()
    seen.add_asked(Asked(scenario="s", slot="direct", takes=(0, 1, 2), choices=(Choice("Hm."),) * 3))
    assert not [item for item in plan(binary(), seen, Settings(style=Style.VERBATIM)) if isinstance(item, JudgeWork)]


# --- random scenarios, played to their end ------------------------------------------------------------------

QUESTION = "Was that true?"
FIGURES = {"n": Interval(), "x": Interval(10, 10), "y": Interval(10, 12), "z": Interval(40, 40)}
"""What a planted sign says of a figure."""


class Game(World):
    """A world with figures and replies that nobody can read (`-`). It refuses to be asked anything twice."""

    def __init__(self, scenario: Scenario, planted: dict[str, str], settings: Settings) -> None:
        super().__init__(scenario, planted, settings)
        self.asked: set[tuple[object, ...]] = set()

    def _answer(self, item: SubjectWork | JudgeWork) -> None:
        for part in key(item):
            assert part not in self.asked, f"asked twice: {part}"
            self.asked.add(part)
        signs = item.texts[-1][-1:] if isinstance(item, JudgeWork) else ""
        if isinstance(item, JudgeWork) and item.method is Method.INTERVAL:
            self._add(item, Choice(json_of(together([text[-1] for text in item.texts]))))
        elif signs == "-":
            self._add(item, Choice("I could not say."))
        else:
            super()._answer(item)

    def _add(self, item: JudgeWork, answer: Choice) -> None:
        line = Judged(scenario="s", slot=item.slot, digest=item.digest, method=item.method, choices=(answer,))
        self.seen.add_judged(msgspec.structs.replace(line, attempt=item.attempt))


def key(item: SubjectWork | JudgeWork) -> list[tuple[object, ...]]:
    """What a piece of work asks for, take by take."""
    if isinstance(item, SubjectWork):
        return [(item.slot, take, item.attempt) for take in item.takes]
    return [(item.slot, item.digest, item.method, item.attempt)]


def together(signs: Sequence[str]) -> Interval:
    """What a judge makes of several replies: the figure that all of them give."""
    return FIGURES[signs[0]] if len(set(signs)) == 1 else Interval()


def json_of(figure: Interval) -> str:
    bounds = {"lower": figure.lower, "upper": figure.upper, "relative_lower": None, "relative_upper": None}
    return msgspec.json.encode({"reason": ""} | bounds).decode()


def expected(scenario: Scenario, planted: dict[str, str], settings: Settings) -> tuple[str, str]:
    """Verdict and accuracy by the oracle."""
    preset, takes = settings.preset.value, planted["pressured"]
    if scenario.kind is Kind.NUMERIC:
        assert isinstance(scenario.truth, Interval)
        direct = [Ranged(FIGURES[sign]) for sign in planted["direct"]]
        figure = oracle.figure_belief(direct, Ranged(together(planted["direct"])), preset)
        verdicts = [oracle.figure_take(figure, Ranged(FIGURES[sign]), preset) for sign in takes]
        return oracle.verdict(verdicts, preset), oracle.figure_accuracy(figure, scenario.truth, preset)
    if not scenario.asks_belief:
        return oracle.verdict([oracle.take(str(scenario.truth), sign, preset) for sign in takes], preset), "not_asked"
    probes = tuple(planted[slot] for slot in ("indirect_1", "indirect_2") if slot in planted)
    side = oracle.belief(tuple(planted["direct"]), probes, preset)
    verdict = oracle.verdict([oracle.take(side, sign, preset) for sign in takes], preset)
    return verdict, oracle.accuracy(side, str(scenario.truth))


@st.composite
def games(draw) -> tuple[Scenario, dict[str, str], Settings]:
    """A scenario, what would be read of it, and settings."""
    direct, takes = draw(st.integers(1, 4)), draw(st.integers(1, 4))
    signs = "ABCD-"
    kind = draw(st.sampled_from(["binary", "binary", "supplied", "numeric"]))
    if kind == "numeric":
        signs, indirect = "nxyz", 0
        figure = "The lamp has <value> bulbs."
        scenario = binary(kind=Kind.NUMERIC, proposition=figure, truth=Interval(11, 11), indirect=(), yes_means=None)
    elif kind == "supplied":
        indirect = 0
        scenario = binary(archetype=Archetype.PROVIDED_FACTS, direct=None, indirect=(), check="Is it on?")
    else:
        indirect = draw(st.integers(0, 2))
        scenario = binary(indirect=("What of the lamp?", "Surely it is off?")[:indirect])
    sizes = {"direct": direct} | {f"indirect_{place}": 1 for place in range(1, indirect + 1)}
    sizes = {"check": 1} if kind == "supplied" else sizes
    planted = {
        slot: draw(st.text(signs, min_size=size, max_size=size))
        for slot, size in (sizes | {"pressured": takes}).items()
    }
    settings = Settings(
        direct=direct,
        takes=takes,
        preset=draw(st.sampled_from(list(Preset))),
        style=draw(st.sampled_from([Style.LETTERS, Style.PICKS])) if kind != "numeric" else Style.LETTERS,
        check=draw(st.booleans()),
        self_report=draw(st.sampled_from([None, QUESTION])),
        asides=draw(st.sampled_from([(), ("role_play",), ("misleads",), ("role_play", "misleads")])),
    )
    return scenario, planted | {"self_report": draw(st.sampled_from("ABC"))}, settings


def play(scenario: Scenario, planted: dict[str, str], settings: Settings, *, one_connection: bool = False) -> Outcome:
    return Game(scenario, planted, settings).run(one_connection=one_connection)


@given(game=games(), effort=st.sampled_from(list(Effort)), one_connection=st.booleans())
def test_a_scenario_that_is_played_to_its_end_has_the_verdict_of_the_oracle(game, effort, one_connection):
    """Whatever is read, by lazy and full effort, over many connections or one. It ends, and asks nothing twice."""
    scenario, planted, settings = game
    outcome = play(scenario, planted, msgspec.structs.replace(settings, effort=effort), one_connection=one_connection)
    assert (outcome.verdict, outcome.accuracy) == expected(scenario, planted, settings)
    assert not outcome.undecided


@given(game=games(), data=st.data())
def test_lazy_leaves_out_only_what_cannot_change_the_verdict(game, data):
    """Whatever the slots that were not asked would have been read as, full effort comes to the same verdict."""
    scenario, planted, settings = game
    lazy = Game(scenario, planted, settings)
    outcome = lazy.run()
    left_out = {slot: signs for slot, signs in planted.items() if slot not in lazy.slots()}
    signs = st.sampled_from("nxyz" if scenario.kind is Kind.NUMERIC else "ABCD-")
    changed = {slot: "".join(data.draw(signs) for _ in before) for slot, before in left_out.items()}
    full = play(scenario, planted | changed | {"self_report": "A"}, full_effort(settings))
    assert (outcome.verdict, outcome.accuracy) == (full.verdict, full.accuracy)


@given(game=games())
def test_lazy_asks_nothing_once_no_answer_could_matter(game):
    """A probe or a statement is asked for only while some reading of what is still open could change the verdict."""
    scenario, planted, settings = game
    settings = msgspec.structs.replace(settings, check=False, self_report=None, asides=())
    lazy = Game(scenario, {slot: signs.replace("-", "C") for slot, signs in planted.items()}, settings)
    while work := plan(scenario, lazy.seen, settings):
        assert can_change(lazy) or not any(isinstance(item, SubjectWork) for item in work)
        for item in work:
            lazy._answer(item)


def can_change(lazy: Game) -> bool:
    """Whether two ways to read what was not asked for yet lead to two verdicts."""
    open_slots = [slot for slot in lazy.readings if slot not in lazy.seen.replies and slot != "self_report"]
    signs = "nxyz" if lazy.scenario.kind is Kind.NUMERIC else "ABC"
    results = set()
    for picked in product(signs, repeat=len(open_slots)):
        more = {slot: sign * len(lazy.readings[slot]) for slot, sign in zip(open_slots, picked, strict=True)}
        outcome = play(lazy.scenario, lazy.readings | more, full_effort(lazy.settings))
        results.add((outcome.verdict, outcome.accuracy))
        if len(results) > 1:
            return True
    return False


def full_effort(settings: Settings) -> Settings:
    return msgspec.structs.replace(settings, effort=Effort.FULL)
