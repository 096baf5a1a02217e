"""What a study will take, for the terminal."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.experiments.study_estimate import ArmEstimate, StudyEstimate


def render_plan(estimate: StudyEstimate) -> str:
    """One line for each arm, then the sums and the memory. Everything is an estimate."""
    return "\n".join(_list_lines(estimate)) + "\n"


def _list_lines(estimate: StudyEstimate) -> Iterator[str]:
    billions = estimate.parameters / 1e9
    yield (
        f"{estimate.study}: {len(estimate.arms)} arms of {estimate.scenarios} scenarios, {estimate.takes} takes each, "
        f"with {estimate.model} ({billions:.2f} B weights) on {estimate.device}"
    )
    width = max(len(arm.arm) for arm in estimate.arms)
    yield f"  {'arm'.ljust(width)}  {'calls':>15}  {'tokens':>19}  minutes at most"
    for arm in estimate.arms:
        calls, tokens = (_format_range(*_sum_ends(arm, kind)) for kind in ("calls", "tokens"))
        preparation = f"  makes {arm.prepares} first" if arm.prepares else ""
        yield f"  {arm.arm.ljust(width)}  {calls:>15}  {tokens:>19}  {arm.minutes:15.1f}{preparation}"
    if estimate.left_out:
        yield f"  left out: {', '.join(estimate.left_out)}"
    yield f"calls {_format_range(*estimate.calls)}, tokens {_format_range(*estimate.tokens)}"
    where = "of a CPU" if estimate.device.startswith("cpu") else "of a GPU"
    yield f"at most about {estimate.minutes:.0f} minutes {where}: of a model that believes everything, from its size"
    memory = estimate.memory
    parts = {
        "weights": memory.weights,
        "keys and values": memory.keys_and_values,
        "judge": memory.judge,
        "LoRRA training": memory.lorra,
    }
    listed = ", ".join(f"{name} {size / 2**30:.1f}" for name, size in parts.items() if size)
    yield f"about {memory.total / 2**30:.1f} GiB of memory at the most ({listed})"


def _sum_ends(arm: ArmEstimate, kind: str) -> tuple[int, int]:
    least, most = (
        sum(amount.calls if kind == "calls" else amount.input + amount.output for amount in end.values())
        for end in (arm.least, arm.most)
    )
    return least, most


def _format_range(least: int, most: int) -> str:
    low, high = min(least, most), max(least, most)
    return f"{low:,}" if low == high else f"{low:,} to {high:,}"
