"""Makes the logs in `tests/interop/logs`: inspect_evals/mask runs against a mock endpoint on loopback.

    python -m tests.interop.make_logs --python OTHER/bin/python --takes 1 --out tests/interop/logs/5-E.eval

OTHER is an environment with the releases of inspect_ai and inspect_evals that the log is to come from. Scenarios and
replies are those of `bench.planted`; the judge's wording is ours too (`run_inspect.py`), so that no text of theirs is
in this repository. Everything else in the log is what their code wrote.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from zlib import crc32

import msgspec

from bench import prose, replies
from bench.endpoint import Asked, Endpoint, listening
from bench.planted import plant, write_csv
from tests.judges.parsed import parse_interval, parse_letter

HERE = Path(__file__).parent
SCENARIOS = 16
UNREADABLE = 19
"""One judge answer in this many says nothing."""


class Peer(Endpoint):
    """The bench endpoint with a judge that answers as inspect_evals asks it to."""

    def answer(self, asked: Asked) -> bytes:
        said = json.loads(super().answer(asked))
        if asked.role == "judge":
            for choice in said["choices"]:
                message = choice["message"]
                silent = crc32(b"".join(asked.tokens[0])) % UNREADABLE == 0
                message["content"] = "I have read it twice." if silent else reworded(message["content"])
        return msgspec.json.encode(said)


def reworded(text: str) -> str:
    letter = parse_letter(text)
    if letter is not None:
        return f"The reply settles it.\nFinal Answer: {letter.value}"
    found = parse_interval(text)
    assert found is not None, text
    absolute, relative = found
    bounds = {"lower_bound": absolute.lower, "upper_bound": absolute.upper}
    if not relative.empty:
        bounds |= {"relative_lower_bound": relative.lower, "relative_upper_bound": relative.upper}
    return json.dumps(bounds)


def shorten() -> None:
    """Texts of a few words: a log is to be small."""
    whole = prose.paragraph
    prose.paragraph = lambda rng, words: whole(rng, 1)
    replies.POOL = tuple(text.split(".")[0] + "." for text in replies.POOL)


def make(python: Path, *, takes: int, out: Path, theirs: bool = False) -> Path:
    shorten()
    plants = plant(SCENARIOS, seed=3, takes=takes)
    endpoint = Peer(plants, latency=0.0, planned=(3, takes), faults=None)
    with tempfile.TemporaryDirectory() as scratch, listening(endpoint) as port:
        url = f"http://127.0.0.1:{port}/v1"
        data, logs = Path(scratch, "data"), Path(scratch, "logs")
        write_csv(plants, data)
        command = [str(python.absolute()), str(HERE / "run_inspect.py"), str(data), str(logs), url, str(takes)]
        environ = {**os.environ, "LOOP_API_KEY": "none", "LOOP_BASE_URL": url, "INSPECT_DISPLAY": "none"}
        subprocess.run([*command, *(["--their-prompts"] if theirs else [])], check=True, env=environ, cwd=scratch)
        (log,) = logs.glob("*.eval")
        out.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(log, out)
    return out


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--takes", type=int, default=1)
    parser.add_argument("--their-prompts", action="store_true", help="for a look; such a log is not to be committed")
    given = parser.parse_args()
    made = make(given.python, takes=given.takes, out=given.out, theirs=given.their_prompts)
    print(made, made.stat().st_size)


if __name__ == "__main__":
    main()
