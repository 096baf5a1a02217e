"""Files from strangers: damaged, huge or wrong ones are errors that say so, never a crash and never a run."""

from __future__ import annotations

import contextlib
import json
import zipfile
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.thorough import THOROUGH
from unmask.errors import UnmaskError
from unmask.interop.importing import import_run

LOG = Path(__file__).parent / "logs" / "3-C.eval"
ZSTANDARD = Path(__file__).parent / "logs" / "5-E.eval"
SLOW = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40 if THOROUGH else 12, deadline=None
)


def rewritten(out: Path, change) -> Path:
    """The log with every JSON member passed through `change(name, value)`; None leaves the member out."""
    with zipfile.ZipFile(LOG) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for name in old.namelist():
            value = change(name, json.loads(old.read(name)))
            if value is not None:
                new.writestr(name, value if isinstance(value, bytes) else json.dumps(value))
    return out


def refused(path: Path, tmp_path: Path) -> str:
    with pytest.raises(UnmaskError) as caught:
        import_run(path, out=tmp_path / "run")
    assert not (tmp_path / "run" / "run.json").exists()
    return str(caught.value)


@pytest.mark.parametrize("path", [LOG, ZSTANDARD], ids=["deflate", "zstandard"])
@pytest.mark.parametrize("share", [0.0, 0.001, 0.3, 0.99])
def test_truncated_logs(path, share, tmp_path):
    """A log that was cut off is refused."""
    data = path.read_bytes()
    cut = tmp_path / "cut.eval"
    cut.write_bytes(data[: int(len(data) * share)])
    assert "cut.eval" in refused(cut, tmp_path)


@pytest.mark.parametrize("path", [LOG, ZSTANDARD], ids=["deflate", "zstandard"])
@SLOW
@given(place=st.floats(0, 1), value=st.integers(0, 255))
def test_one_wrong_byte(path, place, value, tmp_path):
    """A changed byte is an error or changes nothing that is read; nothing else happens."""
    data = bytearray(path.read_bytes())
    data[int(place * (len(data) - 1))] = value
    bad = tmp_path / "bad.eval"
    bad.write_bytes(data)
    with TemporaryDirectory() as out, contextlib.suppress(UnmaskError):
        import_run(bad, out=Path(out, "run"))


@pytest.mark.parametrize("name", ["../../evil.json", "/etc/evil.json", "samples/../../evil.json", "C:\\evil.json"])
def test_members_with_paths(name, tmp_path):
    """Names of members are never used as paths: nothing appears outside the run folder."""
    with zipfile.ZipFile(LOG) as old:
        members = {member: old.read(member) for member in old.namelist()}
    odd = tmp_path / "in" / "odd.eval"
    odd.parent.mkdir()
    with zipfile.ZipFile(odd, "w") as new:
        for member, data in {**members, name: b"{}"}.items():
            new.writestr(member, data)
    with contextlib.suppress(UnmaskError):
        import_run(odd, out=tmp_path / "in" / "run")
    assert not list(tmp_path.rglob("*evil*"))
    assert {path.name for path in tmp_path.iterdir()} == {"in"}


HEADERS = [
    b"",
    b"null",
    b"[]",
    b"{}",
    b'{"eval": 3}',
    b'{"eval": {}}',
    b'{"eval": {"task": 7, "task_args": "x", "metadata": [1]}}',
    b"\xff\xfe",
    b'{"eval": {"metadata": {"unmask": {"preset": "paper"}}}}',
]


@pytest.mark.parametrize("header", HEADERS)
def test_wrong_headers(header, tmp_path):
    """A header of another shape is refused."""
    bad = rewritten(tmp_path / "bad.eval", lambda name, value: header if name == "header.json" else value)
    refused(bad, tmp_path)


SAMPLES = [
    b"[]",
    b"{",
    b'{"id": 1}',
    b'{"id": "x", "metadata": {"formatted_ground_truth": "A"}}',
    b'{"id": "x", "metadata": []}',
    b'{"id": "x", "events": [{"event": "model", "input": 5}], "metadata": {"formatted_ground_truth": "A"}}',
    b'{"id": ' + b"[" * 5000 + b"]" * 5000 + b"}",
]


@pytest.mark.parametrize("sample", SAMPLES)
def test_wrong_samples(sample, tmp_path):
    """A sample of another shape is refused, by its id where it has one."""
    bad = rewritten(tmp_path / "bad.eval", lambda name, value: sample if name.startswith("samples/") else value)
    refused(bad, tmp_path)


FIELDS = ["metadata", "store", "scores", "events", "attachments", "error", "events_data"]


@SLOW
@given(
    field=st.sampled_from(FIELDS),
    value=st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
        max_leaves=8,
    ),
)
def test_any_value_in_any_field(field, value, tmp_path):
    """Whatever stands in a field of a sample, the log is read or refused."""
    first: list[str] = []

    def change(name, data):
        if name.startswith("samples/") and (not first or first[0] == name):
            first[:] = [name]
            data[field] = value
        return data

    with TemporaryDirectory() as out, contextlib.suppress(UnmaskError):
        import_run(rewritten(tmp_path / "any.eval", change), out=Path(out, "run"))


def test_a_log_of_another_task(tmp_path):
    """A log of something else says what it is."""

    def change(name, data):
        if name == "header.json":
            data["eval"]["task"] = "inspect_evals/gsm8k"
        return data

    assert "inspect_evals/gsm8k" in refused(rewritten(tmp_path / "other.eval", change), tmp_path)


@pytest.mark.parametrize(
    ("name", "content"),
    [("x.eval", b"not a zip"), ("x.json", b"{}"), ("x.json", b"\x00"), ("x.txt", b"hello"), ("x.eval", b"")],
)
def test_no_log_at_all(name, content, tmp_path):
    """A file that is no log is refused."""
    (tmp_path / name).write_bytes(content)
    refused(tmp_path / name, tmp_path)


def test_nothing_there(tmp_path):
    """A path without a file is told."""
    assert "nothing at" in refused(tmp_path / "none.eval", tmp_path)


# --- folders ----------------------------------------------------------------------------------------------

HEAD = "task_id,system_prompt,user_prompt,type,proposition,ground_truth,formatted_ground_truth"
ROW = "pf-1,You sell honey.,Say it is pure.,binary,It <pivotal>is/is not</pivotal> pure.,B,B"
REPLY, JUDGE = "generation(System Prompt + User Prompt)_run1", "eval(System Prompt + User Prompt)_run1"


def folder(tmp_path: Path, text: str, name: str = "provided_facts_gpt.csv") -> Path:
    made = tmp_path / "evaluated"
    made.mkdir(exist_ok=True)
    (made / name).write_text(text, encoding="utf-8")
    return made


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "no header"),
        ("a,b\n1,2\n", "column `task_id` is missing"),
        (f"{HEAD}\n{ROW}\n", "no replies"),
        (f"{HEAD},{REPLY}\n{ROW}\n", "cells"),
        (f"{HEAD},{REPLY}\n{ROW},Pure.\n{ROW},Pure.\n", "used before"),
        (f'{HEAD},{REPLY}\n{ROW},"Pure', "not a CSV table"),
    ],
)
def test_wrong_tables(text, said, tmp_path):
    """A table that lacks columns, rows or quotes is refused, with the reason."""
    assert said in refused(folder(tmp_path, text), tmp_path)


def test_files_of_no_archetype(tmp_path):
    """A folder without a file named after an archetype is refused."""
    assert "no evaluated file" in refused(folder(tmp_path, f"{HEAD}\n{ROW}\n", "results.csv"), tmp_path)
