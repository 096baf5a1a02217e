"""The loopback servers of the batch APIs: each flavour by its own flow, written from the tables, without our client."""

from __future__ import annotations

import json
from urllib.error import HTTPError
from urllib.request import Request

import pytest

from bench.batch_endpoint import FAULTS, FILES
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


def form(**fields: bytes) -> bytes:
    parts = [
        b'--x\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n' % (n.encode(), v) for n, v in fields.items()
    ]
    return b"".join(parts) + b"--x--\r\n"


def create_by_file(root: str, flavour: str, lines: dict[str, dict]) -> dict:
    row = FILES[flavour]
    file = b"".join(
        json.dumps({"custom_id": name, "method": "POST", "url": row.url, "body": body}).encode() + b"\n"
        for name, body in lines.items()
    )
    sent = form(purpose=row.purpose.encode(), file=file)
    file_id = json.loads(call(root, "POST", row.upload, sent, "multipart/form-data; boundary=x"))["id"]
    wanted = {"input_file_id": file_id, "endpoint": row.url, "completion_window": "24h"}
    made = json.loads(call(root, "POST", "/v1/batches", wanted))
    return made["job"] if row.wrapped else made


@pytest.mark.parametrize("flavour", FILES)
def test_files_and_batches(flavour):
    """Upload, create, look, read: every line of the file is answered under its own id."""
    with serving(module="bench.batch_endpoint", scenarios=SCENARIOS, flavour=flavour) as served:
        made = create_by_file(served.root, flavour, bodies())
        batch = json.loads(call(served.root, "GET", f"/v1/batches/{made['id']}"))
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
        made = create_by_file(served.root, "openai", bodies())
        batch = json.loads(call(served.root, "GET", f"/v1/batches/{made['id']}"))
        assert batch["status"] == "expired"
        output, errors = (
            call(served.root, "GET", f"/v1/files/{batch[name]}/content") for name in ("output_file_id", "error_file_id")
        )
        assert len(output.splitlines()) == len(errors.splitlines()) == SCENARIOS // 2
        assert served.stats()["answered"]["subject"] == SCENARIOS // 2


def test_deleted_results_are_a_404():
    with serving(module="bench.batch_endpoint", scenarios=SCENARIOS, batch_fault="deleted") as served:
        made = create_by_file(served.root, "openai", bodies())
        batch = json.loads(call(served.root, "GET", f"/v1/batches/{made['id']}"))
        with pytest.raises(HTTPError, match="404"):
            call(served.root, "GET", f"/v1/files/{batch['output_file_id']}/content")


def test_a_full_queue_fails_the_batch_without_counts():
    with serving(module="bench.batch_endpoint", scenarios=SCENARIOS, batch_fault="queue_full:3") as served:
        made = create_by_file(served.root, "openai", bodies())
        assert made["status"] == "failed"
        assert made["errors"]["data"][0]["code"] == "token_limit_exceeded"
        assert made["request_counts"]["total"] == 0
        assert served.stats()["answered"]["subject"] == 0


@pytest.mark.parametrize("name", ["a" * 65, "a b", ""])
def test_an_id_that_providers_refuse_fails_the_batch(name):
    """At most 64 letters, digits, dashes and underscores."""
    with serving(module="bench.batch_endpoint", scenarios=SCENARIOS) as served:
        made = create_by_file(served.root, "openai", {name: next(iter(bodies().values()))})
        assert (made["status"], made["errors"]["data"][0]["code"]) == ("failed", "invalid_file")


def test_every_fault_has_a_sentence():
    assert all(FAULTS.values())
