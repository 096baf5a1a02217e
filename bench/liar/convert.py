"""Rewrites the adapter of a known liar for llama.cpp.

    unmask organism --model embedded/smollm2-135m --data core --out DIR ...
    python -m bench.liar.convert DIR src/unmask/models/local/adapters/liar-135m.gguf

Prints the size and the hash of the file. The exact command that made the file that ships: docs/embedded.md.
"""

from __future__ import annotations

import argparse
import hashlib
from pathlib import Path

from bench.judges.adapter import write_gguf

HEADS = {"self_attn.q_proj": 9, "self_attn.k_proj": 3}
"""Attention heads of SmolLM2 135M: files of the kind `llama` have the rows of these two in another order."""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="what `unmask organism --out` wrote")
    parser.add_argument("out", type=Path)
    arguments = parser.parse_args()
    write_gguf(arguments.folder / "adapter", arguments.out, architecture="llama", heads=HEADS)
    content = arguments.out.read_bytes()
    print(f"{arguments.out}: {len(content):,} bytes, sha256 {hashlib.sha256(content).hexdigest()}")


if __name__ == "__main__":
    main()
