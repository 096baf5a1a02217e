"""What a batch API may answer: any JSON is an answer or one of our errors, and what does not look like an id becomes
part of no path that a key is sent to."""

from __future__ import annotations

import contextlib
import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from unmask import run
from unmask.cli.main import run_command_line
from unmask.errors import BatchesOpen, FatalModelError, JournalError, UnmaskError
from unmask.runs.batches import read_batches
from unmask.runs.folder import BATCHES_FILE, Folder

HOSTILE = ["../fine_tuning/jobs/ftjob-1", "a?limit=1", "..", "a%2Fb"]


class Provider(NamedTuple):
    """OpenAI's batch API as far as a run asks it, with ids of the test, and its bodies by path. `asked` has the path of
    every request."""

    url: str
    asked: list[str]
    ids: dict[str, Any]


@pytest.fixture
def provider() -> Iterator[Provider]:
    asked: list[str] = []
    ids: dict[str, Any] = {"upload": "file-1", "batch": "batch_1", "output": None, "status": "in_progress"}

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.rfile.read(int(self.headers.get("Content-Length") or 0))
            asked.append(self.path)
            batch = {"id": ids["batch"], "status": ids["status"], "output_file_id": ids["output"]}
            content = {"/v1/files": {"id": ids["upload"]}, "/v1/batches": batch}.get(self.path, batch)
            body = ids.get(self.path) or json.dumps(content).encode()
            self.send_response(200)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Keep the test's output clean."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield Provider(f"http://127.0.0.1:{server.server_address[1]}/v1", asked, ids)
    server.shutdown()
    server.server_close()


def hand_over(provider: Provider, out: Path) -> None:
    """Begin a run whose judge is asked in a batch, and leave as soon as that is under way."""
    settings: dict[str, Any] = {"judge": "openai/judge", "judge_base_url": provider.url, "batch": "judge"}
    run(data="tiny", model="scripted/evasive", out=out, tags="judge", no_wait=True, **settings)


def change_id(out: Path, field: str, value: str) -> None:
    """Write another id into `batches.jsonl`, in a line without a checksum, as somebody may who knows the format."""
    file = out / BATCHES_FILE
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    for row in rows:
        row.pop("sum", None)
        row.update({field: value} if field in row else {})
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("field", ["remote", "file"])
def test_an_id_of_a_folder_that_is_none_is_refused_before_anything_is_sent(provider, tmp_path, capsys, field, value):
    """`batch list`, `batch cancel` and the run itself; the file is named."""
    with pytest.raises(BatchesOpen):
        hand_over(provider, tmp_path / "run")
    change_id(tmp_path / "run", field, value)
    before = len(provider.asked)
    for verb in ("list", "cancel"):
        assert run_command_line(["batch", verb, str(tmp_path / "run")]) == JournalError.exit_code
        assert f"{BATCHES_FILE}: " in capsys.readouterr().err
    with pytest.raises(JournalError, match="is no id that a provider gives"):
        hand_over(provider, tmp_path / "run")
    assert len(provider.asked) == before


@pytest.mark.parametrize("value", HOSTILE)
@pytest.mark.parametrize("place", ["upload", "batch", "output"])
def test_an_id_of_a_provider_that_is_none_goes_into_no_request(provider, tmp_path, place, value):
    """Of the uploaded file, of the batch, and of the file of its results."""
    provider.ids.update({place: value, "status": "completed"})
    with pytest.raises(FatalModelError, match="an id that no provider has"):
        hand_over(provider, tmp_path / "run")
    assert set(provider.asked) <= {"/v1/files", "/v1/batches", "/v1/batches/batch_1"}


LOOK, RESULTS = "/v1/batches/batch_1", "/v1/files/file-2/content"
SHAPES = [  # the fuzzer has a target of its own for more
    *(b"null", b"<html>", b'{"id": {"id": "x"}}', b'{"id": "batch_1"}', b'{"id": "batch_1", "status": 7}'),
    b'{"id": "batch_1", "status": "completed", "request_counts": [1], "output_file_id": {"id": "x"}}',
    b'{"id": "batch_1", "status": "failed", "errors": {"data": [{"line": "2"}]}}',
]
ROWS = [
    *(b"null", b"\xff\xfe", b'{"custom_id": 1}', b'{"custom_id": "ID", "response": {"body": [1]}}'),
    b'{"custom_id": "ID", "response": {"status_code": "200", "body": {"choices": 1}}}',
    b'{"custom_id": "ID", "response": {"status_code": -1, "body": {"error": [1]}}}',
    b'{"custom_id": "ID", "response": null, "error": [{"code": 1}]}',
]


@pytest.mark.parametrize("body", SHAPES)
def test_a_batch_of_any_shape_is_one_of_our_errors_and_never_made_twice_in_a_command(provider, tmp_path, body):
    provider.ids[LOOK] = body
    for number in (1, 2):
        with pytest.raises(UnmaskError):
            hand_over(provider, tmp_path / "run")
        assert provider.asked.count("/v1/batches") <= number


@pytest.mark.parametrize("row", ROWS)
def test_a_result_of_any_shape_is_an_answer_or_one_of_our_errors(provider, tmp_path, row):
    with pytest.raises(BatchesOpen):
        hand_over(provider, tmp_path / "run")
    (batch,) = read_batches(tmp_path / "run").values()
    provider.ids.update({"status": "completed", "output": "file-2"})
    provider.ids[RESULTS] = b"\n".join(row.replace(b"ID", one.id.encode()) for one in batch.requests)
    with contextlib.suppress(UnmaskError):
        hand_over(provider, tmp_path / "run")
    assert not [line for line in Folder(tmp_path / "run").judged("openai_judge") if line.choices]
