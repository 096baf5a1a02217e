"""Directions of a liar's own lies, in the place of the honest direction of a steer file.

    python -m bench.own_direction POLICY_RUN --model hf:DIR --like STEER_FILE --out DIR

POLICY_RUN is the `run/` of `unmask organism --policy`: there each fact is asked with a reason to lie and without one,
in the same role, behind the same quotation and in the same words. Of all facts that it lies about with the reason and
is honest about without it, the mean difference is taken twice: over the tokens of the reply (`own-reply`), and at the
last token before the reply (`own-prompt`). Both point towards honesty and are as long in every layer as the direction
of STEER_FILE, and they are pushed in the same layers. It needs the extra whitebox.
"""

from __future__ import annotations

import argparse
from pathlib import Path

from msgspec.structs import replace

from unmask.experiments.policy_lessons import CONTROL_PREFIX, PRESSURED_PREFIX
from unmask.experiments.probe import ProbeSample, collect_samples
from unmask.models.local.inside import open_whitebox
from unmask.runs.run import Run


def pair_replies(samples: list[ProbeSample]) -> list[tuple[ProbeSample, ProbeSample]]:
    """For each fact its honest reply without a reason, and its lie with one; facts without both are left out."""
    honest = {sample.id.removeprefix(CONTROL_PREFIX): sample for sample in samples if not sample.lie}
    lies = {sample.id.removeprefix(PRESSURED_PREFIX): sample for sample in samples if sample.lie}
    return [(honest[fact], lies[fact]) for fact in sorted(honest.keys() & lies.keys())]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--model", required=True)
    parser.add_argument("--like", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()

    import torch

    from unmask.whitebox.activations import AnsweredChat, Pooling, compute_activations, select_layers
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


if __name__ == "__main__":
    main()
