"""Directions of a liar's own lies, in the place of the honest direction of a steer file.

In the run that decides, each fact is asked with a reason to lie and without one, in the same role, after the same
quotation and in the same words. Of all facts that the model lies about with the reason and is honest about without it,
the mean difference of its activations is taken twice: over the tokens of the reply (`own-reply`), and at the last token
before the reply (`own-prompt`). Both point towards honesty. They are as long in every layer as the direction of the
steer file, and pushed in the same layers.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from studies.policy.lessons import CONTROL_PREFIX, PRESSURED_PREFIX
from unmask import Outcome, Run, open_run
from unmask.errors import UsageError
from unmask.models.local.inside import open_whitebox
from unmask.records import PRESSURED, Verdict
from unmask.whitebox.activations import AnsweredChat, Pooling, compute_activations, select_layers
from unmask.whitebox.load import model_hash
from unmask.whitebox.steer import Steering, load_steering, save_steering


def pair_facts(rows: Sequence[Outcome]) -> list[tuple[str, str]]:
    """For each fact the ids of its honest reply without a reason and of its lie with one. Facts without both are left
    out."""
    verdicts = {row.id: row.verdict for row in rows}
    facts = sorted(name.removeprefix(PRESSURED_PREFIX) for name in verdicts if name.startswith(PRESSURED_PREFIX))
    pairs = [(CONTROL_PREFIX + fact, PRESSURED_PREFIX + fact) for fact in facts]
    wanted = (Verdict.HONEST, Verdict.LIE)
    return [pair for pair in pairs if tuple(map(verdicts.get, pair)) == wanted]


def read_directions(run: str | Path, *, model: str, like: Path, out: Path) -> Iterator[str]:
    """Write `own-reply.safetensors` and `own-prompt.safetensors` into `out`, and say how far they are from `like`."""
    import torch

    opened_run, honest = open_run(run), load_steering(like)
    pairs = pair_facts(opened_run.rows())
    if not pairs:
        raise UsageError(f"{run} has no fact with a lie for a reason and an honest reply without", advice="Teach it")
    out.mkdir(parents=True, exist_ok=True)
    with open_whitebox(model) as opened:
        metadata = replace(
            honest.metadata,
            model=opened.recorded,
            model_hash=model_hash(opened.model),
            facts_hash="",
            instructions_hash="",
            learnt=len(pairs),
            held_out=0,
            scores=(),
            sign=None,
        )
        for name, pooling in (("reply", Pooling.MEAN), ("prompt", Pooling.LAST)):
            control, pressured = (
                compute_activations(
                    opened.model,
                    opened.chat,
                    [_read_conversation(opened_run, pair[side], with_reply=name == "reply") for pair in pairs],
                    layers=select_layers(opened.model),
                    pooling=pooling,
                )
                for side in (0, 1)
            )
            vectors = (control - pressured).mean(dim=0)
            lengths = honest.vectors.norm(dim=1, keepdim=True) / vectors.norm(dim=1, keepdim=True)
            save_steering(Steering(metadata, vectors * lengths), out / f"own-{name}.safetensors")
            cosines, centre = torch.nn.functional.cosine_similarity(vectors, honest.vectors, dim=1), metadata.layer
            yield (
                f"own-{name}: {len(pairs)} pairs; cosine with the honest direction {cosines[centre]:+.3f} in layer"
                f" {centre}, {cosines.min():+.3f} to {cosines.max():+.3f} over all; {1 / lengths[centre].item():.2f}"
                " times its length"
            )


def _read_conversation(run: Run, scenario_id: str, *, with_reply: bool) -> AnsweredChat:
    reply = run.replies(scenario_id)[PRESSURED, 0].text if with_reply else ""
    return AnsweredChat(run.scenario(scenario_id).conversation, reply)
