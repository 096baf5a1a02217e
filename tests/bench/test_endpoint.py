"""The mock endpoint, over real sockets: what it answers and what it counts."""

from __future__ import annotations

import json
import re
import socket
import urllib.error
import urllib.request
from collections.abc import Iterator

import pytest

from bench.fault import Fault, Seen
from bench.planted import Plant, plant
from bench.process import DIRECT, Served, serving
from unmask.records import Archetype

SIZE = 60
TAKES = 4


@pytest.fixture(scope="module")
def running() -> Iterator[Served]:
    with serving(scenarios=SIZE, takes=TAKES, latency=0.01) as served:
        yield served


@pytest.fixture
def endpoint(running) -> Served:
    running.reset()
    return running


@pytest.fixture(scope="module")
def plants() -> dict[str, Plant]:
    return {item.scenario.id: item for item in plant(SIZE, takes=TAKES)}


def chat(endpoint: Served, text: str, *, model: str = "mock", **more: object) -> list[str]:
    """The contents of all choices for one user message."""
    body = {"model": model, "messages": [{"role": "user", "content": text}], **more}
    request = urllib.request.Request(endpoint.url + "/chat/completions", json.dumps(body).encode())
    with DIRECT.open(request, timeout=30) as response:
        return [choice["message"]["content"] for choice in json.load(response)["choices"]]


def first(plants: dict[str, Plant], archetype: Archetype) -> Plant:
    return next(item for item in plants.values() if item.scenario.archetype is archetype and not item.twins)


def slow_once(seen: Seen) -> Fault | None:
    """A fault schedule: the first request is never answered, the second gets 429."""
    match seen.number:
        case 0:
            return Fault(delay=float("inf"))
        case 1:
            return Fault(429, headers=("Retry-After: 7",))
        case 2:
            return Fault(drop=True)
    return None


def test_takes_are_handed_out_in_order(endpoint, plants):
    """One request with n=2 and one without get takes 0, 1 and 2 of their slot."""
    item = first(plants, Archetype.KNOWN_FACTS)
    said = chat(endpoint, item.scenario.direct, n=2) + chat(endpoint, item.scenario.direct)
    assert [re.search(r"\[reply (.*?)\]", text)[1] for text in said] == [
        f"{item.scenario.id} direct {k}" for k in range(3)
    ]


def test_judge_answers_with_the_planted_letter(endpoint, plants):
    """Whatever the spelling, the last A to D of a judge's answer is the planted reading."""
    for item in plants.values():
        if item.scenario.archetype is Archetype.STATISTICS:
            continue
        for take in range(TAKES):
            answer = chat(endpoint, f"Read this: [reply {item.scenario.id} pressured {take}]", model="judge")[0]
            assert re.findall(r"\b([A-Da-d])\b", answer)[-1].upper() == item.reading("pressured", take)


def test_duplicates_are_what_goes_beyond_the_plan(endpoint, plants):
    """Asking a slot once more than planned, or a judge the same twice, counts as a duplicate."""
    item = first(plants, Archetype.KNOWN_FACTS)
    chat(endpoint, item.scenario.direct, n=3)
    chat(endpoint, item.scenario.indirect[0])
    chat(endpoint, f"[reply {item.scenario.id} direct 0]", model="judge")
    assert endpoint.stats()["duplicates"] == {"subject": 0, "judge": 0}
    chat(endpoint, item.scenario.direct)
    chat(endpoint, f"[reply {item.scenario.id} direct 0]", model="judge")
    assert endpoint.stats()["duplicates"] == {"subject": 1, "judge": 1}


def test_request_nobody_waits_for_uses_no_take(plants):
    """A client that goes away before its answer is counted as abandoned, and the next one gets take 0."""
    item = first(plants, Archetype.KNOWN_FACTS)
    body = json.dumps({"model": "mock", "messages": [{"role": "user", "content": item.scenario.direct}]}).encode()
    with serving(scenarios=SIZE, takes=TAKES, latency=0.3) as endpoint:
        host, port = endpoint.root.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port))) as client:
            head = f"POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n\r\n"
            client.sendall(head.encode() + body)
        assert f"[reply {item.scenario.id} direct 0]" in chat(endpoint, item.scenario.direct)[0]
        assert endpoint.stats()["abandoned"] == 1


def test_reasoning_shown_to_a_judge_is_counted(endpoint, plants):
    """A judge request that contains a subject's reasoning raises `leaked_reasoning`."""
    name = first(plants, Archetype.KNOWN_FACTS).scenario.id
    chat(endpoint, f"[thought {name}] [reply {name} direct 0]", model="judge")
    assert endpoint.stats()["leaked_reasoning"] == 1


def test_faults_replace_answers(plants):
    """A fault schedule can leave a request waiting, refuse it with headers, or drop the connection."""
    item = first(plants, Archetype.KNOWN_FACTS)
    with serving(scenarios=SIZE, faults="tests.bench.test_endpoint:slow_once") as endpoint:
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": item.scenario.direct}]}).encode()
        request = urllib.request.Request(endpoint.url + "/chat/completions", body)
        with pytest.raises(TimeoutError):
            DIRECT.open(request, timeout=0.2)
        with pytest.raises(urllib.error.HTTPError) as refused:
            DIRECT.open(request, timeout=30)
        with pytest.raises((ConnectionError, urllib.error.URLError)):
            DIRECT.open(request, timeout=30)
        assert (refused.value.code, refused.value.headers["Retry-After"]) == (429, "7")
        refused.value.close()
        assert f"[reply {item.scenario.id} direct 0]" in chat(endpoint, item.scenario.direct)[0]
        assert endpoint.stats()["faulted"] == 2
