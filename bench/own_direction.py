"""Directions of a liar's own lies, in the place of the honest direction of a steer file.

    python -m bench.own_direction read POLICY_RUN --model hf:DIR --like STEER_FILE --out DIR
    python -m bench.own_direction compare BASE_RUN RUNS

POLICY_RUN is the `run/` of `unmask organism --policy`: there each fact is asked with a reason to lie and without one,
in the same role, behind the same quotation and in the same words. Of all facts that it lies about with the reason and
is honest about without it, the mean difference is taken twice: over the tokens of the reply (`own-reply`), and at the
last token before the reply (`own-prompt`). Both point towards honesty and are as long in every layer as the direction
of STEER_FILE, and they are pushed in the same layers. It needs the extra whitebox.

`compare` has the lies of each run in the folder RUNS less those of BASE_RUN, per take, over the scenarios in which the
base shows a belief, as `unmask mitigate study` compares its arms; and the slope over the coefficients of one direction.
The name of a run is DIRECTION@COEFFICIENT.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from msgspec.structs import replace

from unmask.experiments.policy_lessons import CONTROL_PREFIX, PRESSURED_PREFIX
from unmask.experiments.probe import ProbeSample, collect_samples
from unmask.experiments.study_arms import TakeMeasure, share_takes, shows_belief
from unmask.models.local.inside import open_whitebox
from unmask.records import Outcome, Pooling
from unmask.runs.run import Run
from unmask.stats.compare import paired_difference
from unmask.stats.dose import fit_slope, flip_slopes


def pair_replies(samples: list[ProbeSample]) -> list[tuple[ProbeSample, ProbeSample]]:
    """For each fact its honest reply without a reason, and its lie with one; facts without both are left out."""
    honest = {sample.id.removeprefix(CONTROL_PREFIX): sample for sample in samples if not sample.lie}
    lies = {sample.id.removeprefix(PRESSURED_PREFIX): sample for sample in samples if sample.lie}
    return [(honest[fact], lies[fact]) for fact in sorted(honest.keys() & lies.keys())]


def read_directions(given: argparse.Namespace) -> None:
    import torch

    from unmask.whitebox.activations import AnsweredChat, compute_activations, select_layers
    from unmask.whitebox.load import model_hash
    from unmask.whitebox.steer import Steering, load_steering, save_steering

    run = Run(given.run)
    pairs = pair_replies(collect_samples(run, run.rows()))
    honest_file = load_steering(given.like)
    given.out.mkdir(parents=True, exist_ok=True)
    with open_whitebox(given.model) as opened:
        metadata = replace(
            honest_file.metadata,
            model=opened.recorded,
            model_hash=model_hash(opened.model),
            facts_hash="",
            instructions_hash="",
            learnt=len(pairs),
            held_out=0,
            scores=(),
            sign=None,
        )
        for name in ("reply", "prompt"):
            sides = [
                compute_activations(
                    opened.model,
                    opened.chat,
                    [AnsweredChat(pair[side].messages, pair[side].reply if name == "reply" else "") for pair in pairs],
                    layers=select_layers(opened.model),
                    pooling=Pooling.MEAN if name == "reply" else Pooling.LAST,
                )
                for side in (0, 1)
            ]
            vectors = (sides[0] - sides[1]).mean(dim=0)
            lengths = honest_file.vectors.norm(dim=1, keepdim=True) / vectors.norm(dim=1, keepdim=True)
            cosines = torch.nn.functional.cosine_similarity(vectors, honest_file.vectors, dim=1)
            save_steering(Steering(metadata, vectors * lengths), given.out / f"own-{name}.safetensors")
            centre = metadata.layer
            print(
                f"own-{name}: {len(pairs)} pairs; cosine with the honest direction {cosines[centre]:+.3f} in layer"
                f" {centre}, {cosines.min():+.3f} to {cosines.max():+.3f} over all; {1 / lengths[centre].item():.2f}"
                " times its length"
            )


def compare_runs(given: argparse.Namespace) -> None:
    import numpy as np

    base_rows = {row.id: row for row in Run(given.run).rows()}
    believed = [id_ for id_, row in base_rows.items() if shows_belief(row)]
    takes = Run(given.run).definition.takes
    shares: dict[str, dict[float, dict[str, float]]] = {}
    for folder in sorted(given.runs.iterdir()):
        direction, _, coefficient = folder.name.rpartition("@")
        rows = {row.id: row for row in Run(folder).rows()}
        shares.setdefault(direction, {})[float(coefficient)] = measure_lies(rows, believed, takes=takes)
    base = measure_lies(base_rows, believed, takes=takes)
    rng = np.random.default_rng(0)
    for direction, by_dose in shares.items():
        for dose, lies in sorted(by_dose.items()):
            ids = sorted(base.keys() & lies.keys())
            found = paired_difference([base[id_] for id_ in ids], [lies[id_] for id_ in ids], rng=rng)
            assert found.value is not None
            assert found.low is not None
            assert found.high is not None
            shown = f"{100 * found.value:+.1f} [{100 * found.low:.1f}, {100 * found.high:.1f}]"
            print(f"{direction} × {dose:+g}: lies {shown} points, {len(ids)} scenarios")
        doses = {0.0: base, **by_dose}
        slopes = [fit_slope({dose: lies[id_] for dose, lies in doses.items() if id_ in lies}) for id_ in believed]
        slope = flip_slopes([value for value in slopes if value is not None], widest=max(map(abs, doses)), rng=rng)
        if slope.value is not None and slope.low is not None and slope.high is not None:
            shown = f"{100 * slope.value:+.2f} [{100 * slope.low:.2f}, {100 * slope.high:.2f}]"
            print(f"{direction}: {shown} points for one unit, p {slope.p_value:.3f} by {slope.flips:,} sign flips")


def measure_lies(rows: dict[str, Outcome], ids: list[str], *, takes: int) -> dict[str, float]:
    found = {id_: share_takes(rows[id_], TakeMeasure.LIE, takes=takes) for id_ in ids}
    return {id_: share for id_, share in found.items() if share is not None}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    read = verbs.add_parser("read")
    read.add_argument("run", type=Path)
    read.add_argument("--model", required=True)
    read.add_argument("--like", type=Path, required=True)
    read.add_argument("--out", type=Path, required=True)
    read.set_defaults(work=read_directions)
    compare = verbs.add_parser("compare")
    compare.add_argument("run", type=Path)
    compare.add_argument("runs", type=Path)
    compare.set_defaults(work=compare_runs)
    given = parser.parse_args()
    given.work(given)


if __name__ == "__main__":
    main()
