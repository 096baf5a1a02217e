from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.errors import UsageError
from unmask.files import parse_dotenv, read_environment
from unmask.models.keys import (
    Key,
    Target,
    find_key,
    mask_likely_secrets,
    origin,
    scrub,
)
from unmask.models.providers import PROVIDERS
from unmask.runs.definition import public_url

NAMES = st.from_regex(r"[A-Z_][A-Z0-9_]{0,20}", fullmatch=True)
VALUES = st.text(st.characters(codec="utf-8", exclude_characters='\r\n"'), max_size=40)


@given(st.dictionaries(NAMES, VALUES, max_size=6))
def test_a_quoted_value_comes_back_exactly(values):
    """What is written in double quotes is read back unchanged, whatever it is."""
    text = "\n".join(f'{name}="{value}"' for name, value in values.items())
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
        ('KEY="quoted # kept" # comment', "quoted # kept"),
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


def test_the_real_environment_wins(tmp_path, monkeypatch):
    """A variable that is set is not replaced by `.env`, one that is not is filled from it."""
    (tmp_path / ".env").write_text("ONE_OF_OURS=file\nOTHER_OF_OURS=file\n")
    monkeypatch.setenv("ONE_OF_OURS", "real")
    found = read_environment(tmp_path)
    assert (found["ONE_OF_OURS"], found["OTHER_OF_OURS"]) == ("real", "file")


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


SAFE = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789-_", min_size=6, max_size=30)
UNLIKE_A_KEY = SAFE.filter(lambda text: mask_likely_secrets(f"version {text}") == f"version {text}")
"""A base URL whose query looks like a key is refused."""


def target(url: str = "https://api.example.org/v1", key: Key | None = None, provider="openai") -> Target:
    row = PROVIDERS[provider]
    return row.target("openai/x", url=url, key=key, variables=("UNMASK_API_KEY",))


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://Host:80/v1", "http://host"),
        ("https://host:443", "https://host"),
        ("http://host:8000/v1", "http://host:8000"),
        ("http://u:p@[::1]:8000/v1", "http://[::1]:8000"),
        ("not a url", ""),
    ],
)
def test_an_origin_is_scheme_host_and_port(url, shown):
    """Credentials, path and the default port are left out."""
    assert origin(url) == shown


WITH_CREDENTIALS = [
    "https://alice:Xy7secret@gw.example/v1",
    "https://Xy7secret@gw.example/v1",
    "http://user:12/Xy7secret@gw.example/v1",
    "https://ab/cd+Xy7secret@gw.example/v1",
    "http://user:1234#Xy7secret@gw.example/v1",
    "http://user:1234?Xy7secret@gw.example/v1",
    "http://gw.example/v1?mail=a@b&key=Xy7secret",
    "user:Xy7secret@gw.example/v1",
]


@pytest.mark.parametrize("url", WITH_CREDENTIALS)
def test_a_base_url_with_credentials_is_refused(url):
    """The refusal names the variable to use, and shows no part of what may be the password."""
    with pytest.raises(UsageError, match="holds credentials") as caught:
        target(url)
    assert "UNMASK_API_KEY" in (caught.value.advice or "")
    assert not any(part in str(caught.value) for part in ("user", "12", "cd", "Xy7"))
    assert public_url(url) is None or "Xy7" not in public_url(url)


@pytest.mark.parametrize(
    "query", ["key=Xy7", "API-KEY=Xy7", "access_token=Xy7", "code=Xy7", "sig=Xy7", "v=sk-Xy7secret"]
)
def test_a_key_in_the_query_of_a_base_url_is_refused(query):
    with pytest.raises(UsageError, match="looks like a key") as caught:
        target(f"https://gw.example/v1?{query}")
    assert "UNMASK_API_KEY" in (caught.value.advice or "")
    assert "Xy7" not in f"{caught.value}{caught.value.advice}"


@pytest.mark.parametrize(
    "url",
    [
        "gw.example/v1?next=http://x/Xy7secret",
        "http://gw.example:port/v1?next=http://x/Xy7secret",
        "http://gw.example:port/v1#Xy7secret",
        "http://user:Xy7secret%40gw.example/v1",
        "http://user:Xy7secret\uff20gw.example/v1",
    ],
)
def test_an_address_that_is_none_is_shown_only_where_it_can_hold_no_secret(url):
    with pytest.raises(UsageError, match="is not an http or https URL") as caught:
        target(url)
    assert "Xy7" not in str(caught.value)
    with pytest.raises(UsageError, match="'localhost:8000/v1' is not an http"):
        target("localhost:8000/v1")


@pytest.mark.parametrize(
    ("provider", "base", "url"),
    [
        *(("openai", f"http://h/v1{end}", "http://h/v1/chat/completions") for end in ("", "/", "/chat/completions")),
        *(("anthropic", f"http://h{end}", "http://h/v1/messages") for end in ("", "/", "/v1", "/v1/messages")),
    ],
)
def test_a_base_url_may_have_more_than_the_base(provider, base, url):
    """A slash, the whole path or a version at the end changes nothing."""
    assert target(base, provider=provider).url == url


@given(key=SAFE, query=UNLIKE_A_KEY, before=st.text(max_size=50), after=st.text(max_size=50))
def test_no_secret_survives_scrubbing(key, query, before, after):
    """Whatever a server echoes, the key and the query are gone."""
    made = target(f"https://h/v1?version={query}", key=Key(key, "OPENAI_API_KEY"))
    shown = made.scrub(f"{before} {key}{after} Bearer {key} https://h?version={query}")
    assert not any(secret in shown for secret in (key, query))


@pytest.mark.parametrize("echo", [r"abcd\u002Befgh/ij", r"\u0061bcd\u002befgh\/ij", "abcd+efgh/ij"])
def test_a_secret_is_hidden_in_json_that_was_not_decoded(echo):
    """What breaks off in the middle is shown as it came, escapes included."""
    made = target(key=Key("abcd+efgh/ij", "OPENAI_API_KEY"))
    assert made.scrub(f'{{"content": "you sent {echo} and') == '{"content": "you sent *** and'


@pytest.mark.parametrize(
    "echo",
    [
        "Incorrect API key provided: sk-proj-abcd****wxyz.",
        "got header Bearer abcdef123456",
        "at https://bob:builder@host/v1",
        "key AIzaSyA1234567890",
        "token gsk_abcdefgh12345 is wrong",
    ],
)
def test_what_looks_like_a_secret_is_hidden_too(echo):
    """Also secrets that were not ours to know, such as a key a proxy uses."""
    shown = scrub(echo)
    assert not any(part in shown for part in ("abcd", "builder", "AIza"))


def test_ordinary_words_are_left_alone():
    """Scrubbing hides secrets, not explanations."""
    said = "The skeleton-key task: basic authentication for user 7 failed."
    assert scrub(said) == said


def test_half_characters_in_a_strangers_text_can_be_written_afterwards():
    """Exceptions of other libraries carry them as well; whole emoji, also in two halves, stay."""
    assert scrub("well \ud83d, \ud83d\ude00 and 😀") == "well \ufffd, 😀 and 😀"
