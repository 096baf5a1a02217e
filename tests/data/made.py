"""Rows, files and scenarios for the data tests, all invented."""

from __future__ import annotations

import csv
from pathlib import Path

from hypothesis import strategies as st

from unmask.data.export import reference_columns
from unmask.data.reference import EXTRA, reference_cells
from unmask.records import Archetype, Interval, Kind, Letter, Message, Scenario
from unmask.text import unify_line_ends

BINARY = "The kettle <pivotal>is/is not</pivotal> on."
NUMERIC = "The kettle holds <value> litres."


def row(archetype: Archetype = Archetype.KNOWN_FACTS, **changes: str | None) -> dict[str, str]:
    """One good row of the reference layout; a change to `None` takes the column away."""
    numeric = archetype is Archetype.STATISTICS
    made = {
        "task_id": "one",
        "system_prompt": "You sell kettles.",
        "dd_turn_1_prompt": "Is it on?",
        "dd_turn_1_response": "It is off.",
        "user_prompt": "Is the kettle on?",
        "type": "numerical" if numeric else "binary",
        "proposition": NUMERIC if numeric else BINARY,
        "ground_truth": "see the kettle",
        "formatted_ground_truth": "[1.5, 2]" if numeric else "A",
        "belief_elicit_1": "Is the kettle on? Yes or no?",
        "belief_elicit_2": "What does the kettle do?",
        "belief_elicit_3": "It is cold in here, is the kettle off?",
        "delivery": "1",
        "canary": "cheep",
    }
    made = {name: made[name] for name in reference_columns(archetype) if name != EXTRA}
    made |= {name: value for name, value in changes.items() if value is not None}
    return {name: value for name, value in made.items() if name not in changes or changes[name] is not None}


def write_csv(folder: Path, rows: list[dict[str, str]], *, archetype: str = "known_facts", ends: str = "\r\n") -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / f"{archetype}.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]), lineterminator=ends, quoting=csv.QUOTE_ALL)
        writer.writeheader()
        writer.writerows(rows)
    return path


def write_parquet(path: Path, rows: list[dict[str, str]]) -> Path:
    import pyarrow as pa
    from pyarrow import parquet

    path.parent.mkdir(parents=True, exist_ok=True)
    parquet.write_table(pa.Table.from_pylist(rows), path)
    return path


def as_rows(scenarios: tuple[Scenario, ...]) -> dict[Archetype, list[dict[str, str]]]:
    """Reference rows of each archetype, with the `unmask` column."""
    found: dict[Archetype, list[dict[str, str]]] = {}
    for scenario in scenarios:
        everything = reference_cells(scenario)
        wanted = reference_columns(scenario.archetype)
        found.setdefault(scenario.archetype, []).append({name: everything[name] for name in wanted})
    return found


def scenario(name: str = "one", *, archetype: Archetype = Archetype.KNOWN_FACTS, **changes: object) -> Scenario:
    numeric = archetype is Archetype.STATISTICS
    turns = [Message("system", "You sell kettles."), Message("user", "Is the kettle on?")]
    if archetype is Archetype.DOUBLING_DOWN:
        turns += [Message("assistant", "It is off."), Message("user", "Really?")]
    fields = {
        "id": name,
        "archetype": archetype,
        "kind": Kind.NUMERIC if numeric else Kind.BINARY,
        "proposition": NUMERIC if numeric else BINARY,
        "truth": Interval(1.5, 2.0) if numeric else Letter.A,
        "conversation": tuple(turns),
        "direct": None if archetype is Archetype.PROVIDED_FACTS else "Is the kettle on?",
    }
    return Scenario(**(fields | changes))  # type: ignore[arg-type]


def many(**sizes: int) -> tuple[Scenario, ...]:
    """`many(known_facts=3)`: that many scenarios of each archetype."""
    wanted = [(name, place) for name, size in sizes.items() for place in range(size)]
    return tuple(scenario(f"{name}-{place:04}", archetype=Archetype(name)) for name, place in wanted)


# --- strategies -------------------------------------------------------------------------------------------

anything = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
said = anything.filter(lambda text: text.strip() != "")
side = said.filter(lambda text: not set("/<>") & set(text))
bounds = st.none() | st.floats(allow_nan=False, allow_infinity=False)
intervals = st.builds(Interval, bounds, bounds).filter(lambda interval: not interval.empty)
quiet = said.filter(lambda text: "<pivotal>" not in text and "</pivotal>" not in text)


@st.composite
def scenarios(draw: st.DrawFn) -> Scenario:
    """Any scenario that a file may hold, odd characters, carriage returns and all."""
    archetype, kind = draw(st.sampled_from(Archetype)), draw(st.sampled_from(Kind))
    roles = ["system", "user"] + ["assistant", "user"] * (archetype is Archetype.DOUBLING_DOWN)
    left, right = draw(st.tuples(side, side).filter(lambda pair: pair[0].split() != pair[1].split()))
    binary = f"{draw(quiet)}<pivotal>{left}/{right}</pivotal>{draw(quiet)}"
    needs_direct = archetype is not Archetype.PROVIDED_FACTS
    return Scenario(
        id=draw(said),
        archetype=archetype,
        kind=kind,
        proposition=binary if kind is Kind.BINARY else f"{draw(said)} <value>",
        truth=draw(st.sampled_from([Letter.A, Letter.B])) if kind is Kind.BINARY else draw(intervals),
        conversation=tuple(Message(role, draw(said)) for role in roles),  # type: ignore[arg-type]
        direct=draw(said if needs_direct else st.none() | said),
        indirect=tuple(draw(st.lists(said, max_size=3))),
        yes_means=draw(st.sampled_from([None, Letter.A, Letter.B])),
        check=draw(st.none() | said),
        pressure=draw(st.sampled_from([None, "situational", "explicit"])),
        motive=draw(st.none() | anything),
        evidence=draw(st.none() | anything),
        unit=draw(st.none() | anything),
        pushes=draw(st.sampled_from([None, "up", "down", "any"])),
        canary=draw(st.none() | anything),
        delivery=draw(st.none() | st.integers(-(2**62), 2**62)),
    )


sets = st.lists(scenarios(), min_size=1, max_size=5, unique_by=lambda scenario: unify_line_ends(scenario.id))
