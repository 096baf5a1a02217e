"""The loopback servers of the batch APIs: each flavour by its own flow, written from the tables, without our client."""

from __future__ import annotations

import json
from urllib.request import Request

import pytest

from bench.batch_endpoint import FILES
from bench.planted import plant
from bench.process import DIRECT, serving
from unmask.protocol.probes import messages
from unmask.records import PRESSURED

SCENARIOS = 6


def bodies() -> dict[str, dict]:
    """A chat request for every planted scenario, by an id."""
    chats = [messages(item.scenario, PRESSURED) for item in plant(SCENARIOS, seed=1, takes=1, direct=3)]
    turns = [[{"role": str(turn.role), "content": turn.content} for turn in chat] for chat in chats]
    return {f"{at:040x}": {"model": "mock", "messages": chat} for at, chat in enumerate(turns)}


def call(root: str, method: str, path: str, body: bytes | dict | None = None, kind: str = "application/json"):
    data = json.dumps(body).encode() if isinstance(body, dict) else body
    request = Request(root + path, data=data, method=method, headers={"Content-Type": kind})
    with DIRECT.open(request, timeout=30) as response:
        return response.read()


def make_batch(root: str, flavour: str) -> dict:
    """Upload, create, look: the batch when it is over."""
    row = FILES[flavour]
    file = b"".join(
        json.dumps({"custom_id": name, "method": "POST", "url": row.url, "body": body}).encode() + b"\n"
        for name, body in bodies().items()
    )
    parts = (
        b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (name, value)
        for name, value in ((b"purpose", row.purpose.encode()), (b"file", file))
    )
    form = b"".join(parts) + b"--x--\r\n"
    file_id = json.loads(call(root, "POST", row.upload, form, "multipart/form-data; boundary=x"))["id"]
    wanted = {"input_file_id": file_id, "endpoint": row.url, "completion_window": "24h"}
    made = json.loads(call(root, "POST", "/v1/batches", wanted))
    name = (made["job"] if row.wrapped else made)["id"]
    return json.loads(call(root, "GET", f"/v1/batches/{name}"))


@pytest.mark.parametrize("flavour", FILES)
def test_files_and_batches(flavour):
    """Every line of the file is answered under its own id."""
    with serving(module="bench.batch_endpoint", scenarios=SCENARIOS, flavour=flavour) as served:
        batch = make_batch(served.root, flavour)
        assert batch["status"].lower() == "completed"
        output = call(served.root, "GET", f"/v1/files/{batch['output_file_id']}/content")
        assert {json.loads(line)["custom_id"] for line in output.splitlines()} == bodies().keys()
        assert batch["error_file_id"] is None


def test_messages_batches():
    with serving(module="bench.batch_endpoint", scenarios=SCENARIOS, flavour="anthropic") as served:
        root = "/v1/messages/batches"
        rows = [{"custom_id": name, "params": body} for name, body in bodies().items()]
        made = json.loads(call(served.root, "POST", root, {"requests": rows}))
        assert made["request_counts"]["processing"] == SCENARIOS
        batch = json.loads(call(served.root, "GET", f"{root}/{made['id']}"))
        results = call(served.root, "GET", batch["results_url"]).splitlines()
        assert {json.loads(line)["result"]["type"] for line in results} == {"succeeded"}
        assert {json.loads(line)["custom_id"] for line in results} == bodies().keys()


def test_an_expired_batch_keeps_its_paid_answers():
    """The trap that loses money elsewhere: state `expired`, and an output file with half of the answers."""
    with serving(module="bench.batch_endpoint", scenarios=SCENARIOS, batch_fault="expired") as served:
        batch = make_batch(served.root, "openai")
        assert batch["status"] == "expired"
        output, errors = (
            call(served.root, "GET", f"/v1/files/{batch[name]}/content") for name in ("output_file_id", "error_file_id")
        )
        assert len(output.splitlines()) == len(errors.splitlines()) == SCENARIOS // 2
        assert served.stats()["answered"]["subject"] == SCENARIOS // 2
