"""An Inspect log as far as an import needs it: lenient about everything else in it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

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
_LONGEST = 16 * 2**20
"""Characters of one message put together from its parts, each of which may refer to the same long text."""
_TURNS = 10_000
"""Messages of one call that are looked through for its question."""
_RESOLVED = 64 * 2**20
"""Characters that references of one sample may come to in all: a thousand takes with their judge calls have half."""
_CALLS = 20_000
"""Model calls of one sample."""


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


class LogSample(msgspec.Struct, frozen=True, dict=True):
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
        text = self.attachments.get(raw.removeprefix(_ATTACHED), raw)
        self._spend(len(text))
        return text

    @cached_property
    def _spent(self) -> Counter[str]:
        """Work done for this sample."""
        return Counter()

    def _spend(self, characters: int) -> None:
        """A few bytes refer to a long text, and may do so a million times."""
        self._spent["characters"] += characters
        if self._spent["characters"] > _RESOLVED:
            raise DataError(
                f"sample {escape_line(str(self.id))} refers to texts of more than {_RESOLVED} characters in all",
                advice="No log of this benchmark does. Copy the log again from where it was written.",
            )

    def make_choice(self, written: LogChoice) -> Choice:
        content = written.message.content
        stop = _STOPS.get(written.stop_reason or "", Stop.OTHER)
        if not isinstance(content, list):
            return Choice(text=self.resolve_text(content), stop=stop)
        texts = [self.resolve_text(part.get("text")) for part in content if part.get("type") == "text"]
        thoughts = [self.resolve_text(part.get("reasoning")) for part in content if part.get("type") == "reasoning"]
        length = sum(map(len, texts)) + sum(map(len, thoughts))
        if length > _LONGEST:
            raise DataError(f"sample {escape_line(str(self.id))} has a message of {length} characters")
        return Choice(text="".join(texts), reasoning="\n".join(filter(None, thoughts)) or None, stop=stop)

    def model_calls(self) -> Iterator[tuple[str, ModelEvent]]:
        """Every finished model call, with the text of its last user message."""
        models = 0
        for raw in self.events:
            if msgspec.json.decode(raw, type=_EventType).event != "model":
                continue
            models += 1
            if models > _CALLS:
                raise DataError(
                    f"sample {escape_line(str(self.id))} has more than {_CALLS} model calls",
                    advice="No log of this benchmark does. Copy the log again from where it was written.",
                )
            called = msgspec.json.decode(raw, type=ModelEvent)
            if not called.pending:
                yield self._last_question(called), called

    def _last_question(self, called: ModelEvent) -> str:
        """Messages in a common list count each time, like what they refer to."""
        for turn in islice(self._messages_backwards(called), _TURNS):
            self._spend(1)
            if turn.role == "user":
                text = self.make_choice(LogChoice(turn)).text
                self._spend(len(text))
                return text
        return ""

    def _messages_backwards(self, called: ModelEvent) -> Iterator[LogMessage]:
        """The messages of a call, the last first, without making a list of what the stretches of it add up to."""
        if called.input_refs is None or self.events_data is None:
            yield from reversed(called.input)
            return
        pool = self.events_data.messages
        for start, end in reversed(called.input_refs):
            first, last, _ = slice(start, end).indices(len(pool))
            yield from (pool[place] for place in range(last - 1, first - 1, -1))

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
                msgspec.json.decode(archive.read(header), type=LogHeader),
                tuple(msgspec.json.decode(archive.read(name), type=LogSample) for name in samples),
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
    log = msgspec.json.decode(data, type=_JsonLog)
    return Log(log, tuple(log.samples or ()))
