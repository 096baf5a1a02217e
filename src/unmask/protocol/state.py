"""What a journal holds about one scenario, in memory: the input of the planner and of every reading."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from unmask.records import Asked, Choice, Judged, Pending, Reading, Record, Slot, Unread


class Reply(Record, frozen=True):
    """The latest answer to one take of one slot, with the error of the last attempt if that one failed."""

    choice: Choice | None
    attempt: int = 1
    error: str | None = None


class ScenarioState:
    """Replies and judge calls of one scenario, in the order they arrived. An answer outlives any error line."""

    __slots__ = ("_read", "_ruled", "_settled", "_settled_for", "failed_before", "judged", "replies", "said")

    def __init__(self) -> None:
        self.replies: dict[Slot, dict[int, Reply]] = {}
        self.judged: dict[tuple[Slot, str], list[Judged]] = {}
        self.said: dict[tuple[Slot, int], str | Pending | Unread] = {}
        """What the reply to a take amounts to, kept by `gather` so that each is looked at once."""
        self.failed_before: frozenset[tuple[object, ...]] = frozenset()
        """What failed in earlier sessions: slots and takes, and questions to the judge."""
        self._read: dict[tuple[Slot, str], Reading] = {}
        self._settled: dict[tuple[Slot, int], Reading] = {}
        self._ruled: dict[tuple[Slot, str], Reading | None] = {}
        self._settled_for: object = None

    def add_asked(self, line: Asked) -> None:
        takes = self.replies.setdefault(line.slot, {})
        for take in line.takes:
            self.said.pop((line.slot, take), None)
        if line.error is not None:
            for take in line.takes:
                before = takes.get(take, Reply(None))
                takes[take] = Reply(before.choice, before.attempt, line.error)
            return
        for take, choice in zip(line.takes, line.choices, strict=False):
            takes[take] = Reply(choice, line.attempt)

    def add_judged(self, line: Judged) -> None:
        key = line.slot, line.digest
        self.judged.setdefault(key, []).append(line)
        self._read.pop(key, None)

    def forget_errors(self) -> None:
        """Failures of earlier sessions are data for a score, and asked again by a run."""
        replies = ((slot, take, reply) for slot, takes in self.replies.items() for take, reply in takes.items())
        readings = (line for lines in self.judged.values() for line in lines)
        self.failed_before = frozenset(
            [
                *((slot, take) for slot, take, reply in replies if reply.error is not None),
                *((line.slot, line.digest, line.method) for line in readings if line.error is not None),
            ]
        )
        if not self.failed_before:
            return
        for slot, takes in self.replies.items():
            self.replies[slot] = {
                take: Reply(reply.choice, reply.attempt) for take, reply in takes.items() if reply.choice is not None
            }
        answered = {key: [line for line in lines if line.error is None] for key, lines in self.judged.items()}
        self.judged = {key: lines for key, lines in answered.items() if lines}
        self._read.clear()
        self.said.clear()
        self._settled_for = None

    def reply(self, slot: Slot, take: int) -> Reply | None:
        takes = self.replies.get(slot)
        return None if takes is None else takes.get(take)

    def calls(self, slot: Slot, digest: str) -> Sequence[Judged]:
        return self.judged.get((slot, digest), ())

    def cached_reading(self, slot: Slot, digest: str, parse: Callable[[Sequence[Judged]], Reading]) -> Reading:
        """The judge's reading of these texts: each answer is parsed once, not once per look."""
        key = slot, digest
        if key not in self._read:
            self._read[key] = parse(self.calls(slot, digest))
        return self._read[key]

    def settled_readings(self, how: object) -> dict[tuple[Slot, int], Reading]:
        """Readings of takes that cannot change any more under these settings: more lines only add, so what has been
        read stays read. Other settings start afresh."""
        if self._settled_for is not how:
            self._begin_settings(how)
        return self._settled

    def readings_by_rule(self, how: object) -> dict[tuple[Slot, str], Reading | None]:
        """What rules make of texts under these settings, once that cannot change any more: `None` where a judge has to
        look. It often has not answered when the planner looks again."""
        if self._settled_for is not how:
            self._begin_settings(how)
        return self._ruled

    def _begin_settings(self, how: object) -> None:
        if self._settled_for != how:
            self._settled_for, self._settled, self._ruled = how, {}, {}

    def choices(self) -> Iterator[tuple[tuple[Slot, int], Choice]]:
        for slot, takes in self.replies.items():
            for take, reply in sorted(takes.items()):
                if reply.choice is not None:
                    yield (slot, take), reply.choice
