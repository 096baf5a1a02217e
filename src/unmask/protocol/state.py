"""What a journal holds about one scenario, in memory: the input of the planner and of every reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cached_property

from unmask.judges.answers import ATTEMPTS, excerpt
from unmask.records import Asked, Choice, Judged, Pending, Reading, Record, Slot, Stop, Unread


class Reply(Record, frozen=True, dict=True):
    """The latest answer to one take of one slot, with the error of the last attempt if that one failed."""

    choice: Choice | None
    attempt: int = 1
    error: str | None = None

    @cached_property
    def text(self) -> str | Pending | Unread:
        """What is to be read. Empty where the subject said nothing; pending where it was cut off before any answer, or
        only reasoned, and is asked once more. A reply cut off in mid-answer has asserted what it has asserted."""
        if self.error is not None or self.choice is None:
            return Unread(f"failed: {self.error}")
        answer, stop = self.choice.answer, self.choice.stop
        if answer and stop is not Stop.FILTER:
            return answer
        seen = excerpt(self.choice)
        if stop is Stop.FILTER:
            return Unread("filtered: the endpoint withheld the reply", text=seen)
        if stop is Stop.END and self.choice.thinking is None:
            return ""
        if stop is Stop.OTHER:
            return Unread("empty: no text, and the endpoint did not say that the reply had ended", text=seen)
        if self.attempt < ATTEMPTS:
            return Pending()
        if stop is Stop.LENGTH:
            return Unread("truncated: cut off before any answer, twice", text=seen)
        return Unread("empty: nothing but reasoning came back, twice", text=seen)


class ScenarioState:
    """Replies and judge calls of one scenario, in the order they arrived. An answer outlives any error line."""

    __slots__ = ("failed_before", "judged", "readings", "replies")

    def __init__(self) -> None:
        self.replies: dict[Slot, dict[int, Reply]] = {}
        self.judged: dict[tuple[Slot, str], list[Judged]] = {}
        self.failed_before: frozenset[tuple[object, ...]] = frozenset()
        """What failed in earlier sessions: slots and takes, and questions to the judge."""
        self.readings: dict[tuple[object, ...], Reading | None] = {}
        """Readings of texts that no further line changes, by any judge; None where a judge has to look."""

    def add_asked(self, line: Asked) -> None:
        takes = self.replies.setdefault(line.slot, {})
        if line.error is not None:
            for take in line.takes:
                before = takes.get(take, Reply(None))
                takes[take] = Reply(before.choice, before.attempt, line.error)
            return
        for take, choice in zip(line.takes, line.choices, strict=False):
            takes[take] = Reply(choice, line.attempt)

    def add_judged(self, line: Judged) -> None:
        self.judged.setdefault((line.slot, line.digest), []).append(line)

    def forget_errors(self) -> None:
        """Failures of earlier sessions are data for a score, and asked again by a run."""
        replies = ((slot, take, reply) for slot, takes in self.replies.items() for take, reply in takes.items())
        calls = [line for lines in self.judged.values() for line in lines if line.error is not None]
        self.failed_before = frozenset(
            [
                *((slot, take) for slot, take, reply in replies if reply.error is not None),
                *((line.slot, line.digest, line.method) for line in calls),
            ]
        )
        for slot, takes in self.replies.items():
            answered = {take: reply for take, reply in takes.items() if reply.choice is not None}
            self.replies[slot] = {take: Reply(reply.choice, reply.attempt) for take, reply in answered.items()}
        without_errors = {key: [line for line in lines if line.error is None] for key, lines in self.judged.items()}
        self.judged = {key: lines for key, lines in without_errors.items() if lines}
        self.readings.clear()

    def reply(self, slot: Slot, take: int) -> Reply | None:
        return self.replies.get(slot, {}).get(take)

    def text(self, slot: Slot, take: int) -> str | Pending | Unread:
        """The text to be read; the empty string is a silent reply."""
        reply = self.reply(slot, take)
        return Pending() if reply is None else reply.text

    def calls(self, slot: Slot, digest: str) -> Sequence[Judged]:
        return self.judged.get((slot, digest), ())

    def choices(self) -> Iterator[tuple[tuple[Slot, int], Choice]]:
        for slot, takes in self.replies.items():
            for take, reply in sorted(takes.items()):
                if reply.choice is not None:
                    yield (slot, take), reply.choice
