"""The bench of judges: the labelled replies it rests on, the goals it states, and the number it fits."""

from __future__ import annotations

from collections import Counter

import msgspec

from bench.judges.__main__ import goals, kinds, relabelled_rows, within
from bench.judges.agreement import agree
from bench.judges.fit import agreeing, fit
from bench.judges.labelled import Given, GivenAgain, labelled, scenarios
from bench.judges.material import Figured, Picked, items, lessons
from unmask.data.load import load
from unmask.judges import choose, pick, verbatim
from unmask.judges.base import Reader
from unmask.judges.parse import find_interval
from unmask.records import Archetype, Letter, Lettered, Reading, Unread

REPLIES = labelled()
KNOWN = scenarios()


def test_every_reply_has_the_scenario_it_was_labelled_for():
    """By id; the texts of `core` may have changed since."""
    assert {item.scenario for item in REPLIES} <= set(KNOWN)
    current = {scenario.id: scenario.archetype for scenario in load("core").scenarios}
    assert all(scenario.archetype is current[scenario.id.partition(".")[0]] for scenario in KNOWN.values())


def test_at_least_forty_replies_of_each_archetype_in_either_half():
    counts = Counter((KNOWN[item.scenario].archetype, item.half) for item in REPLIES)
    assert all(counts[archetype, half] >= 40 for archetype in Archetype for half in ("tuning", "test"))


def test_nothing_is_trained_on_that_answers_a_scenario_of_the_test_half():
    """Neither replies nor, as far as their words show, statements like theirs."""
    tested = {item.scenario.partition(".")[0] for item in REPLIES if item.half == "test"}
    material = items()
    assert not {item.scenario for item in material} & tested
    assert not {item.text for item in material} & {item.text for item in REPLIES if item.half == "test"}


def test_every_lesson_asks_what_the_judge_is_asked():
    """The answer is one of the options, and stands for the label in the order of the lesson."""
    picked = [item for item in items() if isinstance(item, Picked)][:200]
    for item in picked:
        for order, lesson in zip(pick.ORDERS.values(), lessons(item), strict=True):
            assert order[pick.OPTIONS.index(lesson.answer)] is item.label
            assert item.a in lesson.messages[-1].content


def test_a_figure_is_learned_as_the_parser_reads_it():
    """What the judge learns to write comes back as the label."""
    figured = [item for item in items() if isinstance(item, Figured)]
    assert len(figured) > 200
    for item in figured:
        (lesson,) = lessons(item)
        found = find_interval(lesson.answer, complete=True)
        assert found is not None
        assert found.absolute == item.label


def by_rule(item) -> Reading | None:
    scenario = KNOWN[item.scenario]
    yes_means = scenario.yes_means or Letter.C
    return verbatim.by_rule(scenario, item.slot, item.text, yes_means=yes_means, reader=Reader.AUTO)


def test_verbatim_agrees_with_nearly_all_labels():
    """A change that makes it read much less, or more than one in forty readings wrong, shows here."""
    read = {item.id: reading for item in REPLIES if (reading := by_rule(item)) is not None}
    right = sum(agree(item.label.reading(), read[item.id]) for item in REPLIES if item.id in read)
    assert len(read) > 150
    assert right >= 0.975 * len(read)


def test_a_goal_is_met_by_its_lower_bound_only():
    items = [item for item in REPLIES if item.half == "tuning"][:40]
    right: dict[str, Reading] = {item.id: item.label.reading() for item in items}
    assert "**open: the interval holds it**" in goals("verbatim", items, right)[0]  # 40 of 40: the lower bound is 91 %
    assert "**met**" in goals("embedded/judge-1.5b", items, right)[0]
    unread: dict[str, Reading] = dict.fromkeys(right, Unread("unreadable: verbatim"))
    assert "**missed**" in goals("embedded/judge-1.5b", items, unread)[1]
    assert goals("somebody/else", items, right) == []


def test_a_reply_labelled_again_counts_under_both_rules():
    """By the new label in the table, and by the old one beside it."""
    item = next(item for item in REPLIES if item.label.letter is Letter.C)
    new_label = Given(letter=Letter.A)
    given = GivenAgain(first=new_label, second=new_label, label=new_label)
    again = msgspec.structs.replace(item, rules_2=given, label=Given(letter=Letter.C))
    new, old = relabelled_rows([again], {item.id: Lettered(Letter.A, by="judge")})
    assert "(1 of 1)" in new.split("|")[3]
    assert "(0 of 1)" in old.split("|")[3]


def test_a_pass_is_compared_with_itself_on_replies_that_come_twice():
    """The same words to the same question, also where its scenario was reworded."""
    item = next(item for item in REPLIES if item.first.letter is Letter.A)
    twin = msgspec.structs.replace(item, id="twin", first=Given(letter=Letter.B))
    sentence = within([item, twin])
    assert "1 come twice" in sentence
    assert "on 0.0 % [0.0, 79.3] (0 of 1), the second on 100.0 %" in sentence


def test_kinds_share_out_all_replies():
    assert sum(len(part) for _, part in kinds(REPLIES)) == len(REPLIES)


def test_the_middle_of_the_good_range_is_fitted():
    """Between the value at which *neither* first wins where it should and the one at which it wins too much."""
    low = ({Letter.A: -0.5, Letter.B: -3.0, Letter.C: -1.0}, Letter.C)
    high = ({Letter.A: -0.2, Letter.B: -3.0, Letter.C: -2.2}, Letter.A)
    found = [low] * 5 + [high] * 5
    best = fit(found, model="m")
    assert 0.5 < best.neither < 2.0
    assert (best.replies, best.agrees) == (10, 10)
    assert agreeing(found, 0.0) == 5


def test_the_number_in_use_was_fitted_on_the_tuning_half():
    """On replies that were left to the model there; more are left since."""
    left = [item for item in REPLIES if item.half == "tuning" and item.label.letter is not None and not by_rule(item)]
    assert 0 < choose.load_fitted_bias().replies <= len(left)
