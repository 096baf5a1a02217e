"""Every reader of strangers' bytes, with noise and with good files spoilt: a value or one of our errors, nothing else.

The examples are the same each time.
"""

from __future__ import annotations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bench.fuzz.targets import TARGETS
from tests.hostile.limits import at_most
from tests.thorough import THOROUGH

SAME = settings(
    derandomize=True,
    max_examples=40 if THOROUGH else 10,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
GUARD = 20.0

DEEP = [
    b"[" * 100_000,
    b'{"a":' * (100_000 if THOROUGH else 30_000),
    b'{"id":' + b"[" * 50_000 + b"]" * 50_000 + b"}",
    b'{"lower":' + b"[" * 990 + b"]" * 990 + b"}",
    b"x = " + b"[" * 5_000 + b"]" * 5_000,
]
NUMBERS = [b"9" * 5_000, b"1e999", b'{"v":' + b"9" * 5_000 + b"}", b"x = " + b"9" * 5_000]
BYTES = [
    b"",
    b"\0",
    b"\n",
    b"\r",
    b"\xff\xfe",
    b"\xef\xbb\xbf",
    b"\xed\xa0\x80",
    b'"',
    b"\x1b[2J",
    b"PK\5\6" + bytes(18),
]


@pytest.mark.parametrize("name", TARGETS)
def test_what_has_broken_readers_before(name: str):
    """Deep nesting, endless numbers, no text at all, half characters, control sequences, an archive of nothing."""
    for data in (*DEEP, *NUMBERS, *BYTES):
        with at_most(GUARD, f"{len(data)} bytes that begin with {data[:20]!r}"):
            TARGETS[name].run(data)


@pytest.mark.parametrize("name", TARGETS)
def test_good_files_are_accepted_by_their_target(name: str):
    """Otherwise a fuzzer would only ever see the first check of a reader."""
    for seed in TARGETS[name].seeds():
        assert TARGETS[name].run(seed) in (True, None)


@pytest.mark.parametrize("name", TARGETS)
@SAME
@given(data=st.data())
def test_spoilt_files_raise_only_our_errors(name: str, data: st.DataObject):
    """A good file with bytes replaced, words of its format put in, pieces cut out or doubled."""
    target = TARGETS[name]
    good = data.draw(st.sampled_from(target.seeds()))
    for _ in range(data.draw(st.integers(1, 4))):
        start, end = sorted(data.draw(st.tuples(st.integers(0, len(good)), st.integers(0, len(good)))))
        piece = data.draw(
            st.binary(max_size=6)
            | st.sampled_from((*target.words, b"", b'"', b"\0", b"-", b"\xff\xff\xff\xff"))
            | st.just(good[start:end] * 2)
        )
        good = good[:start] + piece + good[data.draw(st.sampled_from((start, end))) :]
    with at_most(GUARD):
        target.run(good[:20_000])
