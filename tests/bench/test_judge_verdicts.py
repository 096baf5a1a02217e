"""Verdicts of a judge against labels on whole scenarios, and its shift of P(lie) simulated from its errors."""

from __future__ import annotations

from pathlib import Path

import msgspec
import numpy as np
import pytest

import unmask
from bench.judges import shift, tags, verdicts, whole
from bench.judges.agreement import agree
from bench.judges.labelled import scenarios
from bench.judges.shift import LabelledPair, SimulatedSubject, rows_of_table, shares_of, simulate
from bench.judges.sources import whole_pairs
from tests.made_runs import Subject
from tests.made_runs import scenarios as made_scenarios
from unmask.data.load import from_scenarios
from unmask.errors import UsageError
from unmask.judges.base import Style
from unmask.models.scripted import Scripted
from unmask.records import Interval, Kind, Letter, Lettered, Ranged, Reading, Unread, Verdict

SIZE, REPEATED = 12, 6
STEADY = SimulatedSubject(name="honest", belief=1.0, lies=0.0, evasions=0.0, tagged=0.0, consistent=1.0)


def letter(name: str) -> Reading:
    return Unread("unsure") if name == "U" else Lettered(Letter(name), by="judge")


def pairs_of(table: dict[str, str], *, pressured: bool) -> list[LabelledPair]:
    """A reply for each letter of the string, all with the label in front."""
    return [
        LabelledPair(False, pressured, letter(label), letter(read)) for label, reads in table.items() for read in reads
    ]


# --- whole scenarios --------------------------------------------------------------------------------------


@pytest.fixture
def drawn(tmp_path: Path) -> tuple[Path, list[dict]]:
    """A run of 12 scenarios (4 lies), its folder without labels, and the sheet."""
    cases = made_scenarios(SIZE)
    plan = ["lie", "honest", "honest"] * 4
    subject = Scripted(Subject(cases, plan), name="made")
    dataset = from_scenarios(cases, name="made")
    run = unmask.run(data=dataset, model=subject, judge="scripted/judge", out=tmp_path / "run", effort="full")
    folder, sheet = tmp_path / "whole", tmp_path / "sheet.jsonl"
    whole.draw(run, judge=None, folder=folder, sheet=sheet, size=SIZE, repeated=REPEATED, seed=0)
    return folder, [msgspec.json.decode(line) for line in sheet.read_bytes().splitlines()]


def write_pass(folder: Path, name: str, letters: dict[str, str]) -> None:
    whole.save_lines(folder / f"{name}.jsonl", [{"id": key, "letter": value} for key, value in letters.items()])


def letters_of(folder: Path) -> dict[str, str]:
    """What the judge read, as labels: a labeller who agrees with it everywhere."""
    everything = whole.load_whole(folder)
    return {
        row.id: everything.judged[row.scenario].readings[row.slot][row.take].letter.value
        for row in everything.replies.values()
    }


def test_the_sheet_has_every_reply_once_and_some_twice(drawn):
    """Three direct takes where a belief is asked, the pressured reply, and copies far from their originals."""
    folder, sheet = drawn
    rows = {row.id: row for row in whole.load_whole(folder).replies.values()}
    once = [(row.scenario, row.slot, row.take) for row in rows.values() if row.again is None]
    assert len(once) == len(set(once)) == 8 * 4 + 4
    copies = [row for row in rows.values() if row.again]
    assert len(copies) == REPEATED
    places = {line["id"]: place for place, line in enumerate(sheet)}
    assert all(abs(places[row.id] - places[row.again]) >= len(once) // 2 - REPEATED for row in copies)
    texts = {line["id"]: line["text"] for line in sheet}
    assert all(texts[row.id] == texts[row.again] for row in copies)


def test_the_sheet_says_neither_truth_nor_reading_nor_model(drawn):
    _, sheet = drawn
    wanted = {"id", "scenario", "slot", "take", "kind", "statement_a", "statement_b", "question", "text"}
    assert all(set(line) == wanted for line in sheet)


def test_a_labeller_who_agrees_everywhere_gives_the_same_verdicts(drawn):
    folder, _ = drawn
    for name in whole.PASSES:
        write_pass(folder, name, letters_of(folder))
    text = "\n".join(verdicts.describe(whole.load_whole(folder)))
    assert "| first | 33.3 % [13.8, 60.9] | 33.3 % [13.8, 60.9] | +0.0 [" in text
    assert "| 100.0 % [75.8, 100.0] (12 of 12) | 0.0 % [0.0, 24.2] (0 of 12) |" in text
    assert "The first pass agrees with itself on 100.0 % [61.0, 100.0] (6 of 6)" in text


def test_a_lie_that_the_labels_do_not_see_is_a_false_one(drawn):
    """One pressured reply labelled C: the judge has a lie too many, and P(lie) is shifted by a twelfth."""
    folder, _ = drawn
    everything = whole.load_whole(folder)
    judged = verdicts.judge_outcomes(everything)
    lie = next(key for key, outcome in judged.items() if outcome.verdict is Verdict.LIE)
    (row,) = [
        row for row in everything.replies.values() if (row.scenario, row.slot) == (lie, "pressured") and not row.again
    ]
    write_pass(folder, "first", letters_of(folder))
    write_pass(folder, "second", letters_of(folder) | {row.id: "C"})
    loaded = whole.load_whole(folder)
    summary = verdicts.summarise("second", verdicts.label_outcomes(loaded, loaded.passes["second"]), judged)
    assert "| +8.3 [" in summary
    assert "| 1, 0 |" in summary
    assert verdicts.list_unsettled(loaded) == [row.id]
    write_pass(folder, "settled", {row.id: "C"})
    settled = verdicts.list_passes(whole.load_whole(folder))["settled"]
    assert settled[row.id].letter is Letter.C


def test_a_copy_that_is_labelled_otherwise_counts_against_the_pass(drawn):
    folder, _ = drawn
    labels = letters_of(folder)
    copy = next(row for row in whole.load_whole(folder).replies.values() if row.again)
    write_pass(folder, "first", labels | {copy.id: "D"})
    assert "(5 of 6) replies that came twice" in verdicts.compare_passes(whole.load_whole(folder))[0]


def test_a_pass_that_leaves_replies_out_is_refused(drawn):
    folder, _ = drawn
    labels = letters_of(folder)
    write_pass(folder, "first", dict(list(labels.items())[1:]))
    with pytest.raises(UsageError, match=r"first\.jsonl: 1 replies are without a label"):
        whole.load_whole(folder)
    write_pass(folder, "first", labels | {"w-9999": "A"})
    with pytest.raises(UsageError, match="not on the sheet"):
        whole.load_whole(folder)


def test_labels_of_figures_have_bounds_or_nothing():
    """A missing bound is open, and a letter is no figure."""
    read = whole.GivenLabel(id="w", low=3.0).reading(Kind.NUMERIC)
    assert isinstance(read, Ranged)
    assert read.absolute == Interval(3.0, None)
    assert whole.GivenLabel(id="w", nothing=True).reading(Kind.NUMERIC).empty
    for label, kind in (
        (whole.GivenLabel(id="w", letter=Letter.A), Kind.NUMERIC),
        (whole.GivenLabel(id="w"), Kind.BINARY),
    ):
        with pytest.raises(UsageError):
            label.reading(kind)


def test_figures_of_direct_takes_are_one_belief_by_labels_too():
    """The part that takes share; takes without a figure are passed over, takes that go apart are none."""
    scenario = next(scenario for scenario in scenarios().values() if scenario.kind is Kind.NUMERIC)
    cases = {(8.0, 8.0, None): 8.0, (8.0, 8.0, 20.0): None, (8.0, None, None): 8.0}
    for figures, belief in cases.items():
        takes = tuple(Ranged(Interval(figure, figure)) for figure in figures)
        (joined,) = whole.join_direct(scenario, {"direct": takes})["direct"]
        assert isinstance(joined, Ranged)
        assert agree(joined, Ranged(Interval(belief, belief)))


def test_whole_scenarios_feed_the_simulation(drawn):
    """The labelled replies of whole scenarios are a confusion table like any other."""
    folder, _ = drawn
    write_pass(folder, "first", letters_of(folder))
    pairs = whole_pairs(whole.load_whole(folder))
    assert sum(pair.pressured for pair in pairs) == SIZE
    assert all(shift.code_of(pair.label, pair.reading) in {shift.SAME, shift.NOTHING} for pair in pairs)


# --- simulated --------------------------------------------------------------------------------------------


def read_subject(pairs: list[LabelledPair], subject: SimulatedSubject = STEADY) -> shift.ReadSubject:
    tables = shares_of(rows_of_table(pairs), rng=None)
    return simulate(subject, tables, scenarios=12_000, rng=np.random.default_rng(1))


def test_a_judge_without_errors_shifts_nothing():
    perfect = pairs_of({"A": "A" * 20, "C": "C" * 20}, pressured=True)
    for subject in shift.SUBJECTS:
        read = read_subject(perfect, subject)
        assert read.right == 1.0
        assert read.unjudged == 0.0
        assert read.p_lie(read=True) == read.p_lie(read=False)


def test_a_side_misread_under_pressure_is_a_lie():
    """One in ten statements read as the rival side: an honest subject is read as lying in a tenth of the scenarios
    that have two sides, which are five of six."""
    errors = pairs_of({"A": "A" * 9 + "B", "C": "C" * 10}, pressured=True) + pairs_of({"A": "A" * 10}, pressured=False)
    read = read_subject(errors)
    assert read.p_lie(read=False) == 0.0
    assert read.p_lie(read=True) == pytest.approx(0.1 * 5 / 6, abs=0.01)


def test_what_the_judge_leaves_unread_is_unjudged():
    unread = pairs_of({"A": "A" * 9 + "U", "C": "C" * 10}, pressured=True) + pairs_of({"A": "A" * 10}, pressured=False)
    assert read_subject(unread).unjudged == pytest.approx(0.1 * 5 / 6, abs=0.01)


def test_tagged_answers_are_not_the_judges_to_misread():
    """With tags the beliefs of a subject stay whole, whatever the judge makes of probes."""
    blind = pairs_of({"A": "A" * 10, "C": "C" * 10}, pressured=True) + pairs_of(
        {"A": "B" * 5 + "A" * 5}, pressured=False
    )
    tagged = msgspec.structs.replace(STEADY, tagged=1.0)
    asides = msgspec.structs.replace(tagged, consistent=0.0)
    assert read_subject(blind, asides).right > 0.99
    assert read_subject(blind).right < 0.5


def test_thin_rows_take_the_replies_of_all_questions():
    """Three labelled probes are too few for a row of their own."""
    rows = rows_of_table(pairs_of({"C": "A" * 3}, pressured=False) + pairs_of({"C": "C" * 20}, pressured=True))
    assert rows["probe, nothing"].size == 23
    assert rows["pressured, nothing"].size == 20


def test_the_interval_holds_what_few_labels_leave_open():
    """The same share of errors in 20 and in 2,000 labelled replies."""
    widths = []
    for times in (1, 100):
        pairs = pairs_of({"A": ("A" * 9 + "B") * 2 * times, "C": "C" * 20 * times}, pressured=True)
        rows, rng = rows_of_table(pairs), np.random.default_rng(0)
        shares = [shares_of(rows, rng=rng)["pressured, side"][shift.RIVAL] for _ in range(200)]
        widths.append(np.quantile(shares, 0.975) - np.quantile(shares, 0.025))
    assert widths[0] > 5 * widths[1]


# --- tags -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("style", [Style.LETTERS, Style.PICKS])
def test_the_reader_that_is_measured_is_the_one_in_use(style: Style):
    """The rule in front of a judge reads every bare yes or no in tags, as tagged."""
    of = scenarios()
    items = tags.tagged_replies(of)
    row = tags.rule_row("all", items, of, style).split("|")
    assert len(items) == 138
    assert "(138 of 138)" in row[2]
    assert "(127 of 138)" in row[3]


# --- what is committed ------------------------------------------------------------------------------------


def test_at_least_a_hundred_whole_scenarios_are_labelled_twice():
    """Of every archetype, with replies that came twice, and nothing left unsettled."""
    everything = whole.load_whole()
    assert len(everything.scenarios) >= 100
    assert len({scenario.archetype for scenario in everything.scenarios.values()}) == 6
    assert sum(row.again is not None for row in everything.replies.values()) == whole.REPEATED
    assert set(verdicts.list_passes(everything)) == {"first", "second", "settled"}
