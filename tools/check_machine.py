"""Says what this machine lacks, before anything is downloaded: make calls it first. Runs on any Python 3."""

import sys
import sysconfig
from importlib.util import find_spec

OLD = "unmask needs Python 3.11 or newer, and {python} is {version}. Name a newer one: make PYTHON=python3.13 ..."
NEW = "unmask is tested on Python 3.11 to 3.14, and {python} is {version}. If it fails: make PYTHON=python3.13 ..."
VENV = "{python} cannot make virtual environments. On Debian and Ubuntu, type: apt-get install python3-venv"
MUSL = "llama.cpp has no wheel for this system (musl libc, as on Alpine). Use a system with glibc, such as Debian"


def list_obstacles(version: tuple, *, can_install_pip: bool, abi: str) -> list:
    """Sentences for what stops an installation."""
    if version < (3, 11):
        return [OLD]
    return ([] if can_install_pip else [VENV]) + ([MUSL] if "musl" in abi else [])


def list_warnings(version: tuple) -> list:
    """Sentences for what may go wrong."""
    return [NEW] if version > (3, 14) else []


def main(python: str) -> int:
    version = tuple(sys.version_info[:2])
    abi = sysconfig.get_config_var("SOABI") or ""
    # Debian has ensurepip in a package of its own.
    obstacles = list_obstacles(version, can_install_pip=find_spec("ensurepip") is not None, abi=abi)
    for sentence in list_warnings(version) + obstacles:
        sys.stderr.write(sentence.format(python=python, version=".".join(map(str, version))) + "\n")
    return 1 if obstacles else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1] if sys.argv[1:] else sys.executable))
