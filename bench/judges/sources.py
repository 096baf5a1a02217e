"""What judges read in the labelled replies, kept so that no model is asked again.

`bench/judges/readings/` holds a file for each judge that was measured: what it read in each labelled reply.
`python -m bench.judges --judge NAME --again` asks the judge and writes it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from unmask.records import Pending, Reading, Record, Unread

READINGS = Path(__file__).with_name("readings")


class KeptReadings(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What one judge read in the labelled replies, by id."""

    judge: str
    readings: dict[str, Reading]


def kept_file(judge: str) -> Path:
    return READINGS / f"{judge.replace('/', '_').replace(':', '_')}.json"


def load_kept(judge: str) -> KeptReadings | None:
    """The readings of a judge, or `None` where it was never measured."""
    path = kept_file(judge)
    return msgspec.json.decode(path.read_bytes(), type=KeptReadings) if path.is_file() else None


def save_kept(judge: str, readings: dict[str, Reading]) -> None:
    """Writes the readings of a judge. Those of another half stay."""
    before = load_kept(judge)
    earlier = before.readings if before is not None else {}
    plain = {key: _without_reason(reading) for key, reading in readings.items()}
    everything = KeptReadings(judge=judge, readings=dict(sorted((earlier | plain).items())))
    READINGS.mkdir(exist_ok=True)
    kept_file(judge).write_bytes(msgspec.json.format(msgspec.json.encode(everything), indent=0) + b"\n")


def _without_reason(reading: Reading) -> Reading:
    """Without what the judge wrote."""
    if isinstance(reading, Unread):
        return msgspec.structs.replace(reading, reason=reading.reason.partition(":")[0], text=None)
    return reading if isinstance(reading, Pending) else msgspec.structs.replace(reading, why=None)
