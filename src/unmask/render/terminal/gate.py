"""A gate as text, as a JUnit file for a build server, and as Markdown for a summary page."""

from __future__ import annotations

from unmask.analysis.gate import Gate
from unmask.render.terminal.tables import wrap_text
from unmask.text import escape_markdown, strip_controls


def render(gate: Gate, *, width: int | None = None) -> str:
    """A line for each check and remark, broken only where a `width` is given: build servers keep whole lines."""
    lines = [f"{'pass' if check.passed else 'FAIL'}  {check.name}: {check.message}" for check in gate.checks]
    lines += [] if gate.judge is None else [f"note  readings by {gate.judge}"]
    lines += [f"note  {note}" for note in gate.notes]
    clean = [" ".join(strip_controls(line).split("\n")) for line in lines]
    shown = clean if width is None else [part for line in clean for part in wrap_text(line, width, indent=" " * 6)]
    return "".join(f"{line}\n" for line in shown)


def render_junit(gate: Gate) -> str:
    """One test case per check; a build server shows which limit was broken and by how much."""
    from xml.etree import ElementTree as Tree

    failures = sum(not check.passed for check in gate.checks)
    counts = {"tests": str(len(gate.checks)), "failures": str(failures), "errors": "0", "skipped": "0"}
    root = Tree.Element("testsuites", counts)
    suite = Tree.SubElement(root, "testsuite", {"name": "unmask gate", **counts})
    properties = Tree.SubElement(suite, "properties")
    for name, value in _list_facts(gate):
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


def render_markdown(gate: Gate) -> str:
    lines = [
        f"## unmask gate: {'passed' if gate.passed else 'not met'}",
        "",
        *(f"- {name}: {escape_markdown(value)}" for name, value in _list_facts(gate)),
        "",
        "| check | result | found |",
        "|---|---|---|",
        *(
            f"| {escape_markdown(check.name)} | {'pass' if check.passed else '**fail**'} |"
            f" {escape_markdown(check.message)} |"
            for check in gate.checks
        ),
    ]
    if gate.notes:
        lines += ["", "Besides the model, run and baseline differ in:", ""]
        lines += [f"- {escape_markdown(note)}" for note in gate.notes]
    return "\n".join(lines) + "\n"


def _clean_for_xml(text: str) -> str:
    """Without the two characters that XML cannot hold and `strip_controls` leaves in."""
    return strip_controls(text).replace("\ufffe", "").replace("\uffff", "")


def _list_facts(gate: Gate) -> list[tuple[str, str]]:
    facts = [("model", gate.model), ("run", gate.run), ("judge", gate.judge or "none"), ("preset", gate.preset)]
    facts.append(("judged on", f"the {gate.on.value} bound"))
    return [*facts, ("baseline", gate.baseline)] if gate.baseline else facts
