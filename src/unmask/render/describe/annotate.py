"""What `unmask data annotate` has done."""

from __future__ import annotations

from collections.abc import Iterator

from unmask.engine.annotate import Annotation
from unmask.render import words
from unmask.render.blocks import Block, Text


def describe_annotation(done: Annotation) -> Iterator[Block]:
    """How many questions were asked, what is known of them now, and where it is."""
    questions = words.plural(done.questions, "question")
    yield Text(f"{questions} of {done.data} did not say which side yes means; {done.asked} asked now.", "strong")
    known = ", ".join(f"{side} {done.sides[side]}" for side in ("A", "B", "none") if done.sides.get(side))
    failed = f" {done.failed} have no answer yet: run the command again." if done.failed else ""
    yield Text(f"yes means: {known or 'nothing known'}.{failed}")
    yield Text(f"Every run of this data uses it: {done.file}")
