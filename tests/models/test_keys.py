from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.errors import UsageError
from unmask.models.keys import Key, environment, find_key, find_url, parse_dotenv

NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,20}", fullmatch=True)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=40)


def quoted(value: str) -> str:
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_a_quoted_value_comes_back_exactly(values):
    """What is written in double quotes with escapes is read back unchanged, whatever it is."""
    text = "\n".join(f"{name}={quoted(value)}" for name, value in values.items())
    assert parse_dotenv(text) == values


@given(st.text())
def test_no_text_breaks_the_parser(text):
    """Any text at all gives a dictionary of plain names."""
    assert all(re.fullmatch(r"[A-Za-z_][A-Za-z0-9_.]*", name) for name in parse_dotenv(text))


@pytest.mark.parametrize(
    ("line", "value"),
    [
        ("KEY=plain", "plain"),
        ("export KEY=plain", "plain"),
        ("  KEY = spaced ", "spaced"),
        ("KEY=with # a comment", "with"),
        ("KEY=a#b", "a#b"),
        ("KEY='single # kept'", "single # kept"),
        ('KEY="two\\nlines" # comment', "two\nlines"),
        ("KEY=", ""),
        ("KEY=# nothing", ""),
        ("KEY=a=b", "a=b"),
        ("\ufeffKEY=bom", "bom"),
        ("KEY=first\r\nOTHER=second", "first"),
    ],
)
def test_the_usual_forms_are_understood(line, value):
    """Each form people write into `.env` gives the value they mean."""
    assert parse_dotenv(line)["KEY"] == value


@pytest.mark.parametrize("line", ["# KEY=1", "just words", "=1", "1KEY=2", ""])
def test_other_lines_are_ignored(line):
    """A comment or a line without a name sets nothing."""
    assert parse_dotenv(line) == {}


def test_the_real_environment_wins(tmp_path, monkeypatch):
    """A variable that is set is not replaced by `.env`, one that is not is filled from it."""
    (tmp_path / ".env").write_text("ONE_OF_OURS=file\nOTHER_OF_OURS=file\n")
    monkeypatch.setenv("ONE_OF_OURS", "real")
    found = environment(tmp_path)
    assert (found["ONE_OF_OURS"], found["OTHER_OF_OURS"]) == ("real", "file")


def test_no_dotenv_is_no_trouble(tmp_path):
    """Without the file there is just the environment."""
    assert "PATH" in environment(tmp_path)


def test_the_first_variable_that_is_set_gives_the_key():
    """Blank variables count as not set, and the key knows where it came from."""
    key = find_key(("A", "B", "C"), environ={"A": " ", "B": " secret\n", "C": "other"})
    assert key == Key("secret", "B")


def test_a_key_never_shows_itself():
    """Neither repr nor str of a key has its value."""
    key = Key("sk-very-secret", "OPENAI_API_KEY")
    assert "very-secret" not in f"{key!r} {key}"
    assert "OPENAI_API_KEY" in repr(key)


@pytest.mark.parametrize("value", ["two\nlines", "sk-abc…", "naïve"])
def test_a_key_no_header_can_carry_is_refused_without_showing_it(value):
    """The message names the variable and not the value."""
    with pytest.raises(UsageError) as caught:
        find_key(("A",), environ={"A": value})
    assert "A" in str(caught.value)
    assert value not in f"{caught.value} {caught.value.advice}"


def test_blank_urls_count_as_not_set():
    """An empty URL variable leaves the next one its turn."""
    assert find_url(("A", "B"), environ={"A": "", "B": "http://b/v1"}) == "http://b/v1"
    assert find_url(("A",), environ={}) is None
