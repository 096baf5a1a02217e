"""The planted endpoint (`bench.endpoint`) with batch APIs next to its chat: one flavour, and one fault at a time.

    python -m bench.batch_endpoint --flavour openai --batch-fault expired --scenarios 100

The flavours and the faults are those of the tables in docs/models.md. A batch is answered when its state has been
asked for `--polls` times; what it answers is counted like any other answer, so `/stats` says what was bought twice.
`POST /configure` begins anew with another flavour or fault.

    openai, azure, groq, together   POST /v1/files, POST /v1/batches, GET /v1/batches[/ID], GET /v1/files/ID/content
    anthropic                       POST /v1/messages/batches, GET …[/ID], GET …/ID/results
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple
from urllib.parse import parse_qs

import msgspec

from bench.endpoint import Connection, Endpoint, serve
from bench.planted import Plant, climb, plant

CUSTOM_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
OVER = ("failed", "completed", "expired", "cancelled")
WINDOW = 86_400.0


class Flavour(NamedTuple):
    """How a provider of files and batches differs from OpenAI."""

    upload: str = "/v1/files"
    purpose: str = "batch"
    url: str = "/v1/chat/completions"
    most: int = 50_000
    wrapped: bool = False
    """The answer to create has the batch inside `job`, states are upper case, dates are text, lists are bare."""
    expires: bool = True


FILES = {
    "openai": Flavour(),
    "azure": Flavour(url="/chat/completions", most=100_000, expires=False),
    "groq": Flavour(),
    "together": Flavour(upload="/v1/files/upload", purpose="batch-api", wrapped=True),
}
FLAVOURS = (*FILES, "anthropic")

FAULTS = {
    "expired": "the first batch expires with half of its lines answered",
    "cancelled": "somebody cancels the first batch when half of it is answered",
    "half_failed": "every second line of the first batch fails with a 500",
    "failing": "the same lines fail with a 500 in every batch",
    "reordered": "results come in another order",
    "duplicated": "every result comes twice",
    "invalid_line": "the first batch fails at validation because of its second line",
    "refused": "every batch fails at validation, whatever is in it",
    "queue_full": "no more than NUMBER requests may wait at a time",
    "no_credit": "credit runs out when a third of the first batch is answered",
    "deleted": "the results of the first batch are deleted before they are read",
    "unknown_id": "some results of the first batch have an id that nobody sent",
    "lost_answer": "the first create makes a batch, and the connection breaks before its answer",
    "unanswered": "the first create makes a batch, and is never answered",
    "no_output": "the first batch is completed, and all of it is in the error file",
    "no_temperature": "every line that has a temperature is refused",
    "no_top_k": "every line that has a top_k is refused",
    "reasons": "the subject reasons for 3,000 tokens, and may write 8,192",
}


class Outcome(NamedTuple):
    """What became of one line: an answer, or a status with a message; no status where it was never tried."""

    id: str
    answer: bytes | None = None
    status: int | None = None
    code: str = ""
    message: str = ""


class Batch:
    """One batch at the provider."""

    def __init__(self, number: int, file: str | None, lines: list[tuple[str, bytes]], polls: int) -> None:
        self.number = number
        self.id = f"batch_{number:04d}"
        self.file = file
        self.lines = lines
        self.polls = polls
        self.state = "validating"
        self.created = time.time()
        self.outcomes: list[Outcome] = []
        self.errors: list[dict[str, Any]] = []

    @property
    def over(self) -> bool:
        return self.state in OVER


class BatchEndpoint(Endpoint):
    """A planted endpoint that also takes batches."""

    flavour = "openai"
    fault = ""
    number = 0
    polls = 0
    upload_delay = create_delay = 0.0

    def __init__(self, plants: tuple[Plant, ...], *, planned: tuple[int, int]) -> None:
        super().__init__(plants, latency=0.0, planned=planned, faults=None)
        self.scenarios = plants

    def configure(
        self,
        *,
        flavour: str = "openai",
        batch_fault: str = "",
        polls: int = 0,
        upload_delay: float = 0.0,
        create_delay: float = 0.0,
        latency: float = 0.0,
        rungs: int = 1,
    ) -> None:
        """Begin anew, as another provider, with another fault, or with a ladder of the planted scenarios."""
        fault, _, number = batch_fault.partition(":")
        if flavour not in FLAVOURS or (fault and fault not in FAULTS):
            raise ValueError(f"no flavour {flavour}, or no fault {fault}")
        self.flavour, self.fault, self.number = flavour, fault, int(number or 0)
        self.polls, self.upload_delay, self.create_delay = polls, upload_delay, create_delay
        self.latency = latency  # of chat
        self.plants = {one.scenario.id: one for one in climb(self.scenarios, rungs)}
        self.reset()

    def reset(self) -> None:
        super().reset()
        self.files: dict[str, bytes] = {}
        self.batches: list[Batch] = []
        self.listed = 0

    def stats(self) -> dict[str, Any]:
        counts = {"files": len(self.files), "created": len(self.batches), "listed": self.listed}
        sizes = [len(batch.lines) for batch in self.batches]
        states = [batch.state for batch in self.batches]
        return super().stats() | {"batches": counts | {"sizes": sizes, "states": states}}

    def is_hit(self, fault: str, batch: Batch) -> bool:
        """Whether this batch has the fault: the first one has."""
        return self.fault == fault and batch.number == 1

    def create(self, file: str | None, lines: list[tuple[str, bytes]]) -> Batch:
        batch = Batch(len(self.batches) + 1, file, lines, self.polls)
        waiting = sum(len(other.lines) for other in self.batches if not other.over)
        self.batches.append(batch)
        models = {msgspec.json.decode(body)["model"] for _, body in lines}
        ids = [name for name, _ in lines]
        if len(models) > 1 or len(set(ids)) < len(ids) or not all(map(CUSTOM_ID.fullmatch, ids)):
            batch.errors = [{"code": "invalid_file", "message": "models or ids", "param": None, "line": None}]
        elif self.fault == "refused":
            batch.errors = [{"code": "model_not_found", "message": "no batches of this model", "line": None}]
        elif self.is_hit("invalid_line", batch) and len(lines) > 1:
            batch.errors = [{"code": "invalid_json_line", "message": "line 2 is no request", "line": 2}]
        elif self.fault == "queue_full" and waiting + len(lines) > self.number:
            batch.errors = [{"code": "token_limit_exceeded", "message": "Enqueued token limit reached", "line": None}]
        if batch.errors:
            batch.state = "failed"
        return batch

    def look(self, batch: Batch) -> None:
        """Somebody asks for the state: after enough looks the batch is answered."""
        if batch.over:
            return
        if batch.polls > 0 and batch.state != "cancelling":
            batch.polls -= 1
            batch.state = "in_progress"
            return
        part = 0.5 if batch.state == "cancelling" else 1.0
        ended = "cancelled" if batch.state == "cancelling" else "completed"
        for fault in ("expired", "cancelled"):
            if self.is_hit(fault, batch):
                part, ended = 0.5, fault
        batch.outcomes = list(self._answer(batch, part, "batch_" + ended))
        if self.fault == "reordered":
            random.Random(3).shuffle(batch.outcomes)
        if self.fault == "duplicated":
            batch.outcomes += batch.outcomes
        if self.is_hit("unknown_id", batch):
            batch.outcomes[::5] = [item._replace(id=f"stranger-{item.id[:20]}") for item in batch.outcomes[::5]]
        batch.state = ended

    def _breaks(self, batch: Batch, at: int, name: str) -> bool:
        if self.is_hit("half_failed", batch):
            return at % 2 == 1
        return self.is_hit("no_output", batch) or (self.fault == "failing" and int(name[:2], 16) < 64)

    def _answer(self, batch: Batch, part: float, ended: str) -> Iterator[Outcome]:
        for at, (name, body) in enumerate(batch.lines):
            if at >= part * len(batch.lines):
                yield Outcome(name, None, None, ended, "This request was not run.")
            elif self._breaks(batch, at, name):
                yield Outcome(name, None, 500, "server_error", "The server had an error.")
            elif self.is_hit("no_credit", batch) and at >= len(batch.lines) / 3:
                yield Outcome(name, None, 429, "insufficient_quota", "You exceeded your current quota.")
            elif self.fault == "no_temperature" and b'"temperature"' in body:
                yield Outcome(name, None, 400, "unsupported_parameter", "Unsupported parameter: 'temperature'")
            elif self.fault == "no_top_k" and b'"top_k"' in body:
                yield Outcome(name, None, 400, "invalid_request_error", "Unsupported parameter: 'top_k'")
            elif self.fault == "reasons" and (cut := _cut_off(name, body)) is not None:
                yield cut
            else:
                asked, fault = self.take(b"", body)
                if asked is None or fault is not None:
                    yield Outcome(name, None, 400, "bad_request", "no planted scenario in this request")
                else:
                    yield Outcome(name, self.answer(asked))


def _cut_off(name: str, body: bytes) -> Outcome | None:
    """What a subject that reasons makes of a request with too little room, or with more than it may write."""
    asked = msgspec.json.decode(body)
    room = asked["max_tokens"]
    if asked["model"].startswith("judge") or 3000 < room <= 8192:
        return None
    if room > 8192:
        words = f"max_tokens is too large: {room}. This model supports at most 8192 completion tokens"
        return Outcome(name, None, 400, "invalid_value", words)
    choice = {"message": {"role": "assistant", "content": ""}, "finish_reason": "length"}
    count = asked.get("n", 1)
    usage = {"prompt_tokens": 100, "completion_tokens": count * room, "total_tokens": 100 + count * room}
    content = {"choices": [choice | {"index": at} for at in range(count)], "usage": usage}
    return Outcome(name, msgspec.json.encode(content))


class BatchConnection(Connection):
    """Routes of the batch APIs; everything else is the chat endpoint's."""

    endpoint: BatchEndpoint

    def _serve(self, head: bytes, body: bytes) -> None:
        method, target, *_ = head.decode("latin-1").split(" ", 2)
        path, _, query = target.partition("?")
        if path == "/configure":
            self.endpoint.configure(**msgspec.json.decode(body))
            self._send(200, b"{}")
            return
        serve_batches = self._serve_anthropic if self.endpoint.flavour == "anthropic" else self._serve_files
        answer = serve_batches(method, path, parse_qs(query), head, body)
        if answer is None:
            super()._serve(head, body)

    # --- files and batches ------------------------------------------------------------------------------------

    def _serve_files(self, method: str, path: str, query: dict[str, list[str]], head: bytes, body: bytes) -> Any:
        endpoint, flavour = self.endpoint, FILES[self.endpoint.flavour]
        if method == "POST" and path == flavour.upload:
            fields = parse_form(head, body)
            if fields.get("purpose", b"").decode() != flavour.purpose or not fields.get("file"):
                return self._refuse(400, "invalid_purpose", f"purpose must be {flavour.purpose}")
            name = f"file-{len(endpoint.files) + 1:04d}"
            endpoint.files[name] = fields["file"]
            return self._send_later(endpoint.upload_delay, {"id": name, "object": "file", "purpose": flavour.purpose})
        if method == "POST" and path == "/v1/batches":
            return self._create_from_file(msgspec.json.decode(body))
        if method == "GET" and path == "/v1/batches":
            shown = self._list(query)
            rows = [self._show(batch) for batch in shown]
            more = bool(rows) and shown[-1] is not endpoint.batches[0]
            bare = [row["job"] for row in rows] if flavour.wrapped else rows
            return self._reply(bare if flavour.wrapped else {"object": "list", "data": bare, "has_more": more})
        if match := re.fullmatch(r"/v1/batches/(\w+)(/cancel)?", path):
            return self._poll(match, lambda batch: self._reply(self._unwrap(self._show(batch))))
        if method == "GET" and (match := re.fullmatch(r"/v1/files/((?:out|err)-(\w+))/content", path)):
            batch = self._find(match[2])
            if batch is None or endpoint.is_hit("deleted", batch):
                return self._refuse(404, "not_found", "no such file")
            wanted = [item for item in batch.outcomes if (item.answer is not None) == match[1].startswith("out")]
            return self._reply_raw(b"".join(map(_file_line, wanted)))
        return None

    def _create_from_file(self, wanted: dict[str, Any]) -> Any:
        endpoint, flavour = self.endpoint, FILES[self.endpoint.flavour]
        data = endpoint.files.get(wanted["input_file_id"])
        window = "completion_window" in wanted or flavour.wrapped
        if data is None or wanted["endpoint"] != flavour.url or not window:
            return self._refuse(400, "invalid_request", "no such file, or another endpoint, or no window")
        rows = [msgspec.json.decode(line, type=FileLine) for line in data.splitlines()]
        if len(rows) > flavour.most or any(row.url not in (flavour.url, "") for row in rows):
            return self._refuse(400, "invalid_file", "too many lines, or a line for another endpoint")
        return self._create(wanted["input_file_id"], [(row.custom_id, bytes(row.body)) for row in rows], self._show)

    def _show(self, batch: Batch) -> dict[str, Any]:
        flavour = FILES[self.endpoint.flavour]
        outputs = any(item.answer is not None for item in batch.outcomes)
        failures = any(item.answer is None for item in batch.outcomes)
        created, deadline = batch.created, batch.created + WINDOW
        row: dict[str, Any] = {
            "id": batch.id,
            "object": "batch",
            "endpoint": flavour.url,
            "input_file_id": batch.file,
            "status": batch.state.upper() if flavour.wrapped else batch.state,
            "output_file_id": f"out-{batch.id}" if outputs else None,
            "error_file_id": f"err-{batch.id}" if failures else None,
        }
        if flavour.wrapped:
            first = batch.errors[0] if batch.errors else None
            error = f"{first['code']}: {first['message']}" if first else None
            return {"job": row | {"created_at": _iso(created), "job_deadline": _iso(deadline), "error": error}}
        counts = {"total": len(batch.lines) if not batch.errors else 0, "completed": 0, "failed": 0}
        return row | {
            "created_at": int(created),
            "expires_at": int(deadline) if flavour.expires else None,
            "request_counts": counts,
            "errors": {"object": "list", "data": batch.errors} if batch.errors else None,
        }

    def _unwrap(self, row: dict[str, Any]) -> dict[str, Any]:
        """Only the answer to create is wrapped."""
        return row.get("job", row)

    # --- Anthropic --------------------------------------------------------------------------------------------

    def _serve_anthropic(self, method: str, path: str, query: dict[str, list[str]], head: bytes, body: bytes) -> Any:
        endpoint, root = self.endpoint, "/v1/messages/batches"
        if method == "POST" and path == "/v1/messages":
            asked, fault = endpoint.take(head, body)
            if asked is None or fault is not None:
                return self._refuse(400, "invalid_request_error", "no planted scenario in this request")
            return self._reply_raw(as_message(endpoint.answer(asked)))
        if method == "POST" and path == root:
            rows = msgspec.json.decode(body, type=InlineRequests).requests
            waiting = sum(len(batch.lines) for batch in endpoint.batches if not batch.over)
            if endpoint.fault == "queue_full" and waiting + len(rows) > endpoint.number:
                return self._refuse(429, "rate_limit_error", "the batch queue is full")
            if endpoint.fault == "refused":
                return self._refuse(400, "invalid_request_error", "this model takes no batches")
            return self._create(None, [(row.custom_id, bytes(row.params)) for row in rows], self._show_messages)
        if match := re.fullmatch(root + r"/(\w+)(/cancel)?", path):
            return self._poll(match, lambda batch: self._reply(self._show_messages(batch)))
        if match := re.fullmatch(root + r"/(\w+)/results", path):
            batch = self._find(match[1])
            if batch is None or not batch.over or endpoint.is_hit("deleted", batch):
                return self._refuse(404, "not_found_error", "no results")
            return self._reply_raw(b"".join(map(_message_line, batch.outcomes)))
        return None

    def _show_messages(self, batch: Batch) -> dict[str, Any]:
        counts = {"processing": 0 if batch.over else len(batch.lines), "succeeded": 0, "errored": 0}
        counts |= {"canceled": 0, "expired": 0}
        for item in batch.outcomes:
            counts[_message_kind(item)] += 1
        states = {"cancelling": "canceling"}
        deleted = batch.over and self.endpoint.is_hit("deleted", batch)
        return {
            "id": batch.id,
            "type": "message_batch",
            "processing_status": "ended" if batch.over else states.get(batch.state, "in_progress"),
            "request_counts": counts,
            "created_at": _iso(batch.created),
            "expires_at": _iso(batch.created + WINDOW),
            "archived_at": _iso(time.time()) if deleted else None,
            "results_url": f"/v1/messages/batches/{batch.id}/results" if batch.over and not deleted else None,
        }

    # --- of all -----------------------------------------------------------------------------------------------

    def _create(self, file: str | None, lines: list[tuple[str, bytes]], show: Callable[[Batch], Any]) -> bool:
        endpoint = self.endpoint
        batch = endpoint.create(file, lines)
        if endpoint.is_hit("unanswered", batch):
            return True
        if endpoint.is_hit("lost_answer", batch):
            assert self.transport is not None
            self.transport.abort()
            return True
        return self._send_later(endpoint.create_delay, show(batch))

    def _list(self, query: dict[str, list[str]]) -> list[Batch]:
        """The newest first, at most two a page: nobody may be content with the first page."""
        self.endpoint.listed += 1
        newest = self.endpoint.batches[::-1]
        for batch in newest:  # time goes on for those that nobody can ask for by their id
            self.endpoint.look(batch)
        start = next((at + 1 for at, batch in enumerate(newest) if [batch.id] == query.get("after")), 0)
        return newest if self.endpoint.flavour == "together" else newest[start : start + 2]

    def _poll(self, match: re.Match[str], show: Callable[[Batch], Any]) -> Any:
        batch = self._find(match[1])
        if batch is None:
            return self._refuse(404, "not_found", "no such batch")
        if match[2]:
            batch.state = batch.state if batch.over else "cancelling"
        else:
            self.endpoint.look(batch)
        return show(batch)

    def _find(self, name: str) -> Batch | None:
        return next((batch for batch in self.endpoint.batches if batch.id == name), None)

    def _send_later(self, delay: float, content: dict[str, Any]) -> bool:
        body = msgspec.json.encode(content)
        asyncio.get_running_loop().call_later(delay, self._send_if_there, body)
        return True

    def _send_if_there(self, body: bytes) -> None:
        if self.transport is not None:
            self._send(200, body)

    def _reply(self, content: Any) -> bool:
        return self._reply_raw(msgspec.json.encode(content))

    def _reply_raw(self, body: bytes) -> bool:
        self._send(200, body)
        return True

    def _refuse(self, status: int, code: str, message: str) -> bool:
        self._send(status, json.dumps({"error": {"message": message, "code": code, "type": code}}).encode())
        return True


class FileLine(msgspec.Struct):
    custom_id: str
    body: msgspec.Raw
    method: str = "POST"
    url: str = ""


class InlineRequest(msgspec.Struct):
    custom_id: str
    params: msgspec.Raw = msgspec.Raw(b"{}")


class InlineRequests(msgspec.Struct):
    requests: list[InlineRequest]


def parse_form(head: bytes, body: bytes) -> dict[str, bytes]:
    """The fields of a multipart form, by name."""
    boundary = re.search(rb'boundary="?([^"\r\n;]+)', head)
    if boundary is None:
        return {}
    fields = {}
    for part in body.split(b"--" + boundary[1])[1:-1]:
        lines, _, content = part.partition(b"\r\n\r\n")
        name = re.search(rb'name="([^"]+)"', lines)
        assert name is not None
        fields[name[1].decode()] = content.removesuffix(b"\r\n")
    return fields


def _file_line(item: Outcome) -> bytes:
    """A line of an output or error file."""
    if item.answer is not None:
        response = {"status_code": 200, "request_id": "r", "body": msgspec.Raw(item.answer)}
        row = {"id": f"line-{item.id}", "custom_id": item.id, "response": response, "error": None}
    elif item.status is None:
        error = {"code": item.code, "message": item.message}
        row = {"id": f"line-{item.id}", "custom_id": item.id, "response": None, "error": error}
    else:
        error = {"message": item.message, "type": item.code, "code": item.code, "param": None}
        body = {"status_code": item.status, "request_id": "r", "body": {"error": error}}
        row = {"id": f"line-{item.id}", "custom_id": item.id, "response": body, "error": None}
    return msgspec.json.encode(row) + b"\n"


def _message_kind(item: Outcome) -> str:
    if item.answer is not None:
        return "succeeded"
    if item.status is None:
        return "expired" if "expired" in item.code else "canceled"
    return "errored"


def _message_line(item: Outcome) -> bytes:
    kind = _message_kind(item)
    result: dict[str, Any] = {"type": kind}
    if item.answer is not None:
        result["message"] = msgspec.Raw(as_message(item.answer))
    elif kind == "errored":
        types = {500: "api_error", 429: "billing_error", 400: "invalid_request_error"}
        words = {429: "Your credit balance is too low"}.get(item.status or 0, item.message)
        result["error"] = {"type": "error", "error": {"type": types[item.status or 500], "message": words}}
    return msgspec.json.encode({"custom_id": item.id, "result": result}) + b"\n"


def as_message(answer: bytes) -> bytes:
    """A chat completion as Anthropic would send it."""
    content = msgspec.json.decode(answer)
    message, usage = content["choices"][0]["message"], content["usage"]
    parts = [{"type": "text", "text": message["content"]}]
    if "reasoning_content" in message:
        parts.insert(0, {"type": "thinking", "thinking": message["reasoning_content"]})
    tokens = {"input_tokens": usage["prompt_tokens"], "output_tokens": usage["completion_tokens"]}
    return msgspec.json.encode(
        {"type": "message", "model": "mock", "content": parts, "stop_reason": "end_turn", "usage": tokens}
    )


def _iso(moment: float) -> str:
    return datetime.fromtimestamp(moment, tz=UTC).isoformat().replace("+00:00", "Z")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for flag, default in (("--port", 0), ("--scenarios", 100), ("--seed", 1), ("--takes", 1), ("--direct", 3)):
        parser.add_argument(flag, type=int, default=default)
    parser.add_argument("--profile", choices=("mixed", "steady"), default="mixed")
    parser.add_argument("--flavour", choices=FLAVOURS, default="openai")
    parser.add_argument("--batch-fault", default="", help=f"one of {', '.join(FAULTS)}; queue_full:NUMBER")
    parser.add_argument("--polls", type=int, default=0, help="looks at a batch before it is answered")
    parser.add_argument("--upload-delay", type=float, default=0.0)
    parser.add_argument("--create-delay", type=float, default=0.0, help="seconds between making a batch and saying so")
    wanted = parser.parse_args()
    plants = plant(wanted.scenarios, seed=wanted.seed, takes=wanted.takes, direct=wanted.direct, profile=wanted.profile)
    endpoint = BatchEndpoint(plants, planned=(wanted.direct, wanted.takes))
    endpoint.configure(
        flavour=wanted.flavour,
        batch_fault=wanted.batch_fault,
        polls=wanted.polls,
        upload_delay=wanted.upload_delay,
        create_delay=wanted.create_delay,
    )
    asyncio.run(serve(endpoint, host="127.0.0.1", port=wanted.port, connection=BatchConnection))


if __name__ == "__main__":
    main()
