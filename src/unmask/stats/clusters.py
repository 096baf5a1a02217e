"""Which scenarios do not vary independently: those that share a fact or a prompt."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import NamedTuple

LEAST = 8
"""Clusters below which a shared system prompt does not join: nothing could be estimated from so few."""


class ClusterKeys(NamedTuple):
    """What one scenario may share with others."""

    named: str | None
    """The cluster that the data names. It replaces the other two."""
    proposition: Hashable
    prompt: Hashable | None
    """`None` without a system prompt."""


class Clusters(NamedTuple):
    """The cluster of each scenario, and what is ignored."""

    places: list[int]
    """By scenario: the place of the first one of its cluster."""
    shared_prompts: bool
    """Whether scenarios share system prompts and are counted as independent all the same."""


def find_clusters(keys: Sequence[ClusterKeys]) -> Clusters:
    """Join by the name in the data, else by proposition or system prompt, transitively.

    Where prompts would leave fewer than 8 clusters, they do not join.
    """
    by_fact = join_clusters([_list_keys(key, prompts=False) for key in keys])
    by_prompt = join_clusters([_list_keys(key, prompts=True) for key in keys])
    too_few = len(set(by_prompt)) < LEAST and len(set(by_prompt)) < len(set(by_fact))
    return Clusters(by_fact if too_few else by_prompt, too_few)


def _list_keys(key: ClusterKeys, *, prompts: bool) -> Iterable[Hashable]:
    if key.named is not None:
        yield "named", key.named
        return
    yield "proposition", key.proposition
    if prompts and key.prompt is not None:
        yield "prompt", key.prompt


def join_clusters(keys: Sequence[Iterable[Hashable]]) -> list[int]:
    """The place of the first scenario in each one's cluster: those with a key in common are joined, transitively."""
    parents = list(range(len(keys)))

    def find(place: int) -> int:
        while parents[place] != place:
            parents[place] = parents[parents[place]]
            place = parents[place]
        return place

    first: dict[Hashable, int] = {}
    for place, own in enumerate(keys):
        for key in own:
            one, other = sorted((find(place), find(first.setdefault(key, place))))
            parents[other] = one
    return [find(place) for place in range(len(keys))]
