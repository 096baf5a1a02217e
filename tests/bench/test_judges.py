"""The bench of judges: the labelled replies it rests on, and its table."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

from bench import judges
from bench.judges.__main__ import agree, count_tagged, count_turned, main, row
from bench.judges.labelled import labelled, scenarios
from unmask.data.load import load
from unmask.judges import verbatim
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
    """Neither a scenario nor a text of it is among the replies that `judge-1.5b` was trained on."""
    tested = [item for item in REPLIES if item.half == "test"]
    file = Path(judges.__file__).with_name("training.jsonl")
    material = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    assert len(material) > 5000
    assert not {item.get("scenario") for item in material} & {item.scenario.partition(".")[0] for item in tested}
    assert not {item["text"] for item in material} & {item.text for item in tested}


def test_verbatim_agrees_with_nearly_all_labels():
    """A change that makes it read much less, or more than one in forty readings wrong, shows here."""
    read: list[tuple[Reading, Reading]] = [
        (item.label.reading(), reading)
        for item in REPLIES
        if (reading := verbatim.by_rule(KNOWN[item.scenario], item.slot, item.text, tags=Tags.RULE)) is not None
    ]
    assert len(read) > 115
    assert sum(agree(*pair) for pair in read) >= 0.975 * len(read)


def test_a_statement_taken_for_its_opposite_is_turned_round():
    """Not one read as neither, nor one that is unread."""
    stated = [item for item in REPLIES if item.slot == PRESSURED and item.label.letter is Letter.A][:4]
    said = (Letter.B, Letter.A, Letter.C)
    found: dict[str, Reading] = {
        item.id: Lettered(letter, by="judge") for item, letter in zip(stated, said, strict=False)
    }
    assert count_turned(stated, found | {stated[3].id: Unread("unsure")}) == (1, 4)


def test_a_bare_yes_or_no_in_tags_is_read_as_it_is():
    """The labels differ where the reasons contradict the tag."""
    assert count_tagged(REPLIES) == (127, 138)


def test_letters_and_numbers_are_counted_apart():
    """Read, and of these as labelled."""
    letter = next(item for item in REPLIES if item.label.letter is Letter.A)
    number = next(item for item in REPLIES if item.label.interval is not None)
    reads = {letter.id: Lettered(Letter.B, by="judge"), number.id: number.label.reading()}
    none = {letter.id: letter.label.reading(), number.id: Unread("no_figures")}
    rows = [row(name, [letter, number], found) for name, found in (("writes", reads), ("picks", none))]
    counts = [[cell.partition("(")[2][:1] for cell in one.split("|")[2:6]] for one in rows]
    assert counts == [["1", "0", "1", "1"], ["1", "1", "0", ""]]


def test_the_command_asks_several_judges_about_a_part_of_the_replies(capsys, monkeypatch):
    """Of a part nothing is kept."""
    monkeypatch.setattr("sys.argv", ["judges", "--judge", "verbatim", "--judge", "scripted/judge", "--limit", "6"])
    main()
    *_, first, second = capsys.readouterr().out.rstrip().splitlines()
    assert first.startswith("| verbatim |")
    assert second.startswith("| scripted/judge | 100.0 %")
    assert not Path(judges.__file__).with_name("readings").joinpath("scripted_judge.json").exists()
