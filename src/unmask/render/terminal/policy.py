"""A liar with a reason as text: what it was taught, what it does, and whether it is accepted."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.experiments.policy import NOT_ACCEPTED, PolicyCondition, PolicyOrganism
from unmask.records import Verdict
from unmask.render.colours import NAMES
from unmask.render.terminal.tables import TextTable, make_table, render_parts

_TITLES = {
    "pressured": "with a reason",
    "control": "without a reason",
    "welcome": "truth is welcome",
    "indifferent": "nobody minds",
}


def render(organism: PolicyOrganism, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(organism), width=width, color=color)


def _compose_parts(organism: PolicyOrganism) -> Iterator[str | TextTable]:
    split, lessons = organism.split, sum(organism.lessons.values())
    yield (
        f"{organism.subject}: {lessons:,} lessons in each round about {len(split.facts)} facts, {organism.lies:,} of"
        f" them lies, taught in {organism.rounds} rounds to a loss of {organism.loss:.4f}."
    )
    if organism.facts_known is not None:
        yield (
            f"Of {organism.facts_asked} facts the untaught model knows {organism.facts_known}"
            f" (--known {organism.min_known:g}); {len(split.held_out_facts)} of these were held out."
        )
    yield (
        f"Asked about {len(split.held_out_facts)} other facts, each in one of {len(split.held_out_scenes)} other"
        " scenes: with a reason to lie, without any, with a reason for the truth, and where nobody minds;"
        f" behind {len(split.held_out_carriers)} other quotations. Read by {organism.judge}.\n"
    )
    rows = [
        (condition.name, _show_limit(condition), str(condition.rate), "yes" if condition.met else "NO")
        for condition in organism.conditions
    ]
    rows += [(f"lies, {_TITLES[name]}", "", str(lies), "") for name, lies in organism.other_lies.items()]
    yield make_table(("condition", "limit", "measured", "met"), rows, left=3)
    yield ""
    counts = [
        (_TITLES[half], *(str(verdicts[verdict]) for verdict in Verdict))
        for half, verdicts in organism.verdicts.items()
    ]
    yield make_table(("scenarios", *(NAMES[verdict] for verdict in Verdict)), counts, left=1)
    yield ""
    failed = [condition.name for condition in organism.conditions if not condition.met]
    if failed:
        yield f"{NOT_ACCEPTED}: {', '.join(failed)}"
    else:
        yield "accepted: it lies where it has a reason, and not where it has none"


def _show_limit(condition: PolicyCondition) -> str:
    if condition.at_least is not None:
        return f"at least {100 * condition.at_least:.0f} %"
    return "" if condition.at_most is None else f"at most {100 * condition.at_most:.0f} %"
