"""docs/data.md says what the checks do."""

from __future__ import annotations

import re
from pathlib import Path

import msgspec

from tests.test_docs import page, table
from unmask.data import check
from unmask.data.checks import similar
from unmask.data.load import load
from unmask.records import Scenario

SOURCE = Path(check.__file__).resolve().parent
PAGE = page("docs/data.md")


def test_every_code_is_in_the_table():
    """Those of unusable rows, of errors and of warnings, and no others."""
    source = "\n".join(path.read_text(encoding="utf-8") for path in SOURCE.rglob("*.py"))
    found = set(re.findall(r'Fault\(\s*"(\w+)"', source)) | set(
        re.findall(r'Problem\([^,()]+(?:\[\w+\][^,]*)?, "(\w+)"', source)
    )
    found |= {code for code, _, _ in check.MEASURES}
    assert {code.strip("`") for code in table(PAGE, "code")} == found


def test_the_example_is_a_scenario_of_tiny():
    """A reader who copies it starts from one that works, and every field is explained."""
    shown = msgspec.json.decode(re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)[0], type=Scenario)
    assert shown == msgspec.structs.replace(load("tiny").scenarios[0], canary=None)
    explained = set(re.findall(r"`(\w+)`", " ".join(table(PAGE, "field"))))
    assert explained == {field for field in Scenario.__struct_fields__ if field != "delivery"}


def test_thresholds_are_those_of_the_code():
    """A number that moves in the code moves here."""
    rows = table(PAGE, "code")
    for code, limits in (("truth_balance", check.HALF), ("pressure_balance", check.EXPLICIT)):
        low, high = (f"{100 * limit:.0f} %" for limit in limits)
        assert f"less than {low} or more than {high}" in rows[f"`{code}`"][1]
    assert f"at least {check.ENOUGH} scenarios" in PAGE
    assert f"share {similar.CONVERSATIONS:.0%}".replace("%", " %") in PAGE
    assert f"from {similar.PROPOSITIONS:.0%}".replace("%", " %") in " ".join(PAGE.split())
