"""What axe finds in a page."""

from __future__ import annotations

from typing import Any

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

from tests.thorough import THOROUGH

CONTRAST = "color-contrast"
BRIEF = {"resultTypes": ["violations"]}
MARK = """() => {
  document.querySelectorAll('[data-first]').forEach((part) => part.removeAttribute('data-first'));
  const looks = new Map([[null, '']]), seen = new Set();
  for (const part of document.querySelectorAll('*')) {
    const style = getComputedStyle(part), above = looks.get(part.parentElement) ?? '';
    const look = [above, part.tagName, part.getAttribute('class'), style.color, style.backgroundColor, style.fill,
                  style.fontSize, style.fontWeight, style.opacity].join(' ');
    looks.set(part, look);
    const control = ['INPUT', 'SELECT', 'TEXTAREA', 'BUTTON'].includes(part.tagName);
    const written = [...part.childNodes].some((one) => one.nodeType === Node.TEXT_NODE && one.textContent.trim());
    if (!(control || written) || seen.has(look) || !document.body.contains(part) || !part.checkVisibility()) continue;
    seen.add(look);
    part.setAttribute('data-first', '');
  }
  return seen.size;
}"""
"""Marks the first text of each look: its place among the elements, their classes, and every colour and size."""


LOOK = """async ([where, options]) => {
  const found = await axe.run(where ?? document, options);
  return [found.violations, found.passes.length];
}"""


def find_violations(page: Page, *, contrast: bool = True, rules: bool = True) -> list[dict[str, Any]]:
    """Broken rules, as axe names them: those that hold in every theme, and contrast in the theme that is shown. Most of
    axe's work is contrast, so of all texts that look alike it measures one; in a thorough run each."""
    if not page.evaluate("'axe' in window"):
        page.evaluate(Axe().axe_script)
    found: list[dict[str, Any]] = []
    if rules:
        broken, passed = page.evaluate(LOOK, [None, {**BRIEF, "rules": {CONTRAST: {"enabled": False}}}])
        assert passed > 15, "axe has not looked"
        found += broken
    if contrast:
        assert page.evaluate(MARK) > 0
        where = None if THOROUGH else {"include": [["[data-first]"]]}
        broken, passed = page.evaluate(LOOK, [where, {**BRIEF, "runOnly": [CONTRAST]}])
        assert passed or broken, "axe has not looked"
        found += broken
    return found


def name_violations(page: Page, *, contrast: bool = True, rules: bool = True) -> list[str]:
    """As `rule: element`."""
    found = find_violations(page, contrast=contrast, rules=rules)
    return [f"{one['id']}: {node['html'][:120]}" for one in found for node in one["nodes"]]
