"""Long texts made to be slow: whatever is repeated, the work stays a multiple of the length.

Linear work on such a text takes milliseconds; work that grows with the square of its length takes many seconds, and
nested repetitions in a pattern take longer than anybody waits. The guard lies far from both.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import NamedTuple

import msgspec
import pytest

from bench.fuzz import seeds
from tests.hostile.limits import at_most
from tests.thorough import draw_part
from unmask.data import reference
from unmask.data.form import find_faults
from unmask.errors import escape_line
from unmask.files import parse_dotenv
from unmask.interop.evaluated import _FAILED, _REPLY, parse_bounds
from unmask.interop.inspect.mask_log import _BOUNDS
from unmask.judges import answers, tagged, verbatim
from unmask.judges.base import Tags as WhoReads
from unmask.models import failures, keys
from unmask.records import PIVOTAL, Choice, Letter, Lettered
from unmask.render.describe import conversation
from unmask.text import unify_line_ends, without_credentials

LENGTH = 20_000
GUARD = 3.0

SPACES = (" ", "\n", "\t", "\r", " \n", "\u2028", "\u00a0")
MARKS = (*")*_`\"'“”«[{}.;-\\", ")*", "**", ".”", "!?", "- ", "> ")
WORDS = (
    "a",
    "A",
    "A, ",
    "A or ",
    "a b ",
    "so ",
    "answer ",
    "Answer: ",
    "Answer: A. ",
    "final answer\n",
    "option ",
    "the ",
)
ANSWERS = ('"answer": ', "'answer': 'a', ", '{"answer": "A"}', "```json\n", "<think>", "\\boxed{", "\\text", "X\n")
OBJECTS = (
    *("[{", '{"a":', '{"a":[', "[{},", '{"lower":', '{"lower":1}', "{lower:1,", "lower: a", "lower = ", '{"lower":1,'),
)
FIGURES = (
    *(
        "1",
        "1,",
        "1,000",
        "1.",
        "1.1.",
        "12:30 ",
        "1/2 ",
        "1/2/2000 ",
        "2000-01-01 ",
        "½",
        "10^",
        "-1",
        "1e",
        "% ",
        "± ",
    ),
)
PROSE = (
    *(
        "one ",
        "one hundred ",
        "twenty-",
        "half a ",
        "million ",
        "3 to 5 ",
        "between 3 and ",
        "at least ",
        "about ",
        "~",
    ),
    "5. ",
)
EXCUSES = (
    *("sorry, ", "sorry  ", "unfortunately ", "i understand ", "as an ai ", "thank you ", "but ", "i cannot help "),
    "i don't have that ",
)
TAGS = (
    *("<final_answer>", "</final_answer>", "<final_answer>yes</final_answer>", "<pivotal>", "</pivotal>"),
    *("yes, ", "no. "),
)
SECRETS = (
    *("bearer ", "://", "://a@", "@", "sk-", "sk-aaaaaa ", "retry in ", "try again in 1m", "models ", "?key="),
    "basic a=",
)
UNITS = (*SPACES, *MARKS, *WORDS, *ANSWERS, *OBJECTS, *FIGURES, *PROSE, *EXCUSES, *TAGS, *SECRETS)

ENDS = ("", "x}")


def read_by_rules(text: str) -> None:
    tagged.final_answer(text)
    for scenario in (seeds.BINARY, seeds.NUMERIC):
        verbatim.by_rule(scenario, "direct", text, tags=WhoReads.RULE)


def read_cell(text: str) -> None:
    reference.parse_interval(text)
    parse_bounds(text)
    _FAILED.fullmatch(text)
    _REPLY.fullmatch(f"generation({text}")
    _BOUNDS.sub("", text)
    escape_line(unify_line_ends(text))


def read_failure(text: str) -> None:
    problem = failures.parse_problem(400, text.encode("utf-8", "replace"), {"retry-after": text[:100]})
    str(failures.exception_for(problem, seeds.TARGET))
    keys.scrub(text)
    without_credentials(text)


class Reader(NamedTuple):
    """`starts` are beginnings that lead this reader on. Where a match itself is costly, texts are shorter."""

    read: Callable[[str], object]
    starts: tuple[str, ...] = ("",)
    length: int = LENGTH


READERS = {
    "letter": Reader(lambda text: answers.find_letter(Choice(text)), ("", "Answer: A", "answer", "Answer: A\n")),
    "interval": Reader(lambda text: answers.find_interval(Choice(text)), ("", "{lower: a")),
    "rules": Reader(read_by_rules, ("", "The bell rings at noon. "), length=4_000),
    "thinking": Reader(lambda text: (Choice(text).answer, Choice(text).thinking)),
    "cells": Reader(read_cell, ("", "[1")),
    "failures": Reader(read_failure),
    "proposition": Reader(lambda text: find_faults(msgspec.structs.replace(seeds.BINARY, proposition=text))),
    "dotenv": Reader(parse_dotenv, ("", 'A="')),
}


@pytest.mark.parametrize("name", READERS)
def test_no_repetition_makes_reading_slow(name: str):
    """Any piece of our formats, repeated, behind any beginning that leads a reader on."""
    reader = READERS[name]
    for start, unit, end in draw_part(product(reader.starts, UNITS, ENDS), 25):
        text = start + unit * (reader.length // len(unit)) + end
        with at_most(GUARD, f"{start!r} + {unit!r} × {reader.length // len(unit)} + {end!r}"):
            reader.read(text)


def _describe_reason(why: str) -> str:
    return conversation.describe_reading(Lettered(Letter.A, by="judge", why=why), "")


GROWN: dict[str, tuple[Callable[[str], object], str]] = {
    "tags that are never closed": (tagged.split_tags, "<final_answer>" * 20_000),
    "quotations before a tag": (read_by_rules, '"while “' * 20_000 + "<final_answer>yes</final_answer>"),
    "marks before an answer": (_describe_reason, "-" * 3000 + "x\nAnswer: A"),
    "sides that are never closed": (PIVOTAL.search, "<pivotal>" * 30_000),
}


@pytest.mark.parametrize("name", GROWN)
def test_work_that_once_grew_faster_than_the_text(name: str):
    """Each took minutes, from a text that a model, a file or a judge can write."""
    read, text = GROWN[name]
    with at_most(GUARD):
        read(text)
