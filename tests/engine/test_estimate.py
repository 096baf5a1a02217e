"""What `unmask run --plan` says beforehand against what a run then sends: the upper end is never below it."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import msgspec
import pytest

import unmask
from tests.thorough import THOROUGH
from unmask.data.load import load
from unmask.engine.estimate import Amount, DryRun, Estimate
from unmask.engine.plan import Pace, Terms, estimate_run, estimate_seconds
from unmask.errors import UsageError
from unmask.judges.base import Style
from unmask.models.scripted import Scripted, open_scripted
from unmask.models.scripted import answer_as_judge as scripted_judge
from unmask.protocol.settings import Settings
from unmask.protocol.state import ScenarioState

CHARACTERS = ("scripted/honest", "scripted/liar", "scripted/evasive", "scripted/beliefless")


def planned(**settings: Any) -> Estimate:
    return estimate_run(**{"data": "tiny", "judge": "scripted/judge", "out": None, **settings})[0]


def sent(out: Path, **settings: Any) -> tuple[int, int]:
    """Requests to subject and judge, as the models themselves count them."""
    subject = open_scripted(settings.pop("model"))
    judge = settings.pop("judge", "scripted/judge")
    judge = judge if judge == "verbatim" else Scripted(scripted_judge, name=judge)
    unmask.run(**{"data": "tiny", **settings}, model=subject, judge=judge, out=out)
    return subject.calls, 0 if isinstance(judge, str) else judge.calls


def with_repeats(calls: int) -> int:
    """A quarter of all requests may be sent twice."""
    return round(calls * 1.25)


MORE = (
    {},
    {"also": "self-report"},
    {"takes": 3},
    {"direct": 1},
    {"set": {"takes_per_call": 1}},
    {"takes": 8, "set": {"takes_per_call": 1}},
    {"also": "role-play"},
    {"also": ("role-play", "misleads"), "control": True},
)
COMBINED = [
    (model, judge, more)
    for (row, model), (column, judge), (place, more) in product(
        enumerate(CHARACTERS), enumerate(("verbatim", "scripted/judge")), enumerate(MORE)
    )
    if (THOROUGH or (row + column + place) % 2) and not (judge == "verbatim" and place > 5)
]
"""Each two of these in every way; in a thorough run all three."""


@pytest.mark.parametrize(("model", "judge", "more"), COMBINED)
def test_no_character_sends_more_than_was_planned(tmp_path, model, judge, more):
    most = unmask.plan(**{"data": "tiny", "model": model, "judge": judge, **more}).most
    subject, read = sent(tmp_path / "run", model=model, judge=judge, **more)
    assert subject <= most.subject.calls
    assert read <= most.judge.calls


@pytest.mark.parametrize("more", [{}, {"data": "core", "limit": None if THOROUGH else 60}], ids=["tiny", "core"])
def test_with_rules_a_subject_that_believes_sends_exactly_the_most(tmp_path, more):
    """The pressured requests of figures are among them."""
    most = planned(model="scripted/honest", judge="verbatim", **more).most
    assert most["subject"].calls == with_repeats(
        sent(tmp_path / "run", model="scripted/honest", judge="verbatim", **more)[0]
    )


def test_whoever_reads_the_most_that_the_subject_is_asked_is_the_same():
    """Rules that read an imagined reply must not take it for a change of mind."""
    states = [(scenario, ScenarioState()) for scenario in load("core").scenarios[::15]]
    counts = {
        style: DryRun(Settings(style=style), 128).estimate(states).most["subject"].calls
        for style in (Style.LETTERS, Style.PICKS, Style.VERBATIM)
    }
    assert counts == dict.fromkeys(counts, counts[Style.LETTERS])


def test_more_takes_than_fit_into_a_request_are_counted_as_several(tmp_path):
    most = planned(model="scripted/honest", takes=300, limit=4).most["subject"].calls
    assert most == with_repeats(sent(tmp_path / "run", model="scripted/honest", takes=300, limit=4)[0])
    assert most > planned(model="scripted/honest", takes=128, limit=4).most["subject"].calls


def test_what_a_baseline_lends_is_not_counted(tmp_path):
    sent(tmp_path / "base", model="scripted/honest")
    treated = {"model": "scripted/honest", "beliefs_from": str(tmp_path / "base"), "developer_prompt": "plain"}
    found = planned(**treated)
    subject, judge = sent(tmp_path / "treated", **treated)
    assert subject == found.scenarios
    assert found.most["subject"].calls == with_repeats(subject)
    assert found.most["judge"].calls == with_repeats(judge)


def test_a_baseline_that_the_run_would_refuse_is_refused(tmp_path):
    sent(tmp_path / "base", model="scripted/honest")
    with pytest.raises(UsageError, match="has another value of temperature: "):
        planned(model="scripted/honest", beliefs_from=str(tmp_path / "base"), temperature=0.5)


def test_the_tokens_of_a_developer_prompt_are_counted(tmp_path):
    (tmp_path / "long.txt").write_text("Say what you believe. " * 1000)
    plain = planned(model="scripted/honest").most["subject"]
    prompted = planned(model="scripted/honest", developer_prompt=str(tmp_path / "long.txt")).most["subject"]
    assert prompted.calls == plain.calls
    assert prompted.input > plain.input + 5000 * 12


def terms(**changes: Any) -> Terms:
    subject, judge = Pace("http://subject", 1.0, 0.02), Pace("http://judge", 1.0, 0.02)
    usual: dict[str, Any] = {
        "prices": {},
        "paces": {"subject": subject, "judge": judge},
        "connections": 10,
    }
    return Terms(**{**usual, **changes})


BOUND = {"subject": Amount(100, 0, 10_000), "judge": Amount(100, 0, 5_000)}


def test_two_endpoints_work_side_by_side_and_no_scenario_is_faster_than_its_steps():
    assert estimate_seconds(BOUND, terms()) == (100 + 200) / 10 + 2 * 3 + 2 * 2


@pytest.mark.parametrize("calls", [0, 3])
def test_the_time_is_unknown_only_where_an_unknown_pace_is_needed(calls):
    bound = {"subject": BOUND["subject"], "judge": Amount(calls, 0, 10)}
    seconds = estimate_seconds(bound, terms(paces={"subject": Pace("http://s", 1.0), "judge": None}))
    assert (seconds is None) is bool(calls)


def test_a_price_is_unknown_for_its_own_part_only(monkeypatch):
    """And no key is needed to ask."""
    for name in ("OPENAI_API_KEY", "UNMASK_API_KEY", "UNMASK_JUDGE_API_KEY", "OPENAI_BASE_URL"):
        monkeypatch.delenv(name, raising=False)
    found = unmask.plan(data="tiny", model="openai/my-own", judge="openai/gpt-4o")
    assert found.most.subject.cost_usd is None
    assert found.most.judge.cost_usd > 0
    assert found.most.cost_usd is None
    assert str(found).startswith("Cost: likely the judge $")


def test_what_was_answered_says_how_fast_a_model_is(tmp_path):
    """A model in this process has no usual pace; its own answers in the folder give one."""
    subject = open_scripted("scripted/honest")
    subject.endpoint = "local/honest"
    settings: Any = {"data": "tiny", "model": subject, "judge": "scripted/judge", "out": tmp_path / "run"}
    assert estimate_run(**settings)[1].paces["subject"] is None
    unmask.run(**settings)
    pace = estimate_run(**settings)[1].paces["subject"]
    assert pace is not None
    assert pace.measured


def test_live_and_flex_stand_beside_each_other_where_the_provider_has_flex():
    """Half of everything at OpenAI; a judge whose provider has no flex costs what it costs."""
    planned = unmask.plan(data="tiny", model="openai/gpt-4o", judge="openai/gpt-4o")
    mixed = unmask.plan(data="tiny", model="openai/gpt-4o", judge="anthropic/claude-sonnet-4-5")
    assert planned.flex is not None
    assert mixed.flex is not None
    assert planned.flex.most.cost_usd == pytest.approx(planned.most.cost_usd / 2, abs=1e-6)
    assert mixed.flex.most.judge.cost_usd == mixed.most.judge.cost_usd
    assert mixed.flex.most.subject.cost_usd == pytest.approx(mixed.most.subject.cost_usd / 2, abs=1e-6)
    text = str(planned)
    assert "flex, most" in text
    assert max(map(len, text.splitlines()[1:])) <= 80


def test_batches_stand_beside_live_and_flex_with_their_rounds():
    """Three rounds of the judge and six of both; role play adds one, and a self-report another to that of both."""
    settings = {"data": "core", "limit": 60, "model": "openai/gpt-4o", "judge": "openai/gpt-4o"}
    planned = unmask.plan(**settings)
    assert {which: batches.rounds for which, batches in planned.batch.items()} == {"judge": 3, "all": 6}
    assert planned.batch["all"].most.cost_usd == pytest.approx(planned.most.cost_usd / 2, abs=1e-5)
    judged = planned.batch["judge"].most
    assert judged.judge.cost_usd == pytest.approx(planned.most.judge.cost_usd / 2, abs=1e-5)
    assert judged.subject.cost_usd == planned.most.subject.cost_usd
    more = unmask.plan(**settings, also=("self-report", "role-play"))
    assert {which: batches.rounds for which, batches in more.batch.items()} == {"judge": 4, "all": 8}
    full = unmask.plan(**settings, effort="full")
    assert {which: batches.rounds for which, batches in full.batch.items()} == {"judge": 1, "all": 2}
    text = str(planned)
    assert "Batches: --batch all, up to 6 rounds, likely 0.7 to 6 h" in text
    assert max(map(len, text.splitlines()[1:])) <= 80


def test_models_without_a_batch_api_have_no_such_lines():
    assert unmask.plan(data="tiny", model="openai/gpt-4o", judge="verbatim").batch == {}
    assert unmask.plan(data="tiny", model="vllm/mine", judge="openai/gpt-4o").batch.keys() == {"judge"}


# --- after a pilot ----------------------------------------------------------------------------------------


class Metered:
    """A scripted character that says how many tokens its answers take: so many times those of its words."""

    name = "mine/metered"

    def __init__(self, name: str, *, times: float) -> None:
        self.inner = open_scripted(name) if name != "scripted/judge" else Scripted(scripted_judge, name=name)
        self.times = times

    async def complete(self, request: unmask.Request) -> unmask.Completion:
        done = await self.inner.complete(request)
        words = sum(len(message.content) for message in request.messages) / 4
        said = sum(len(choice.text) for choice in done.choices) / 4
        usage = unmask.Usage(round(self.times * words), round(self.times * said))
        return msgspec.structs.replace(done, usage=usage)


def pilot_settings(out: Path, *, times: float = 1.0) -> dict[str, Any]:
    models = {
        "model": Metered("scripted/honest", times=times),
        "judge": Metered("scripted/judge", times=times),
        "set": {"price": "1/4", "judge.price": "1/4"},
    }
    return {"data": "core", "out": out, "limit": 60, **models}


def test_a_pilot_narrows_the_range_to_a_factor_of_three(tmp_path):
    settings = pilot_settings(tmp_path / "run")
    before = unmask.plan(**settings)
    unmask.run(**settings | {"limit": 20})
    after = unmask.plan(**settings)
    assert before.pilot is None
    assert before.most.cost_usd > 5 * before.least.cost_usd
    assert after.pilot == 20
    assert after.most.cost_usd <= 3 * after.least.cost_usd
    assert after.least.cost_usd < after.likely.cost_usd < after.most.cost_usd
    assert "what 20 scenarios of this run took" in str(after)
    assert "--limit 20" in str(before)


def test_the_range_after_a_pilot_is_that_of_the_lengths_it_has_measured(tmp_path):
    """Four times the tokens for the same words are four times the money."""
    costs = []
    for times in (1.0, 4.0):
        settings = pilot_settings(tmp_path / f"{times}", times=times)
        unmask.run(**settings | {"limit": 20})
        costs.append(unmask.plan(**settings))
    assert costs[1].likely.cost_usd == pytest.approx(4 * costs[0].likely.cost_usd, rel=0.02)
    assert costs[1].likely.calls == pytest.approx(costs[0].likely.calls, rel=0.02)


def test_too_small_a_pilot_and_one_without_counts_of_tokens_leave_the_usual_range(tmp_path):
    settings = pilot_settings(tmp_path / "small")
    unmask.run(**settings | {"limit": 6})
    assert unmask.plan(**settings).pilot is None
    uncounted = settings | {"model": Uncounted(), "judge": "verbatim", "out": tmp_path / "uncounted"}
    unmask.run(**uncounted | {"limit": 20})
    assert unmask.plan(**uncounted).pilot is None


class Uncounted:
    name = "mine/uncounted"

    def complete(self, request: unmask.Request) -> str:
        return "I would rather not say."


def test_a_run_that_is_done_costs_nothing_more(tmp_path):
    settings = pilot_settings(tmp_path / "run") | {"limit": 20}
    unmask.run(**settings)
    left = unmask.plan(**settings)
    assert left.most.calls == left.least.calls == 0
    assert left.most.cost_usd == 0
