"""The batch APIs of providers, behind one face: upload, create, look, read, find, cancel.

Whatever a provider calls its states, a batch here is open or over. Whatever it answers is a value or a ModelError. Only
what cannot make a second batch is tried again here; who calls `create` has to look whether a broken call made one.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import msgspec

from unmask.errors import FatalModelError, TransientModelError, UsageError
from unmask.models.anthropic import Anthropic
from unmask.models.base import Model
from unmask.models.failures import exception_for, parse_problem
from unmask.models.http import Channel
from unmask.models.openai import OpenAI
from unmask.models.providers import PROVIDERS, provider_of, row_of
from unmask.models.tiers import AZURE_BATCHES, AZURE_HOSTS, BatchService, is_remote_id
from unmask.records import Record

TIMEOUT = 600.0
"""Seconds for one call: files may be large."""
LARGEST = 2**30
"""Bytes of a file of results."""
TRIES = 5
"""Of a call that can be made again, with pauses of 1, 2, 4 and 8 s."""
LONGEST_PAUSE = 60.0
"""Seconds between two tries, whatever a provider asks for."""
PAGE, MOST_PAGES = 100, 50

OVER = frozenset({"failed", "completed", "expired", "cancelled", "canceled", "ended"})
QUEUE_FULL = frozenset({"token_limit_exceeded", "queue_full"})
_STATUS_OF_ERROR = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "overloaded_error": 529,
}
"""What Anthropic writes in a line of results, as the status that the same request would have got alone."""


class BatchProblem(Record, frozen=True):
    """One reason why a provider would not take a batch. `line` counts from 1, where the problem has one."""

    code: str
    message: str
    line: int | None = None

    @property
    def is_full_queue(self) -> bool:
        return self.code.lower() in QUEUE_FULL or "enqueued" in self.message.lower()

    def __str__(self) -> str:
        return f"{self.code} {self.message}".strip()[:300]


class RemoteBatch(Record, frozen=True, kw_only=True):
    """A batch as its provider describes it."""

    id: str
    state: str
    input_file: str | None = None
    files: tuple[str, ...] = ()
    """Of results: the output file and the error file, where there are such."""
    problems: tuple[BatchProblem, ...] = ()
    """Not empty where the batch was refused as a whole."""

    @property
    def is_over(self) -> bool:
        return self.state in OVER


class BatchResult(NamedTuple):
    """What became of one request. Without a status it was never run, and `body` is nothing."""

    id: str
    status: int | None
    body: bytes
    message: str = ""


def find_service(name: str, endpoint: str | None = None) -> BatchService | None:
    """The batch API behind a model, by its provider and its host."""
    host = urlsplit(endpoint or "").hostname or ""
    if provider_of(name) == "openai" and host.endswith(AZURE_HOSTS):
        return AZURE_BATCHES
    row = row_of(name)
    return None if row is None else row.batch


def open_batch_client(model: Model) -> BatchClient:
    """The batch API of a model. A model that has none is a usage error."""
    service = find_service(model.name, model.endpoint)
    if service is None or not isinstance(model, OpenAI | Anthropic):
        names = ", ".join(name for name, row in PROVIDERS.items() if row.batch is not None)
        raise UsageError(
            f"--batch: {model.name} has no batch API that unmask knows",
            advice=f"Leave --batch out, or take the tier flex where there is one. Providers with batches: {names}.",
        )
    return (MessageBatches if service.api == "messages" else BatchClient)(model, service)


class BatchClient:
    """OpenAI, Azure, Groq, Together: a file of requests, a batch of it, two files of results."""

    takes_file = True
    root = "/batches"

    def __init__(self, model: OpenAI | Anthropic, service: BatchService) -> None:
        self.model = model
        self.service = service
        self.tries = TRIES

    def encode_line(self, name: str, payload: Mapping[str, Any]) -> bytes:
        """One request of a batch, as JSON."""
        line = {"custom_id": name, "method": "POST", "url": self.service.chat_url, "body": payload}
        return msgspec.json.encode(line)

    async def upload(self, lines: Sequence[bytes]) -> str | None:
        """Where a batch is made of a file: its id."""
        from aiohttp import FormData

        def make_form() -> FormData:
            form = FormData([("purpose", self.service.purpose), *self.service.form])
            content = b"\n".join(lines) + b"\n"
            form.add_field("file", content, filename="requests.jsonl", content_type="application/jsonl")
            return form

        return _read_batch(await self._call("POST", self.service.upload_path, make_form)).id

    async def create(self, file: str | None, lines: Sequence[bytes]) -> RemoteBatch:
        """Make a batch. Never tried again here."""
        wanted = {"input_file_id": file, "endpoint": self.service.chat_url, "completion_window": "24h"}
        return _read_batch(await self._call_once("POST", self.root, msgspec.json.encode(wanted)))

    async def look(self, remote: str) -> RemoteBatch | None:
        """How a batch is; `None` where the provider does not know it any more."""
        body = await self._call("GET", f"{self.root}/{remote}", missing_ok=True)
        return None if body is None else _read_batch(body)

    async def read_results(self, batch: RemoteBatch) -> list[BatchResult] | None:
        """All results of a batch that is over; `None` where the provider has deleted them."""
        results: list[BatchResult] = []
        for file in batch.files:
            body = await self._call("GET", f"/files/{file}/content", missing_ok=True)
            if body is None:
                return None
            results += map(parse_result, _each_row(body))
        return results

    async def cancel(self, remote: str) -> None:
        await self._call("POST", f"{self.root}/{remote}/cancel", b"{}")

    async def find(self, file: str) -> RemoteBatch | None:
        """The batch that was made of this file."""
        last = ""
        for _ in range(MOST_PAGES):
            content = decode(await self._call("GET", f"{self.root}?limit={PAGE}{last and f'&after={last}'}"))
            rows = _list(content if isinstance(content, list) else _of(content, "data"))
            known = [batch for batch in map(parse_batch, rows) if batch is not None]
            if found := next((batch for batch in known if batch.input_file == file), None):
                return found
            if not known or _of(content, "has_more") is not True or known[-1].id == last:
                return None
            last = known[-1].id
        return None

    async def _call(self, method: str, path: str, body: Any = None, *, missing_ok: bool = False) -> bytes | None:
        """The body of an answer. Tried again where that may help: nothing here makes anything."""
        for attempt in range(self.tries):
            try:
                return await self._call_once(method, path, body, missing_ok=missing_ok)
            except TransientModelError as error:
                if attempt + 1 == self.tries or (error.unreachable and not error.starting):
                    raise
                await asyncio.sleep(min(max(error.retry_after or 0.0, 2.0**attempt), LONGEST_PAUSE))
        raise AssertionError("the last try has returned or raised")

    async def _call_once(self, method: str, path: str, body: Any = None, *, missing_ok: bool = False) -> bytes | None:
        """`body` is JSON, or makes a form, which can be sent once only."""
        target = self.model.target
        parts = urlsplit(target.url)
        path, _, query = path.partition("?")
        full = parts.path.removesuffix(self.model.chat_path) + path
        headers = {
            name: value for name, value in target.headers.items() if not callable(body) or name != "Content-Type"
        }
        target = replace(
            target,
            url=urlunsplit((parts.scheme, parts.netloc, full, "&".join(filter(None, (parts.query, query))), "")),
            shown=urlunsplit((parts.scheme, parts.netloc, full, "", "")),
            headers=headers,
        )
        channel = Channel(target, timeout=TIMEOUT)
        try:
            answer = await channel.send(method, body() if callable(body) else body, most=LARGEST)
        finally:
            await channel.close()
        if answer.is_success:
            return answer.body
        if missing_ok and answer.status in (404, 405, 410):
            return None
        raise exception_for(parse_problem(answer.status, answer.body, answer.headers), target)


class MessageBatches(BatchClient):
    """Anthropic's message batches: requests inside the call, results as a file of lines. Nothing but the ids of its
    results tells one batch from another, so one whose id was not seen is not found again."""

    takes_file = False
    root = "/v1/messages/batches"

    def encode_line(self, name: str, payload: Mapping[str, Any]) -> bytes:
        return msgspec.json.encode({"custom_id": name, "params": payload})

    async def upload(self, lines: Sequence[bytes]) -> str | None:
        return None

    async def create(self, file: str | None, lines: Sequence[bytes]) -> RemoteBatch:
        return _read_batch(await self._call_once("POST", self.root, b'{"requests":[' + b",".join(lines) + b"]}"))

    async def read_results(self, batch: RemoteBatch) -> list[BatchResult] | None:
        body = await self._call("GET", f"{self.root}/{batch.id}/results", missing_ok=True)
        return None if body is None else [parse_message_result(row) for row in _each_row(body)]


# --- reading ---------------------------------------------------------------------------------------------------


def decode(body: bytes | None) -> Any:
    try:
        return json.loads((body or b"").decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise TransientModelError("the batch API answered with something that is no JSON") from None


def _read_batch(body: bytes | None) -> RemoteBatch:
    batch = parse_batch(decode(body))
    if batch is None:
        raise TransientModelError("the batch API answered without an id")
    return batch


def parse_batch(content: Any) -> RemoteBatch | None:
    """A batch from any JSON; `None` where it has no id. An id that could lead a request with the key elsewhere at its
    host is refused."""
    row = _of(content, "job") or content  # Together answers so to create
    files = [text for name in ("output_file_id", "error_file_id") if (text := _text(_of(row, name)))]
    name = _text(_of(row, "id"))
    if not name:
        return None
    if not all(map(is_remote_id, (name, *files))):
        raise FatalModelError(
            "the batch API gives an id that no provider has", advice="See what answers there, or go on without --batch."
        )
    state = (_text(_of(row, "status")) or _text(_of(row, "processing_status"))).lower()
    problems: tuple[BatchProblem, ...] = ()
    if state == "failed":
        errors = _of(row, "errors")
        listed = _list(_of(errors, "data") or errors) or [_of(row, "error") or "the provider gives no reason"]
        problems = tuple(map(_parse_problem, listed))
    source = _text(_of(row, "input_file_id")) or None
    return RemoteBatch(id=name, state=state, input_file=source, files=tuple(files), problems=problems)


def parse_result(row: Any) -> BatchResult:
    """A line of an output or error file."""
    name, body, error = _text(_of(row, "custom_id")), _of(row, "response", "body"), _of(row, "error")
    if isinstance(body, dict):
        status = _of(row, "response", "status_code")
        is_status = isinstance(status, int) and 100 <= status < 600
        return BatchResult(name, status if is_status else 200, json.dumps(body).encode())
    code, message = _text(_of(error, "code")), _text(_of(error, "message"))
    return BatchResult(name, None, b"", f"{code} {message}".strip() or _text(error) or "no response")


def parse_message_result(row: Any) -> BatchResult:
    """A line of Anthropic's results."""
    name, kind = _text(_of(row, "custom_id")), _text(_of(row, "result", "type"))
    if kind == "succeeded":
        return BatchResult(name, 200, json.dumps(_of(row, "result", "message")).encode())
    if kind == "errored":
        error = _of(row, "result", "error")
        inner = _of(error, "error") or error
        status = _STATUS_OF_ERROR.get(_text(_of(inner, "type")), 500)
        return BatchResult(name, status, json.dumps({"error": inner}).encode())
    return BatchResult(name, None, b"", kind)


def _parse_problem(row: Any) -> BatchProblem:
    if not isinstance(row, dict):
        code, _, message = str(row).partition(": ")
        return BatchProblem(code if message else "", message or code)
    line = row.get("line")
    return BatchProblem(_text(row.get("code")), _text(row.get("message")), line if type(line) is int else None)


def _each_row(body: bytes) -> Iterator[Any]:
    """The lines of a file of results. One that cannot be read has no id, so its request counts as unanswered."""
    for line in body.splitlines():
        try:
            yield json.loads(line.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            continue


def _of(content: Any, *path: str) -> Any:
    """A value somewhere in a stranger's JSON; `None` where there is none."""
    for name in path:
        content = content.get(name) if isinstance(content, dict) else None
    return content


def _text(content: Any) -> str:
    return content if isinstance(content, str) else ""


def _list(content: Any) -> list[Any]:
    return content if isinstance(content, list) else []
