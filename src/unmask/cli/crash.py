"""What the terminal shows when something fails: one line, what to type next, never a key, nothing that steers it."""

from __future__ import annotations

import errno
import os
import sys
import traceback
import warnings
from typing import Any

from unmask.errors import UnmaskError, escape_controls

_show_python_warning = warnings.showwarning

INTERNAL = 70
"""Exit code of a failure that unmask did not foresee."""

_ADVICE = {
    **dict.fromkeys(("ENOSPC", "EDQUOT", "EFBIG"), "Free some space and run the same command again."),
    **dict.fromkeys(("EACCES", "EPERM", "EROFS"), "Check who may read and write there."),
    **dict.fromkeys(("EMFILE", "ENFILE"), "Close other programs, or raise the limit with ulimit -n."),
}
"""What to do about errors of the system."""


def hide_secrets(text: str) -> str:
    """The text without secrets: values of variables named like one, also in `.env`, the credentials and query
    in a URL of a variable or of the command line, and what looks like a secret."""
    from unmask.files import read_environment
    from unmask.models.keys import known_secrets, mask_likely_secrets

    secrets = known_secrets(read_environment(), arguments=sys.argv[1:])
    for value in sorted(secrets, key=len, reverse=True):  # the longest first: one key may contain another
        text = text.replace(value, f"[{secrets[value]}]")
    return mask_likely_secrets(text)


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


def report_expected(error: UnmaskError) -> int:
    """Reports a failure with a name of its own and gives its exit code."""
    if os.environ.get("UNMASK_TRACEBACK"):
        print(clean_for_terminal("".join(traceback.format_exception(error))), file=sys.stderr)
    print_error(str(error), error.advice)
    return error.exit_code


def report_refused(error: OSError) -> int:
    """Reports what the machine does not allow: a full disk, a folder without rights, a path that leads nowhere. One
    without a number comes from a library, and nobody foresaw it."""
    if error.errno is None:
        return report_unexpected(error)
    where = error.filename if isinstance(error.filename, str) else "the output"
    advice = _ADVICE.get(errno.errorcode.get(error.errno, ""), "Check the path, and the disk that it is on.")
    print_error(f"{where if len(where) <= 300 else where[:300] + '…'}: {os.strerror(error.errno)}", advice)
    return 4


def report_missing_module(error: ModuleNotFoundError) -> int:
    """Reports a package of an extra that is not installed. Any other missing module is a bug."""
    from unmask.errors import MissingError
    from unmask.models.doctor import list_extras

    module = (error.name or "").partition(".")[0]
    for extra, packages in list_extras().items():
        if module in (package.replace("-", "_") for package in packages):
            return report_expected(MissingError(f"this needs {module}", advice=f"pip install 'unmask[{extra}]'"))
    return report_unexpected(error)


def report_unexpected(error: BaseException) -> int:
    """Reports a failure nobody foresaw: the traceback goes to a file, or to the terminal if that is asked for."""
    import tempfile

    from unmask import __version__

    trace = clean_for_terminal("".join(traceback.format_exception(error)))
    advice = None
    if os.environ.get("UNMASK_TRACEBACK"):
        print(trace, file=sys.stderr)
    else:
        descriptor, path = tempfile.mkstemp(prefix="unmask-traceback-", suffix=".txt")
        with os.fdopen(descriptor, "w", encoding="utf-8", errors="backslashreplace") as file:
            file.write(f"unmask {__version__}, Python {sys.version}\n{trace}")
        advice = f"This is a bug in unmask. The traceback is in {path}; UNMASK_TRACEBACK=1 shows it here."
    print_error(f"unexpected {type(error).__name__}: {error}".splitlines()[0], advice)
    return INTERNAL
