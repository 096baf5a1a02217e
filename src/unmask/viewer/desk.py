"""Labelling sessions: who reads which replies of which runs, without a word about these runs on the way to the browser.

The files are the state. Before every answer the labels are looked up anew, so a second window or another viewer
may label under the same name: nobody writes over what somebody has not seen. A session keeps only the replies
in their order and what can be taken back. It is made again by choosing the same runs and the same name.
"""

from __future__ import annotations

import errno
import hashlib
import secrets
import sys
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Lock, RLock
from typing import NamedTuple

import msgspec

from unmask.analysis.label_session import LabelPile, LabelSession, Needs
from unmask.analysis.label_sheets import Item
from unmask.analysis.labels import label_file, load_labels, load_seen, load_skips, open_writer, reply_stands
from unmask.analysis.sampling import SIZE, label
from unmask.errors import JournalError, RunLockedError, UnmaskError, UsageError
from unmask.records import Label
from unmask.runs.folder import Folder
from unmask.runs.run import Run
from unmask.text import escape_line

MOST = 100
"""Sessions that are kept. One that is forgotten is made again like any other."""
LONGEST_NAME = 100
LONGEST_WAIT = 5.0
"""Seconds for which a label waits for another process that writes one under the same name."""


class ReplyGoneError(UnmaskError):
    """The run of a reply was deleted, renamed or changed after the reply was shown."""


class LabelStart(msgspec.Struct, forbid_unknown_fields=True):
    """What the starting page sends. `runs` are keys of the catalogue."""

    runs: list[str]
    who: str
    size: int | None = None
    probes: bool = False


class LabelAnswer(msgspec.Struct, forbid_unknown_fields=True):
    """A key that was pressed. `at` is the place of the reply that was shown, from 1, and `seen` what was shown of its
    label; `text` is the figure that was typed."""

    key: str
    at: int | None = None
    seen: str = ""
    text: str = ""
    note: str = ""


class DeskView(NamedTuple):
    """What a page shows: one reply, or that all are done."""

    who: str
    total: int
    done: int
    skipped: int
    at: int | None
    item: Item | None = None
    label: Label | None = None
    was_skipped: bool = False
    seen: str = ""
    message: str = ""
    stays: bool = False
    """Whether nothing happened, so that what the person has typed must stay."""


class LabelSource:
    """One run of a session, and one person's file in it."""

    def __init__(self, run: Run, who: str) -> None:
        self.run = run
        self.pile = LabelPile({}, set(), self._keep_label)
        self._who = who
        self._journal = _read_stamp(run.folder.replies.path)
        self._labels: object = None

    def refresh(self) -> None:
        """Take over what another window or viewer has written meanwhile."""
        stamp = _read_stamp(label_file(self.run, self._who))
        if stamp != self._labels or self._labels is None:
            labels, skips = load_labels(self.run, self._who), load_skips(self.run, self._who)
            self.pile.labels.clear()
            self.pile.labels.update(labels)
            self.pile.skipped.clear()
            self.pile.skipped.update(skips)
            self._labels = stamp

    def require_reply(self, item: Item) -> None:
        """Raise a `ReplyGoneError` unless the run still has this reply; its files are read again where they changed."""
        self._require_run()
        if _read_stamp(self.run.folder.replies.path) != self._journal and not reply_stands(self.run, item):
            raise ReplyGoneError("the run has another reply now")

    def _require_run(self) -> None:
        """Writing would make the folder of a run anew that was renamed."""
        try:
            same = Folder(self.run.path).definition().id == self.run.definition.id
        except UnmaskError as error:
            raise ReplyGoneError(str(error)) from error
        if not same:
            raise ReplyGoneError(f"{self.run.path} is another run now")

    def _keep_label(self, label: Label) -> None:
        self._require_run()
        store_label(self.run, label)


def store_label(run: Run, label: Label) -> None:
    """Append a label to the file of its person. It is on disk when this returns."""
    with closing(open_writer(run, label.who, wait=LONGEST_WAIT)) as lines:
        lines.append(label)


class Desk:
    """One session. Several windows may show it: each says which reply it answers. `lock` is that of the person, so that
    between looking a label up and writing one no other session of the same name comes in."""

    def __init__(
        self, who: str, sources: Sequence[LabelSource], items: Sequence[tuple[LabelPile, Item]], lock: RLock
    ) -> None:
        self.who = who
        self._sources = {id(source.pile): source for source in sources}
        self._reload_sources()
        self._session = LabelSession(items, who)
        self._lock = lock

    def show_reply(self, at: int | None = None) -> DeskView:
        """The reply at this place, or the next one without a label."""
        with self._lock:
            self._reload_sources()
            known_place = at is not None and 1 <= at <= len(self._session.items)
            self._session.move_to(at - 1 if at is not None and known_place else self._session.next_unlabelled(-1))
            return self._describe_item()

    def take_answer(self, answer: LabelAnswer) -> DeskView:
        """Store what a key says, then show what comes next. What is not stored stays on the page of the person."""
        with self._lock:
            self._reload_sources()
            session = self._session
            if answer.at is not None:
                if not 1 <= answer.at <= len(session.items):
                    raise ReplyGoneError("the session has no such place")
                session.move_to(answer.at - 1)
                if answer.key not in ("-", "u"):
                    try:
                        self._sources[id(session.pile)].require_reply(session.item)
                    except ReplyGoneError:
                        if answer.key != "s":
                            raise
                        session.pass_over()
                        return self._describe_item()
                    if answer.seen != self._hash_label():
                        return self._describe_item(
                            "You said something else of this reply in another window. It is shown now."
                        )
            elif answer.key != "u":
                return self.show_reply()
            session.note = answer.note.strip() or None
            session.press_key(answer.key)
            if session.needs in (Needs.FIGURE, Needs.NOTE):
                session.type_line(answer.text if session.needs is Needs.FIGURE else answer.note)
            return self._describe_item(session.message, stays=bool(session.message) and answer.key != "u")

    def _reload_sources(self) -> None:
        for source in self._sources.values():
            source.refresh()

    def _describe_item(self, message: str = "", *, stays: bool = False) -> DeskView:
        session = self._session
        view = DeskView(self.who, len(session.items), session.done, session.skipped, None, message=message)
        if session.needs is Needs.NOTHING:
            return view
        return view._replace(
            at=session.place + 1,
            item=session.item,
            label=session.label,
            was_skipped=session.item.key in session.pile.skipped,
            seen=self._hash_label(),
            stays=stays,
        )

    def _hash_label(self) -> str:
        """Stands for what the person has said of this reply so far."""
        label = self._session.label
        if label is None:
            return "skipped" if self._session.item.key in self._session.pile.skipped else ""
        return hashlib.blake2b(msgspec.json.encode(label), digest_size=8).hexdigest()


class Desks:
    """All sessions of a viewer, by names that say nothing."""

    def __init__(self) -> None:
        self._desks: OrderedDict[str, Desk] = OrderedDict()
        self._people: dict[str, RLock] = {}
        self._lock = Lock()

    def start(self, paths: Sequence[Path], start: LabelStart) -> str:
        """Begin a session, or go on. What is wrong with a run is said with its name: no reply was shown yet."""
        who = check_name(start.who)
        if not paths:
            raise UsageError("no run is chosen", advice="Tick at least one.")
        sources = [LabelSource(Run(path), who) for path in sorted(paths)]
        items: list[tuple[LabelPile, Item]] = []
        for source in sources:
            every = label(source.run, size=SIZE if start.size is None else start.size, probes=start.probes)
            with closing(open_writer(source.run, who, wait=LONGEST_WAIT)):  # what keeps labels out is said now
                seen = load_seen(source.run, who)
            items += [(source.pile, item) for item in every if item.key not in seen]
        if not items:
            raise UsageError(
                f"{who} has seen what the judge makes of every reply to read",
                advice="A blind label has to come from somebody else: choose another name.",
            )
        if len(sources) > 1:  # in the same order each time
            Random("\n".join(sorted(source.run.definition.id for source in sources))).shuffle(items)
        name = secrets.token_urlsafe(12)
        with self._lock:
            person = self._people.setdefault(who, RLock())
        desk = Desk(who, sources, items, person)
        with self._lock:
            self._desks[name] = desk
            while len(self._desks) > MOST:
                self._desks.popitem(last=False)
        return name

    def find(self, name: str) -> Desk | None:
        with self._lock:
            if name in self._desks:
                self._desks.move_to_end(name)
            return self._desks.get(name)


def check_name(who: str) -> str:
    """The name as it is kept; an error for one that is none."""
    name = who.strip()
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UsageError(
            f"{escape_line(who[:LONGEST_NAME])!r} is no name",
            advice=f"Labels need a name of 1 to {LONGEST_NAME} signs.",
        )
    return name


def explain_blind(error: UnmaskError | OSError) -> tuple[int, str]:
    """What a person may know of an error while labelling: not which run it is about. All of it goes to the terminal."""
    cause = error.__cause__
    if isinstance(error, ReplyGoneError):
        return 409, (
            "This reply is gone: its run was changed, renamed or deleted after it was shown. The label was not stored."
            " Go on with s."
        )
    print(f"unmask view: {escape_line(str(error))}", file=sys.stderr, flush=True)
    if isinstance(error, RunLockedError):
        return 409, (
            "Another program is writing labels under your name: a second viewer, or an import. This label was not"
            " stored. Wait until it has finished, then give the label again."
        )
    if isinstance(error, JournalError) and isinstance(cause, OSError) and cause.errno in (errno.ENOSPC, errno.EDQUOT):
        return 507, "The disk is full. This label was not stored. Free some space, then give it again."
    return 409, (
        "A file of this session cannot be read or written, so this label was not stored. The terminal in which the"
        " viewer runs says which and why."
    )


def _read_stamp(path: Path) -> object:
    """What changes whenever the file does."""
    try:
        status = path.stat()
    except OSError:
        return "none"
    return status.st_ino, status.st_size, status.st_mtime_ns
