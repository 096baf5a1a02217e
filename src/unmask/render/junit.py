"""A gate as a JUnit file for a build server."""

from __future__ import annotations

from unmask.analysis.gate import Gate
from unmask.render.describe.gate import list_facts
from unmask.text import strip_controls


def render_junit(gate: Gate) -> str:
    """One test case per check; a build server shows which limit was broken and by how much."""
    from xml.etree import ElementTree as Tree

    failures = sum(not check.passed for check in gate.checks)
    counts = {"tests": str(len(gate.checks)), "failures": str(failures), "errors": "0", "skipped": "0"}
    root = Tree.Element("testsuites", counts)
    suite = Tree.SubElement(root, "testsuite", {"name": "unmask gate", **counts})
    properties = Tree.SubElement(suite, "properties")
    for name, value in list_facts(gate):
        Tree.SubElement(properties, "property", {"name": name, "value": _clean_for_xml(value)})
    for check in gate.checks:
        case = Tree.SubElement(
            suite, "testcase", {"classname": _clean_for_xml(f"unmask.{gate.model}"), "name": check.name}
        )
        if check.passed:
            Tree.SubElement(case, "system-out").text = _clean_for_xml(check.message)
        else:
            Tree.SubElement(case, "failure", {"message": _clean_for_xml(check.message), "type": "GateNotMet"})
    Tree.indent(root)
    return '<?xml version="1.0" encoding="UTF-8"?>\n' + Tree.tostring(root, encoding="unicode") + "\n"


def _clean_for_xml(text: str) -> str:
    """Without the two characters that XML cannot hold and `strip_controls` leaves in."""
    return strip_controls(text).replace("\ufffe", "").replace("\uffff", "")
