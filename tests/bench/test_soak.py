"""What the soak calls a failure, and that a fault schedule is the same whatever order requests come in."""

from __future__ import annotations

import random

import pytest

from bench.fault import Seen
from bench.faulty import EVERY, mixed, schedule
from bench.soak import Round, failures

GOOD = Round(
    scenarios=10,
    calls=60,
    faulted=12,
    answers=48,
    kept=48,
    bought_twice=0,
    as_planted=9,
    unjudged=1,
    wrong=(),
    seconds=1.0,
    cpu=0.1,
    memory=50.0,
)


def seen(number: int, name: str) -> Seen:
    return Seen(number, "subject", "mock", name, "direct", 0, b"")


def test_a_soak_without_trouble_has_no_failures():
    """Faults that were met and scenarios that were named are none."""
    assert list(failures([GOOD, GOOD])) == []


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"wrong": ("kf-1",)}, "not the planted ones, first kf-1"),
        ({"kept": 47}, "1 answers the endpoint sent are not in a journal"),
        ({"bought_twice": 2}, "2 answers were bought twice"),
        ({"memory": 80.0}, "memory grew from 50 to 80 MiB"),
    ],
)
def test_what_must_not_happen_is_a_failure(change, said):
    """Each alone is enough."""
    (found,) = failures([GOOD, GOOD._replace(**change)])
    assert said in found


def test_a_schedule_depends_on_the_request_and_the_seed_and_not_on_the_order():
    """The same trouble for the same request, in the share that was asked for."""
    names = [f"kf-{number}" for number in range(2000)]
    first = {name: schedule(EVERY, rate=0.2)(seen(number, name)) for number, name in enumerate(names)}
    random.Random(1).shuffle(names)
    again = {name: schedule(EVERY, rate=0.2)(seen(number, name)) for number, name in enumerate(names)}
    assert first == again
    assert 300 < sum(fault is not None for fault in first.values()) < 500
    assert first != {name: schedule(EVERY, rate=0.2, seed=2)(seen(0, name)) for name in names}


def test_a_schedule_is_made_of_a_text():
    """Rate, seed and the faults it is made of."""
    only = mixed("rate=1,only=http_500+dropped,seed=4")
    met = {only(seen(0, f"kf-{number}")) for number in range(50)}
    assert met == {EVERY["http_500"], EVERY["dropped"]}
    everything = mixed("rate=1,only=everything,late=15")
    found = {everything(seen(0, f"kf-{number}")) for number in range(40_000)}
    assert len(found) == len(EVERY)
