"""Packs a run folder into the file that `unmask demo --recorded` opens.

    unmask run --data core --model hf:qwen2.5-coder-1.5b --judge hf:judge-1.5b --effort full --check-provided \\
        --seed 0 --out DIR
    python -m bench.recorded DIR
"""

from __future__ import annotations

import argparse
from pathlib import Path

from unmask.experiments import recorded


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    arguments = parser.parse_args()
    packed = recorded.pack_run(arguments.folder)
    target = Path(recorded.__file__).with_name(recorded.FILE)
    target.write_bytes(packed)
    print(f"{target.name}: {len(packed):,} bytes")


if __name__ == "__main__":
    main()
