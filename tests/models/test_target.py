from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.errors import UsageError
from unmask.models.keys import Key
from unmask.models.target import SHOWN, Target, origin, scrub
from unmask.runs.definition import public_url

SAFE = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJ0123456789-_", min_size=6, max_size=30)


def target(url: str = "https://api.example.org/v1", key: Key | None = None, speaks="openai") -> Target:
    path = "/v1/messages" if speaks == "anthropic" else "/chat/completions"
    return Target.build("openai/x", url=url, path=path, key=key, variables=("UNMASK_API_KEY",), speaks=speaks)


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


UNCLEAR = [
    "http://user:12/Xy7secret@gw.example/v1",
    "https://ab/cd+Xy7secret@gw.example/v1",
    "http://user:/Xy7secret@gw.example/v1",
    "http://user:word/Xy7secret@gw.example/v1",
    "http://user:1234#Xy7secret@gw.example/v1",
    "http://user:1234?Xy7secret@gw.example/v1",
    "http://user:12/Xy7secret@gw.example/v1?key=Xy7secret",
    "http://gw.example/v1?mail=a@b&key=Xy7secret",
]
"""Where an @ after the first slash, ? or # leaves open what is host and what is password."""


@pytest.mark.parametrize("url", UNCLEAR)
def test_a_url_whose_password_ends_nobody_knows_where_is_refused(url):
    """The refusal shows the way out, and no part of what may be the password or the query."""
    with pytest.raises(UsageError, match="@ after") as caught:
        target(url)
    assert "%40" in (caught.value.advice or "")
    assert not any(part in str(caught.value) for part in ("user", "12", "ab", "cd", "Xy7"))


@pytest.mark.parametrize("url", UNCLEAR)
def test_nothing_of_such_a_url_is_written_down(url):
    """Its beginning may be a part of the password, not the host."""
    assert (origin(url), public_url(url)) == ("", None)


@pytest.mark.parametrize(
    "url",
    [
        "http://user:Xy7secret%40gw.example/v1",
        "http://user:Xy7secret\uff20gw.example/v1",
        "user:Xy7secret@gw.example/v1",
        "gw.example/v1?next=http://x/Xy7secret",
        "http://gw.example:port/v1?next=http://x/Xy7secret",
        "http://gw.example:port/v1#Xy7secret",
    ],
)
def test_an_address_that_is_none_is_named_without_its_secrets(url):
    with pytest.raises(UsageError, match="is not an http or https URL") as caught:
        target(url)
    assert "gw.example" in str(caught.value)
    assert "Xy7" not in str(caught.value)


def test_an_escaped_at_sign_may_stand_anywhere():
    made = target("https://al%40ice:p%40s%2Fs@h/%40me?mail=a%40b")
    assert made.headers["Authorization"] == "Basic " + base64.b64encode(b"al@ice:p@s/s").decode()
    assert made.url == "https://h/%40me/chat/completions?mail=a%40b"


@pytest.mark.parametrize("base", ["http://h/v1", "http://h/v1/", "http://h/v1/chat/completions"])
def test_a_base_url_may_have_more_than_the_base(base):
    """A slash or the whole path at the end changes nothing."""
    assert target(base).url == "http://h/v1/chat/completions"


@pytest.mark.parametrize("base", ["http://h", "http://h/", "http://h/v1", "http://h/v1/messages"])
def test_anthropic_bases_with_and_without_version_agree(base):
    """`/v1` is part of the path there, and is not doubled."""
    assert target(base, speaks="anthropic").url == "http://h/v1/messages"


def test_a_query_is_sent_but_not_shown():
    """Some gateways want a parameter on every request, and it may be a secret."""
    made = target("https://gate.example/x?api-version=2024&code=qwertyuiop")
    assert made.url.endswith("/x/chat/completions?api-version=2024&code=qwertyuiop")
    assert "qwertyuiop" not in f"{made.shown} {made!r} {made.endpoint}"


def test_a_key_goes_out_as_bearer():
    """OpenAI's way of showing a key."""
    made = target(key=Key("k-123456", "OPENAI_API_KEY"))
    assert made.headers["Authorization"] == "Bearer k-123456"
    assert made.key_source == "OPENAI_API_KEY"


def test_without_a_key_nothing_is_claimed():
    """No Authorization header at all, rather than an empty one."""
    assert not {"Authorization", "x-api-key"} & set(target().headers)


def test_credentials_in_the_url_take_the_place_of_a_key():
    """They need the same header, and were given for this very address."""
    made = target("https://alice:p%40ss@h/v1", key=Key("k-123456", "OPENAI_API_KEY"))
    assert made.headers["Authorization"] == "Basic " + base64.b64encode(b"alice:p@ss").decode()
    assert "alice" not in made.url


def test_anthropic_sends_both_key_and_credentials():
    """The key has a header of its own there."""
    made = target("https://a:bcde@h", key=Key("k-123456", "ANTHROPIC_API_KEY"), speaks="anthropic")
    assert made.headers["x-api-key"] == "k-123456"
    assert made.headers["Authorization"].startswith("Basic ")


@given(key=SAFE, user=SAFE, password=SAFE, before=st.text(max_size=50), after=st.text(max_size=50))
def test_no_secret_survives_scrubbing(key, user, password, before, after):
    """Whatever a server echoes, the key, the user and the password are gone."""
    made = target(f"https://{user}:{password}@h/v1", key=Key(key, "OPENAI_API_KEY"))
    basic = made.headers["Authorization"].split()[1]
    shown = made.scrub(f"{before} {key}{after} Basic {basic} https://{user}:{password}@h")
    assert not any(secret in shown for secret in (key, user, password, basic))


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


@pytest.mark.parametrize(
    "echo", [r"abcd\u002Befgh/ij", r"\u0061bcd\u002befgh\/ij", r"abcd\u002Befgh\u002Fij", "abcd+efgh/ij"]
)
def test_a_secret_is_hidden_in_json_that_was_not_decoded(echo):
    """What breaks off in the middle is shown as it came, escapes included."""
    made = target(key=Key("abcd+efgh/ij", "OPENAI_API_KEY"))
    assert made.scrub(f'{{"content": "you sent {echo} and') == '{"content": "you sent *** and'


def test_escapes_that_hide_nothing_stay_as_they_are():
    said = r"C:\users\u0041 \ud83d \u00e9"
    assert target(key=Key("abcd+efgh/ij", "OPENAI_API_KEY")).scrub(said) == said


@pytest.mark.parametrize("key", ['of-"quoted"-0123456789', "of-back\\slash-0123456789", "of/sl/ash-0123456789"])
def test_an_answer_is_kept_without_a_key_as_json_writes_it(key):
    made = target(key=Key(key, "OPENAI_API_KEY"))
    for body in (json.dumps({"x": key}), json.dumps({"x": key}).replace("/", "\\/")):
        assert made.hide(body.encode()) == b'{"x": "***"}'


def test_ordinary_words_are_left_alone():
    """Scrubbing hides secrets, not explanations."""
    said = "The skeleton-key task: basic authentication for user 7 failed."
    assert scrub(said) == said


@given(st.text(max_size=2000))
def test_scrubbed_text_is_one_short_line(text):
    """An error page never floods the terminal."""
    shown = scrub(text)
    assert len(shown) <= SHOWN
    assert "\n" not in shown


def test_half_characters_in_a_strangers_text_can_be_written_afterwards():
    """Exceptions of other libraries carry them as well; whole emoji, also in two halves, stay."""
    assert scrub("well \ud83d, \ud83d\ude00 and 😀") == "well \ufffd, 😀 and 😀"
