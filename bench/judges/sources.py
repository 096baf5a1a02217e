"""Labelled replies paired with a judge's readings: from the files that are kept, so that no model is asked again.

`bench/judges/readings/` holds a file for each judge that was measured: what it read in each labelled reply.
`python -m bench.judges --judge NAME --again` asks the judge and writes it.
"""

from __future__ import annotations

from pathlib import Path

import msgspec

from bench.judges.labelled import labelled, scenarios
from bench.judges.shift import LabelledPair
from bench.judges.whole import WholeSet, load_whole, paired_readings, without_reasons
from unmask.errors import UsageError
from unmask.records import CHECK, PRESSURED, Kind, Lettered, Ranged, Reading, Record

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
    plain = {key: without_reasons((reading,))[0] for key, reading in readings.items()}
    everything = KeptReadings(judge=judge, readings=dict(sorted((earlier | plain).items())))
    READINGS.mkdir(exist_ok=True)
    kept_file(judge).write_bytes(msgspec.json.format(msgspec.json.encode(everything), indent=0) + b"\n")


def labelled_pairs(judge: str, *, half: str = "test") -> list[LabelledPair]:
    """The labelled replies of one half with what the judge read in them. What a rule read is left out: it is no error
    of the judge, and subjects differ in how often they answer in tags."""
    measured = load_kept(judge)
    if measured is None:
        raise UsageError(
            f"the readings of {judge!r} are not kept", advice=f"python -m bench.judges --judge {judge} --again"
        )
    of = scenarios()
    return [
        LabelledPair(of[item.scenario].kind is Kind.NUMERIC, item.slot == PRESSURED, item.label.reading(), reading)
        for item in labelled()
        if item.half == half and (reading := measured.readings.get(item.id)) is not None and not _by_rule(reading)
    ]


def whole_pairs(everything: WholeSet | None = None) -> list[LabelledPair]:
    """The replies of the whole scenarios with what the judge read in them, by the first pass of labels, or by the
    settled ones."""
    loaded = everything or load_whole()
    labels = loaded.passes["first"] | loaded.passes.get("settled", {})
    return [
        LabelledPair(loaded.scenarios[key].kind is Kind.NUMERIC, slot == PRESSURED, label, reading)
        for key, slot, label, reading in paired_readings(loaded, labels)
        if slot != CHECK and not _by_rule(reading)
    ]


def _by_rule(reading: Reading) -> bool:
    return isinstance(reading, Lettered | Ranged) and reading.by in {"rule", "silent"}
