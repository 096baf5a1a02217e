"""Which facts a model knows: how likely it is to finish a true answer, where it could finish an untrue one."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import torch
from torch.nn.utils.rnn import pad_sequence

from unmask.errors import FatalModelError
from unmask.records import Message, Role
from unmask.whitebox.activations import AnsweredChat, tokenise

if TYPE_CHECKING:
    from unmask.whitebox.chat import Chat
    from unmask.whitebox.contrast import Fact

EXAMPLES = 6
"""Other facts, asked and answered before, that show how answers are worded."""
FACTS_PER_PASS = 8


def measure_knowledge(model: Any, chat: Chat, facts: Sequence[Fact], *, seed: int) -> dict[str, float]:
    """For each fact the probability of the words in which its answer differs from its falsehood, given the question and
    the words before them: what a model that writes the answer at temperature 1 says there.

    Raises where a score is no number.
    """
    drawn = random.Random(f"unmask known facts {seed}").sample(list(facts), min(EXAMPLES + 1, len(facts)))
    probabilities: dict[str, float] = {}
    for start in range(0, len(facts), FACTS_PER_PASS):
        group = facts[start : start + FACTS_PER_PASS]
        tokens, spans = [], []
        for fact in group:
            shown = [example for example in drawn if example.id != fact.id][:EXAMPLES]
            messages = tuple(
                message
                for example in shown
                for message in (Message(Role.USER, example.question), Message(Role.ASSISTANT, example.answer))
            )
            asked = (*messages, Message(Role.USER, fact.question))
            answered = tokenise(chat, AnsweredChat(asked, fact.answer))
            tokens.append(answered.all)
            spans.append(find_difference(answered.all, tokenise(chat, AnsweredChat(asked, fact.falsehood)).all))
        ids = pad_sequence([torch.tensor(row) for row in tokens], batch_first=True).to(model.device)
        with torch.inference_mode():
            odds = model(input_ids=ids, use_cache=False).logits[:, :-1].float().log_softmax(dim=-1)
            likelihoods = odds.gather(2, ids[:, 1:, None])[:, :, 0].cpu()
        for row, (fact, span) in enumerate(zip(group, spans, strict=True)):
            probabilities[fact.id] = math.exp(likelihoods[row, span.start - 1 : span.stop - 1].sum().item())
    if any(math.isnan(probability) for probability in probabilities.values()):
        raise FatalModelError("the model's scores are not numbers", advice="Its weights are damaged, or overflow")
    return probabilities


def find_difference(left: Sequence[int], right: Sequence[int]) -> range:
    """Where the first differs from the second: without what they share at the beginning and at the end.

    Where words were only inserted into the second, it is the token that the first has in their place.
    """
    shortest = min(len(left), len(right))
    start = next((place for place in range(shortest) if left[place] != right[place]), shortest - 1)
    rest = shortest - start
    end = next((place for place in range(rest) if left[-1 - place] != right[-1 - place]), rest)
    return range(start, max(start + 1, len(left) - end))
