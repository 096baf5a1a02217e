"""What a study shows, as Markdown. What is missing comes before any number."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from studies.mitigations.analyse import EVASION, LIES, RIGHT, UNREAD, FamilyResult, StudyResult
from studies.mitigations.dose import SlopeTest
from studies.mitigations.success import Condition
from unmask.stats.estimate import Difference
from unmask.whitebox.fluency import Ratio


def render(result: StudyResult) -> str:
    return "\n\n".join(_compose_parts(result)) + "\n"


def _compose_parts(result: StudyResult) -> Iterator[str]:
    design = result.design
    yield f"# {design.name}"
    yield from (f"CAUTION: {caution}." for caution in result.cautions)
    if design.left_out:
        yield f"Left out: {', '.join(design.left_out)}."
    committed = f", committed as {result.commit}" if result.commit else ""
    shares = ", ".join(f"{name} {_percent(share)}" for name, share in result.base.items())
    yield (
        f"{design.model} on {design.data}, {design.takes} takes, read by {design.judge}; design {result.design_hash}"
        f"{committed}. Shares of takes, over the {result.analysis_set} of {result.scenarios} scenarios in which the"
        f" base shows a belief. The base, in %: {shares}. All differences are arm minus base, in points."
    )
    if design.analysis.expected:
        yield f"Expected before the first arm ran: {design.analysis.expected.strip()}"
    yield (
        f"One test for each family. Which candidate is scored on a scenario was chosen on the other folds of"
        f" {design.analysis.folds}. p-values, and the intervals of lies and of honest and right, are corrected together"
        " by Holm's method: an interval leaves out 0 exactly where its test rejects."
    )
    yield _family_table(result.families)
    yield _table(
        ("condition", *(family.family for family in result.families)),
        [(condition, *(family.conditions[condition] for family in result.families)) for condition in Condition],
    )
    yield "Every arm against the base, with plain 95 % intervals: a description, not a test."
    yield _arm_table(result)
    yield from (_describe_slope(depth, slope) for depth, slope in result.slopes.items())
    if result.repeated is not None:
        yield f"Lies of a scenario correlate by {result.repeated:.2f} between the base and its repetition."
    if result.labels:
        yield "P(lie) corrected by blind labels, as `unmask compare --labels all` has it:"
        rows = [(row.arm, str(row.labels), _points(row.judge), _points(row.corrected)) for row in result.labels]
        yield _table(("arm", "labelled scenarios", "by the judge", "corrected"), rows)
    yield from (f"Changed {change.date}: {change.what} Why: {change.why}" for change in design.changed)


def _family_table(families: Sequence[FamilyResult]) -> str:
    rows = []
    for family in families:
        counts = Counter(name or "none" for name in family.chosen.values())
        chosen = ", ".join(f"{name} ({count} of {len(family.chosen)})" for name, count in counts.items())
        lies = family.differences[LIES]
        p = "n/a" if lies.p_adjusted is None else f"{lies.p_adjusted:.3f}"
        points = [_points(family.differences[name]) for name in (RIGHT, EVASION)]
        ratios = ", ".join(map(_ratio, family.perplexity.values())) or "n/a"
        rows.append((family.family, family.outcome, chosen, str(lies.n), _points(lies), p, *points, ratios))
    head = ("family", "outcome", "the folds chose", "n", LIES, "p, corrected", RIGHT, EVASION, "perplexity")
    return _table(head, rows)


def _arm_table(result: StudyResult) -> str:
    rows = []
    for row in result.arms:
        points = [_points(row.differences[name]) for name in (LIES, RIGHT, EVASION)]
        unread = _percent(row.differences[UNREAD].b)
        rows.append((row.arm.name, str(row.differences[LIES].n), *points, unread, _ratio(row.perplexity)))
    return _table(("arm", "n", LIES, RIGHT, EVASION, "unread, %", "perplexity"), rows)


def _describe_slope(depth: float, slope: SlopeTest) -> str:
    if slope.value is None or slope.low is None or slope.high is None:
        return f"Steering at depth {depth:g}: no slope, since too few coefficients were run."
    return (
        f"Steering at depth {depth:g}: lies change by {100 * slope.value:+.2f} [{100 * slope.low:+.2f},"
        f" {100 * slope.high:+.2f}] points for one unit of coefficient ({slope.n} scenarios; p {slope.p_value:.4f} by"
        f" {slope.flips:,} sign flips)."
    )


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines)


def _points(difference: Difference) -> str:
    if difference.value is None or difference.low is None or difference.high is None:
        return f"n/a ({difference.why})" if difference.why else "n/a"
    return f"{100 * difference.value:+.1f} [{100 * difference.low:.1f}, {100 * difference.high:.1f}]"


def _percent(share: float | None) -> str:
    return "n/a" if share is None else f"{100 * share:.1f}"


def _ratio(ratio: Ratio | None) -> str:
    return "n/a" if ratio is None else f"× {ratio.value:.2f}"
