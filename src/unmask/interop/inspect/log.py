"""An Inspect log as far as an import needs it: lenient about everything else in it."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec

from unmask.errors import DataError, MissingError
from unmask.interop.archive import Archive, opened
from unmask.records import Choice, Stop, Usage
from unmask.text import plain

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


class Turn(msgspec.Struct, frozen=True):
    role: str = ""
    content: str | list[dict[str, Any]] | None = ""


class Written(msgspec.Struct, frozen=True):
    message: Turn = Turn()
    stop_reason: str | None = None


class Output(msgspec.Struct, frozen=True):
    choices: list[Written] = []
    usage: dict[str, Any] | None = None
    model: str | None = None
    time: float | None = None
    error: str | None = None


class Called(msgspec.Struct, frozen=True):
    """A model event. Newer logs keep the messages of all events in one list and refer to stretches of it."""

    model: str = ""
    input: list[Turn] = []
    input_refs: list[tuple[int, int]] | None = None
    output: Output | None = None
    error: str | None = None
    pending: bool | None = None


class _Tagged(msgspec.Struct, frozen=True):
    event: str = ""


class _Pool(msgspec.Struct, frozen=True):
    messages: list[Turn] = []


class _Spent:
    """Work done for one sample, in characters."""

    def __init__(self) -> None:
        self.characters = 0


class Sample(msgspec.Struct, frozen=True, dict=True):
    id: str | int
    epoch: int = 1
    metadata: dict[str, Any] = {}
    store: dict[str, msgspec.Raw] = {}
    scores: dict[str, Any] | None = None
    events: list[msgspec.Raw] = []
    events_data: _Pool | None = None
    attachments: dict[str, str] = {}
    error: dict[str, Any] | None = None

    def text(self, value: Any) -> str:
        """A string of the log, fetched where only a reference to it is left."""
        found = value if isinstance(value, str) else ""
        if not found.startswith(_ATTACHED):
            return found
        text = self.attachments.get(found.removeprefix(_ATTACHED), found)
        self._spend(len(text))
        return text

    @cached_property
    def _spent(self) -> _Spent:
        return _Spent()

    def _spend(self, characters: int) -> None:
        """A few bytes refer to a long text, and may do so a million times."""
        self._spent.characters += characters
        if self._spent.characters > _RESOLVED:
            raise DataError(
                f"sample {plain(str(self.id))} refers to texts of more than {_RESOLVED} characters in all",
                advice="No log of this benchmark does. Copy the log again from where it was written.",
            )

    def choice(self, written: Written) -> Choice:
        content = written.message.content
        stop = _STOPS.get(written.stop_reason or "", Stop.OTHER)
        if not isinstance(content, list):
            return Choice(text=self.text(content), stop=stop)
        texts = [self.text(part.get("text")) for part in content if part.get("type") == "text"]
        thoughts = [self.text(part.get("reasoning")) for part in content if part.get("type") == "reasoning"]
        length = sum(map(len, texts)) + sum(map(len, thoughts))
        if length > _LONGEST:
            raise DataError(f"sample {plain(str(self.id))} has a message of {length} characters")
        return Choice(text="".join(texts), reasoning="\n".join(filter(None, thoughts)) or None, stop=stop)

    def calls(self) -> Iterator[tuple[str, Called]]:
        """Every finished model call, with the text of its last user message."""
        models = 0
        for raw in self.events:
            if msgspec.json.decode(raw, type=_Tagged).event != "model":
                continue
            models += 1
            if models > _CALLS:
                raise DataError(
                    f"sample {plain(str(self.id))} has more than {_CALLS} model calls",
                    advice="No log of this benchmark does. Copy the log again from where it was written.",
                )
            called = msgspec.json.decode(raw, type=Called)
            if not called.pending:
                yield self._asked(called), called

    def _asked(self, called: Called) -> str:
        """Messages in a common list count each time, like what they refer to."""
        for turn in islice(self._backwards(called), _TURNS):
            self._spend(1)
            if turn.role == "user":
                text = self.choice(Written(turn)).text
                self._spend(len(text))
                return text
        return ""

    def _backwards(self, called: Called) -> Iterator[Turn]:
        """The messages of a call, the last first, without making a list of what the stretches of it add up to."""
        if called.input_refs is None or self.events_data is None:
            yield from reversed(called.input)
            return
        pool = self.events_data.messages
        for start, end in reversed(called.input_refs):
            first, last, _ = slice(start, end).indices(len(pool))
            yield from (pool[place] for place in range(last - 1, first - 1, -1))

    def outputs(self, key: str) -> list[Output]:
        """A list of model outputs kept in the sample's store. It is decoded anew each time."""
        raw = self.store.get(key)
        return msgspec.json.decode(raw, type=list[Output]) if raw is not None else []


class Header(msgspec.Struct, frozen=True):
    eval: dict[str, Any]
    status: str = "started"
    plan: dict[str, Any] = {}
    results: dict[str, Any] | None = None


class Log(msgspec.Struct, frozen=True):
    header: Header
    samples: tuple[Sample, ...]


class _Whole(Header, frozen=True):
    """A log in Inspect's older format: one JSON file."""

    samples: list[Sample] | None = None


def usage(given: dict[str, Any] | None) -> Usage:
    def tokens(key: str) -> int | None:
        value = (given or {}).get(key)
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**53 else None

    return Usage(input=tokens("input_tokens"), output=tokens("output_tokens"), reasoning=tokens("reasoning_tokens"))


def read_log(path: Path) -> Log:
    """The header and every sample of a log, `.eval` or `.json`."""
    try:
        if path.suffix.lower() == ".json":
            return _json_log(path)
        with opened(path) as archive:
            return Log(_header(path, archive), tuple(_samples(archive)))
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"{plain(str(path))} is not a log of Inspect: {plain(str(error))}") from None


def _json_log(path: Path) -> Log:
    try:
        if path.stat().st_size > _WHOLE_LOG:
            raise DataError(f"{plain(str(path))} has more than {_WHOLE_LOG} bytes")
        data = path.read_bytes()
    except OSError as error:
        raise MissingError(f"cannot read {plain(str(path))}: {error.strerror or error}") from error
    whole = msgspec.json.decode(data, type=_Whole)
    return Log(whole, tuple(whole.samples or ()))


def _header(path: Path, archive: Archive) -> Header:
    """An unfinished log has only what was written when it began."""
    names = archive.names()
    for name in ("header.json", "_journal/start.json"):
        if name in names:
            return msgspec.json.decode(archive.read(name), type=Header)
    raise DataError(f"{plain(str(path))} is a zip file, but not a log of Inspect: it has no header.json")


def _samples(archive: Archive) -> Iterator[Sample]:
    for name in archive.names():
        if name.startswith("samples/") and name.endswith(".json"):
            yield msgspec.json.decode(archive.read(name), type=Sample)
