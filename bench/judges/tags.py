"""What `--tags rule` uses, on labelled answers in tags.

    python -m bench.judges.tags
    python -m bench.judges.tags --judge hf:judge-1.5b          # besides, what this judge makes of them

A bare yes or no in tags is read by a rule. In front of `judge-1.5b` statements that a reply repeats word for word are
read first. The rules are called here as the planner calls them.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence

from bench.judges.agreement import agree
from bench.judges.labelled import Labelled, labelled, scenarios
from bench.judges.shares import load_page, share
from bench.judges.sources import load_kept
from unmask.judges.base import JUDGES, Style, Tags
from unmask.judges.tagged import final_answer, read_direct
from unmask.records import CHECK, DIRECT, Kind, Lettered, Reading, Scenario

PARTS: dict[str, Callable[[Labelled], bool]] = {
    "by Qwen2.5 Coder 1.5B": lambda item: item.made_by == "qwen2.5-coder-1.5b",
    "by SmolLM2 135M": lambda item: item.made_by == "smollm2-135m",
    "hard cases": lambda item: item.made_by == "hand",
    "all": lambda _: True,
}
STYLES = {Style.LETTERS: "a judge that writes letters", Style.PICKS: "`judge-1.5b`"}


def tagged_replies(of: dict[str, Scenario]) -> list[Labelled]:
    """The labelled answers to yes/no questions whose tags hold a bare yes or no, and whose side of *yes* is known."""
    return [
        item
        for item in labelled()
        if item.slot in {DIRECT, CHECK}
        and of[item.scenario].kind is Kind.BINARY
        and of[item.scenario].yes_means is not None
        and final_answer(item.text) is not None
    ]


def read_by_rule(item: Labelled, scenario: Scenario, style: Style) -> Reading | None:
    """What the rule in front of such a judge reads, or `None` where the judge reads."""
    return JUDGES[style].by_rule(scenario, item.slot, item.text, tags=Tags.RULE)


def rule_row(name: str, items: Sequence[Labelled], of: dict[str, Scenario], style: Style) -> str:
    """One row: how many the rule reads, how many of these as labelled, and what it leaves to the judge."""
    readings = {item.id: read_by_rule(item, of[item.scenario], style) for item in items}
    right = sum(agree(item.label.reading(), read) for item in items if (read := readings[item.id]) is not None)
    left = [item for item in items if readings[item.id] is None]
    read_count = len(items) - len(left)
    misleading = sum(not _is_as_tagged(item, of[item.scenario]) for item in left)
    return f"| {name} | {share(read_count, len(items))} | {share(right, read_count)} | {len(left)} | {misleading} |"


def _is_as_tagged(item: Labelled, scenario: Scenario) -> bool:
    tag = read_direct(item.text, yes_means=scenario.yes_means)
    return tag is not None and agree(item.label.reading(), tag)


def describe(judge: str | None) -> str:
    """The section of bench/results/judges.md."""
    of = scenarios()
    items = tagged_replies(of)
    tags_alone = sum(_is_as_tagged(item, of[item.scenario]) for item in items)
    lines = [load_page("tags").format(count=len(items), alone=share(tags_alone, len(items)))]
    for style, name in STYLES.items():
        lines += ["", f"In front of {name}:", ""]
        lines += ["| replies | read by rule | as labelled, of these | left to the judge | where the tag misleads |"]
        lines.append("|---|--:|--:|--:|--:|")
        for part, belongs in PARTS.items():
            chosen = [item for item in items if belongs(item)]
            if chosen:
                lines.append(rule_row(part, chosen, of, style))
    if judge is not None:
        lines += ["", _say_judge(judge, items)]
    return "\n".join(lines)


def _say_judge(judge: str, items: Sequence[Labelled]) -> str:
    """Rule and model together, on those of the replies that this judge was measured on."""
    measured = load_kept(judge)
    readings = {} if measured is None else measured.readings
    chosen = [item for item in items if item.half == "test" and item.id in readings]
    read = [item for item in chosen if isinstance(readings[item.id], Lettered)]
    right = sum(agree(item.label.reading(), readings[item.id]) for item in read)
    return (
        f"Rule and model together, `{judge}` on those of the test half: {share(len(read), len(chosen))} are read,"
        f" {share(right, len(read))} of these as labelled."
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", help="a judge whose readings are kept")
    print(describe(parser.parse_args().judge))


if __name__ == "__main__":
    main()
