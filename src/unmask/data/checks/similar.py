"""Warnings: two scenarios that are nearly one. Exact, not sampled: no pair above a threshold is missed."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence

from unmask.data.checks.words import content_stems, lower_words, proposition_frame, proposition_text
from unmask.data.dataset import group_by_fact
from unmask.data.form import Problem
from unmask.records import Scenario

SIZE = 5
"""Words in a shingle. Texts written apart from each other hardly ever share five words in a row."""
CONVERSATIONS = 0.1
"""Share of common shingles (Jaccard) from which two conversations count as one text with changes. In `core`, whose
scenarios were written one by one, the closest two reach 0.02."""
PROPOSITIONS = 0.6
"""Share of common words (Jaccard) from which two propositions count as one."""
_WORDS = 3
"""Words of content a proposition must have outside its pivotal to be compared without it."""

Features = frozenset[str]


def no_near_duplicates(scenarios: Sequence[Scenario]) -> Iterator[Problem]:
    """Each scenario with the most similar one before it: by conversation, and by what is asked. A ladder counts as one
    scenario, with what all of its rungs say."""
    facts = group_by_fact(scenarios)
    scenarios = [rungs[0] for rungs in facts]
    talks = [frozenset().union(*map(_talk_shingles, rungs)) for rungs in facts]
    yield from _report_matches(
        scenarios,
        find_nearest(talks, threshold=CONVERSATIONS),
        f"the conversation repeats that of {{other}}: {{score:.0%}} of their {SIZE}-word sequences are shared",
    )
    asked = find_nearest([content_stems(proposition_text(scenario)) for scenario in scenarios], threshold=PROPOSITIONS)
    frames = [content_stems(proposition_frame(scenario)) for scenario in scenarios]
    framed = find_nearest([words if len(words) >= _WORDS else frozenset() for words in frames], threshold=PROPOSITIONS)
    both = {place: max(asked.get(place, (0.0, -1)), framed.get(place, (0.0, -1))) for place in {**asked, **framed}}
    yield from _report_matches(
        scenarios, both, "the proposition is that of {other} again: {score:.0%} of their words are shared"
    )


def _report_matches(
    scenarios: Sequence[Scenario], matches: Mapping[int, tuple[float, int]], message: str
) -> Iterator[Problem]:
    for place, (score, earlier) in sorted(matches.items()):
        text = message.format(other=scenarios[earlier].id, score=score)
        yield Problem(scenarios[place].id, "near_duplicate", text)


def _talk_shingles(scenario: Scenario) -> Features:
    return shingles("\n".join(message.content for message in scenario.conversation))


def shingles(text: str) -> Features:
    """Every run of five words; a shorter text is one run."""
    words = lower_words(text)
    starts = range(max(1, len(words) - SIZE + 1)) if words else range(0)
    return frozenset(" ".join(words[start : start + SIZE]) for start in starts)


def find_nearest(sets: Sequence[Features], *, threshold: float) -> dict[int, tuple[float, int]]:
    """For each set the earlier one it shares most with, if their Jaccard index reaches the threshold."""
    holders: defaultdict[str, list[int]] = defaultdict(list)
    best: dict[int, tuple[float, int]] = {}
    for place, features in enumerate(sets):
        shared = Counter(holder for member in features for holder in holders[member])
        scores = [(count / (len(features) + len(sets[one]) - count), -one) for one, count in shared.items()]
        score, earlier = max(scores, default=(0.0, 0))
        if score >= threshold:
            best[place] = score, -earlier
        for member in features:
            holders[member].append(place)
    return best
