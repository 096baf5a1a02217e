"""More than anybody needs: lines, nesting, counts, archives. A clear error before the memory is gone."""

from __future__ import annotations

import csv
import io
import json
import struct
import zipfile
from pathlib import Path

import msgspec
import pytest

from bench.fuzz import seeds
from tests.hostile.limits import at_most
from unmask.analysis.label_sheets import format_items, read_file
from unmask.cli.main import run_command_line
from unmask.data import reference as rows
from unmask.data import tables
from unmask.data.load import load
from unmask.errors import (
    DataError,
    JournalError,
    MissingError,
    RequestRefusedError,
    UnmaskError,
    UsageError,
)
from unmask.interop.importing import import_run
from unmask.models import http
from unmask.models.local import gguf
from unmask.models.local.gguf import read_header
from unmask.models.providers import open_model
from unmask.records import Asked, Choice, Label
from unmask.runs.folder import Folder
from unmask.runs.journal import read_lines
from unmask.runs.options import options_from
from unmask.runs.run import Run

MEGABYTE = 2**20


def asked(text: str = "x") -> Asked:
    return Asked(scenario="s", slot="direct", takes=(0,), choices=(Choice(text),))


# --- journals ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("field", "value"), [("takes", 0), ("takes", -1), ("direct", 0), ("takes", 10**9)])
def test_a_run_of_a_stranger_cannot_claim_takes_that_no_run_has(field: str, value: int, tmp_path: Path):
    """Found by fuzzing: none at all made the score divide by nothing, a billion would have been gone through."""
    stored = json.loads(seeds.definitions()[0])
    (tmp_path / "run.json").write_text(json.dumps(stored | {field: value}))
    with pytest.raises(JournalError, match=rf"run\.json cannot be read: .*{field}"):
        Run(tmp_path)
    with pytest.raises(UsageError, match=f"--{field}"):
        options_from({field: value})


@pytest.mark.parametrize("take", [-1, 10_000, 10**9, 10**30])
def test_a_line_about_a_take_that_no_run_has_is_damaged(take: int, tmp_path: Path):
    """Whoever shows a scenario goes through its takes up to the last: a billion would fill the memory."""
    folder = Folder(tmp_path)
    (tmp_path / "run.json").write_bytes(seeds.definitions()[0])
    folder.write_scenarios((seeds.SUPPLIED,))
    lines = [
        b'{"scenario":"pf-1","slot":"pressured","takes":[%d],"choices":[{"text":"It rings."}]}\n' % number
        for number in (0, take, 1)
    ]
    folder.replies.path.write_bytes(b"".join(lines))
    with pytest.raises(JournalError, match=r"line 2 of .*replies\.jsonl is damaged: .*takes") as caught:
        list(folder.asked())
    assert "delete that line" in (caught.value.advice or "")
    with at_most(20):
        assert run_command_line(["show", str(tmp_path), "pf-1"]) == 4
        assert run_command_line(["report", str(tmp_path), "--out", str(tmp_path / "report.html")]) == 4


def test_a_label_about_a_take_that_no_run_has_is_damaged(tmp_path: Path):
    """The same for the readings of people."""
    path = tmp_path / "somebody.jsonl"
    rows = [b'{"scenario":"pf-1","slot":"pressured","take":%d,"letter":"A"}\n' % take for take in (0, 10**9, 1)]
    path.write_bytes(b"".join(rows))
    with pytest.raises(JournalError, match=r"line 2 of .*somebody\.jsonl is damaged: .*take"):
        list(read_lines(path, Label))


# --- data -------------------------------------------------------------------------------------------------


def test_a_truth_that_is_a_list_of_two_numbers_is_read(tmp_path: Path):
    """A column of lists becomes text."""
    import pyarrow as pa
    from pyarrow import parquet

    table = pa.table({"task_id": ["a", "b"], "formatted_ground_truth": [[1.0, 2.0], [3.0, 4.0]]})
    parquet.write_table(table, tmp_path / "statistics.parquet")
    read = tables.read_rows(tmp_path / "statistics.parquet", columns=rows.COLUMNS)
    assert [row.cells["formatted_ground_truth"] for row in read] == ["[1.0, 2.0]", "[3.0, 4.0]"]


def test_cells_beyond_the_limit_of_the_csv_module_are_read(tmp_path: Path):
    """Python's own limit is 131,072 characters; a system prompt may be longer, and a label file quotes replies."""
    long = msgspec.structs.replace(
        seeds.BINARY,
        conversation=(
            *seeds.BINARY.conversation[:1],
            msgspec.structs.replace(seeds.BINARY.conversation[1], content="x" * 200_000),
        ),
    )
    from unmask.data.reference import reference_cells

    (tmp_path / "known_facts.csv").write_bytes(seeds._csv([reference_cells(long)]))
    assert len(load(tmp_path / "known_facts.csv").scenarios[0].conversation[1].content) == 200_000
    (tmp_path / "labels.csv").write_text(f"scenario,slot,letter,note\nkf-1,direct,A,{'x' * 200_000}\n")
    (label,) = read_file(tmp_path / "labels.csv")
    assert len(label.note or "") == 200_000


# --- archives ---------------------------------------------------------------------------------------------


def zipped(path: Path, members: dict[str, bytes], kind: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", kind) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


@pytest.mark.parametrize("takes", [10**9, 10**400, True, "x"])
def test_a_log_that_claims_a_billion_takes_makes_no_billion_lines(takes: object, tmp_path: Path):
    """A count no run has is no count."""
    header, sample = (json.loads(part) for part in seeds.samples()[0].split(b"\0"))
    header["eval"]["task_args"] |= {"honesty_at_n": takes, "belief_repeats_n": takes, "judge_temperature": takes}
    files = {"header.json": json.dumps(header).encode(), "samples/1.json": json.dumps(sample).encode()}
    zipped(tmp_path / "x.eval", files)
    try:
        run = import_run(tmp_path / "x.eval", out=tmp_path / "run")
        assert run.definition.takes <= 1000
    except UnmaskError:
        assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("take", [-1, 10**9])
def test_an_exported_log_about_a_take_that_no_run_has_is_refused(take: int, tmp_path: Path):
    """Its samples carry journal lines, which are as strict as those of a folder."""
    header, sample = (json.loads(part) for part in seeds.samples()[1].split(b"\0"))
    sample["store"]["unmask"]["asked"][0]["takes"] = [take]
    files = {"header.json": json.dumps(header).encode(), "samples/1.json": json.dumps(sample).encode()}
    zipped(tmp_path / "x.eval", files)
    with at_most(20), pytest.raises(DataError, match="takes"):
        import_run(tmp_path / "x.eval", out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


# --- model files ------------------------------------------------------------------------------------------


def test_a_vocabulary_without_end_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Four billion empty words in a file with a hole in it: no more than the limit is looked at."""
    monkeypatch.setattr(gguf, "MAX_HEADER", MEGABYTE)
    path = tmp_path / "model.gguf"
    key = struct.pack("<Q", 1) + b"x"
    with path.open("wb") as file:
        file.write(b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + key + struct.pack("<IIQ", 9, 8, 2**32))
        file.truncate(4 * 2**30)
    with at_most(20), pytest.raises(MissingError, match="header is longer than"):
        read_header(path)


# --- spreadsheets -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["=1+1", "+1", "-1", "@x", "\t=1", "\r=1", "\n=1", "'=1", "＝1"])
def test_labels_go_out_harmless_and_come_back_as_they_were(text: str, tmp_path: Path):
    """A reply that is a formula, in a scenario whose id is one."""
    from unmask.analysis.label_sheets import Item

    scenario = msgspec.structs.replace(seeds.SUPPLIED, id=text)
    item = Item(scenario=scenario, slot="pressured", take=0, texts=(text,))
    label = Label(scenario=text, slot="pressured", letter="A", note=text, who=text)  # type: ignore[arg-type]
    label = msgspec.convert(msgspec.to_builtins(label), Label)
    (tmp_path / "labels.csv").write_bytes(format_items([(item, label)], ".csv"))
    rows = list(csv.reader(io.StringIO((tmp_path / "labels.csv").read_text(encoding="utf-8"), newline="")))
    assert all(not cell.startswith(tuple("=+-@\t\r\n＝")) for row in rows for cell in row)
    (back,) = read_file(tmp_path / "labels.csv")
    assert (back.scenario, back.note, back.who) == (text, text, text)


def test_separators_that_are_no_line_ends_do_not_break_label_files(tmp_path: Path):
    """U+2028 and friends inside a reply end no line of JSON or CSV."""
    from unmask.analysis.label_sheets import Item

    odd = "one\u2028two\x0bthree\x85four\x1efive"
    item = Item(scenario=seeds.SUPPLIED, slot="pressured", take=0, texts=(odd,))
    label = Label(scenario="pf-1", slot="pressured", letter=None, note=odd)
    label = msgspec.convert(msgspec.to_builtins(label) | {"letter": "A"}, Label)
    for name in ("labels.csv", "labels.jsonl"):
        (tmp_path / name).write_bytes(format_items([(item, label)], Path(name).suffix))
        (back,) = read_file(tmp_path / name)
        assert back.note == odd


# --- answers ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("packed", [False, True])
def test_an_answer_without_end_is_given_up(packed: bool, monkeypatch: pytest.MonkeyPatch):
    """Without a length, or a few bytes that unpack to many: no more than the limit is held."""
    import asyncio
    import gzip

    from tests.models.loopback import request

    monkeypatch.setattr(http, "FIXED_BYTES", 100_000 - 64 * request().sampling.max_tokens)
    body = b" " * 3_000_000
    lines = [b"HTTP/1.1 200 OK", b"Content-Type: application/json", b"Connection: close"]
    if packed:
        body = gzip.compress(body)
        lines += [b"Content-Encoding: gzip", b"Content-Length: %d" % len(body)]

    async def ask() -> None:
        from tests.models.loopback import raw

        async with raw(b"\r\n".join(lines) + b"\r\n\r\n" + body) as url:
            model = open_model("openai/m", base_url=url)
            try:
                await model.complete(request())
            finally:
                await model.close()

    with pytest.raises(RequestRefusedError, match="beyond 100000 bytes"):
        asyncio.run(ask())


def test_the_guard_itself_stops_what_runs_away():
    """Otherwise none of the tests of time would show anything."""

    def run_away() -> None:
        while True:  # Python looks for signals here; a loop inside C, as in `sum(iter(int, 1))`, would not be stopped
            pass

    with pytest.raises(AssertionError, match="still at work"), at_most(0.2):
        run_away()


def test_a_parquet_footer_that_contradicts_itself_is_an_error_and_not_the_end(tmp_path: Path):
    """A column that is never absent, with a count of where it is: pyarrow would end the process when asked for it."""
    import pyarrow as pa
    from pyarrow import parquet

    path = tmp_path / "known_facts.parquet"
    parquet.write_table(pa.table({"task_id": ["a"]}), path)
    optional, required = b"\x15\x0c\x25\x02\x18\x07task_id", b"\x15\x0c\x25\x00\x18\x07task_id"
    assert optional in path.read_bytes()
    path.write_bytes(path.read_bytes().replace(optional, required))
    with pytest.raises(DataError, match="not a parquet table"):
        load(path)
