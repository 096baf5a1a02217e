"""An Inspect log as far as an import needs it: lenient about everything else in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from unmask.errors import DataError, MissingError
from unmask.interop.archive import open_archive
from unmask.records import Choice, Stop, Usage
from unmask.text import escape_line

_STOPS = {
    "stop": Stop.END,
    "max_tokens": Stop.LENGTH,
    "model_length": Stop.LENGTH,
    "content_filter": Stop.FILTER,
}
_ATTACHED = "attachment://"
_WHOLE_LOG = 512 * 2**20
"""Bytes of a log in one JSON file, which is not compressed: what is read is what lies on the disk."""

_QUOTES_AND_WORDS = re.compile(rb'\\.|"|-?Infinity|NaN', re.DOTALL)

T = TypeVar("T")


class LogMessage(msgspec.Struct, frozen=True):
    role: str = ""
    content: str | list[dict[str, Any]] | None = ""


class LogChoice(msgspec.Struct, frozen=True):
    message: LogMessage = LogMessage()
    stop_reason: str | None = None


class LogOutput(msgspec.Struct, frozen=True):
    choices: list[LogChoice] = []
    usage: dict[str, Any] | None = None
    model: str | None = None
    time: float | None = None
    error: str | None = None


class ModelEvent(msgspec.Struct, frozen=True):
    """A model event. Newer logs keep the messages of all events in one list and refer to stretches of it."""

    model: str = ""
    input: list[LogMessage] = []
    input_refs: list[tuple[int, int]] | None = None
    output: LogOutput | None = None
    error: str | None = None
    pending: bool | None = None


class _EventType(msgspec.Struct, frozen=True):
    event: str = ""


class _MessagePool(msgspec.Struct, frozen=True):
    messages: list[LogMessage] = []


class LogSample(msgspec.Struct, frozen=True):
    id: str | int
    epoch: int = 1
    metadata: dict[str, Any] = {}
    store: dict[str, msgspec.Raw] = {}
    scores: dict[str, Any] | None = None
    events: list[msgspec.Raw] = []
    events_data: _MessagePool | None = None
    attachments: dict[str, str] = {}
    error: dict[str, Any] | None = None

    def resolve_text(self, value: Any) -> str:
        """A string of the log, fetched where only a reference to it is left."""
        raw = value if isinstance(value, str) else ""
        if not raw.startswith(_ATTACHED):
            return raw
        return self.attachments.get(raw.removeprefix(_ATTACHED), raw)

    def make_choice(self, written: LogChoice) -> Choice:
        content = written.message.content
        stop = _STOPS.get(written.stop_reason or "", Stop.OTHER)
        if not isinstance(content, list):
            return Choice(text=self.resolve_text(content), stop=stop)
        texts = [self.resolve_text(part.get("text")) for part in content if part.get("type") == "text"]
        thoughts = [self.resolve_text(part.get("reasoning")) for part in content if part.get("type") == "reasoning"]
        return Choice(text="".join(texts), reasoning="\n".join(filter(None, thoughts)) or None, stop=stop)

    def model_calls(self) -> Iterator[tuple[str, ModelEvent]]:
        """Every finished model call, with the text of its last user message."""
        for raw in self.events:
            if msgspec.json.decode(raw, type=_EventType).event != "model":
                continue
            called = msgspec.json.decode(raw, type=ModelEvent)
            if not called.pending:
                yield self._last_question(called), called

    def _last_question(self, called: ModelEvent) -> str:
        turn = next((turn for turn in reversed(self._messages(called)) if turn.role == "user"), None)
        return "" if turn is None else self.make_choice(LogChoice(turn)).text

    def _messages(self, called: ModelEvent) -> list[LogMessage]:
        if called.input_refs is None or self.events_data is None:
            return called.input
        pool = self.events_data.messages
        return [message for start, end in called.input_refs for message in pool[start:end]]

    def stored_outputs(self, key: str) -> list[LogOutput]:
        """A list of model outputs kept in the sample's store. It is decoded anew each time."""
        raw = self.store.get(key)
        return msgspec.json.decode(raw, type=list[LogOutput]) if raw is not None else []


class LogHeader(msgspec.Struct, frozen=True):
    eval: dict[str, Any]
    status: str = "started"
    plan: dict[str, Any] = {}
    results: dict[str, Any] | None = None


class Log(msgspec.Struct, frozen=True):
    header: LogHeader
    samples: tuple[LogSample, ...]


class _JsonLog(LogHeader, frozen=True):
    """A log in Inspect's older format: one JSON file."""

    samples: list[LogSample] | None = None


def read_usage(counts: dict[str, Any] | None) -> Usage:
    def tokens(key: str) -> int | None:
        value = (counts or {}).get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None

    return Usage(input=tokens("input_tokens"), output=tokens("output_tokens"), reasoning=tokens("reasoning_tokens"))


def _decode(data: bytes, kind: type[T]) -> T:
    """A JSON text of Inspect. Python writes `NaN` and `Infinity` into it, which are not JSON."""
    if b"NaN" in data or b"Infinity" in data:
        data = _hide_non_finite(data)
    return msgspec.json.decode(data, type=kind)


def _hide_non_finite(data: bytes) -> bytes:
    """The same text with null for every number that is not finite. Strings keep such words."""
    kept, start, in_string = [], 0, False
    for found in _QUOTES_AND_WORDS.finditer(data):
        word = found[0]
        if word == b'"':
            in_string = not in_string
        elif not in_string and not word.startswith(b"\\"):
            kept += [data[start : found.start()], b"null"]
            start = found.end()
    return b"".join([*kept, data[start:]])


def read_log(path: Path) -> Log:
    """The header and every sample of a log, `.eval` or `.json`."""
    try:
        if path.suffix.lower() == ".json":
            return _read_json_log(path)
        with open_archive(path) as archive:
            names = archive.names()
            # An unfinished log has only what was written when it began.
            header = next((name for name in ("header.json", "_journal/start.json") if name in names), None)
            if header is None:
                raise DataError(
                    f"{escape_line(str(path))} is a zip file, but not a log of Inspect: it has no header.json"
                )
            samples = [name for name in names if name.startswith("samples/") and name.endswith(".json")]
            return Log(
                _decode(archive.read(header), LogHeader),
                tuple(_decode(archive.read(name), LogSample) for name in samples),
            )
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{escape_line(str(path))} is not a log of Inspect: {escape_line(str(error))}") from None


def _read_json_log(path: Path) -> Log:
    try:
        if path.stat().st_size > _WHOLE_LOG:
            raise DataError(f"{escape_line(str(path))} has more than {_WHOLE_LOG} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise MissingError(f"cannot read {escape_line(str(path))}: {error.strerror or error}") from error
    log = _decode(data, _JsonLog)
    return Log(log, tuple(log.samples or ()))
