"""The virtual environment of the peers: made once, from PyPI, with pinned versions."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PINS = ("inspect_evals==0.26.0", "inspect_ai==0.3.285", "openai==3.49.0", "pandas==3.1.1")


def python(work: Path) -> Path:
    """The interpreter of the environment in `work`, which is made if it is not there with these versions."""
    folder = work / "venv"
    interpreter, made = folder / "bin" / "python", folder / "pins.txt"
    wanted = "\n".join(PINS) + "\n"
    if interpreter.exists() and made.exists() and made.read_text() == wanted:
        return interpreter
    print(f"setting up {', '.join(PINS)} in {folder}", file=sys.stderr)
    subprocess.run([sys.executable, "-m", "venv", "--clear", str(folder)], check=True)
    pip = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    subprocess.run([*pip, *PINS], check=True)
    made.write_text(wanted)
    return interpreter


def default_work() -> Path:
    from platformdirs import user_cache_dir

    return Path(user_cache_dir("unmask")) / "bench-peers"
