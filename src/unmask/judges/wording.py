"""The names of what judges are told: one hash for each style, over the texts that this style uses.

Two runs with the same hash asked their judges in the same words. `run.json` holds it, and a run is continued only in
the words it began with.
"""

from __future__ import annotations

import hashlib

from unmask.judges import letters
from unmask.judges.base import Style

_OWN_TEXTS = {Style.CHOOSE: "choose", Style.PICKS: "pick"}
"""How the names of texts begin that one style alone uses."""

FIRST_COMMON_HASH = "4ea9f9a9754562f7026e"
"""What `run.json` called the first wording of every style, when one hash covered the texts of all."""

FIRST_HASHES = {
    Style.LETTERS: "a87d4996fa5e37d91244",
    Style.CHOOSE: "a3eaf0be9365e2e98b23",
    Style.PICKS: "07378e407f874313ca49",
}
"""The same wording by style."""


def list_used_texts(style: Style) -> tuple[str, ...]:
    """The texts that a judge of this style may be sent, with those of its folder `texts/STYLE`. Questions beside
    the proposition (`asides`) are not among them: what they ask is no part of a reading."""
    folder = letters.list_texts(style.value)
    if own := _OWN_TEXTS.get(style):
        names = tuple(name for name in letters.list_texts() if name.startswith(own))
        return (*names, *letters.list_texts("figures"), *folder)
    names = tuple(name for name in letters.list_texts() if not name.startswith(tuple(_OWN_TEXTS.values())))
    return (*names, *folder)


def prompts_hash(style: Style = Style.LETTERS) -> str:
    """Names the texts that a style uses and how they are put together. The texts of other styles may change."""
    layout = letters.FIGURES_LAYOUT if style in _OWN_TEXTS else letters.LAYOUT
    state = hashlib.blake2b(str(layout).encode(), digest_size=10)
    for name in list_used_texts(style):
        data = letters.text_of(name).encode()
        state.update(f"\n{name} {len(data)}\n".encode() + data)
    return state.hexdigest()


def hash_by_style(prompts: str, style: Style) -> str:
    """The hash that these words have today, whichever version of unmask wrote it down."""
    return FIRST_HASHES.get(style, prompts) if prompts == FIRST_COMMON_HASH else prompts
