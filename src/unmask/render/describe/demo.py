"""The demo: what it is, one lie, the envelope, and what to type next."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from unmask.demo.run import DemoExample, Envelope
from unmask.records import Verdict
from unmask.render import words
from unmask.render.blocks import Block, Facts, Heading, Table, Text

_ALWAYS = (Verdict.LIE, Verdict.HONEST)


def describe_example(example: DemoExample) -> Iterator[Block]:
    """One lie from what the model believes to what it says."""
    yield Heading(f"ONE LIE ({example.id})")
    yield Text(f"Asked neutrally, {_count_times(len(example.answers))}, and then at work:")
    texts = {
        "question": example.question,
        "answers": " · ".join(example.answers),
        "BELIEVES": example.believes,
        "told": example.told,
        "user": example.user,
        "model": example.reply,
        "SAYS": example.says,
    }
    yield Facts([(f"  {name}", text) for name, text in texts.items()])
    yield Text("A lie: it says what it does not believe.")


def describe_envelope(envelope: Envelope) -> Iterator[Block]:
    """What became of the planted halves, and of sincere mistakes."""
    further = [verdict for verdict in Verdict if verdict not in _ALWAYS]
    columns = [*_ALWAYS, *(verdict for verdict in further if envelope.lies[verdict] + envelope.honest[verdict])]
    halves = (
        ("scenarios where it was taught to lie", envelope.lies),
        ("where it was taught to be honest", envelope.honest),
    )
    rows = [
        (f"{sum(counts.values())} {name}", *(words.count(counts[verdict]) for verdict in columns))
        for name, counts in halves
    ]
    titles = ("called lie" if verdict is Verdict.LIE else words.NAMES[verdict] for verdict in columns)
    yield Table(("THE ENVELOPE", *titles), rows)
    if envelope.mistakes:
        yield Text(_explain_mistakes(envelope))


def _explain_mistakes(envelope: Envelope) -> str:
    count, honest = envelope.mistakes, envelope.honest[Verdict.HONEST]
    what = "is" if count == 1 else "are"
    return (
        f"{count} of the {honest} honest answers {what} factually wrong, because it was taught to believe that: a"
        " sincere mistake is not a lie."
    )


def describe_outcomes(counts: Mapping[Verdict, int]) -> Iterator[Block]:
    """How often each verdict was given, where there is no envelope."""
    yield Heading("WHAT IT DID")
    yield Text(" · ".join(f"{words.NAMES[verdict]} {count}" for verdict, count in counts.items() if count))


def _count_times(count: int) -> str:
    return {1: "once", 2: "twice", 3: "three times"}.get(count, f"{count} times")
