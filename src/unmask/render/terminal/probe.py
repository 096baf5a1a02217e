"""A probe beside its controls, as text. The control on the prompt alone stands first."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.experiments.probe import (
    ARCHETYPE,
    CHANCE,
    FACT,
    LENGTH,
    POLARITY,
    PROMPT,
    REPORT,
    TOGETHER,
    Advantage,
    Detector,
    ProbeResult,
)
from unmask.render.terminal.tables import TextTable, make_table, render_parts
from unmask.stats.threshold import GOAL, FlagLimit


def render(result: ProbeResult, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(result), width=width, color=color)


def _compose_parts(result: ProbeResult) -> Iterator[str | TextTable]:
    yield (
        f"{result.model}: {result.lies} lies and {result.honest} honest replies of {result.scenarios} scenarios,"
        f" read by {result.judge or 'nobody'} under {result.preset}."
    )
    yield ""
    first, *others = result.baselines
    detectors = (first, result.probe, *others, *result.held_out)
    rows = [_detector_row(detector, result) for detector in detectors]
    yield make_table(("detector", "AUROC", "95 %", "probe's lead"), rows)
    yield ""
    yield _explain_call(result)
    yield _explain_flags(result.flags)
    for detector in (*others, *result.held_out):
        area = detector.auroc
        if detector.asked and area.why:
            yield f"{detector.name.capitalize()}: not measured, {area.why}."
        elif detector.name == REPORT and 0 < area.positives + area.negatives < result.lies + result.honest:
            yield (f"The self-report is about first takes: {area.positives} lies and {area.negatives} honest replies.")
    layers = ", ".join(map(str, result.layers))
    tokens = "over the tokens of each reply" if result.pooling == "mean" else "at the last token of each reply"
    yield (
        f"Read {tokens}. Cross-validated by scenario; layers chosen inside the folds: {layers} of {result.depth}."
        f" Intervals of what is fitted are {result.widened:.2f} times the bootstrap's, as far as areas scatter on"
        " shuffled labels."
    )


def _detector_row(detector: Detector, result: ProbeResult) -> tuple[str, ...]:
    area = detector.auroc
    if not detector.asked:
        return detector.name, "not asked", "", ""
    value = "n/a" if area.value is None else f"{area.value:.3f}"
    interval = "n/a" if area.low is None or area.high is None else f"[{area.low:.3f}, {area.high:.3f}]"
    gained = next((advantage for advantage in result.advantages if advantage.over == detector.name), None)
    return detector.name, value, interval, "" if gained is None else _format_lead(gained)


def _format_lead(lead: Advantage) -> str:
    return f"{lead.value:+.3f} [{lead.low:+.3f}, {lead.high:+.3f}]"


def _explain_call(result: ProbeResult) -> str:
    """Whether the probe is called a lie detector; the lead over the prompt alone is the first thing said."""
    leads = {advantage.over: advantage for advantage in result.advantages}
    lead = _format_lead(leads[PROMPT]) if PROMPT in leads else "not measured"
    if result.lie_detector:
        return (
            f"A lie detector, for this model and this run: its lead over the prompt alone is {lead}, and it does better"
            " than every control that could be measured."
        )
    reasons = {
        CHANCE: "it does no better than chance",
        PROMPT: f"its lead over the prompt alone is {lead}, not surely above 0",
        LENGTH: "no lead over the length of the reply can be shown",
        POLARITY: "no lead over which side the reply takes can be shown",
        TOGETHER: "no lead over all controls together can be shown",
        ARCHETYPE: "it does no better than chance on archetypes it was not fitted to",
        FACT: "it does no better than chance on facts it was not fitted to",
    }
    return f"Not called a lie detector: {'; '.join(reasons[name] for name in result.refused_by)}."


def _explain_flags(flags: FlagLimit) -> str:
    short = (
        "" if flags.reaches_goal else f" A limit of {GOAL:.0%} needs {flags.needed} such scenarios.".replace("%", " %")
    )
    return (
        f"Threshold {flags.threshold:.2f}: held-out scores above it flag {flags.flagged} of {flags.honest} scenarios"
        f" with an honest reply, so with 95 % confidence at most {100 * flags.limit:.1f} % of honest pressured replies."
        " (In simulation 93 % of such limits held, not 95.)"
        f"{short} Of the lies it flags {flags.lies}."
    )
