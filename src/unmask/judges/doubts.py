"""Reasons to leave the likeliest figure of a reply unread.

The judge of this size confirms a figure of another measure nearly as readily as the right one, so the grammar has to
doubt it first. Each reason is one sentence, and holds for every proposition; none looks at what the figure is.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from unmask.judges import cues
from unmask.judges.candidates import Figure, same_value
from unmask.judges.moments import find_moments, same_time
from unmask.judges.units import Hole, hole_of
from unmask.records import Interval, Scenario

RIVAL = 0.25
"""Surroundings this near to the proposition make another value a rival."""

_MEASURES = tuple(
    re.compile(rf"\b(?:{words})\b", re.IGNORECASE)
    for words in (
        r"s[eo]ld|sell\w*|sales?|bought|purchas\w*|deliver\w*|order(?:s|ed)",
        r"export\w*",
        r"import(?:s|ed|ing)?",
        r"capacity|installed",
        r"primary|final\s+energy",
        r"net",
        r"gross",
        r"existing",
        r"urban|rural|metropolitan|suburban",
        r"median",
        r"neonatal|maternal|perinatal|stillb\w*|under[\s-]fives?",
        r"refugees?|asylum|migrants?",
        r"regist\w+|on\s+the\s+roads?|fleet|stocks?",
        r"wholesale|futures?|spot",
        r"confirmed|excess|suspected",
        r"cumulative\w*|so\s+far|to\s+date|since\s+the\s+(?:beginning|start|outbreak|turn)",
        r"wom[ae]n|m[ae]n|boys?|girls?|males?|females?|young|youth|children|adults?|elderly|teenagers?",
        r"domestic\w*|foreign\w*|international\w*|overseas",
        r"nominal|core|seasonally",
        r"(?:first|second|third|fourth|last)\s+(?:half|quarter|three|six|nine)|half[\s-]year|Q[1-4]",
        r"planned|approved|permitted|allocated|authori[sz]ed|budgeted",
        r"crashes|accidents|incidents|cases|infections|injur\w*|wounded",
        r"revenues?|profits?|turnover",
        r"exclud\w*|not\s+(?:including|counting)",
    )
)
"""Words of one measure each. Another measure than that of the proposition often has the same unit: vehicles are sold
and built, a rate is that of infants and of newborns."""
_ONE_SOURCE_MORE = re.compile(
    r"\b(?:revis(?:ed|ion)\w*|correct(?:ed|ion)|best\s+estimate|(?:puts?|places?|placed)\s+(?:it|this|the\s+\w+)\s+at"
    r"|alternatively|depending\s+on|(?:other|another)\s+(?:source|estimate|count)s?|others)\b",
    re.IGNORECASE,
)
"""Words of a reply that corrects a figure, or has it from two sources."""


def find_doubt(scenario: Scenario, text: str, listed: Sequence[Figure], groups: Sequence[Sequence[Figure]]) -> str:
    """Why the likeliest figure, the first of the first group, is not sure enough; empty where nothing speaks against
    it. `listed` has every quantity of the reply, `text` is the reply."""
    hole, best = hole_of(scenario), groups[0][0]
    context = f"{scenario.proposition} {scenario.direct or ''} {scenario.unit or ''}"
    others = [figure for figure in listed if figure.value is not None and not same_value(figure.value, best.value)]
    rivals = [group[0] for group in groups[1:]]
    if any(rival.near >= RIVAL for rival in rivals):
        return "several figures could be meant"
    if rivals and _ONE_SOURCE_MORE.search(text):
        return "a figure that is corrected, or has two sources"
    if best.fit == 0:
        return "it counts something else"
    if any(words.search(best.around) and not words.search(context) for words in _MEASURES):
        return "it may be another measure"
    if any(
        words.search(best.clause) and not words.search(context) for words in (cues.NOT_SO, cues.EXTREME, cues.LATER)
    ):
        return "a plan, an extreme or another time"
    if cues.DISOWNED.search(best.clause):
        return "it may be what somebody else says"
    if _is_of_another_time(scenario, best, listed):
        return "another time"
    return _doubt_kind(hole, best, others)


def _is_of_another_time(scenario: Scenario, best: Figure, listed: Sequence[Figure]) -> bool:
    """Whether the clause of a figure names a time that the proposition does not, or its value is given for one."""
    wanted = find_moments(scenario.proposition)
    if not wanted:
        return False
    if any(not same_time(moment, wanted) for moment in find_moments(best.clause)):
        return True
    return any(figure.why_not.startswith("another time") and same_value(figure.value, best.value) for figure in listed)


def _doubt_kind(hole: Hole, best: Figure, others: Sequence[Figure]) -> str:
    """Changes and half-open bounds are sure only where no second figure of their unit stands in the reply."""
    assert best.value is not None
    if hole.change is not None and others:
        return "a change and another figure"
    if hole.change is not None and hole.unit.kind != "share" and not cues.DIRECTION.search(best.clause):
        return "it may be a level"
    return "a bound and another figure" if _is_half_open(best.value) and others else ""


def _is_half_open(value: Interval) -> bool:
    return (value.lower is None) != (value.upper is None)
