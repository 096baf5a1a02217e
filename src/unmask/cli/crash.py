"""What the terminal shows when something fails: one line, what to type next, never a key, nothing that steers it."""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from unmask.errors import UnmaskError, escape_controls

_show_python_warning = warnings.showwarning

INTERNAL = 70
"""Exit code of a failure that unmask did not foresee."""

_PATH = "Check the path: all of it but the last name has to be folders that are there, and no name may be too long."
_SYSTEM_ADVICE = {
    **dict.fromkeys(("ENOSPC", "EDQUOT", "EFBIG"), "Free some space and run the same command again."),
    **dict.fromkeys(("EACCES", "EPERM", "EROFS"), "Check who may read and write there."),
    **dict.fromkeys(("EMFILE", "ENFILE"), "Close other programs, or raise the limit with ulimit -n."),
    **dict.fromkeys(("ENOENT", "ENOTDIR", "EISDIR", "EEXIST", "ENAMETOOLONG", "ELOOP"), _PATH),
    "EIO": "The disk or the network drive failed; see that it works, then run the same command again.",
}
"""What to do about errors of the system that are nobody's mistake in here."""
_LONGEST_PATH = 300
"""Characters of a path that are shown: a text given in place of one is not printed whole."""

_SECRET_TEXT = re.compile(
    r"(?P<keep>\bBearer\s+|\bx-api-key['\"]?\s*[:=]\s*['\"]?|://)"
    r"(?:[^\s/@'\"]+(?=@)|(?<!://)[^\s'\",]+)",
    re.IGNORECASE,
)


def hide_secrets(text: str) -> str:
    """The text without secrets: values of variables named like one, also in `.env`, what stands as credentials or query
    in a URL of a variable or of the command line, and what looks like a secret."""
    from unmask.files import read_environment
    from unmask.models.keys import known_secrets, mask_likely_secrets

    secrets = known_secrets(read_environment(), arguments=sys.argv[1:])
    for value in sorted(secrets, key=len, reverse=True):  # the longest first: one key may contain another
        text = text.replace(value, f"[{secrets[value]}]")
    return mask_likely_secrets(_SECRET_TEXT.sub(lambda match: (match["keep"] or "") + "[hidden]", text))


def clean_for_terminal(text: str) -> str:
    """The text without secrets, and with control characters and direction marks made visible: endpoints and run folders
    may have written parts of it. Line breaks and tabs stay."""
    return escape_controls(hide_secrets(text))


def print_error(message: str, advice: str | None = None) -> None:
    print(f"unmask: {clean_for_terminal(message)}", file=sys.stderr)
    if advice:
        print(clean_for_terminal(advice), file=sys.stderr)


def show_warning(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
    """Print a warning of ours as one line, as errors are, and any other as Python does."""
    if category.__module__.startswith("unmask."):
        print_error(str(message))
    else:
        _show_python_warning(message, category, *place, **more)


@contextmanager
def explain_interruption(describe: Callable[[], str]) -> Iterator[None]:
    """Lets Ctrl-C say what is kept and what is lost. `describe` imports nothing: an import may be half done."""
    try:
        yield
    except KeyboardInterrupt:
        raise KeyboardInterrupt(describe()) from None


def report_expected(error: UnmaskError) -> int:
    """Reports a failure with a name of its own and gives its exit code."""
    if os.environ.get("UNMASK_TRACEBACK"):
        print(clean_for_terminal("".join(traceback.format_exception(error))), file=sys.stderr)
    print_error(str(error), error.advice)
    return error.exit_code


def report_refused(error: OSError) -> int:
    """Reports what the machine does not allow: a full disk, a folder without rights, too many open files, a path that
    leads nowhere. Any other error of the system is one nobody foresaw."""
    advice = _SYSTEM_ADVICE.get(errno.errorcode.get(error.errno or 0, ""))
    if advice is None:
        return report_unexpected(error)
    where = error.filename if isinstance(error.filename, str) else "the output"
    where = where if len(where) <= _LONGEST_PATH else f"{where[:_LONGEST_PATH]}…"
    print_error(f"{where}: {os.strerror(error.errno or 0)}", advice)
    return 4


def report_missing_module(error: ModuleNotFoundError) -> int:
    """Reports a package of an extra that is not installed. Any other missing module is a bug."""
    from unmask.errors import MissingError
    from unmask.models.doctor import list_extras

    module = (error.name or "").partition(".")[0]
    extras = [extra for extra, packages in list_extras().items() if module in map(_module_of, packages)]
    if not extras:
        return report_unexpected(error)
    return report_expected(MissingError(f"this needs {module}", advice=f"pip install 'unmask[{extras[0]}]'"))


def _module_of(package: str) -> str:
    return package.replace("-", "_")


def report_unexpected(error: BaseException) -> int:
    """Reports a failure nobody foresaw: the traceback goes to a file, or to the terminal if that is asked for."""
    trace = clean_for_terminal("".join(traceback.format_exception(error)))
    summary = f"unexpected {type(error).__name__}: {error}".splitlines()[0]
    if os.environ.get("UNMASK_TRACEBACK"):
        print(trace, file=sys.stderr)
        print_error(summary)
    else:
        print_error(summary, _write_traceback(trace))
    return INTERNAL


def _write_traceback(trace: str) -> str:
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
