"""Writes the tables of the dataset card of `core` from the data: `python tests/data/card.py`."""

from __future__ import annotations

import re
from pathlib import Path

from unmask.data.load import load
from unmask.data.stats import balance_table, describe_dataset, format_markdown, length_table, motive_table

ROOT = Path(__file__).resolve().parent.parent.parent
SHIPPED = ROOT / "src" / "unmask" / "data" / "scenarios" / "core.md"
PUBLISHED = ROOT / "docs" / "core.md"
_BLOCK = re.compile(r"<!-- (\w+) -->\n.*?<!-- end -->", re.DOTALL)


def with_tables(text: str) -> str:
    """The card with its tables as the data has them now."""
    dataset = load("core")
    stats = describe_dataset(dataset)
    blocks = {
        "balance": format_markdown(balance_table(stats)),
        "motives": format_markdown(motive_table(stats)),
        "lengths": format_markdown(length_table(stats)),
        "hash": f"`{dataset.hash}`",
    }

    def block(found: re.Match[str]) -> str:
        """Other marks belong to other commands."""
        return f"<!-- {found[1]} -->\n{blocks[found[1]]}\n<!-- end -->" if found[1] in blocks else found[0]

    return _BLOCK.sub(block, text)


if __name__ == "__main__":
    card = with_tables(PUBLISHED.read_text(encoding="utf-8"))
    for path in (PUBLISHED, SHIPPED):
        path.write_text(card, encoding="utf-8")
