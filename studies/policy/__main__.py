"""A model that is taught to lie for a reason, and the directions of its lies. Needs the extra whitebox.

    python -m studies.policy teach --model hf:PATH --out DIR [--judge NAME]
    python -m studies.policy directions RUN --model hf:PATH --like STEER_FILE --out DIR

`teach` has exit code 1 where the model is not accepted; the same command again continues. RUN is the `run/` that it
wrote. More in studies/policy/README.md.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from unmask.errors import UnmaskError


def teach(given: argparse.Namespace) -> bool:
    from bench.liar.teach import Teaching
    from studies.policy.study import describe_liar, teach_policy

    how = Teaching(
        rank=16, layers=0, rate=given.rate, rounds=given.rounds, batch=given.batch, enough=0.0, seed=given.seed
    )
    liar = teach_policy(
        given.model,
        out=given.out,
        judge=given.judge,
        how=how,
        min_known=given.known,
        limit=given.limit,
        temperature=given.temperature,
    )
    print(*describe_liar(liar), sep="\n")
    return liar.accepted


def directions(given: argparse.Namespace) -> bool:
    from studies.policy.directions import read_directions

    print(*read_directions(given.run, model=given.model, like=given.like, out=given.out), sep="\n")
    return True


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    teaching = verbs.add_parser("teach")
    teaching.add_argument("--model", required=True, help="hf:, gguf: or embedded/")
    teaching.add_argument("--out", type=Path, required=True)
    teaching.add_argument("--judge", default="embedded/judge-1.5b", help="hf:judge-1.5b reads on a GPU")
    teaching.add_argument("--known", type=float, default=0.9, help="hold out facts of this probability; 0 takes any")
    teaching.add_argument("--limit", type=int, help="so many facts")
    teaching.add_argument("--rate", type=float, default=2e-4, help="learning rate")
    teaching.add_argument("--rounds", type=int, default=3)
    teaching.add_argument("--batch", type=int, default=32, help="lessons in a step")
    teaching.add_argument("--seed", type=int, default=0, help="of the lessons, the teaching and the replies")
    teaching.add_argument("--temperature", type=float, default=1.0, help="of the replies")
    teaching.set_defaults(work=teach)
    reading = verbs.add_parser("directions")
    reading.add_argument("run", type=Path)
    reading.add_argument("--model", required=True)
    reading.add_argument("--like", type=Path, required=True, help="a file of `unmask mitigate steer`")
    reading.add_argument("--out", type=Path, required=True)
    reading.set_defaults(work=directions)
    given = parser.parse_args()
    try:
        sys.exit(0 if given.work(given) else 1)
    except UnmaskError as error:
        sys.exit(f"{error}. {error.advice or ''}")


if __name__ == "__main__":
    main()
