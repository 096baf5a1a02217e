"""Tries the README in minimal Debian systems: only Python, python3-venv, make and git, everything else from nothing.

    make test-bare                     Debian 12, 13 and testing: make demo, then make test
    make test-bare SYSTEMS=13          one of them
    make test-bare SYSTEMS=small       Debian 13 without git, the least that CI needs: a run, a kill, the core tests

Each system is built with debootstrap in a temporary folder, from the archive that apt is configured with, and is
removed afterwards. The tree is cloned into it as it was last committed. What the systems take over from this machine
are its name servers, certificates and the settings of pip and proxies, because without them no package can be fetched.
"""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = ("python3", "python3-venv", "make")
SUITES = {"12": "bookworm", "13": "trixie", "testing": "testing"}
README = ("make demo", "make test")
CLONING = ("git",)
"""What a reader of the README needs besides; nothing that the small system runs needs it."""
SMALL = (
    "make .venv/.ready",
    ".venv/bin/unmask run scripted/liar --data tiny --judge scripted/judge --out runs/liar",
    ".venv/bin/python -m pip install --quiet --constraint constraints.txt pytest pytest-xdist hypothesis",
    ".venv/bin/python -m pytest -n 2 tests/protocol/test_plan.py tests/engine/test_executor.py"
    " tests/engine/test_session.py tests/engine/test_loop.py tests/runs/test_journal.py"
    " tests/faults/test_kill.py tests/faults/test_signals.py",
)
"""tests/faults/test_kill.py kills real runs against the endpoint and continues them."""
PROXIES = ("http_proxy", "https_proxy", "no_proxy")
PASSED_ON = ("PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_DEFAULT_TIMEOUT", *PROXIES, *map(str.upper, PROXIES))
TAKEN_OVER = ("/etc/resolv.conf", "/etc/hosts", "/etc/ssl/certs/ca-certificates.crt")
ENTER = """
set -e
mount -t proc proc "$1/proc"
mount --rbind /dev "$1/dev"
system=$1; shift
exec chroot "$system" env -i "$@"
"""
"""Runs in mount and process tables of its own: what is mounted or left running goes with it."""


class Result(NamedTuple):
    system: str
    python: str
    command: str
    code: int
    seconds: float
    last_line: str


def find_archive() -> str:
    """Where apt takes Debian's own packages from."""
    for update in (False, True):
        if update:
            subprocess.run(["apt-get", "update", "-qq"], check=True)
        wanted = ["Created-By: Packages", "Component: main", "Origin: Debian"]
        listed = subprocess.run(
            ["apt-get", "indextargets", "--format", "$(CODENAME) $(REPO_URI)", *wanted],
            capture_output=True,
            text=True,
            check=True,
        )
        for line in listed.stdout.splitlines():
            codename, _, address = line.partition(" ")
            if codename and "-" not in codename:
                return address
    sys.exit("apt is configured with no archive of Debian, so there is nothing to build a Debian from")


def require_tools() -> None:
    """Say what is missing and end, before anything is built."""
    if sys.platform != "linux" or shutil.which("apt-get") is None:
        sys.exit(f"make test-bare builds Debian systems and needs Debian; this is {platform.platform()}")
    if os.geteuid() != 0:
        sys.exit("make test-bare needs root, for debootstrap and chroot. Type: sudo make test-bare")
    missing = [name for name in ("debootstrap", "unshare", "git") if shutil.which(name) is None]
    if missing:
        sys.exit(f"make test-bare needs {', '.join(missing)}. Type: apt-get install debootstrap util-linux git")


@contextmanager
def built(suite: str, archive: str, packages: tuple[str, ...]) -> Iterator[Path]:
    """A minimal system with the tree in /unmask, which is removed in the end."""
    folder = Path(tempfile.mkdtemp(prefix=f"unmask-bare-{suite}-", dir="/var/tmp"))
    try:
        with open(folder.with_suffix(".log"), "w") as log:
            made = ["debootstrap", "--variant=minbase", f"--include={','.join(packages)}", suite, str(folder), archive]
            if subprocess.run(made, stdout=log, stderr=subprocess.STDOUT, check=False).returncode:
                sys.exit(f"debootstrap could not build {suite}; what it said is in {log.name}")
        folder.with_suffix(".log").unlink()
        take_over(folder)
        subprocess.run(["git", "clone", "--quiet", "--no-local", str(ROOT), str(folder / "unmask")], check=True)
        yield folder
    finally:
        if any(os.path.ismount(folder / name) for name in ("dev", "proc")):
            print(f"{folder} is still mounted and was left alone", file=sys.stderr)
        else:
            shutil.rmtree(folder, ignore_errors=True)


def take_over(folder: Path) -> None:
    """Name servers and certificates of this machine."""
    for path in (Path(name) for name in TAKEN_OVER if os.path.exists(name)):
        there = folder / path.relative_to("/")
        there.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, there)


def run_inside(folder: Path, command: str) -> tuple[int, str]:
    """The exit code of a shell command inside the system, and all that it printed, which is shown as it comes."""
    variables = {"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root", "LANG": "C.UTF-8", "TERM": "dumb"}
    variables |= {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    environment = [f"{name}={value}" for name, value in variables.items()]
    apart = ["unshare", "--mount", "--pid", "--fork", "--kill-child"]
    enter = ["sh", "-c", ENTER, "sh", str(folder), *environment]
    process = subprocess.Popen(
        [*apart, *enter, "sh", "-c", f"cd /unmask && {command}"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    )
    assert process.stdout is not None
    printed = []
    for line in process.stdout:
        printed.append(line)
        print(f"    {line}", end="", flush=True)
    return process.wait(), "".join(printed)


def try_system(name: str, suite: str, commands: tuple[str, ...], archive: str) -> Iterator[Result]:
    """The commands one after another, until one fails."""
    began = time.monotonic()
    packages = PACKAGES if commands is SMALL else (*PACKAGES, *CLONING)
    with built(suite, archive, packages) as folder:
        _, python = run_inside(folder, "python3 --version")
        yield Result(name, python.strip(), "debootstrap", 0, time.monotonic() - began, "")
        for command in commands:
            print(f"\n{name}, {python.strip()}: {command}", flush=True)
            began = time.monotonic()
            code, printed = run_inside(folder, command)
            lines = [line for line in printed.splitlines() if line.strip()] or [""]
            summary = next((line for line in reversed(lines) if " passed" in line or " failed" in line), lines[-1])
            yield Result(name, python.strip(), command, code, time.monotonic() - began, summary.strip())
            if code:
                return


def main(names: list[str]) -> int:
    known: dict[str, tuple[str, tuple[str, ...]]] = {name: (suite, README) for name, suite in SUITES.items()}
    known["small"] = (SUITES["13"], SMALL)
    for name in names:
        if name not in known:
            sys.exit(f"there is no system {name!r}; there are {', '.join(known)}")
    require_tools()
    archive = find_archive()
    results: list[Result] = []
    for name in names or list(SUITES):
        suite, commands = known[name]
        results += try_system(name, suite, commands, archive)
    print("\nsystem   Python         minutes  result  command")
    for result in results:
        said = "ok" if result.code == 0 else f"exit {result.code}"
        print(f"{result.system:8} {result.python:14} {result.seconds / 60:7.1f}  {said:7} {result.command[:60]}")
        if " passed" in result.last_line or result.code:
            print(f"{'':42}{result.last_line}")
    return int(any(result.code for result in results))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
