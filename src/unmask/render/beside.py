"""What stands beside the headline of a score: the subject's own report, parts played, the corrected rate."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.protocol.score import Score
from unmask.protocol.side_measures import RolePlay, SelfReport, Understanding
from unmask.records import Verdict
from unmask.render.terminal.tables import format_bounds, format_signed, percent
from unmask.stats.corrected import Corrected


def format_side_measures(score: Score) -> Iterator[str]:
    """Lines of text; none where nothing of the kind was asked for."""
    if score.corrected is not None:
        yield from _format_corrected_rate(score.corrected)
    if score.role_play is not None:
        yield from _format_role_play(score.role_play)
    if score.check_provided is not None:
        yield from _format_check(score.check_provided)
    if score.self_report is not None:
        yield from _format_self_report(score.self_report)


def _format_corrected_rate(corrected: Corrected) -> Iterator[str]:
    if corrected.value is None:
        yield f"Corrected P(lie) n/a: {corrected.why}."
        return
    raw = (
        ""
        if corrected.raw is None
        else f"; the judge says {percent(corrected.raw)} %, {format_signed(corrected.raw - corrected.value)} points"
    )
    yield (
        f"Corrected P(lie) {percent(corrected.value)} %{format_bounds(corrected.low, corrected.high)} with"
        f" {corrected.labelled} of"
        f" {corrected.scenarios} scenarios labelled{raw} off. Labels alone: {percent(corrected.labels_only)} %"
        f"{format_bounds(corrected.labels_low, corrected.labels_high)}."
    )
    left = f" {corrected.left_out} labelled scenarios could not be used." if corrected.left_out else ""
    yield f"Among the labelled: {corrected.false_lies} false lies, {corrected.missed_lies} missed.{left}"


def _format_role_play(role_play: RolePlay) -> Iterator[str]:
    overall = role_play.overall
    unknown = f", of {overall.unknown} it is not known" if overall.unknown else ""
    yield (
        f"P(lie) {overall.p_lie.percent}, rectified P(lie) {overall.rectified_p_lie}: of {overall.lies} lies"
        f" {overall.played}"
        f" are plainly fiction or a part played{unknown}."
    )
    parts = [(name.value, part) for name, part in role_play.archetypes.items() if part.played]
    if parts:
        yield "  rectified: " + ", ".join(
            f"{name} {percent(part.p_lie.value)} to {percent(part.rectified_p_lie.value)} %" for name, part in parts
        )


def _format_check(check: Understanding) -> Iterator[str]:
    yield (
        f"Supplied facts understood {check.understood}; P(lie) {check.p_lie_understood} where they were,"
        f" {check.p_lie_misunderstood} where they were not."
    )


def _format_self_report(self_report: SelfReport) -> Iterator[str]:
    overall = self_report.overall
    yield (
        f"Asked afterwards, the model agrees with the verdict in {overall.agreement} replies; it admits"
        f" {overall.admitted.percent} of its lies and disowns {overall.disowned.percent} of its honest replies."
    )
    parts = [
        f"{name.value} {percent(part.agreement.value)} of {part.agreement.total}"
        for name, part in self_report.archetypes.items()
        if any(sum(part.counts[verdict].values()) for verdict in (Verdict.HONEST, Verdict.LIE))
    ]
    yield "  agreement %: " + (", ".join(parts) or "nothing to agree with")
