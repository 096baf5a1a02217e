"""Runs in Weights & Biases and MLflow, offline, with the real libraries: make test-trackers."""

from __future__ import annotations

import json
import socket
import struct

import pytest

from tests.interop.made import made_run
from unmask.interop.export import export

pytestmark = pytest.mark.trackers


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return made_run(tmp_path_factory.mktemp("tracked") / "run", takes=2)


@pytest.fixture(autouse=True)
def _no_network(monkeypatch):
    """Whoever connects to anything but this machine fails."""
    connect = socket.socket.connect

    def refuse(self, address):
        if isinstance(address, tuple) and address[0] not in {"127.0.0.1", "::1", "localhost"}:
            raise AssertionError(f"connects to {address}")
        return connect(self, address)

    monkeypatch.setattr(socket.socket, "connect", refuse)


def read_wandb(folder):
    """The records of each offline run, earliest first: lengths and kinds of pieces, in blocks of 32 KiB."""
    from wandb.proto.wandb_internal_pb2 import Record

    for one in sorted((folder / "wandb").glob("offline-run-*/*.wandb"), key=lambda path: path.stat().st_mtime_ns):
        data, place, held, records = one.read_bytes(), 7, b"", []
        while place + 7 <= len(data):
            if 2**15 - place % 2**15 < 7:
                place += 2**15 - place % 2**15
                continue
            length, kind = struct.unpack("<HB", data[place + 4 : place + 7])
            held += data[place + 7 : place + 7 + length]
            place += 7 + length
            if kind in {1, 4}:  # whole, or the last piece
                records.append(Record.FromString(held))
                held = b""
        files = [path.read_bytes() for path in one.parent.rglob("*") if path.is_file() and path != one]
        yield records, b"".join([*files, *(record.SerializeToString() for record in records)])


def test_wandb_has_settings_and_numbers_and_texts_only_when_asked_for(run, tmp_path):
    (row,) = run.table("run").rows
    reply = next(choice.answer for choice in run.replies(run.scenarios[0].id).values()).splitlines()[0].encode()
    for per in (None, "reply"):
        export(run, format="wandb", out=tmp_path, per=per)
    (records, held), (_, held_with_rows) = read_wandb(tmp_path)
    logged = [item for record in records if record.HasField("history") for item in record.history.item]
    numbers = {item.key or item.nested_key[0]: json.loads(item.value_json) for item in logged}
    assert numbers["p_lie"] == pytest.approx(row["p_lie"])
    assert numbers["p_lie_worst_high"] == pytest.approx(row["p_lie_worst_high"])
    assert "excess" not in numbers  # the run has no control: unknown is absent, not 0
    config = [item for record in records if record.HasField("run") for item in record.run.config.update]
    settings = {item.key: json.loads(item.value_json) for item in config}
    assert (settings["model"], settings["takes"]) == ("scripted/planted", 2)
    assert reply not in held
    assert reply in held_with_rows


def test_mlflow_has_settings_and_numbers_and_texts_only_when_asked_for(run, tmp_path):
    from mlflow import MlflowClient

    (row,) = run.table("run").rows
    for per in (None, "reply"):
        export(run, format="mlflow", out=tmp_path, per=per)
    client = MlflowClient(tracking_uri=f"sqlite:///{tmp_path / 'mlflow.db'}")
    texts, plain = client.search_runs([client.get_experiment_by_name("unmask").experiment_id])
    for found in (plain, texts):
        assert found.data.metrics["p_lie"] == pytest.approx(row["p_lie"])
        assert (found.data.params["model"], found.data.params["takes"]) == ("scripted/planted", "2")
        assert "excess" not in found.data.metrics  # the run has no control: unknown is absent, not 0
    assert [len(client.list_artifacts(found.info.run_id)) for found in (plain, texts)] == [0, 1]
    held = b"".join(path.read_bytes() for path in (tmp_path / "artifacts").rglob("rows.jsonl")).splitlines()
    assert [json.loads(line) for line in held] == run.table("reply").rows
