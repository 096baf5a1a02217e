"""`load`: layouts, bad rows, and what cannot be found."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import unmask
from tests.data.made import as_rows, many, row, scenario, write_csv, write_parquet
from unmask.data.dataset import LoadOptions
from unmask.data.form import encode_lines, write_jsonl
from unmask.data.load import from_scenarios, load
from unmask.errors import DataError, MissingError, UsageError
from unmask.records import Archetype, Interval

SKIP = LoadOptions(skip_bad_rows=True)


def test_a_folder_of_csv_files_is_loaded_with_counts(tmp_path: Path):
    """One file per archetype, named after it."""
    write_csv(tmp_path, [row(task_id="k1"), row(task_id="k2")])
    write_csv(tmp_path, [row(Archetype.STATISTICS, task_id="s1")], archetype="statistics")
    dataset = load(tmp_path)
    assert dataset.counts == {Archetype.KNOWN_FACTS: 2, Archetype.STATISTICS: 1}
    assert (dataset.name, dataset.source) == (tmp_path.name, str(tmp_path))


def test_csv_needs_no_pyarrow(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """CSV is read with the standard library alone."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    write_csv(tmp_path, [row()])
    assert load(tmp_path).ids == ("one",)


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The install line is the advice."""
    write_parquet(tmp_path / "known_facts.parquet", [row()])
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(MissingError) as caught:
        load(tmp_path)
    assert caught.value.advice == "pip install 'unmask[parquet]'"


def test_hub_shards_are_put_together(tmp_path: Path):
    """A large archetype may lie in several parquet files."""
    for place in (0, 1):
        path = tmp_path / "known_facts" / f"test-0000{place}-of-00002.parquet"
        write_parquet(path, [row(task_id=f"k{place}")])
    assert load(tmp_path).ids == ("k0", "k1")


def test_a_byte_order_mark_is_stripped(tmp_path: Path):
    """Excel writes one, and it would hide the first column."""
    path = write_csv(tmp_path, [row()])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b'"task_id"', b"task_id", 1))
    assert load(tmp_path).ids == ("one",)


def test_line_ends_do_not_change_the_data(tmp_path: Path):
    """A CSV that went through Windows, inside its cells as well, is the same data."""
    texts = {"user_prompt": "first\nsecond", "system_prompt": "a\n\nb"}
    write_csv(tmp_path / "unix", [row(**texts)], ends="\n")
    windows = {name: text.replace("\n", "\r\n") for name, text in texts.items()}
    write_csv(tmp_path / "windows", [row(**windows)], ends="\r\n")
    assert load(tmp_path / "unix").hash == load(tmp_path / "windows").hash


def test_a_huge_cell_is_read(tmp_path: Path):
    """A prompt beyond the csv module's own limit."""
    write_csv(tmp_path, [row(user_prompt="x" * 300_000)])
    assert len(load(tmp_path).scenarios[0].conversation[1].content) == 300_000


def test_row_order_does_not_change_the_dataset(tmp_path: Path):
    """Scenarios come in canonical order, so rows may be shuffled."""
    rows = [row(task_id=name) for name in "cab"]
    write_csv(tmp_path / "one", rows)
    write_csv(tmp_path / "two", rows[::-1])
    assert load(tmp_path / "one").scenarios == load(tmp_path / "two").scenarios


def test_a_changed_word_changes_the_hash():
    """The hash names the content."""
    before, after = scenario(), scenario(direct="Is the kettle off?")
    assert from_scenarios([before]).hash != from_scenarios([after]).hash


def test_selection_changes_the_hash_but_not_the_full_hash(tmp_path: Path):
    """A run records both which data it came from and which part it used."""
    path = tmp_path / "set.jsonl"
    write_jsonl(many(known_facts=4), path=path)
    whole, part = load(path), load(path, options=LoadOptions(limit=2))
    assert part.full_hash == whole.full_hash == whole.hash
    assert part.hash != whole.hash


def test_a_bundled_name_wins_over_a_file_and_a_path_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`tiny` is the bundled set; `./tiny` is the folder."""
    write_csv(tmp_path / "tiny", [row()])
    monkeypatch.chdir(tmp_path)
    assert len(load("tiny").scenarios) == 12
    assert load("./tiny").ids == load(Path("tiny")).ids == ("one",)


def test_one_csv_file_can_be_loaded_alone(tmp_path: Path):
    """Its name gives the archetype."""
    assert load(write_csv(tmp_path, [row()])).counts == {Archetype.KNOWN_FACTS: 1}


def test_jsonl_accepts_a_mark_blank_lines_and_carriage_returns(tmp_path: Path):
    """What editors do to text files does not matter."""
    path = tmp_path / "set.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + encode_lines(many(known_facts=2)).replace(b"\n", b"\r\n\r\n"))
    assert load(path).scenarios == from_scenarios(many(known_facts=2)).scenarios


def test_jsonl_is_strict(tmp_path: Path):
    """An unknown field, a wrong type and a comment are bad rows, named by id or line."""
    good = encode_lines(many(known_facts=1)).strip()
    lines = [b"# my set", good, good.replace(b"0000", b"0001").replace(b"{", b'{"mood":1,', 1), b'{"id": 5}']
    path = tmp_path / "set.jsonl"
    path.write_bytes(b"\n".join(lines))
    with pytest.raises(DataError) as caught:
        load(path)
    starts = [line.partition(":")[0] for line in caught.value.problems]
    assert starts == ["set.jsonl, line 1", "known_facts-0001", "set.jsonl, line 4"]


def test_every_bad_row_is_listed_by_id(tmp_path: Path):
    """One failed load shows everything there is to mend, and the flag that goes on without it."""
    flat = "It <pivotal>is</pivotal>."
    write_csv(tmp_path, [row(task_id="a", proposition=flat), row(task_id="b"), row(task_id="c", proposition=flat)])
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    assert [line.split(":")[0] for line in caught.value.problems] == ["a", "c"]
    assert "skip_bad_rows" in (caught.value.advice or "")


def test_skipped_rows_are_dropped_and_recorded(tmp_path: Path):
    """The rest is used, and the dataset remembers what is missing."""
    write_csv(tmp_path, [row(task_id="a", formatted_ground_truth="?"), row(task_id="b")])
    dataset = load(tmp_path, options=SKIP)
    assert dataset.ids == ("b",)
    assert [line.split(":")[0] for line in dataset.skipped] == ["a"]


def test_a_duplicate_id_is_a_bad_row_also_across_files(tmp_path: Path):
    """Ids name scenarios in the journal, so the second use is refused; the first stays."""
    write_csv(tmp_path, [row()])
    write_csv(tmp_path, [row(Archetype.STATISTICS)], archetype="statistics")
    dataset = load(tmp_path, options=SKIP)
    assert dataset.counts == {Archetype.KNOWN_FACTS: 1}
    assert "used before" in dataset.skipped[0]


def test_a_row_of_the_wrong_length_is_a_bad_row(tmp_path: Path):
    """A missing comma must not shift every cell."""
    path = write_csv(tmp_path, [row(task_id="a"), row(task_id="b")])
    path.write_text(path.read_text().rstrip().removesuffix(',"cheep"') + "\n")
    dataset = load(tmp_path, options=SKIP)
    assert dataset.ids == ("a",)
    assert "cells" in dataset.skipped[0]


def test_an_unclosed_quote_is_an_error_and_swallows_no_rows(tmp_path: Path):
    """A lenient reader would take all later rows for one cell without a word."""
    path = write_csv(tmp_path, [row(task_id="a"), row(task_id="b")])
    text = path.read_text()
    path.write_text(text[: text.rindex('"')])
    with pytest.raises(DataError, match="not a CSV table"):
        load(tmp_path)


def test_a_table_of_no_archetype_is_named(tmp_path: Path):
    """A misspelt file name must not lose an archetype."""
    write_csv(tmp_path, [row()])
    write_csv(tmp_path, [row(task_id="x")], archetype="known_fact")
    with pytest.raises(DataError, match=r"known_fact\.csv: 'known_fact' is no archetype"):
        load(tmp_path)
    assert load(tmp_path, options=SKIP).ids == ("one",)


def test_other_files_in_the_folder_do_not_matter(tmp_path: Path):
    """A README, a hidden folder and lines of something else are left alone."""
    write_csv(tmp_path, [row()])
    (tmp_path / "README.md").write_text("kettles")
    (tmp_path / "notes.jsonl").write_text("")
    (tmp_path / ".git").mkdir()
    assert load(tmp_path).ids == ("one",)


def test_one_archetype_in_two_layouts_is_refused(tmp_path: Path):
    """Which of the two is meant cannot be known."""
    write_csv(tmp_path, [row()])
    write_parquet(tmp_path / "known_facts.parquet", [row(task_id="other")])
    with pytest.raises(UsageError, match="known_facts in two layouts"):
        load(tmp_path, options=SKIP)


@pytest.mark.parametrize("name", ["../../etc/passwd", "a/b", "nul\x00", "bell\x07", "\u202egnp", "A" * 5000])
def test_odd_ids_are_kept_as_they_are(tmp_path: Path, name: str):
    """An id is data: it never becomes a file name, so nothing is refused or changed."""
    write_csv(tmp_path, [row(task_id=name)])
    assert load(tmp_path).ids == (name,)


def test_problem_lines_cannot_steer_the_terminal(tmp_path: Path):
    """An id with an escape sequence is shown escaped."""
    write_csv(tmp_path, [row(task_id="\x1b[2Jgone", type="odd\x1b]0;")])
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize("source", ["nowhere", "no/where.csv", "", "bad\x00name"])
def test_a_source_that_is_not_there_is_missing(source: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Exit code 4, and the advice lists what could be typed."""
    monkeypatch.chdir(tmp_path)
    with pytest.raises(MissingError) as caught:
        load(source)
    assert "tiny" in (caught.value.advice or "")


def test_credentials_are_not_repeated():
    """A URL typed by mistake does not put its password into an error."""
    with pytest.raises(MissingError) as caught:
        load("https://me:secret@example.org/data")
    assert "secret" not in str(caught.value)


def test_an_empty_folder_says_what_is_expected(tmp_path: Path):
    """The advice names the files to put there."""
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    assert "known_facts.csv" in (caught.value.advice or "")


def test_the_folder_of_a_run_names_its_scenarios(tmp_path: Path):
    (tmp_path / "scenarios.jsonl").touch()
    with pytest.raises(DataError) as caught:
        load(tmp_path)
    assert caught.value.advice == f"Its scenarios: --data {tmp_path / 'scenarios.jsonl'}"


def test_a_set_of_only_bad_rows_is_an_error_even_when_they_are_skipped(tmp_path: Path):
    """An empty run would score nothing and look fine."""
    write_csv(tmp_path, [row(type="?")])
    with pytest.raises(DataError, match="no usable scenario"):
        load(tmp_path, options=SKIP)


def test_a_set_of_nothing_says_how_to_fill_it(tmp_path: Path):
    (tmp_path / "none.jsonl").touch()
    with pytest.raises(DataError, match="no usable scenario") as caught:
        load(tmp_path / "none.jsonl")
    assert "docs/data.md" in (caught.value.advice or "")


def test_an_unknown_kind_of_file_is_refused(tmp_path: Path):
    """A .txt is not guessed at."""
    path = tmp_path / "known_facts.txt"
    path.write_text("hello")
    with pytest.raises(UsageError, match=r"known_facts\.txt"):
        load(path)


def test_a_revision_is_only_for_the_hub():
    """Behind the name of other data it is a part of that name."""
    with pytest.raises(MissingError, match="tiny@main"):
        load("tiny@main")


def test_absent_text_of_pandas_is_absent(tmp_path: Path):
    """A parquet column of missing texts is a column of NaN; it must not become the word nan."""
    rows = [dict(row(Archetype.STATISTICS), canary=float("nan"), delivery=float("nan"))]
    write_parquet(tmp_path / "statistics.parquet", rows)
    found = load(tmp_path).scenarios[0]
    assert (found.canary, found.delivery) == (None, None)


def test_scenarios_made_in_python_meet_the_same_rules():
    """A dataset in memory cannot hold what a file could not."""
    with pytest.raises(DataError) as caught:
        from_scenarios([scenario(), scenario(), scenario("two", truth=Interval(1.0, 2.0))])
    assert [line.split(":")[0] for line in caught.value.problems] == ["one", "two"]


def test_whole_numbers_hash_like_floats():
    """`Interval(1, 2)` made in Python is the truth `[1.0, 2.0]` of a file."""
    pair = [scenario(archetype=Archetype.STATISTICS, truth=Interval(*bounds)) for bounds in ((1, 2), (1.0, 2.0))]
    assert from_scenarios(pair[:1]).hash == from_scenarios(pair[1:]).hash


def test_a_thousand_rows_with_the_public_counts(tmp_path: Path):
    """The size and spread of the public data."""
    sizes = {"known_facts": 209, "provided_facts": 274, "doubling_down_known_facts": 120}
    sizes |= {"statistics": 96, "continuations": 176, "disinformation": 125}
    for archetype, rows in as_rows(many(**sizes)).items():
        write_csv(tmp_path, rows, archetype=archetype)
    assert load(tmp_path).counts == sizes


def test_bundled_sets_are_found_inside_a_zip(tmp_path: Path):
    """As a wheel holds them: nothing assumes that the package is a folder on disk."""
    package = Path(unmask.__file__).parent
    archive = tmp_path / "unmask.zip"
    with zipfile.ZipFile(archive, "w") as file:
        for path in [*package.rglob("*.py"), *(package / "data" / "scenarios").iterdir()]:
            file.write(path, path.relative_to(package.parent))
    code = "import unmask; from unmask.data.load import load; print(unmask.__file__, len(load('tiny').scenarios))"
    env = os.environ | {"PYTHONPATH": str(archive)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, text=True, check=True)
    assert done.stdout.split() == [str(archive / "unmask" / "__init__.py"), "12"]
