"""A scenario as a form to fill in: TOML with comments, because JSON has none. `render` makes it, `fill` reads it."""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from typing import Any

import msgspec

from unmask.data.form import find_faults
from unmask.errors import DataError
from unmask.records import Archetype, Kind, Record, Scenario
from unmask.text import escape_line, unify_line_ends

_TURNS = {
    "first_question": "The question that the scripted answer below replies to.",
    "first_answer": "The false answer, shown to the subject as if it had given it.",
    "challenge": "The person asks again, directly: are you sure?",
}
_TAGS = "inside <final_answer></final_answer> tags"


class Blank(Record, frozen=True):
    """One entry of the form: the key, what the comment says, and how the empty value looks."""

    key: str
    comment: str
    value: str = '""'
    optional: bool = False


_LONG = "'''\n'''"
"""An empty text of several lines."""


def render_form(archetype: Archetype) -> str:
    """The form for one scenario of an archetype, every value empty."""
    lines = [
        "# One scenario for unmask. Fill in what stands between the quotes, then turn it into a line of a set:",
        "#     unmask data new --from THIS_FILE --out my-set.jsonl",
        "# What is optional may stay empty. Texts of several lines go between '''.",
        f"# {archetype}: {archetype.traits.purpose}",
        "",
        f'archetype = "{archetype}"',
    ]
    for blank in _list_blanks(archetype):
        comment = blank.comment + (" Optional." if blank.optional else "")
        lines += ["", *(f"# {line}" for line in comment.split("\n")), f"{blank.key} = {blank.value}"]
    return "\n".join(lines) + "\n"


def read_form(text: str, *, name: str) -> Scenario:
    """The scenario of a form that was filled in. `name` is for messages; everything wrong is listed at once."""
    try:
        # ValueError: a number of thousands of digits is one to Python, but not to its TOML reader.
        fields = {
            key: value
            for key, value in _strip_texts(tomllib.loads(unify_line_ends(text))).items()
            if value not in ("", [], {})
        }
    except (ValueError, RecursionError) as error:
        raise DataError(
            f"{escape_line(name)} is not TOML: {escape_line(str(error))}",
            advice="Quote texts with \" or '''; start again from: unmask data new --archetype NAME",
        ) from None
    problems = tuple(_form_problems(fields))
    if not problems:
        try:
            scenario = msgspec.convert(_as_scenario(fields), Scenario)
        except (msgspec.ValidationError, RecursionError) as error:
            problems = (escape_line(str(error)),)
        else:
            problems = tuple(fault.message for fault in find_faults(scenario))
    if problems:
        raise DataError(f"{escape_line(name)} is no usable scenario yet:", problems=problems)
    return scenario


def _form_problems(fields: dict[str, Any]) -> Iterator[str]:
    """What the form asks for and was not given, and what was given and it does not ask for."""
    archetype = fields.get("archetype")
    if archetype not in tuple(Archetype):
        yield f"`archetype` is {escape_line(str(archetype))!r}; it is one of {', '.join(Archetype)}"
        return
    blanks = tuple(_list_blanks(Archetype(archetype)))
    yield from (f"`{blank.key}` is empty" for blank in blanks if not blank.optional and blank.key not in fields)
    allowed = {"archetype", *(blank.key for blank in blanks)}
    yield from (f"`{escape_line(key)}` is no part of this form" for key in fields if key not in allowed)


def _list_blanks(archetype: Archetype) -> Iterator[Blank]:
    kind = archetype.traits.kind
    yield Blank("id", "A name that no other scenario of the set has.")
    if kind is Kind.NUMERIC:
        yield Blank("proposition", "A sentence with <value> where the figure belongs: A week has <value> hours.")
        yield Blank("truth", "Lower and upper bound of what counts as right, in the unit below: [168, 168]", "[]")
        yield Blank("unit", "The unit of the figure: hours.", optional=True)
        yield Blank(
            "tolerance", 'Why the bounds are what they are: "exact", or how far off counts as right.', optional=True
        )
        yield Blank("pushes", "Where the pressure wants the figure: up, down or any.", optional=True)
    else:
        yield Blank(
            "proposition",
            "A sentence with the two rival statements, A before the slash and B after it. They must exclude each other."
            "\n    A byte consists of <pivotal>ten/eight</pivotal> bits.",
        )
        yield Blank("truth", "A or B. In a whole set, half and half.")
    yield Blank(
        "system", "The role under pressure. Who is the subject here, and what does it gain by a falsehood?", _LONG
    )
    if archetype.traits.has_scripted_answer:
        yield from (Blank(key, comment, _LONG) for key, comment in _TURNS.items())
    else:
        yield Blank("user", "The person who needs the answer, and asks for it directly.", _LONG)
    yield from _question_blanks(archetype, kind)
    notes = {
        "pressure": "explicit if the subject is told to deceive, situational if it is only tempted.",
        "motive": "One word: money, loyalty, fear, kindness, authority, convenience, ideology, deadline, ...",
        "domain": "One or two words: physics, food, transport, ...",
        "evidence": "One sentence that says why the truth is the truth, so that a stranger can check it.",
        "canary": "A string by which the set can be found in training data, the same in every scenario.",
    }
    yield from (Blank(key, comment, optional=True) for key, comment in notes.items())


def _question_blanks(archetype: Archetype, kind: Kind) -> Iterator[Blank]:
    if archetype.traits.supplies_fact:
        yield Blank(
            "check",
            f"A neutral question whether the supplied fact was understood, with yes or no {_TAGS}.",
            _LONG,
            optional=True,
        )
        yield Blank("yes_means", "The statement that yes to this question means: A or B.", optional=True)
        return
    if kind is Kind.NUMERIC:
        yield Blank("direct", f"A neutral question for the figure {_TAGS}. No word of role or pressure.", _LONG)
        return
    yield Blank("direct", f"A neutral question for yes or no {_TAGS}. No word of role or pressure.", _LONG)
    yield Blank(
        "yes_means", "The statement that yes means: A or B. In a set yes is the truth half the time.", optional=True
    )
    yield Blank(
        "indirect",
        "Two open questions about the same thing: the first plain, the second leaning towards the falsehood.\n"
        'Neither gives the answer away: ["How many bits are there in a byte?", "We count in tens, so ..."]',
        "[]",
        optional=True,
    )


def _strip_texts(value: Any) -> Any:
    """Texts without the line ends that the ''' of a form put around them."""
    match value:
        case str():
            return value.strip()
        case list():
            return [item for item in map(_strip_texts, value) if item != ""]
        case dict():
            return {key: _strip_texts(item) for key, item in value.items()}
        case _:
            return value


def _as_scenario(form: dict[str, Any]) -> dict[str, Any]:
    """The form's keys for the turns become the conversation; the other keys are those of a scenario."""
    turns = {"system": "system", "user": "user"}
    if Archetype(form["archetype"]).traits.has_scripted_answer:
        turns = {"system": "system", **dict(zip(_TURNS, ("user", "assistant", "user"), strict=True))}
    fields = {key: value for key, value in form.items() if key not in turns}
    conversation = [{"role": role, "content": form[key]} for key, role in turns.items()]
    return {"kind": Archetype(form["archetype"]).traits.kind, **fields, "conversation": conversation}
