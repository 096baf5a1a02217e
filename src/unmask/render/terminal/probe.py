"""A probe beside its baselines, as text."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.experiments.probe import Detector, ProbeResult
from unmask.render.terminal.tables import TextTable, make_table, render_parts


def render(result: ProbeResult, *, width: int | None = None, color: bool = False) -> str:
    return render_parts(_compose_parts(result), width=width, color=color)


def _compose_parts(result: ProbeResult) -> Iterator[str | TextTable]:
    yield (
        f"{result.model}: {result.lies} lies and {result.honest} honest replies of {result.scenarios} scenarios,"
        f" read by {result.judge or 'nobody'} under {result.preset}."
    )
    yield ""
    rows = [_detector_row(detector, result) for detector in (result.probe, *result.baselines)]
    yield make_table(("detector", "AUROC", "95 %", "lies", "honest", "probe's advantage"), rows)
    yield ""
    layers = ", ".join(map(str, result.layers))
    yield (
        f"Cross-validated by scenario; layers chosen inside the folds: {layers} of {result.depth}. Intervals of what is"
        f" fitted are {result.widened:.2f} times the bootstrap's, as far as areas scatter on shuffled labels."
    )
    yield _explain_result(result)


def _detector_row(detector: Detector, result: ProbeResult) -> tuple[str, ...]:
    area = detector.auroc
    if not detector.asked:
        return detector.name, "not asked", "", "", "", ""
    value = "n/a" if area.value is None else f"{area.value:.3f}"
    interval = "n/a" if area.low is None or area.high is None else f"[{area.low:.3f}, {area.high:.3f}]"
    gained = next((advantage for advantage in result.advantages if advantage.over == detector.name), None)
    advantage = "" if gained is None else f"{gained.value:+.3f} [{gained.low:+.3f}, {gained.high:+.3f}]"
    return detector.name, value, interval, str(area.positives), str(area.negatives), advantage


def _explain_result(result: ProbeResult) -> str:
    area = result.probe.auroc
    if area.low is None or area.high is None:
        return "Whether the probe is better than chance cannot be said: too few resamples hold both kinds."
    if area.low <= 0.5 <= area.high:
        return "The probe does not tell lies from honest replies: its interval holds 0.5."
    worse = [advantage.over for advantage in result.advantages if advantage.low <= 0]
    if worse:
        return f"The probe does better than chance, but no better can be shown than {' or '.join(worse)}."
    return "The probe tells lies from honest replies better than chance and better than the baselines asked."
