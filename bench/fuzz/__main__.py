"""Fuzzes with atheris: `python -m bench.fuzz [TARGET …] --seconds N`. Needs `pip install -e '.[fuzz]'`.

Each target runs in a process of its own, guided by coverage of `unmask`, with a limit on time and memory for a single
input. What breaks one is kept in `--keep`; `python -m bench.fuzz TARGET --again FILE` shows it again.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from importlib import import_module
from pathlib import Path

LONGEST = 60_000
"""Bytes of one input: enough for work that grows with the square of it to show."""
PATIENCE = 20
"""Seconds for one input, at a speed that instrumented code and a busy machine have."""
MEMORY = 2048
"""Megabytes."""
_NOISE = ("INFO: Instrumenting", "WARNING: Failed to find function", "###### ", '"\\', "stat::")
"""What atheris and libFuzzer say that helps nobody."""
FOLLOWED = (
    "unmask.interop.importing",
    "unmask.data.load",
    "unmask.models.doctor",
    "unmask.analysis.label_sheets",
    "unmask.analysis.labels",
    "unmask.analysis.mitigation",
    "unmask.models.anthropic",
    "unmask.models.local.catalogue",
    "unmask.models.local.gguf",
    "unmask.judges.verbatim",
    "unmask.analysis.scaling",
    "unmask.whitebox.contrast",
    "unmask.whitebox.steer",
)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.fuzz", description=__doc__)
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all of them unless given")
    parser.add_argument("--seconds", type=int, default=60, help="for each target")
    parser.add_argument("--keep", type=Path, default=Path(".fuzz"), help="folder for findings and corpora")
    parser.add_argument("--again", type=Path, help="run one target on this file, without atheris")
    parser.add_argument("--list", action="store_true", help="names of the targets")
    parser.add_argument("--inside", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        return inside(given.targets[0], seconds=given.seconds, keep=given.keep)
    from bench.fuzz.targets import TARGETS

    unknown = [name for name in given.targets if name not in TARGETS]
    if unknown:
        parser.error(f"no target is called {unknown[0]!r}; they are {', '.join(TARGETS)}")
    if given.list:
        print("\n".join(TARGETS))
        return 0
    if given.again is not None:
        for name in given.targets:
            TARGETS[name].run(given.again.read_bytes())
        return 0
    found = [name for name in given.targets or TARGETS if not outside(name, seconds=given.seconds, keep=given.keep)]
    print(f"\nbroken: {', '.join(found)}" if found else "\nnothing broke")
    return int(bool(found))


def outside(name: str, *, seconds: int, keep: Path) -> bool:
    """One target in a process of its own, because libFuzzer ends the process it runs in. Whether nothing broke it."""
    print(f"--- {name}", flush=True)
    command = [sys.executable, "-m", "bench.fuzz", name, "--inside", "--seconds", str(seconds), "--keep", str(keep)]
    tried = "0"
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, errors="replace") as process:
        assert process.stderr is not None
        for line in process.stderr:
            tried = line.split()[-1] if line.startswith("stat::number_of_executed_units:") else tried
            if not line.startswith(_NOISE):
                print(line, end="", file=sys.stderr, flush=True)
    print(f"{int(tried):,} inputs", flush=True)
    return process.returncode == 0


def inside(name: str, *, seconds: int, keep: Path) -> int:
    try:
        import atheris
    except ImportError:
        print("atheris is not installed: pip install -e '.[fuzz]'", file=sys.stderr)
        return 4
    with atheris.instrument_imports(include=["unmask"], enable_loader_override=False):
        # Before anything else of ours is imported: what is loaded already cannot be followed any more.
        for part in FOLLOWED:
            import_module(part)
        from bench.fuzz.targets import TARGETS
    target = TARGETS[name]
    corpus = keep / name
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed-{number}").write_bytes(seed)
    with tempfile.NamedTemporaryFile("w", suffix=".dict") as words:
        for word in target.words:
            words.write('"' + "".join(f"\\x{byte:02x}" for byte in word) + '"\n')
        words.flush()
        flags = [f"-max_total_time={seconds}", f"-timeout={PATIENCE}", f"-rss_limit_mb={MEMORY}", f"-max_len={LONGEST}"]
        flags += [f"-artifact_prefix={keep}/{name}-", "-print_final_stats=1", "-verbosity=0"]
        flags += [f"-dict={words.name}"] if target.words else []
        atheris.Setup([sys.argv[0], *flags, str(corpus)], lambda data: target.run(data) and None)
        atheris.Fuzz()
    return 0


if __name__ == "__main__":
    sys.exit(main())
