"""Says what this machine lacks, before anything is downloaded: make calls it first. Runs on any Python 3."""

import sys
import sysconfig

OLDEST, NEWEST = (3, 11), (3, 14)
VENV = "{python} cannot make virtual environments: ensurepip is missing. On Debian and Ubuntu, type: apt-get install python3-venv"
MUSL = "llama.cpp has no wheel for this system (musl libc, as on Alpine). Use a system with glibc, such as Debian"
OLD = "unmask needs Python 3.11 or newer, and {python} is {version}. Name a newer one with: make PYTHON=python3.13 ..."
NEW = "unmask was tested with Python 3.11 to 3.14, and {python} is {version}. If an install fails: make PYTHON=python3.13 ..."


def what_is_missing(version, modules, soabi):
    """Sentences for what stops an installation."""
    if version < OLDEST:
        return [OLD]
    return [VENV] * ("ensurepip" not in modules) + [MUSL] * ("musl" in soabi)


def find_modules():
    found = []
    for name in ("ensurepip", "venv"):
        try:
            __import__(name)
            found.append(name)
        except ImportError:
            pass
    return found


def main(python):
    version = sys.version_info[:2]
    words = {"python": python, "version": "%d.%d" % version}
    missing = what_is_missing(version, find_modules(), sysconfig.get_config_var("SOABI") or "")
    if version > NEWEST:
        sys.stderr.write(NEW.format(**words) + "\n")
    for sentence in missing:
        sys.stderr.write(sentence.format(**words) + "\n")
    return 1 if missing else 0


if __name__ == "__main__":
    sys.exit(main((sys.argv[1:] or [sys.executable])[0]))
