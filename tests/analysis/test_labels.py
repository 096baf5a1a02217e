"""Labels: in and out of files, held against the run they belong to, and put in place of a judge's readings."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import msgspec
import pytest

from tests.analysis.labelled import dataset, made
from unmask.analysis.label_session import label as list_replies
from unmask.analysis.label_sheets import format_items, read_file
from unmask.analysis.labels import (
    check_labels,
    key_of,
    label_file,
    list_items,
    load_labels,
    open_writer,
    sort_labels,
    substitute_labels,
)
from unmask.errors import DataError, UsageError
from unmask.records import PRESSURED, Interval, Label, Letter, Lettered, Pending, Ranged


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    """Six scenarios, two of them numeric, one a lie."""
    return made(tmp_path_factory.mktemp("labels") / "run", dataset(6, numeric={4, 5}), lies={1})


def label(place: int, letter: str | None = "A", **fields) -> Label:
    given = {"slot": PRESSURED, "letter": Letter(letter) if letter else None, "who": "ann"}
    return Label(scenario=f"s{place:03}", **(given | fields))


def told(run, *labels):
    with pytest.raises(DataError) as caught:
        check_labels(run, labels)
    return caught.value.problems


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_what_is_exported_filled_in_and_imported_is_the_label(done, tmp_path, ending):
    """Letters, ranges, open ranges, no figure and notes survive both formats."""
    given = {
        key_of(one): one
        for one in (
            label(0, "B", note="hm, “quoted”, and\na line"),
            label(1, "D"),
            label(4, None, interval=Interval(7, None)),
            label(5, None, interval=Interval()),
        )
    }
    path = tmp_path / f"out{ending}"
    found = [item for held in list_items(done, done.rows()).values() for item in held]
    path.write_bytes(format_items([(item, given.get(item.key)) for item in found], ending))
    back = [msgspec.structs.replace(one, digest=None, token=None) for one in read_file(path)]
    assert {key_of(one): one for one in back} == given


@pytest.mark.parametrize("ending", [".csv", ".jsonl"])
def test_an_export_names_neither_model_nor_judge(done, ending):
    """Nor the truth: whoever labels sees the reply and the statements."""
    text = format_items([(item, None) for item in list_replies(done)], ending).decode()
    for word in ("scripted", "judge", "truth", "honest", "lie"):
        assert word not in text


def test_a_cell_cannot_be_a_formula(tmp_path):
    """A reply that starts like a formula is not run by a spreadsheet."""
    run = made(tmp_path / "run", dataset(1), lies=set())
    item = list_items(run, run.rows())["s000"][0]
    path = tmp_path / "out.csv"
    path.write_bytes(format_items([(msgspec.structs.replace(item, texts=("=HYPERLINK(1)",)), None)], ".csv"))
    with path.open(encoding="utf-8", newline="") as file:
        assert next(csv.DictReader(file))["reply"] == "'=HYPERLINK(1)"


def test_labels_that_do_not_fit_are_all_named(done):
    """Unknown scenario, slot and take; a letter for a figure, a figure for a letter, and both. One that fits is not."""
    unknown = label(99), label(0, slot="sideways"), label(1, take=7)
    both = label(0, "A", interval=Interval(1, 2))
    problems = told(done, *unknown, label(4, "A"), label(0, None, interval=Interval(1, 1)), both, label(2))
    assert [problem.partition(": ")[2] for problem in problems] == [
        "the run has no such scenario",
        "the run has no such reply",
        "the run has no such reply",
        "a numeric scenario takes an interval",
        "a binary scenario takes a letter from A to D",
        "a label is a letter or an interval",
    ]


def test_wrong_rows_of_a_file_are_all_named(tmp_path):
    """With their row numbers, and nothing is taken in."""
    path = tmp_path / "bad.csv"
    path.write_text(
        "scenario,slot,take,kind,letter,lower\ns1,pressured,0,binary,X,\n,,0,binary,A,\ns2,pressured,0,numeric,,many\n"
    )
    with pytest.raises(DataError) as caught:
        read_file(path)
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["row 2", "row 3", "row 4"]


def sheet(path, **cells):
    """A file with one filled-in row about a figure."""
    row = {
        "scenario": "s004",
        "slot": PRESSURED,
        "take": "0",
        "kind": "numeric",
        "letter": "",
        "lower": "",
        "upper": "",
    }
    with path.open("w", encoding="utf-8", newline="") as file:
        out = csv.DictWriter(file, row)
        out.writeheader()
        out.writerow(row | cells)
    return path


@pytest.mark.parametrize(
    ("cells", "said"),
    [
        ({"letter": "Q", "kind": "binary"}, "'Q' is no letter from A to D"),
        ({"letter": "A"}, "letter 'A' is no label of a number"),
        ({"letter": "C", "lower": "3"}, "letter 'C' next to a number"),
    ],
)
def test_a_letter_in_place_of_a_figure_is_refused(tmp_path, cells, said):
    """It is not taken for "no figure": that is C, alone."""
    with pytest.raises(DataError) as caught:
        read_file(sheet(tmp_path / "in.csv", **cells))
    assert caught.value.problems[0].startswith(f"row 2: {said}")


@pytest.mark.parametrize("text", ["1,5", "1,500", "many", "nan", "1e999"])
def test_what_is_no_number_is_refused(tmp_path, text):
    """1,500 is one and a half in some countries and fifteen hundred in others."""
    with pytest.raises(DataError) as caught:
        read_file(sheet(tmp_path / "in.csv", lower=text, upper=text))
    assert caught.value.problems == (f"row 2: '{text}' is no number: write 1500 or 1.5, without a comma",)


@pytest.mark.parametrize(("separator", "encoding"), [(";", "utf-8-sig"), ("\t", "utf-8"), (",", "utf-8")])
def test_what_a_spreadsheet_writes_is_read(done, tmp_path, separator, encoding):
    """Through its separators and texts of several lines, with the row numbers of the sheet."""
    rows = list(csv.reader(io.StringIO(format_items([(one, None) for one in list_replies(done)], ".csv").decode())))
    place = rows[0].index("letter")
    for row in rows[1:]:
        row[place] = "C"
        row[rows[0].index("reply")] += "\nCafé, two; three"

    def write(name: str) -> Path:
        out = io.StringIO(newline="")
        csv.writer(out, delimiter=separator).writerows(rows)
        (tmp_path / name).write_bytes(out.getvalue().encode(encoding))
        return tmp_path / name

    assert len(read_file(write("good.csv"))) == 6
    rows[4][place] = "X"
    with pytest.raises(DataError) as caught:
        read_file(write("bad.csv"))
    assert [problem.partition(":")[0] for problem in caught.value.problems] == ["row 5"]


@pytest.mark.parametrize(
    ("name", "content", "advice"),
    [
        ("in.csv", "scenario,slot,letter,note\ns0,pressured,A,né\n".encode("latin-1"), "save it as CSV UTF-8"),
        ("in.xlsx", b"PK\x03\x04\xff\xfe", "save it as CSV UTF-8"),
        ("in.html", b"<!doctype html>", "the file that its Save button writes"),
    ],
)
def test_what_cannot_be_read_is_refused_with_the_way_out(tmp_path, name, content, advice):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError) as caught:
        read_file(tmp_path / name)
    assert advice in caught.value.advice


def test_the_last_label_of_a_reply_counts(done):
    """The file is append-only; a change of mind is one more line."""
    lines = open_writer(done, "ann")
    for letter in ("A", "C"):
        lines.append(label(0, letter))
    lines.close()
    assert load_labels(done, "ann")["s000", PRESSURED, 0].letter is Letter.C
    assert len(label_file(done, "ann").read_text().splitlines()) == 2
    assert "ann" in done.folder.labellers()


def kept(run, who: str, letter: str) -> None:
    lines = open_writer(run, who)
    lines.append(label(0, letter, who=who))
    lines.close()


def test_a_person_is_found_by_the_name_of_the_file(tmp_path):
    run = made(tmp_path / "run", dataset(2), lies=set())
    kept(run, "José", "B")
    (name,) = run.folder.labellers()
    assert load_labels(run, name) == load_labels(run, "José")


@pytest.mark.parametrize("use", [load_labels, open_writer])
def test_a_file_with_labels_of_somebody_else_is_refused(tmp_path, use):
    """`a/b` and `a_b` share a file name; who comes second is told so."""
    run = made(tmp_path / "run", dataset(2), lies=set())
    kept(run, "a_b", "A")
    with pytest.raises(DataError, match="holds labels by 'a_b', not only by 'a/b'"):
        use(run, "a/b")


def test_who_is_asked_for_must_exist(done):
    """The error names those there are, and of a file how to take it in."""
    with pytest.raises(UsageError, match="has no labels by 'nobody'") as caught:
        sort_labels(done, ["nobody"])
    assert "unmask label" in caught.value.advice
    with pytest.raises(UsageError) as caught:
        sort_labels(done, [__file__])
    assert f"unmask label {done.path} --import {__file__}" in caught.value.advice


def test_all_stands_for_everybody_who_labelled_the_run(tmp_path):
    """Unless somebody has that name; a run that nobody labelled says so."""
    run = made(tmp_path / "run", dataset(3), lies={1})
    with pytest.raises(UsageError, match="has no labels"):
        sort_labels(run, ["all"])
    for who in ("ann", "bo"):
        lines = open_writer(run, who)
        lines.append(label(0, who=who))
        lines.close()
    assert sorted(sort_labels(run, ["all"])[0]) == ["ann", "bo"]


def test_a_reply_passed_over_is_no_label(tmp_path):
    """A skip is kept as a line of its own; a later label takes its place, and a file of labels may have both."""
    run = made(tmp_path / "run", dataset(3), lies={1})
    lines = open_writer(run, "ann")
    for line in (label(0, None, skipped=True), label(1, None, skipped=True), label(1, "B")):
        lines.append(line)
    lines.close()
    assert list(load_labels(run, "ann")) == [("s001", PRESSURED, 0)]
    assert [key[0] for key in load_labels(run, "ann", skips=True)] == ["s000", "s001"]
    assert "a letter or an interval" in told(run, label(0, "A", skipped=True))[0]


def test_what_is_taken_back_was_never_said(tmp_path):
    """A label and a skip that are taken back leave nothing; what is said later counts."""
    run = made(tmp_path / "run", dataset(3), lies={1})
    lines = open_writer(run, "ann")
    for place in range(3):
        lines.append(label(place, None if place == 1 else "A", skipped=place == 1))
        lines.append(label(place, None, taken_back=True))
    lines.append(label(2, "B"))
    lines.close()
    assert {key: label.letter for key, label in load_labels(run, "ann").items()} == {("s002", PRESSURED, 0): Letter.B}
    assert len(load_labels(run, "ann", skips=True)) == 1
    assert told(run, label(0, "A", taken_back=True))


def test_labels_take_the_place_of_readings_and_of_nothing_else():
    """Only the labelled take changes; figures come with their relative part."""
    readings = {"direct": (Lettered(Letter.A, by="rule"),), PRESSURED: (Lettered(Letter.A, by="judge"), Pending())}
    found = substitute_labels(readings, "s000", {("s000", PRESSURED, 0): label(0, "B")})
    assert found[PRESSURED][0] == Lettered(Letter.B, by="person")
    assert found[PRESSURED][1] == Pending()
    assert found["direct"] is not None
    figure = label(0, None, interval=Interval(1, 2), relative=Interval(5, 5))
    found = substitute_labels(readings, "s000", {("s000", PRESSURED, 0): figure})
    assert found[PRESSURED][0] == Ranged(Interval(1, 2), Interval(5, 5), by="person")


@pytest.mark.parametrize(
    ("header", "lacking"), [("x,y", "scenario"), ("scenario,take", "slot"), ("scenario,slot", "letter")]
)
def test_a_table_without_the_columns_of_a_label_is_refused(tmp_path, header, lacking):
    """By the column it lacks; it is not taken for a file that nobody has filled in."""
    (tmp_path / "l.csv").write_text(f"{header}\n1,2\n", encoding="utf-8")
    with pytest.raises(DataError, match=f"no column {lacking}"):
        read_file(tmp_path / "l.csv")
