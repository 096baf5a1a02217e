"""Whether a folder is the run that its run.json describes: its scenarios, and the models that answered."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from unmask.data.dataset import Content
from unmask.runs.definition import Definition
from unmask.runs.folder import Folder, Journal
from unmask.scoring.guards import GuardFinding
from unmask.scoring.identity import Identity, count_names


class Witness:
    """Remembers of each journal that is opened what `Identity` is made of, so that nothing is read twice."""

    def __init__(self, folder: Folder, definition: Definition) -> None:
        self._folder, self._definition = folder, definition
        self._content = Content()
        self._answers: dict[str | None, Counter[str | None]] = {}

    def watch(self, journal: Journal) -> Journal:
        self._content = journal.content
        self._answers |= journal.answers
        return journal

    def knows(self, judges: Sequence[str]) -> bool:
        """Whether a journal with the files of these judges was opened."""
        return self._answers.keys() >= {None, *judges}

    def identify(self, judges: Sequence[str]) -> Identity:
        specs = {None: self._definition.subject} | {file: self._definition.judges[file] for file in judges}
        counted = (
            count_names(self._answers[file], judge=file, asked=spec.model, endpoint=spec.endpoint)
            for file, spec in specs.items()
        )
        answered_by = tuple(answered for answered in counted if answered.names)
        findings = [self._find_altered(), *(names.find_change() for names in answered_by)]
        return Identity(tuple(filter(None, findings)), answered_by)

    def _find_altered(self) -> GuardFinding | None:
        """Where the scenarios are not those of run.json, also as it is now: the run may have grown since it was
        opened."""
        if self._definition.data.find_mismatch(self._content) is None:
            return None
        data = self._folder.definition().data
        mismatch = data.find_mismatch(self._content)
        if mismatch is None:
            return None
        hits, total = sum(self._content.counts.values()), sum(data.counts.values())
        return GuardFinding(guard="altered", text=mismatch, hits=hits, total=total, limit=None, refuses=True)
