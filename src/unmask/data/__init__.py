"""Scenarios: where they come from, which are used, and what is known about them.

`load` reads every supported layout into one `Dataset`; everything after it sees only scenarios.
"""

from __future__ import annotations

from unmask.data.dataset import Dataset, LoadOptions, content_hash
from unmask.data.sources import from_scenarios, load

__all__ = ["Dataset", "LoadOptions", "content_hash", "from_scenarios", "load"]
