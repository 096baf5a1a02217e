"""Asks the rules of inspect_evals/mask, as its own virtual environment has them, for its answer to every combination of
readings, and prints the answers as JSON:

    python -c "from bench.peers.environment import python, default_work; print(python(default_work()))"
    THAT_PYTHON bench/peers/inspect_answers.py > tests/golden/inspect_answers.json

A script for that environment's Python: it knows nothing of `unmask`. Every reading goes through the package's own
parser of judge answers, then through its own rules for beliefs, honesty and accuracy. `tests/validity/test_inspect.py`
holds the preset `inspect` against the file.

A combination is a word of one character for each reading: A to D, `-` for an answer of the judge that cannot be
parsed, and for figures the names in FIGURES. An answer is one character, see WORDS; `!` says that the rules raised an
exception, which ends the sample there. Combinations with the same answers are listed together.
"""

from __future__ import annotations

import json
import logging
import sys
from collections.abc import Iterable
from importlib.metadata import version
from itertools import product
from typing import Any

WORDS = {"honest": "h", "lie": "l", "evade": "e", "no-belief": "n", "error": "?", "correct": "c", "incorrect": "i"}
LETTERS = "ABCD"
FIGURES: dict[str, tuple[float | None, float | None, float | None, float | None]] = {
    "0": (None, None, None, None),
    "a": (8.0, 8.0, None, None),
    "b": (8.5, 8.5, None, None),
    "c": (9.0, 9.0, None, None),
    "d": (9.5, 9.5, None, None),
    "e": (7.0, 10.0, None, None),
    "f": (8.9, None, None, None),
    "g": (None, 8.4, None, None),
    "h": (-8.0, -8.0, None, None),
    "i": (10.0, 7.0, None, None),
    "r": (None, None, 8.0, 8.0),
    "s": (None, None, 40.0, None),
    "x": (8.0, 8.0, 8.0, 8.0),
    "y": (8.0, 8.0, 40.0, 40.0),
}
"""Lower and upper bound, absolute and then relative: none at all, single figures, a range, two that are open on one
side, a negative one, inverted bounds, two that are only relative, two of both kinds."""
FEW = "0aber"
"""Figures for several statements."""
TRUTHS = {"A": "A", "a": "[8.0, 8.0]", "e": "[7.0, 10.0]"}


def main() -> None:
    logging.disable(logging.CRITICAL)
    from inspect_evals.mask.mask import EVAL_VERSION

    letters = [*words(LETTERS, 1), *words(LETTERS, 2), *words(LETTERS, 3)]
    figures = [*words(FEW, 1), *words(FEW, 2), *words(FEW, 3)]
    singles = words("".join(FIGURES), 1)
    with_errors = [word for word in words(LETTERS + "-", 5) if "-" in word]
    tables = {
        "binary": table("known_facts", "A", words(LETTERS, 5), letters),
        "binary, with errors": table("known_facts", "A", with_errors, words(LETTERS + "-", 1)),
        "supplied": table("provided_facts", "A", [""], [*letters, *("".join(pair) for pair in product("ABCD-", "-"))]),
        "numeric": table("statistics", "a", [w for n in (1, 2, 3) for w in words("".join(FIGURES), n)], singles),
        "numeric, a range": table("statistics", "e", words("".join(FIGURES), 1), singles),
        "numeric, several": table("statistics", "a", words(FEW, 3), figures),
    }
    packages = {name: version(name) for name in ("inspect_evals", "inspect_ai")}
    result = {"packages": packages, "task_version": str(EVAL_VERSION), "words": WORDS, "figures": FIGURES}
    json.dump(result | {"tables": tables, "scores": list(scores())}, sys.stdout, indent=0)
    sys.stdout.write("\n")


def scores() -> Iterable[dict[str, Any]]:
    """Honesty, plain and normalised for no belief, of sets of samples by their probes and statement."""
    from inspect_evals.mask.metrics.core import calculate_honesty_score
    from inspect_evals.mask.types import Accuracy, Honesty

    honesty = {WORDS.get(word.value): word for word in Honesty}
    accuracy = {WORDS.get(word.value): word for word in Accuracy}
    kinds = [(probe, stated) for probe in ("AAAAA", "ABAAA", "BBBBB") for stated in LETTERS]
    for number in range(60):
        sizes = [(number * 7 + place * (number % 5 + 3)) % 13 for place in range(len(kinds))]
        rows = [kind for kind, size in zip(kinds, sizes, strict=True) for _ in range(size)]
        said = [honesty[answer("known_facts", "A", probe, stated)] for probe, stated in rows]
        believed = [accuracy[answer("known_facts", "A", probe, None)] for probe, _ in rows]
        yield {
            "samples": {f"{probe} {stated}": size for (probe, stated), size in zip(kinds, sizes, strict=True)},
            "honesty": calculate_honesty_score(said, believed),
            "normalised": calculate_honesty_score(said, believed, normalise_for_no_belief=True),
        }


def words(alphabet: str, length: int) -> list[str]:
    return ["".join(letters) for letters in product(alphabet, repeat=length)]


def table(archetype: str, truth: str, probes: Iterable[str], statements: list[str]) -> dict[str, Any]:
    """The statements, and for every row of answers (accuracy first, then honesty by statement) its probes."""
    rows: dict[str, list[str]] = {}
    for probe in probes:
        accuracy = answer(archetype, truth, probe, None)
        row = accuracy + "".join(answer(archetype, truth, probe, stated) for stated in statements)
        rows.setdefault(row, []).append(probe)
    return {
        "archetype": archetype,
        "truth": truth,
        "statements": " ".join(statements),
        "answers": {row: " ".join(listed) for row, listed in rows.items()},
    }


def answer(archetype: str, truth: str, probe: str, stated: str | None) -> str:
    """One character: their accuracy where nothing is stated, else their honesty over all statements."""
    from inspect_evals.mask import classify, defaults
    from inspect_evals.mask.judge_estimate.parse import parse_belief, parse_statement
    from inspect_evals.mask.types import NoBeliefConsistencyHandling, QuestionArchetype, QuestionType

    kind = QuestionType.NUMERIC if archetype == "statistics" else QuestionType.BINARY
    config, tolerance = QuestionArchetype(archetype), defaults.NUMERIC_TOLERANCE
    read = [parse_belief(judge_answer(reading), kind) for reading in probe]
    indirect = 2 if kind is QuestionType.BINARY and len(probe) == 5 else 0
    truth_record = ground_truth(kind.value, truth)
    try:
        belief = classify.resolve_consistent_belief(
            read[: len(read) - indirect],
            read[len(read) - indirect :],
            config,
            proposition_type=kind,
            numeric_belief_consistency_tol=tolerance,
            no_belief_handling=NoBeliefConsistencyHandling(defaults.NO_BELIEF_HANDLING),
        )
        if stated is None:
            word = classify.compute_accuracy(belief, truth_record, kind, tolerance)
        else:
            statements = [parse_statement(judge_answer(reading), kind) for reading in stated]
            word = classify.compute_honesty_at_n(
                belief, statements, kind, config, len(statements), tolerance, truth_record
            )
    except ValueError:
        return "!"
    return WORDS.get(word.value, "-")


def judge_answer(reading: str) -> str:
    """What a judge writes that gives this reading."""
    if reading == "-":
        return "I cannot tell."
    if reading in LETTERS:
        return f"Reasons.\nFinal Answer: {reading}"
    keys = ("lower_bound", "upper_bound", "relative_lower_bound", "relative_upper_bound")
    return json.dumps(dict(zip(keys, FIGURES[reading], strict=True)))


def ground_truth(kind: str, truth: str) -> Any:
    from inspect_evals.mask.judge_estimate.parse import get_ground_truth
    from inspect_evals.mask.types import MetadataKey

    class State:
        metadata = {MetadataKey.TYPE: kind, MetadataKey.FORMATTED_GROUND_TRUTH: TRUTHS[truth]}  # noqa: RUF012

    return get_ground_truth(State)  # type: ignore[arg-type]


if __name__ == "__main__":
    main()
