"""Every exception of unmask, with its exit code and what to type next.

    UnmaskError
    ├── UsageError               2   a value the user gave is wrong
    │   ├── DataError            2   rows that cannot be used; lists each by id
    │   └── MixedRunError        2   the settings differ from those the run folder was made with
    ├── GateNotMet               1   a gate the user set was not met
    ├── IncompleteError          3   the run is incomplete or above the unjudged limit
    ├── BatchesOpen              0   `--no-wait`: batches are under way; the same command collects them
    ├── Interrupted            130   stopped by Ctrl-C or SIGTERM; the same command continues
    ├── MissingError             4   key, data, model file or extra is not there
    ├── RunLockedError           4   another process works on the run folder
    ├── JournalError             4   the run folder is damaged beyond the torn last line
    └── ModelError                   a request to a model failed; named by the boundary where it happened
        ├── FatalModelError      4   wrong key, locked account, no credit, unknown model, refused connection: stop
        ├── TransientModelError  3   time-out, overload, broken answer: worth another try
        └── RequestRefusedError  3   this one request is refused (too long, filtered); the rest may work

`str(error)` says in one line what happened and with which value, and has a line more for each of `error.problems`;
`error.advice` says what to type next. A traceback shows both: the advice is also a note of the exception. Files and
servers may have written parts of these texts, so they are escaped here, once.
"""

from __future__ import annotations

from collections.abc import Iterable

_LONGEST_LINE = 2_000


def escape_controls(text: str) -> str:
    """Safe on a terminal: control characters and direction marks become visible escapes; line ends and tabs stay."""
    if text.isprintable():
        return text
    return "".join(c if c in "\n\t" or c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def escape_line(text: str) -> str:
    """`escape_controls` in one line; of what is too long the middle is left out."""
    if len(text) > _LONGEST_LINE:
        text = f"{text[: _LONGEST_LINE // 2]} … {text[-_LONGEST_LINE // 2 :]}"
    return escape_controls(text).replace("\n", "\\n")


class UnmaskError(Exception):
    """Base of all. Shown without a traceback."""

    exit_code = 2

    def __init__(self, message: str, *, problems: Iterable[str] = (), advice: str | None = None) -> None:
        super().__init__(escape_line(message))
        self.problems = tuple(map(escape_line, problems))
        """One line for each thing that is wrong, where there may be several."""
        self._advice: str | None = None
        self.advice = advice

    @property
    def advice(self) -> str | None:
        return self._advice

    @advice.setter
    def advice(self, advice: str | None) -> None:
        advice = advice and escape_controls(advice)
        notes = [note for note in getattr(self, "__notes__", ()) if note != self._advice]
        self.__notes__ = [*notes, advice] if advice else notes
        self._advice = advice

    def __str__(self) -> str:
        return "\n".join([super().__str__(), *(f"  {problem}" for problem in self.problems)])


class UsageError(UnmaskError):
    exit_code = 2


class DataError(UsageError):
    """Rows that cannot be used. `problems` has one line per bad row, each starting with its id."""


class MixedRunError(UsageError):
    pass


class GateNotMet(UnmaskError):
    exit_code = 1


class IncompleteError(UnmaskError):
    exit_code = 3


class BatchesOpen(UnmaskError):
    """Nothing is wrong: what could be handed over is, and a run with `--no-wait` says when to come back."""

    exit_code = 0


class Interrupted(UnmaskError):
    exit_code = 130


class MissingError(UnmaskError):
    exit_code = 4


class RunLockedError(UnmaskError):
    exit_code = 4


class JournalError(UnmaskError):
    exit_code = 4


class ModelError(UnmaskError):
    exit_code = 4
    paid = False
    """Whether an answer came that could not be used: it was paid for, and nobody knows how much."""


class FatalModelError(ModelError):
    """Nothing sent to this endpoint will work until the user changes something."""


class TransientModelError(ModelError):
    """Worth another try. `throttled` asks for fewer requests at a time, `retry_after` for a pause in seconds.

    `unreachable` marks a connection that was refused or a host that was not found: fatal at first contact. `starting`
    marks what a server gives that is not up yet: a refused connection, a 503. `web_page` marks HTML in place of an
    answer.
    """

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        retry_after: float | None = None,
        throttled: bool = False,
        unreachable: bool = False,
        starting: bool = False,
        web_page: bool = False,
        paid: bool = False,
        advice: str | None = None,
    ) -> None:
        super().__init__(message, advice=advice)
        self.paid = paid
        self.retry_after = retry_after
        self.throttled = throttled
        self.unreachable = unreachable
        self.starting = starting
        self.web_page = web_page


class RequestRefusedError(ModelError):
    """This request is refused, and the same one most likely will be again. `may_be_all` marks one whose reason may hold
    for every other request too: a filter, or no reason that was given. `most_tokens` is the limit of a reply that the
    endpoint names where the request asks for more.
    """

    exit_code = 3

    def __init__(
        self,
        message: str,
        *,
        may_be_all: bool = False,
        most_tokens: int | None = None,
        paid: bool = False,
        advice: str | None = None,
    ) -> None:
        super().__init__(message, advice=advice)
        self.most_tokens = most_tokens
        self.paid = paid
        self.may_be_all = may_be_all
