"""HTTP/1.1 as it comes off the wire: in any pieces, with any ending, from anybody."""

from __future__ import annotations

import contextlib
import gzip
import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unmask.models.wire import MAX_BODY, MAX_HEAD, BrokenOffError, Incoming, Message, NoAnswerError, NotHTTPError

BODY = json.dumps({"choices": [{"message": {"content": "words \r\n\r\n and more"}}]}).encode()


def counted(body: bytes, *lines: str, status: int = 200, version: str = "1.1") -> bytes:
    head = [f"HTTP/{version} {status} OK", *lines, f"Content-Length: {len(body)}"]
    return "\r\n".join(head).encode() + b"\r\n\r\n" + body


def chunked(body: bytes, sizes: list[int], *, trailer: bytes = b"", extension: bytes = b"") -> bytes:
    pieces, at = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"], 0
    while at < len(body):
        size = sizes[len(pieces) % len(sizes)]
        part = body[at : at + size]
        pieces.append(b"%x%b\r\n%b\r\n" % (len(part), extension, part))
        at += size
    return b"".join([*pieces, b"0\r\n", trailer, b"\r\n"])


def fed(data: bytes, cuts: list[int] | None = None, *, closed: bool = False) -> Incoming:
    incoming = Incoming()
    places = sorted({cut % (len(data) + 1) for cut in cuts or []} | {len(data)})
    start = 0
    for place in places:
        if data[start:place]:
            incoming.feed(data[start:place])
        start = place
    if closed:
        incoming.end()
    return incoming


def whole(incoming: Incoming) -> Message:
    assert incoming.whole is not None
    return incoming.whole


CUTS = st.lists(st.integers(0, 10_000), max_size=12)


@given(st.binary(max_size=400), CUTS)
def test_an_answer_with_a_length_is_the_same_in_any_pieces(body, cuts):
    """Where the network cuts says nothing."""
    found = fed(counted(body, "Content-Type: application/json"), cuts)
    assert (whole(found).status, whole(found).body, found.keep) == (200, body, True)


@given(st.binary(min_size=1, max_size=400), st.lists(st.integers(1, 50), min_size=1, max_size=5), CUTS)
def test_a_chunked_answer_is_the_same_in_any_pieces(body, sizes, cuts):
    """Chunks of any size, cut anywhere, extensions and trailers passed over."""
    data = chunked(body, sizes, trailer=b"X-Sum: 1\r\n", extension=b";a=b")
    found = fed(data, cuts)
    assert (whole(found).body, found.keep) == (body, True)


@given(st.binary(max_size=400), CUTS)
def test_an_answer_without_a_length_ends_where_the_connection_does(body, cuts):
    """And that connection is not used again."""
    found = fed(b"HTTP/1.1 200 OK\r\nServer: x\r\n\r\n" + body, cuts, closed=True)
    assert (whole(found).body, found.keep) == (body, False)


@given(st.binary(max_size=300), CUTS)
def test_bytes_of_any_kind_are_an_answer_or_a_named_refusal(data, cuts):
    """No other exception comes out, whatever a stranger sends."""
    try:
        fed(data, cuts, closed=True)
    except (NoAnswerError, BrokenOffError, NotHTTPError):
        return
    raise AssertionError("random bytes passed for an answer")


@given(st.binary(max_size=120), CUTS)
def test_a_head_with_anything_behind_it_is_an_answer_or_a_named_refusal(tail, cuts):
    """Also when the beginning is right."""
    with contextlib.suppress(BrokenOffError, NotHTTPError):
        fed(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n" + tail, cuts, closed=True)


@given(st.integers(0, 200))
def test_an_answer_cut_short_is_never_an_answer(at):
    """Every shorter beginning of a counted answer is broken off, or nothing at all."""
    data = counted(BODY)
    with pytest.raises((BrokenOffError, NoAnswerError)):
        fed(data[: min(at, len(data) - 1)], closed=True)


def test_what_comes_before_the_answer_is_passed_over():
    """`100 Continue` and early hints are not the answer."""
    early = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n"
    assert whole(fed(early + counted(BODY))).body == BODY


@pytest.mark.parametrize(
    ("answer", "keep"),
    [
        (counted(BODY, "Connection: close"), False),
        (counted(BODY, "connection: Keep-Alive"), True),
        (counted(BODY, version="1.0"), False),
        (counted(BODY, "Connection: keep-alive", version="1.0"), True),
        (counted(BODY) + b"HTTP/1.1 200 OK\r\n", False),
    ],
)
def test_whether_a_connection_may_be_used_again(answer, keep):
    """As the other side says, and never with something left over on it."""
    assert fed(answer).keep is keep


@pytest.mark.parametrize("status", [204, 304])
def test_an_answer_that_has_no_body_ends_with_its_head(status):
    """Nothing is waited for."""
    found = fed(f"HTTP/1.1 {status} No\r\n\r\n".encode())
    assert (whole(found).status, whole(found).body) == (status, b"")


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 5\r\nContent-Length: 6",
        b"Content-Length: -1",
        b"Content-Length: five",
        b"Content-Length: 5, 5",
        b"Content-Length: " + b"9" * 40,
        b"Content-Length: %d" % (MAX_BODY + 1),
    ],
)
def test_a_length_that_cannot_be_believed_is_refused(head):
    """Two lengths, no number, or more than any answer has."""
    with pytest.raises(NotHTTPError):
        fed(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\nhello")


@pytest.mark.parametrize("data", [b"SSH-2.0", b"\x16\x03\x01", b"HTTP/2 200\r\n\r\n", b"HTTP/1.1 20 OK\r\n\r\n"])
def test_another_protocol_is_refused_at_once(data):
    """Not after a time-out."""
    with pytest.raises(NotHTTPError):
        fed(data)


def test_a_head_without_end_is_refused():
    """Before it fills the memory."""
    with pytest.raises(NotHTTPError):
        fed(b"HTTP/1.1 200 OK\r\n" + b"X-More: words\r\n" * (MAX_HEAD // 14))


@pytest.mark.parametrize("pack", [gzip.compress, zlib.compress])
def test_an_answer_packed_unasked_is_unpacked(pack):
    """Some gateways do it to everybody."""
    name = "gzip" if pack is gzip.compress else "deflate"
    assert whole(fed(counted(pack(BODY), f"Content-Encoding: {name}"))).body == BODY


def test_a_packed_answer_that_is_broken_is_broken_off():
    """And not handed on as bytes."""
    with pytest.raises(BrokenOffError):
        fed(counted(b"not packed at all", "Content-Encoding: gzip"))


def test_an_unknown_coding_is_refused():
    """What cannot be read is not an answer."""
    with pytest.raises(NotHTTPError):
        fed(counted(BODY, "Content-Encoding: br"))


def test_headers_are_found_in_small_letters_and_the_first_one_counts():
    """`Retry-After` and `retry-after` are one thing."""
    found = whole(fed(counted(b"", "Retry-After: 7", "retry-after: 9", status=429))).headers
    assert found["retry-after"] == "7"
