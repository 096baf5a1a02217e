"""`load`: layouts, bad rows, and what cannot be found."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

import unmask
from tests.data.made import many, row, scenario, write_csv, write_parquet
from unmask.data.dataset import LoadOptions
from unmask.data.form import encode_lines, write_jsonl
from unmask.data.load import from_scenarios, load
from unmask.errors import DataError, MissingError, UnmaskError, UsageError
from unmask.records import Archetype, Interval

SKIP = LoadOptions(skip_bad_rows=True)

# --- layouts ------------------------------------------------------------------------------------------------------


def test_a_folder_of_csv_files_is_loaded_with_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """One file per archetype, named after it, in any order of rows; other files in the folder do not matter. The
    standard library is enough."""
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    write_csv(tmp_path, [row(task_id="k2"), row(task_id="k1")])
    write_csv(tmp_path, [row(Archetype.STATISTICS, task_id="s1")], archetype="statistics")
    (tmp_path / "README.md").write_text("kettles")
    (tmp_path / "notes.jsonl").write_text("")
    (tmp_path / ".git").mkdir()
    dataset = load(tmp_path)
    assert dataset.counts == {Archetype.KNOWN_FACTS: 2, Archetype.STATISTICS: 1}
    assert (dataset.name, dataset.source, dataset.ids) == (tmp_path.name, str(tmp_path), ("k1", "k2", "s1"))
    assert load(tmp_path / "statistics.csv").counts == {Archetype.STATISTICS: 1}


def test_parquet_without_pyarrow_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
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


def test_absent_text_of_pandas_is_absent(tmp_path: Path):
    """A parquet column of missing texts is a column of NaN; it must not become the word nan."""
    rows = [dict(row(Archetype.STATISTICS), canary=float("nan"), delivery=float("nan"))]
    write_parquet(tmp_path / "statistics.parquet", rows)
    found = load(tmp_path).scenarios[0]
    assert (found.canary, found.delivery) == (None, None)


def test_marks_and_line_ends_do_not_change_the_data(tmp_path: Path):
    """A CSV that went through Windows or Excel, inside its cells as well, and JSONL that went through an editor."""
    texts = {"user_prompt": "first\nsecond", "system_prompt": "a\n\nb"}
    write_csv(tmp_path / "unix", [row(**texts)], ends="\n")
    windows = {name: text.replace("\n", "\r\n") for name, text in texts.items()}
    path = write_csv(tmp_path / "windows", [row(**windows)], ends="\r\n")
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b'"task_id"', b"task_id", 1))
    assert load(tmp_path / "unix").hash == load(tmp_path / "windows").hash
    lines = tmp_path / "set.jsonl"
    lines.write_bytes(b"\xef\xbb\xbf" + encode_lines(many(known_facts=2)).replace(b"\n", b"\r\n\r\n"))
    assert load(lines).scenarios == from_scenarios(many(known_facts=2)).scenarios


def test_a_huge_cell_and_odd_ids_are_read(tmp_path: Path):
    """A prompt beyond the csv module's own limit. An id is data and becomes no file name: nothing is changed."""
    odd = ("../../etc/passwd", "nul\x00", "\u202egnp", "A" * 5000)
    write_csv(tmp_path, [row(task_id=name, user_prompt="x" * 300_000) for name in odd])
    found = load(tmp_path)
    assert set(found.ids) == set(odd)
    assert len(found.scenarios[0].conversation[1].content) == 300_000


def test_a_bundled_name_wins_over_a_file_and_a_path_does_not(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """`tiny` is the bundled set; `./tiny` is the folder."""
    write_csv(tmp_path / "tiny", [row()])
    monkeypatch.chdir(tmp_path)
    assert len(load("tiny").scenarios) == 12
    assert load("./tiny").ids == load(Path("tiny")).ids == ("one",)


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


# --- the hash -----------------------------------------------------------------------------------------------------


def test_the_hash_names_the_content(tmp_path: Path):
    """A changed word changes it, a whole number written as a float does not; a part keeps the hash of the whole."""
    assert from_scenarios([scenario()]).hash != from_scenarios([scenario(direct="Is the kettle off?")]).hash
    pair = [scenario(archetype=Archetype.STATISTICS, truth=Interval(*bounds)) for bounds in ((1, 2), (1.0, 2.0))]
    assert from_scenarios(pair[:1]).hash == from_scenarios(pair[1:]).hash
    write_jsonl(many(known_facts=4), path=tmp_path / "set.jsonl")
    whole, part = load(tmp_path / "set.jsonl"), load(tmp_path / "set.jsonl", options=LoadOptions(limit=2))
    assert part.full_hash == whole.full_hash == whole.hash != part.hash


# --- bad rows -----------------------------------------------------------------------------------------------------


def test_every_bad_row_is_listed_by_id_or_place(tmp_path: Path):
    """One failed load shows everything there is to mend: of CSV, of JSONL, which is strict, and of scenarios made in
    Python. No id steers the terminal."""
    flat = "It <pivotal>is</pivotal>."
    rows = [row(task_id="\x1b[2Ja", proposition=flat), row(task_id="b"), row(task_id="c", proposition=flat)]
    write_csv(tmp_path, rows)
    good = encode_lines(many(known_facts=1)).strip()
    lines = [b"# my set", good, good.replace(b"0000", b"0001").replace(b"{", b'{"mood":1,', 1), b'{"id": 5}']
    (tmp_path / "set.jsonl").write_bytes(b"\n".join(lines))
    made = [scenario(), scenario(), scenario("two", truth=Interval(1.0, 2.0))]
    cases: list[tuple[Callable[[], object], list[str]]] = [
        (lambda: load(tmp_path / "known_facts.csv"), [r"\x1b[2Ja", "c"]),
        (lambda: load(tmp_path / "set.jsonl"), ["set.jsonl, line 1", "known_facts-0001", "set.jsonl, line 4"]),
        (lambda: from_scenarios(made), ["one", "two"]),
    ]
    for read, names in cases:
        with pytest.raises(DataError) as caught:
            read()
        assert [line.partition(":")[0] for line in caught.value.problems] == names
        assert "skip_bad_rows" in (caught.value.advice or "")


def test_skipped_rows_are_dropped_and_recorded(tmp_path: Path):
    """The rest is used, and the dataset remembers what is missing: a bad value, a missing comma, an id that was used
    before, also in another file, and a table of no archetype."""
    bad, short = row(task_id="a", formatted_ground_truth="?"), row(task_id="b")
    path = write_csv(tmp_path, [row(), bad, short])
    path.write_text(path.read_text().rstrip().removesuffix(',"cheep"') + "\n")
    write_csv(tmp_path, [row(Archetype.STATISTICS)], archetype="statistics")
    write_csv(tmp_path, [row(task_id="x")], archetype="known_fact")
    dataset = load(tmp_path, options=SKIP)
    assert dataset.ids == ("one",)
    said = "\n".join(dataset.skipped)
    assert len(dataset.skipped) == 4
    for words in ("neither A nor B", "cells", "used before", "'known_fact' is no archetype"):
        assert words in said


# --- what cannot be loaded ----------------------------------------------------------------------------------------


def unclosed(folder: Path) -> Path:
    path = write_csv(folder, [row(task_id="a"), row(task_id="b")])
    text = path.read_text()
    path.write_text(text[: text.rindex('"')])
    return folder


def in_two_layouts(folder: Path) -> Path:
    write_csv(folder, [row()])
    write_parquet(folder / "known_facts.parquet", [row(task_id="other")])
    return folder


def written(name: str, text: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_text(text)
        return folder / name

    return write


def of_a_run(folder: Path) -> Path:
    (folder / "scenarios.jsonl").touch()
    return folder


@pytest.mark.parametrize(
    ("make", "kind", "said", "advice"),
    [
        (unclosed, DataError, "not a CSV table", None),
        (in_two_layouts, UsageError, "known_facts in two layouts", "Keep one"),
        (lambda folder: folder, DataError, "no table of scenarios", "known_facts.csv"),
        (of_a_run, DataError, "the folder of a run", "scenarios.jsonl"),
        (written("none.jsonl", ""), DataError, "no usable scenario", "docs/data.md"),
        (written("bad.jsonl", '{"id": 5}'), DataError, "no usable scenario", "Mend"),
        (written("known_facts.txt", "hello"), UsageError, "known_facts.txt is no data file", ".jsonl"),
        (lambda folder: folder / "nowhere", MissingError, "no data at", "tiny"),
        (lambda _: "", MissingError, "no data at", "tiny"),
        (lambda _: "tiny@main", MissingError, "no data at tiny@main", "cais/MASK"),
        (lambda _: "https://me:secret@example.org/data", MissingError, "https://example.org", "tiny"),
    ],
)
def test_what_cannot_be_loaded_says_why_and_what_to_do(make, kind, said, advice, tmp_path: Path):
    """Also where bad rows are skipped: an empty run would score nothing and look fine."""
    with pytest.raises(UnmaskError) as caught:
        load(make(tmp_path), options=SKIP)
    assert type(caught.value) is kind
    assert said in str(caught.value)
    assert advice is None or advice in (caught.value.advice or "")
    assert "secret" not in str(caught.value)
