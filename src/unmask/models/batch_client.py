"""The batch APIs of providers, behind one face: upload, create, look, read, find again, cancel.

Whatever a provider calls its states, a batch here is open or over. Everything that goes wrong is a ModelError. Only
what cannot make a second batch is tried again here; who calls `create` has to look whether a broken call made one.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any, NamedTuple
from urllib.parse import urlsplit, urlunsplit

import msgspec

from unmask.errors import FatalModelError, IncompleteError, ModelError, TransientModelError, UsageError
from unmask.models.anthropic import Anthropic
from unmask.models.base import Model
from unmask.models.failures import exception_for, parse_problem
from unmask.models.http import Channel, HttpAnswer
from unmask.models.keys import Target
from unmask.models.openai import OpenAI
from unmask.models.providers import PROVIDERS, provider_of
from unmask.models.tiers import AZURE_BATCHES, AZURE_HOSTS, BatchService, is_remote_id
from unmask.records import Record

TIMEOUT = 600.0
"""Seconds for one call: files may be large."""
LARGEST = 2**30
"""Bytes of a file of results."""
TRIES = 5
"""Of a call that can be made again, with pauses of 1, 2, 4 and 8 s."""
CLOCKS_DIFFER = 300.0
"""Seconds by which the clock of a provider may be wrong."""
PAGE = 100
MOST_PAGES = 50

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
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""What Anthropic writes in a line of results, as the status that the same request would have got alone."""


class BatchProblem(Record, frozen=True):
    """One reason why a provider would not take a batch. `line` counts from 1, where the problem has one."""

    code: str
    message: str
    line: int | None = None


class RemoteBatch(Record, frozen=True, kw_only=True):
    """A batch as its provider describes it."""

    id: str
    state: str
    over: bool
    total: int | None = None
    created: float | None = None
    expires_at: float | None = None
    input_file: str | None = None
    files: tuple[str, ...] = ()
    """Of results: the output file and the error file, where there are such."""
    problems: tuple[BatchProblem, ...] = ()
    """Not empty where the batch was refused as a whole."""


class BatchResult(NamedTuple):
    """What became of one request. Without a status it was never run, and `body` is nothing."""

    id: str
    status: int | None
    body: bytes
    message: str = ""


class UnlistedError(Exception):
    """The provider gives no list of batches."""


def find_service(name: str, endpoint: str | None = None) -> BatchService | None:
    """The batch API behind a model, by its provider and its host."""
    host = urlsplit(endpoint or "").hostname or ""
    if provider_of(name) == "openai" and host.endswith(AZURE_HOSTS):
        return AZURE_BATCHES
    row = PROVIDERS.get(provider_of(name) or "")
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
    kinds: dict[str, type[BatchClient]] = {"files": FileBatches, "messages": MessageBatches, "inline": InlineBatches}
    return kinds[service.api](model, service)


class BatchClient:
    """Calls to one batch API. Subclasses know the paths and the shapes."""

    needs_file = False
    root = "/batches"
    after = "after"
    """How the list of batches is turned over."""

    def __init__(self, model: OpenAI | Anthropic, service: BatchService) -> None:
        self.model = model
        self.service = service
        self.tries = TRIES
        parts = urlsplit(model.target.url)
        self._base = parts.path.removesuffix("/chat/completions").removesuffix("/v1/messages")

    def encode_line(self, name: str, payload: Mapping[str, Any]) -> bytes:
        """One request of a batch, as JSON."""
        return msgspec.json.encode({"custom_id": name, "body": payload})

    async def upload(self, lines: Sequence[bytes]) -> str:
        raise NotImplementedError

    async def create(self, batch: str, *, file: str | None, lines: Sequence[bytes]) -> RemoteBatch:
        """Make a batch. `batch` is our own name of it. Never tried again here."""
        raise NotImplementedError

    async def look(self, remote: str) -> RemoteBatch | None:
        """How a batch is; `None` where the provider does not know it any more."""
        body = await self._fetch_body("GET", f"{self.root}/{remote}", missing_ok=True)
        return None if body is None else self._read_batch(_decode_object(body))

    async def read_results(self, batch: RemoteBatch) -> list[BatchResult] | None:
        """All results of a batch that is over; `None` where the provider has deleted them."""
        raise NotImplementedError

    async def cancel(self, remote: str) -> None:
        await self._fetch_body("POST", f"{self.root}/{remote}/cancel", payload={})

    async def find(
        self, *, file: str | None, ids: frozenset[str], since: float, seen: frozenset[str]
    ) -> RemoteBatch | None:
        """A batch that was made without our having seen its id: by its file, else by its size, its time and, once it is
        over, an id of its results. One that is still open and fits is returned as it is. Raises UnlistedError."""
        for row in await self._list_since(since - CLOCKS_DIFFER):
            if row.id in seen or (file is not None and row.input_file != file):
                continue
            if file is not None:
                return row
            if row.created is not None and row.created < since - CLOCKS_DIFFER:
                continue
            if row.total not in (None, len(ids)):
                continue
            if not row.over:
                return row
            results = await self.read_results(await self.look(row.id) or row)
            if results and results[0].id in ids:
                return row
        return None

    async def _list_since(self, since: float) -> list[RemoteBatch]:
        rows: list[RemoteBatch] = []
        for _ in range(MOST_PAGES):
            turn = f"&{self.after}={rows[-1].id}" if rows else ""
            body = await self._fetch_body("GET", f"{self.root}?limit={PAGE}{turn}", missing_ok=True)
            if body is None:
                raise UnlistedError
            content = _decode_json(body)
            page = content if isinstance(content, list) else content.get("data") or []
            rows += [self._read_batch(row) for row in page]
            more = isinstance(content, dict) and content.get("has_more")
            if not page or not more or (rows[-1].created or since) < since:
                break
        return rows

    def _read_batch(self, row: Mapping[str, Any]) -> RemoteBatch:
        row = row.get("job") or row  # Together answers so to create
        state = str(row.get("status") or row.get("processing_status") or "").lower()
        errors = row.get("errors")
        listed = errors.get("data") if isinstance(errors, dict) else errors
        problems = tuple(_read_problem(item) for item in listed or ())
        if state == "failed" and not problems:
            problems = (_read_problem(row.get("error") or "the provider gives no reason"),)
        counts = row.get("request_counts") or {}
        total = counts.get("total") if "total" in counts else sum(counts.values()) if counts else None
        files = tuple(file for file in (row.get("output_file_id"), row.get("error_file_id")) if file)
        return RemoteBatch(
            id=self._check_id(row["id"]),
            state=state,
            over=state in OVER,
            total=total or None,
            created=_read_moment(row.get("created_at")),
            expires_at=_read_moment(row.get("expires_at") or row.get("job_deadline")),
            input_file=row.get("input_file_id"),
            files=tuple(map(self._check_id, files)),
            problems=problems if state == "failed" else (),
        )

    def _check_id(self, answered: object) -> str:
        """An id as a provider gives it. Anything else could lead a request with the key elsewhere at its host."""
        if not is_remote_id(str(answered)):
            shown = self.model.target.scrub(str(answered))
            raise FatalModelError(
                f"{self.model.name}: the batch API gives {shown!r} as an id, and no provider has such ids",
                advice=f"See what answers at {self.model.target.endpoint}, or go on without --batch.",
            )
        return str(answered)

    async def _fetch_body(
        self, method: str, path: str, *, payload: object = None, missing_ok: bool = False
    ) -> bytes | None:
        """The body of an answer. Tried again where that may help: nothing here makes anything."""
        call = partial(self._send_once, method, path, payload=payload, missing_ok=missing_ok)
        return await self._try_again(call)

    async def _try_again(self, call: Callable[[], Awaitable[bytes | None]]) -> bytes | None:
        for attempt in range(self.tries):
            try:
                return await call()
            except TransientModelError as error:
                if attempt + 1 == self.tries or (error.unreachable and not error.starting):
                    raise
                await asyncio.sleep(max(error.retry_after or 0.0, 2.0**attempt))
        raise AssertionError("the last try has returned or raised")

    async def _send_once(
        self,
        method: str,
        path: str,
        *,
        payload: object = None,
        body: bytes | None = None,
        content_type: str | None = None,
        missing_ok: bool = False,
    ) -> bytes | None:
        target = self._target_at(path, content_type)
        channel = Channel(target, timeout=TIMEOUT)
        try:
            data = msgspec.json.encode(payload) if payload is not None else body
            answer: HttpAnswer = await channel.send(method, data, most=LARGEST)
        finally:
            await channel.close()
        if answer.is_success:
            return answer.body
        if missing_ok and answer.status in (404, 405, 410):
            return None
        raise exception_for(parse_problem(answer.status, answer.body, answer.headers), target)

    def _target_at(self, path: str, content_type: str | None) -> Target:
        target = self.model.target
        parts = urlsplit(target.url)
        path, _, query = path.partition("?")
        asked = "&".join(filter(None, (parts.query, query)))
        headers = target.headers | ({"Content-Type": content_type} if content_type else {})
        full = self._base + path
        return replace(
            target,
            url=urlunsplit((parts.scheme, parts.netloc, full, asked, "")),
            shown=urlunsplit((parts.scheme, parts.netloc, full, "", "")),
            headers=headers,
        )


class FileBatches(BatchClient):
    """OpenAI, Azure, Groq, Together: a file of requests, a batch of it, two files of results."""

    needs_file = True

    def encode_line(self, name: str, payload: Mapping[str, Any]) -> bytes:
        line = {"custom_id": name, "method": "POST", "url": self.service.chat_url, "body": payload}
        return msgspec.json.encode(line)

    async def upload(self, lines: Sequence[bytes]) -> str:
        boundary = secrets.token_hex(16)
        fields = (("purpose", self.service.purpose), *self.service.form)
        parts = [
            f'--{boundary}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}' for name, value in fields
        ]
        opening = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="requests.jsonl"\r\n'
            "Content-Type: application/jsonl\r\n\r\n"
        )
        body = "\r\n".join([*parts, opening]).encode() + b"\n".join(lines) + f"\n\r\n--{boundary}--\r\n".encode()
        kind = f"multipart/form-data; boundary={boundary}"
        answer = await self._try_again(
            lambda: self._send_once("POST", self.service.upload_path, body=body, content_type=kind)
        )
        return self._check_id(_decode_object(answer)["id"])

    async def create(self, batch: str, *, file: str | None, lines: Sequence[bytes]) -> RemoteBatch:
        payload: dict[str, Any] = {"input_file_id": file, "endpoint": self.service.chat_url, "completion_window": "24h"}
        if self.service.metadata:
            payload["metadata"] = {"unmask": batch}
        body = await self._send_once("POST", self.root, payload=payload)
        return self._read_batch(_decode_object(body))

    async def read_results(self, batch: RemoteBatch) -> list[BatchResult] | None:
        results: list[BatchResult] = []
        for file in batch.files:
            body = await self._fetch_body("GET", f"/files/{file}/content", missing_ok=True)
            if body is None:
                return None
            results += [_read_result(row) for row in _each_row(body)]
        return results


class MessageBatches(BatchClient):
    """Anthropic's message batches: requests inside the call, results as a file of lines."""

    root = "/v1/messages/batches"
    after = "after_id"

    def encode_line(self, name: str, payload: Mapping[str, Any]) -> bytes:
        return msgspec.json.encode({"custom_id": name, "params": payload})

    async def create(self, batch: str, *, file: str | None, lines: Sequence[bytes]) -> RemoteBatch:
        body = await self._send_once("POST", self.root, body=b'{"requests":[' + b",".join(lines) + b"]}")
        return self._read_batch(_decode_object(body))

    async def read_results(self, batch: RemoteBatch) -> list[BatchResult] | None:
        body = await self._fetch_body("GET", f"{self.root}/{batch.id}/results", missing_ok=True)
        return None if body is None else [_read_message_result(row) for row in _each_row(body)]


class InlineBatches(BatchClient):
    """OpenRouter: requests inside the call, results inside the state."""

    async def create(self, batch: str, *, file: str | None, lines: Sequence[bytes]) -> RemoteBatch:
        frame = msgspec.json.encode({"model": self.model.served_name, "endpoint": self.service.chat_url})
        body = await self._send_once("POST", self.root, body=frame[:-1] + b',"requests":[' + b",".join(lines) + b"]}")
        return self._read_batch(_decode_object(body))

    async def read_results(self, batch: RemoteBatch) -> list[BatchResult] | None:
        body = await self._fetch_body("GET", f"{self.root}/{batch.id}", missing_ok=True)
        if body is None:
            return None
        return [_read_result(row) for row in _decode_object(body).get("results") or ()]

    async def cancel(self, remote: str) -> None:
        raise IncompleteError(
            f"{self.model.name}: OpenRouter has no way to cancel a batch",
            advice="What is under way will be answered and paid for: the same `unmask run` collects it.",
        )


def _decode_json(body: bytes | None) -> Any:
    try:
        return json.loads((body or b"").decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise TransientModelError("the batch API answered with something that is no JSON") from None


def _decode_object(body: bytes | None) -> dict[str, Any]:
    content = _decode_json(body)
    inner = content.get("job") if isinstance(content, dict) else None
    if not isinstance(content, dict) or not isinstance((inner or content).get("id"), str):
        raise TransientModelError("the batch API answered without an id")
    return content


def _each_row(body: bytes) -> Iterator[dict[str, Any]]:
    """The lines of a file of results. One that cannot be read has no id, so its request counts as unanswered."""
    for line in body.splitlines():
        try:
            row = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(row, dict):
            yield row


def _read_result(row: Mapping[str, Any]) -> BatchResult:
    response, error = row.get("response"), row.get("error")
    name = str(row.get("custom_id"))
    if isinstance(response, dict) and isinstance(response.get("body"), dict):
        status = response.get("status_code")
        body = response["body"]
        return BatchResult(name, status if isinstance(status, int) else 200, json.dumps(body).encode())
    failure = error if isinstance(error, dict) else {"message": str(error or "no response")}
    return BatchResult(name, None, b"", f"{failure.get('code') or ''} {failure.get('message') or ''}".strip())


def _read_message_result(row: Mapping[str, Any]) -> BatchResult:
    name, result = str(row.get("custom_id")), row.get("result") or {}
    kind = result.get("type")
    if kind == "succeeded":
        return BatchResult(name, 200, json.dumps(result.get("message")).encode())
    error: dict[str, Any] = result.get("error") or {}
    inner: dict[str, Any] = error["error"] if isinstance(error.get("error"), dict) else error
    if kind == "errored":
        return BatchResult(
            name, _STATUS_OF_ERROR.get(str(inner.get("type")), 500), json.dumps({"error": inner}).encode()
        )
    return BatchResult(name, None, b"", str(kind))


def _read_problem(row: Any) -> BatchProblem:
    if not isinstance(row, dict):
        code, _, message = str(row).partition(": ")
        return BatchProblem(code if message else "", message or code)
    line = row.get("line")
    return BatchProblem(
        str(row.get("code") or ""), str(row.get("message") or ""), line if isinstance(line, int) else None
    )


def _read_moment(moment: Any) -> float | None:
    """Seconds since the epoch, from those or from a date as text."""
    if isinstance(moment, int | float) and not isinstance(moment, bool):
        return float(moment)
    try:
        return datetime.fromisoformat(str(moment).replace("Z", "+00:00")).timestamp()
    except ValueError:
        return None


def refuse_problems(problems: Sequence[BatchProblem], model: str) -> ModelError:
    """A batch that the provider would not take, for reasons that no second try changes."""
    reasons = "; ".join(dict.fromkeys(f"{item.code} {item.message}".strip()[:300] for item in problems[:4]))
    return FatalModelError(
        f"{model}: the provider refused a batch: {reasons}",
        advice="Nothing of it was run or paid for. Correct what it names, or go on without --batch.",
    )
