"""The paragraph of `unmask board --compute`."""

from __future__ import annotations

from unmask.analysis.scaling import MeasureScaling, Scaling
from unmask.render.terminal.tables import format_p_value


def describe_scaling(scaling: Scaling) -> str:
    parts = [f"{name} {_describe_measure(scale)}" for name, scale in scaling.measures.items()]
    text = f"Spearman's rank correlation with training compute: {'; '.join(parts)}."
    if scaling.left_out:
        reasons: dict[str, list[str]] = {}
        for model, why in sorted(scaling.left_out.items()):
            reasons.setdefault(why, []).append(model)
        listed = [f"{why}: {', '.join(models)}" for why, models in reasons.items()]
        text += f" Not used: {'; '.join(listed)}."
    return text


def _describe_measure(scale: MeasureScaling) -> str:
    found = scale.correlation
    paper = f"({_format_rho(scale.published)} in the paper)"
    if found.value is None:
        return f"unknown, {found.why} {paper}"
    bounds = f"(p {format_p_value(found.p_value)})" if found.p_value is not None else ""
    if found.low is not None and found.high is not None:
        bounds = f"[{_format_rho(found.low)}, {_format_rho(found.high)}]"
    text = f"{_format_rho(found.value)} {bounds} over {found.n} models {paper}"
    if found.without_family:
        ends = (min, max) if len(found.without_family) > 1 else (min,)
        families = [end(found.without_family, key=lambda name: found.without_family[name]) for end in ends]
        rest = " to ".join(f"{_format_rho(found.without_family[name])} (no {name})" for name in families)
        text += f", without one family {rest}"
    return text


def _format_rho(value: float) -> str:
    return f"{value:+.2f}".replace("-", "−")
