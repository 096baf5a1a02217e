"""Writes the tables of the dataset cards, and the hash of `core` in docs/data.md: `python -m tests.data.card`."""

from __future__ import annotations

import re
from pathlib import Path

from unmask.data.load import load
from unmask.data.stats import describe_dataset
from unmask.render.blocks import to_markdown
from unmask.render.describe.stats import balance_table

ROOT = Path(__file__).resolve().parent.parent.parent
SHIPPED = ROOT / "src" / "unmask" / "data" / "scenarios"
DOCS = ROOT / "docs"
WRITTEN = {
    "core": (SHIPPED / "core.md", DOCS / "data.md"),
    "ladder": (DOCS / "ladder.md", SHIPPED / "ladder.md"),
}
"""Where the tables of a set are; the first file is its card."""
_BLOCK = re.compile(r"<!-- (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def published(name: str) -> str:
    """The card of a set."""
    return WRITTEN[name][0].read_text(encoding="utf-8")


def with_tables(text: str, *, name: str) -> str:
    """The card with its tables as the data has them now."""
    dataset = load(name)
    stats = describe_dataset(dataset)
    blocks = {
        "balance": to_markdown([balance_table(stats)]).strip(),
        "hash": f"`{dataset.hash}`",
    }

    def block(found: re.Match[str]) -> str:
        """Other marks belong to other commands."""
        return f"<!-- {found[1]} -->\n{blocks[found[1]]}\n<!-- end -->" if found[1] in blocks else found[0]

    return _BLOCK.sub(block, text)


if __name__ == "__main__":
    for name, paths in WRITTEN.items():
        for path in paths:
            path.write_text(with_tables(path.read_text(encoding="utf-8"), name=name), encoding="utf-8")
    (SHIPPED / "ladder.md").write_text(published("ladder"), encoding="utf-8")
