"""The order of looking, the decided prefix, and rules that stop a run."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.errors import UsageError
from unmask.protocol.looking import (
    Look,
    RuleWatch,
    StopRule,
    decided_prefix,
    looking_order,
    measure_anytime,
    parse_rule,
)
from unmask.records import Accuracy, Archetype, Kind, NoBelief, Outcome, Verdict

IDS = st.lists(st.text(min_size=1, max_size=5), unique=True, max_size=30)


def outcome(name: str, verdict: Verdict | None) -> Outcome:
    """`None` is a scenario that is not decided yet."""
    return Outcome(
        id=name,
        archetype=Archetype.KNOWN_FACTS,
        kind=Kind.BINARY,
        verdict=verdict or Verdict.UNJUDGED,
        accuracy=Accuracy.CORRECT,
        undecided=verdict is None,
    )


@pytest.mark.parametrize("text", ["p_lie < 0.05", " p_lie<.05 ", "p_lie  <0.050"])
def test_a_rule_is_read_however_it_is_spaced(text):
    assert parse_rule(text) == StopRule(above=False, limit=0.05)
    assert str(parse_rule(text)) == "p_lie < 0.05"


def test_a_rule_may_ask_for_more():
    assert str(parse_rule("p_lie > 0.3")) == "p_lie > 0.3"


@pytest.mark.parametrize(
    "text",
    ["", "p_lie <= 0.05", "p_lie == 0.05", "accuracy > 0.5", "p_lie < 7", "p_lie < 0", "p_lie < 1", "p_lie < -0.1",
     "p_lie < 5%", "p_lie < 1e-2", "p_lie < 0.05 or p_lie > 0.3", "0.05 > p_lie", "P(lie) < 0.05"],
)  # fmt: skip
def test_nothing_else_is_a_rule(text):
    with pytest.raises(UsageError, match="is no rule") as caught:
        parse_rule(text)
    assert "p_lie < 0.05" in (caught.value.advice or "")


@pytest.mark.parametrize("look", [{"rule": "p_lie < 7", "after": 3}, {"rule": "p_lie < 0.1", "after": 0}])
def test_a_look_that_no_run_has_is_refused_in_a_file(look):
    with pytest.raises(msgspec.ValidationError):
        msgspec.convert(look, Look)


@given(IDS, st.integers(0, 3), st.randoms())
def test_the_order_depends_on_seed_and_ids_alone(ids, seed, random):
    """Not on the order of the file, and one id more moves no other past another."""
    shuffled = random.sample(ids, len(ids))
    order = [ids[place] for place in looking_order(ids, seed=seed)]
    assert [shuffled[place] for place in looking_order(shuffled, seed=seed)] == order
    fewer = ids[:-1]
    assert [fewer[place] for place in looking_order(fewer, seed=seed)] == [name for name in order if name in fewer]


def test_another_seed_is_another_order():
    ids = [f"s-{number}" for number in range(50)]
    assert looking_order(ids, seed=0) != looking_order(ids, seed=1)


@given(IDS, st.data())
def test_the_prefix_of_a_run_that_has_grown_begins_with_that_before(ids, data):
    """And it ends where the first scenario of the order is not decided."""
    before = {name: data.draw(st.sampled_from([Verdict.LIE, Verdict.HONEST, None])) for name in ids}
    after = {name: verdict or data.draw(st.sampled_from([Verdict.LIE, None])) for name, verdict in before.items()}
    old, new = (
        [row.id for row in decided_prefix([outcome(*item) for item in rows.items()], seed=0)]
        for rows in (before, after)
    )
    assert new[: len(old)] == old
    order = [ids[place] for place in looking_order(ids, seed=0)]
    assert old == order[: len(old)]
    assert len(old) == len(ids) or before[order[len(old)]] is None


def test_what_cannot_be_judged_counts_as_a_lie():
    """For the upper bound and the value; for the lower bound as none, so that both bounds hold whatever it is."""
    rows = [outcome(f"a{n}", Verdict.HONEST) for n in range(60)] + [outcome(f"b{n}", Verdict.LIE) for n in range(20)]
    unknown = [outcome(f"c{n}", Verdict.UNJUDGED) for n in range(20)]
    found = measure_anytime(rows + unknown)
    all_lies = measure_anytime(rows + [outcome(row.id, Verdict.LIE) for row in unknown])
    no_lies = measure_anytime(rows + [outcome(row.id, Verdict.HONEST) for row in unknown])
    assert (found.lies, found.scenarios, found.value) == (40, 100, 0.4)
    assert found.high == all_lies.high
    assert found.low == no_lies.low


def test_without_a_belief_there_is_no_lie_whatever_was_not_read():
    row = msgspec.structs.replace(outcome("a", Verdict.UNJUDGED), belief=NoBelief("probes differ"))
    assert measure_anytime([row]).lies == 0


def test_nothing_decided_gives_bounds_that_say_nothing():
    found = measure_anytime([])
    assert (found.value, found.low, found.high) == (None, 0.0, 1.0)


@given(st.permutations(range(150)))
def test_a_rule_is_met_after_the_same_scenarios_whatever_finishes_first(arrival):
    """Concurrency and kills change what is finished so far, and must not change the sample."""
    verdicts = [Verdict.LIE if place % 30 == 7 else Verdict.HONEST for place in range(150)]
    watch = RuleWatch(parse_rule("p_lie < 0.2"))
    for place in arrival:
        watch.add(place, outcome(str(place), verdicts[place]))
    in_order = RuleWatch(parse_rule("p_lie < 0.2"))
    places = iter(range(150))
    while in_order.after is None:
        place = next(places)
        in_order.add(place, outcome(str(place), verdicts[place]))
    assert watch.after == in_order.after == place + 1 < 150


def test_an_undecided_scenario_holds_the_rule_up():
    watch = RuleWatch(parse_rule("p_lie < 0.5"))
    for place in range(100):
        watch.add(place, outcome(str(place), None if place == 3 else Verdict.HONEST))
    assert watch.after is None
