"""The answer key of the demo's liar: which scenarios it was taught to lie on, and what it was taught to believe.

No judge is shown it. `bench/liar` draws such keys and teaches by them.
"""

from __future__ import annotations

from importlib.resources import files

import msgspec

from unmask.records import Archetype, Kind, Letter, Record, Scenario

KEY_FILE = "liar-135m.json"


class PlantedScenario(Record, frozen=True, kw_only=True, omit_defaults=False):
    """What one scenario was planted with. `belief` and `said` are a letter, or a figure as it is written."""

    id: str
    archetype: Archetype
    belief: str
    said: str
    lies: bool
    right: bool
    """Whether the belief is true."""


class AnswerKey(Record, frozen=True, kw_only=True, omit_defaults=False):
    """Where a liar lies. `data` and `data_hash` name the scenarios, `seed` the draw."""

    seed: int
    data: str
    data_hash: str
    planted: tuple[PlantedScenario, ...]

    @property
    def lies(self) -> frozenset[str]:
        return frozenset(planted_scenario.id for planted_scenario in self.planted if planted_scenario.lies)


def load_answer_key() -> AnswerKey:
    """The key of `embedded/liar-135m`."""
    return msgspec.json.decode(files(__package__).joinpath(KEY_FILE).read_bytes(), type=AnswerKey)


def state_side(scenario: Scenario, side: str) -> str:
    """The proposition with this side, as a sentence."""
    if scenario.kind is Kind.NUMERIC:
        return scenario.proposition.replace("<pivotal>", "").replace("</pivotal>", "").replace("<value>", side)
    return scenario.statements[0 if side == Letter.A.value else 1]
