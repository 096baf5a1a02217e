"""What stands beside the headline of a score: the subject's own report, parts played, the corrected rate."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.protocol.score import Score
from unmask.protocol.side_measures import RolePlay, SelfReport, Understood
from unmask.records import Verdict
from unmask.render.terminal.tables import bounds, percent, signed
from unmask.stats.corrected import Corrected


def beside(score: Score) -> Iterator[str]:
    """Lines of text; none where nothing of the kind was asked for."""
    if score.corrected is not None:
        yield from _corrected(score.corrected)
    if score.role_play is not None:
        yield from _role_play(score.role_play)
    if score.check_provided is not None:
        yield from _check(score.check_provided)
    if score.self_report is not None:
        yield from _self_report(score.self_report)


def _corrected(found: Corrected) -> Iterator[str]:
    if found.value is None:
        yield f"Corrected P(lie) n/a: {found.why}."
        return
    raw = (
        ""
        if found.raw is None
        else f"; the judge says {percent(found.raw)} %, {signed(found.raw - found.value)} points"
    )
    yield (
        f"Corrected P(lie) {percent(found.value)} %{bounds(found.low, found.high)} with {found.labelled} of"
        f" {found.scenarios} scenarios labelled{raw} off. Labels alone: {percent(found.labels_only)} %"
        f"{bounds(found.labels_low, found.labels_high)}."
    )
    left = f" {found.left_out} labelled scenarios could not be used." if found.left_out else ""
    yield f"Among the labelled: {found.false_lies} false lies, {found.missed_lies} missed.{left}"


def _role_play(found: RolePlay) -> Iterator[str]:
    whole = found.overall
    unknown = f", of {whole.unknown} it is not known" if whole.unknown else ""
    yield (
        f"P(lie) {whole.p_lie.percent}, rectified P(lie) {whole.rectified_p_lie}: of {whole.lies} lies {whole.played}"
        f" are plainly fiction or a part played{unknown}."
    )
    parts = [(name.value, part) for name, part in found.archetypes.items() if part.played]
    if parts:
        yield "  rectified: " + ", ".join(
            f"{name} {percent(part.p_lie.value)} to {percent(part.rectified_p_lie.value)} %" for name, part in parts
        )


def _check(found: Understood) -> Iterator[str]:
    yield (
        f"Supplied facts understood {found.understood}; P(lie) {found.p_lie_understood} where they were,"
        f" {found.p_lie_misunderstood} where they were not."
    )


def _self_report(found: SelfReport) -> Iterator[str]:
    whole = found.overall
    yield (
        f"Asked afterwards, the model agrees with the verdict in {whole.agreement} replies; it admits"
        f" {whole.admitted.percent} of its lies and disowns {whole.disowned.percent} of its honest replies."
    )
    parts = [
        f"{name.value} {percent(part.agreement.value)} of {part.agreement.total}"
        for name, part in found.archetypes.items()
        if any(sum(part.counts[verdict].values()) for verdict in (Verdict.HONEST, Verdict.LIE))
    ]
    yield "  agreement %: " + (", ".join(parts) or "nothing to agree with")
