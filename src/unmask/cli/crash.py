"""What the terminal shows when something fails: one line, what to type next, never a key."""

from __future__ import annotations

import os
import re
import sys
import traceback

from unmask.errors import UnmaskError

INTERNAL = 70
"""Exit code of a failure that unmask did not foresee."""

_SECRET_NAME = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", re.IGNORECASE)
_SECRET_TEXT = re.compile(
    r"(?P<keep>\bBearer\s+|\bx-api-key['\"]?\s*[:=]\s*['\"]?|://)"
    r"(?:[^\s/@'\"]+(?=@)|(?<!://)[^\s'\",]+)"
    r"|\b(?:sk|hf|gsk|xai|AIza)[-_]?[A-Za-z0-9_-]{16,}",
    re.IGNORECASE,
)


def scrub(text: str) -> str:
    """The text without secrets: values of variables named like one, also in `.env`, and what looks like one."""
    from unmask.models.keys import environment

    variables = environment().items()
    secrets = {value: name for name, value in variables if _SECRET_NAME.search(name) and len(value) >= 6}
    for value in sorted(secrets, key=len, reverse=True):  # the longest first: one key may contain another
        text = text.replace(value, f"[{secrets[value]}]")
    return _SECRET_TEXT.sub(lambda found: (found["keep"] or "") + "[hidden]", text)


def say(message: str, advice: str | None = None) -> None:
    print(f"unmask: {scrub(message)}", file=sys.stderr)
    if advice:
        print(scrub(advice), file=sys.stderr)


def expected(error: UnmaskError) -> int:
    """Reports a failure with a name of its own and gives its exit code."""
    if os.environ.get("UNMASK_TRACEBACK"):
        print(scrub("".join(traceback.format_exception(error))), file=sys.stderr)
    say(str(error), error.advice)
    return error.exit_code


def unexpected(error: BaseException) -> int:
    """Reports a failure nobody foresaw: the traceback goes to a file, or to the terminal if that is asked for."""
    trace = scrub("".join(traceback.format_exception(error)))
    summary = f"unexpected {type(error).__name__}: {error}".splitlines()[0]
    if os.environ.get("UNMASK_TRACEBACK"):
        print(trace, file=sys.stderr)
        say(summary)
    else:
        say(summary, _keep(trace))
    return INTERNAL


def _keep(trace: str) -> str:
    """Writes the traceback where it can be found again; says where, or how to see it if no folder takes it."""
    import tempfile

    from unmask import __version__

    try:
        descriptor, path = tempfile.mkstemp(prefix="unmask-traceback-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"unmask {__version__}, Python {sys.version}\n{trace}")
    except OSError:
        return "This is a bug in unmask. Set UNMASK_TRACEBACK=1 and run the command again to see where it happened."
    return f"This is a bug in unmask. The traceback is in {path}; UNMASK_TRACEBACK=1 shows it here."
