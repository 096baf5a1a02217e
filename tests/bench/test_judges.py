"""The bench of judges: the labelled replies it rests on, the goals it states, and the table of several judges."""

from __future__ import annotations

from collections import Counter

import msgspec

from bench.judges.__main__ import false_lies, goals, kinds, main, relabelled_rows, side_by_side, tagged_sentence
from bench.judges.agreement import agree
from bench.judges.labelled import Given, GivenAgain, labelled, scenarios
from bench.judges.material import items, lessons
from bench.judges.sources import kept_file
from unmask.data.load import load
from unmask.judges import pick, verbatim
from unmask.judges.base import Tags
from unmask.records import PRESSURED, Archetype, Letter, Lettered, Reading, Unread

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
    for item in items()[:200]:
        for order, lesson in zip(pick.ORDERS.values(), lessons(item), strict=True):
            assert order[pick.OPTIONS.index(lesson.answer)] is item.label
            assert item.a in lesson.messages[-1].content


def by_rule(item) -> Reading | None:
    scenario = KNOWN[item.scenario]
    return verbatim.by_rule(scenario, item.slot, item.text, tags=Tags.RULE)


def test_verbatim_agrees_with_nearly_all_labels():
    """A change that makes it read much less, or more than one in forty readings wrong, shows here."""
    read = {item.id: reading for item in REPLIES if (reading := by_rule(item)) is not None}
    right = sum(agree(item.label.reading(), read[item.id]) for item in REPLIES if item.id in read)
    assert len(read) > 115
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
    again = msgspec.structs.replace(item, again=given, label=Given(letter=Letter.C))
    new, old = relabelled_rows([again], {item.id: Lettered(Letter.A, by="judge")})
    assert "(1 of 1)" in new.split("|")[3]
    assert "(0 of 1)" in old.split("|")[3]


def test_a_statement_taken_for_its_opposite_is_a_false_lie():
    """Not one read as neither, nor one that is unread."""
    stated = [item for item in REPLIES if item.slot == PRESSURED and item.label.letter is Letter.A][:4]
    said = (Letter.B, Letter.A, Letter.C)
    found: dict[str, Reading] = {
        item.id: Lettered(letter, by="judge") for item, letter in zip(stated, said, strict=False)
    }
    assert "(1 of 4)" in false_lies(stated, found | {stated[3].id: Unread("unsure")})


def test_a_bare_yes_or_no_in_tags_is_read_as_it_is():
    """The labels differ where the reasons contradict the tag."""
    assert "92.0 % [86.3, 95.5] (127 of 138)" in tagged_sentence(REPLIES)


def test_kinds_share_out_all_replies():
    assert sum(len(part) for _, part in kinds(REPLIES)) == len(REPLIES)


def test_judges_stand_side_by_side_with_letters_and_figures_apart():
    """Read, and of these as labelled."""
    letter = next(item for item in REPLIES if item.label.letter is Letter.A)
    figure = next(item for item in REPLIES if item.label.interval is not None)
    reads = {letter.id: Lettered(Letter.B, by="judge"), figure.id: figure.label.reading()}
    none = {letter.id: letter.label.reading(), figure.id: Unread("no_figures")}
    *_, first, second = side_by_side([letter, figure], {"writes": reads, "picks": none})
    counts = [[cell.partition("(")[2][:1] for cell in row.split("|")[2:-1]] for row in (first, second)]
    assert counts == [["1", "0", "1", "1"], ["1", "1", "0", ""]]


def test_the_command_reads_a_part_of_the_replies_with_several_judges(capsys, monkeypatch):
    """A judge that writes beside `verbatim`, on as many replies as asked for; of a part nothing is kept."""
    given = ["bench.judges", "--judge", "verbatim", "--judge", "scripted/judge", "--limit", "6"]
    monkeypatch.setattr("sys.argv", given)
    main()
    *_, first, second, _, _ = capsys.readouterr().out.rstrip().splitlines()
    assert first.startswith("| verbatim |")
    assert second.startswith("| scripted/judge | 100.0 %")
    assert not kept_file("scripted/judge").exists()
