"""Which scenarios are counted together."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from unmask.stats.clusters import LEAST, ClusterKeys, find_clusters, join_clusters


@given(st.lists(st.lists(st.integers(0, 15), max_size=3), max_size=30))
def test_clusters_are_the_connected_components_of_scipy(keys):
    """Scenarios with a key in common are joined, and what is joined to the same one."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    found = join_clusters(keys)
    edges = [(one, other) for one, own in enumerate(keys) for other, at in enumerate(keys) if {*own} & {*at}]
    rows, columns = zip(*edges, strict=True) if edges else ((), ())
    graph = coo_array((np.ones(len(edges)), (rows, columns)), shape=(max(1, len(keys)),) * 2)
    expected = connected_components(graph, directed=False)[1][: len(keys)]
    assert len({*zip(found, expected.tolist(), strict=True)}) == len({*found}) == len({*expected.tolist()})
    assert all(found[place] == place for place in {*found})


def test_a_shared_prompt_joins_unless_hardly_a_cluster_would_be_left():
    """Ten facts under two prompts stay ten; under eight prompts they are eight clusters."""
    for prompts, left, ignored in ((2, 10, True), (LEAST, LEAST, False)):
        found = find_clusters([ClusterKeys(None, fact, fact % prompts) for fact in range(10)])
        assert (len(set(found.places)), found.shared_prompts) == (left, ignored)


def test_a_name_in_the_data_replaces_fact_and_prompt():
    keys = [ClusterKeys(f"c{place // 2}", "one fact", "one prompt") for place in range(20)]
    assert find_clusters(keys).places == [place // 2 * 2 for place in range(20)]
