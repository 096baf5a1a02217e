"""What a judge has said in earlier runs about which side *yes* means: taken over where a run needs it, stored where a
run has asked.

A run never uses what another judge said, nor what a model of the same name said at another address. What is taken over
is written to the judge's readings file like an answer, with the run it comes from as its `source`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import cached_property
from typing import TYPE_CHECKING

from unmask.judges.answers import POLARITY_ORDERS, polarity_answers
from unmask.judges.letters import imagined, prompts_hash
from unmask.protocol.plan import JudgeWork, Work
from unmask.protocol.readings import POLARITY, polarity_digest
from unmask.protocol.state import ScenarioState
from unmask.records import Judged, Scenario
from unmask.runs.definition import JudgeSpec

if TYPE_CHECKING:
    from unmask.data.polarity import Polarity

PolarityKey = tuple[str, str, str, str]
"""The judge, its address, the wording and the digest of the question."""


class PolarityDesk:
    """What runs that go on side by side share: which of them asks a question, who waits for the answer, and answers."""

    def __init__(self) -> None:
        self.answers: dict[PolarityKey, Polarity] = {}
        self._askers: dict[PolarityKey, PolarityStore] = {}
        self._waiting: dict[PolarityKey, list[Callable[[], None]]] = {}

    def is_taken(self, key: PolarityKey, asker: PolarityStore, on_end: Callable[[], None]) -> bool:
        """Whether another run is asking this question; `on_end` is called when that run has stopped. If none is, this
        run asks it from now on."""
        if self._askers.setdefault(key, asker) is asker:
            return False
        self._waiting.setdefault(key, []).append(on_end)
        return True

    def leave(self, asker: PolarityStore, key: PolarityKey | None = None) -> None:
        """This run does not ask the question any more, or without `key` no question: it has the answer, needs none,
        or has ended."""
        keys = [question for question, holder in self._askers.items() if holder is asker] if key is None else [key]
        for question in keys:
            if self._askers.get(question) is asker:
                del self._askers[question]
                for on_end in self._waiting.pop(question, ()):
                    on_end()


class PolarityStore:
    """The answers of one judge, for one run. `run` names it in the store."""

    desk: PolarityDesk | None = None
    """Where runs go on side by side, what they share."""

    def __init__(self, spec: JudgeSpec, *, run: str) -> None:
        self._run = run
        model = spec.model.removeprefix("inspect/")  # whoever sends the requests, the model is the same
        self._judge = " ".join([model, *(f"{treatment.kind}@{treatment.hash}" for treatment in spec.treatments)])
        self._endpoint = spec.endpoint or ""
        self._has_address = not self._endpoint.startswith("inspect/")
        """Where Inspect sends requests to is known only if it was told: its own variables may name any address."""
        self._prompt = prompts_hash()

    @cached_property
    def _answers(self) -> dict[str, Polarity]:
        """What the store holds, read when the first scenario asks: most data says itself what *yes* means."""
        from unmask.data.polarity import load_answers

        if not self._has_address:
            return {}
        return load_answers(judge=self._judge, endpoint=self._endpoint, prompt=self._prompt)

    def lines_for(self, scenario: Scenario, state: ScenarioState) -> tuple[Judged, ...]:
        """The lines that a readings file takes over for this question: none where the judge was asked in this run, and
        those that a kill has left out where the file has some of them."""
        key = polarity_digest(scenario)
        stored, calls = self._answers.get(key), state.calls(POLARITY, key)
        if stored is None and self.desk is not None:
            stored = self.desk.answers.get(self._key_of(key))
        if stored is None or any(call.source is None for call in calls):
            return ()
        present = {call.method for call in calls}
        return tuple(
            Judged(
                scenario=scenario.id,
                slot=POLARITY,
                digest=key,
                method=method,
                choices=(imagined(method, side),),
                source=stored.run,
            )
            for method, side in zip(POLARITY_ORDERS, stored.answers, strict=True)
            if method not in present
        )

    def store(self, scenario: Scenario, state: ScenarioState) -> None:
        """Keep what the judge said in this run, once it has answered in both orders."""
        key = polarity_digest(scenario)
        answers = polarity_answers([call for call in state.calls(POLARITY, key) if call.source is None])
        if answers is None:
            return
        from unmask.data.polarity import Polarity, store_answer

        answer = Polarity(
            judge=self._judge,
            endpoint=self._endpoint,
            prompt=self._prompt,
            key=key,
            answers=answers,
            run=self._run,
            scenario=scenario.id,
        )
        if self._has_address:
            store_answer(answer)
        if self.desk is not None:
            self.desk.answers[self._key_of(key)] = answer

    def is_asked_elsewhere(self, scenario: Scenario, on_end: Callable[[], None]) -> bool:
        """Whether a run beside this one asks about this scenario's question; `on_end` is called when it is over."""
        return self.desk is not None and self.desk.is_taken(self._key_of(polarity_digest(scenario)), self, on_end)

    def leave(self, scenario: Scenario | None = None) -> None:
        """Nothing is asked about this scenario's question any more, or about any."""
        if self.desk is not None:
            self.desk.leave(self, None if scenario is None else self._key_of(polarity_digest(scenario)))

    def _key_of(self, key: str) -> PolarityKey:
        return self._judge, self._endpoint, self._prompt, key


def asks_polarity(work: Iterable[Work]) -> bool:
    """Whether the judge is about to be asked which side *yes* means."""
    return any(isinstance(item, JudgeWork) and item.slot == POLARITY for item in work)
