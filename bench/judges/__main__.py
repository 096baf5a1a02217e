"""How often a judge answers as labelled.

    python -m bench.judges --judge verbatim --judge hf:judge-1.5b
    python -m bench.judges --judge hf:judge-1.5b --again            # asks the model
    python -m bench.judges --judge openai/gpt-4o --limit 60

The replies are those of the test half, unless you name another with `--half`; `--limit` draws so many of them with seed
0. What a judge answered to a whole half is kept in `bench/judges/readings/`, so that it is not asked again.
"""

from __future__ import annotations

import argparse
import random
import tempfile
from collections.abc import Sequence
from pathlib import Path

import msgspec

from bench.judges import kappa, share
from bench.judges.labelled import Labelled, labelled
from bench.judges.labelled import scenarios as labelled_scenarios
from unmask.data.load import from_scenarios
from unmask.engine.define import create_or_continue, define_run, judge_spec
from unmask.engine.run import judge as judge_run
from unmask.judges.tagged import read_direct
from unmask.models.scripted import Scripted
from unmask.protocol.belief import readings_agree
from unmask.protocol.readings import readings_of
from unmask.records import (
    CHECK,
    DIRECT,
    PRESSURED,
    Asked,
    Choice,
    Effort,
    Kind,
    Letter,
    Lettered,
    Pending,
    Preset,
    Ranged,
    Reading,
    Unread,
)
from unmask.runs.folder import Folder
from unmask.runs.options import Options
from unmask.stats.agree import Pair

KEPT = Path(__file__).with_name("readings")
Readings = dict[str, Reading]


def ask(items: Sequence[Labelled], judge: str, folder: Path, *, room: int | None) -> Readings:
    """A run in which every labelled reply is the only reply of a scenario of its own, judged."""
    known = labelled_scenarios()
    scenarios = {item.id: msgspec.structs.replace(known[item.scenario], id=item.id) for item in items}
    run, options = Folder(folder), Options(direct=1, effort=Effort.FULL)
    dataset = from_scenarios(scenarios.values(), name="labelled")
    subject = Scripted(lambda _: "", name="labelled/replies")
    create_or_continue(run, define_run(dataset, subject, judge_spec("verbatim", options.judge), options), dataset)
    for item in items:
        run.replies.append(Asked(scenario=item.id, slot=item.slot, takes=(0,), choices=(Choice(item.text),)))
    run.replies.close()
    judged = judge_run(folder, judge=judge, set={} if room is None else {"judge.max_tokens": room})
    file = judged.judge_file(judge)
    journal = Folder(folder).journal()
    settings = judged.definition.settings(file, preset=Preset.STRICT)  # which reads each take by itself
    settings = msgspec.structs.replace(settings, check=True)
    states = {item.id: journal.state_of(item.id, file) for item in items}
    return {item.id: readings_of(scenarios[item.id], states[item.id], settings)[item.slot][0] for item in items}


def find_answers(items: Sequence[Labelled], judge: str, *, again: bool, keep: bool, room: int | None) -> Readings:
    """What the judge says of each reply, from the file where it is kept or from the judge."""
    file = KEPT / f"{judge.replace('/', '_').replace(':', '_')}.json"
    before = msgspec.json.decode(file.read_bytes(), type=Readings) if file.exists() else {}
    if not again and all(item.id in before for item in items):
        return before
    with tempfile.TemporaryDirectory() as folder:
        found = ask(items, judge, Path(folder) / "run", room=room)
    if keep and judge != "verbatim":
        plain = {name: _without_reason(reading) for name, reading in found.items()}
        file.write_bytes(
            msgspec.json.format(msgspec.json.encode(dict(sorted((before | plain).items()))), indent=0) + b"\n"
        )
    return found


def _without_reason(reading: Reading) -> Reading:
    if isinstance(reading, Unread):
        return msgspec.structs.replace(reading, reason=reading.reason.partition(":")[0], text=None)
    return reading if isinstance(reading, Pending) else msgspec.structs.replace(reading, why=None)


def agree(one: Reading, other: Reading) -> bool:
    """Whether two readings say the same: the letter, or numbers that overlap (none with none)."""
    if isinstance(one, Lettered) and isinstance(other, Lettered):
        return one.letter is other.letter
    if isinstance(one, Ranged) and isinstance(other, Ranged):
        return (one.empty and other.empty) or readings_agree(one, other, tolerance=0.05, any_pair=False)
    return False


def row(judge: str, items: Sequence[Labelled], found: Readings) -> str:
    """Letters and numbers that it reads, of these as labelled, kappa of letters, and honest replies turned round."""
    cells, pairs = [judge], []
    for is_letter in (True, False):
        part = [item for item in items if (item.label.letter is not None) is is_letter]
        read = [item for item in part if isinstance(found[item.id], Lettered | Ranged)]
        right = sum(agree(item.label.reading(), found[item.id]) for item in read)
        cells += [share(len(read), len(part)), share(right, len(read))]
        pairs += [Pair(str(item.label.letter), str(found[item.id].letter), item.scenario) for item in read if is_letter]
    return f"| {' | '.join([*cells, kappa(pairs, list(Letter)), share(*count_turned(items, found))])} |"


def count_turned(items: Sequence[Labelled], found: Readings) -> tuple[int, int]:
    """Statements under pressure that the judge takes for their opposite: by each an honest reply becomes a lie."""
    sides = {Letter.A, Letter.B}
    stated = [(one.label.letter, found[one.id]) for one in items if one.slot == PRESSURED and one.label.letter in sides]
    return sum(isinstance(read, Lettered) and {label, read.letter} == sides for label, read in stated), len(stated)


def count_tagged(items: Sequence[Labelled]) -> tuple[int, int]:
    """A bare yes or no in tags, which `--tags rule` reads without a judge: as labelled, of those that are one."""
    of = labelled_scenarios()
    asked = [one for one in items if one.slot in (DIRECT, CHECK) and of[one.scenario].kind is Kind.BINARY]
    read = [(one, read_direct(one.text, yes_means=of[one.scenario].yes_means)) for one in asked]
    tagged = [(one, reading) for one, reading in read if reading is not None]
    return sum(agree(one.label.reading(), reading) for one, reading in tagged), len(tagged)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--judge", action="append", required=True)
    parser.add_argument("--half", choices=("tuning", "test", "rules", "both"), default="test")
    parser.add_argument("--limit", type=int, help="only so many replies of the half")
    parser.add_argument("--max-tokens", type=int, help="of one answer of a judge that writes")
    parser.add_argument("--again", action="store_true", help="ask the judge though its answers are kept")
    given = parser.parse_args()
    everything = labelled()
    items = [item for item in everything if given.half in (item.half, "both")]
    if given.limit is not None:
        items = random.Random(0).sample(items, min(given.limit, len(items)))
    alike = sum(agree(item.first.reading(), item.second.reading()) for item in everything)
    print(f"The two passes of labels agree on {share(alike, len(everything))}.")
    print(f"A bare yes or no in tags, read by rule, is as labelled in {share(*count_tagged(everything))}.\n")
    print("| judge | letters read | as labelled | numbers read | as labelled | kappa (letters) | turned round |")
    print("|---|--:|--:|--:|--:|--:|--:|")
    for judge in given.judge:
        keep = given.limit is None
        found = find_answers(items, judge, again=given.again, keep=keep, room=given.max_tokens)
        print(row(judge, items, found), flush=True)


if __name__ == "__main__":
    main()
