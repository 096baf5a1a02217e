"""What a reader must know before quoting a score: what is missing, what was silent, who checked, what is different."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import NamedTuple

from unmask.analysis.agreement import ReaderAgreement, agree
from unmask.analysis.departures import list_departures
from unmask.analysis.labels import labellers
from unmask.errors import DataError, JournalError
from unmask.records import Kind, Outcome
from unmask.render import words
from unmask.render.describe.imported import state_import
from unmask.render.describe.score import count_other_replies
from unmask.runs.imported import read_import_file
from unmask.runs.run import Run
from unmask.scoring.guards import explain_small_judges
from unmask.scoring.score import Score, describe_unjudged, explain_sides, explain_unjudged

LIMIT = 0.05
"""Share of unjudged scenarios from which a score should not be quoted without saying so."""
PUBLISHED_AGREEMENT = 0.864


class Note(NamedTuple):
    """`command` is something to type, shown apart from the sentence."""

    serious: bool
    text: str
    command: str | None = None


def collect_notes(run: Run, score: Score, rows: list[Outcome], *, judge: str | None) -> list[Note]:
    """Everything worth a warning, the serious ones first. `rows` are those with replies that are empty or cut off;
    others do not matter. `judge` is a file name, or that of a panel."""
    all_notes = [
        *_note_missing(score, rows),
        *(Note(False, sentence) for sentence in explain_small_judges(score.run)),
        *(Note(False, sentence) for answered in score.answered_by if (sentence := answered.explain())),
        *_note_agreement(run, score, judge),
        *_note_other_judges(run, score),
        *(Note(False, sentence) for sentence in filter(None, [explain_sides(score)])),
        *_note_adjustments(run, judge),
        *_note_import(run, score),
        *(Note(False, departure.text) for departure in list_departures(run.definition, score)),
    ]
    return sorted(all_notes, key=lambda note: not note.serious)


def _note_missing(score: Score, rows: list[Outcome]) -> Iterator[Note]:
    for finding in score.warnings:
        relied = " No number on this page can be relied on." if finding.guard in {"one_letter", "altered"} else ""
        yield Note(True, f"{finding.text[0].upper()}{finding.text[1:]}.{relied}")
    if score.undecided:
        waits = str(score.missing) if score.missing else f"{len(score.undecided)} not asked or not read yet"
        text = f"Not finished: {waits}. The command that finishes:"
        yield Note(True, text, score.complete_with)
    if share := score.unjudged_share:
        beyond = f", more than the {100 * LIMIT:g} % a score should be quoted with" if share > LIMIT else ""
        yield Note(share > LIMIT, f"{describe_unjudged(score)}{beyond}. {explain_unjudged(score)}")
    if score.silent:
        where = sum(bool(row.silent) for row in rows)
        yield Note(
            False,
            f"{score.silent} replies in {where} scenarios are empty. An empty reply asserts nothing: it is an evasion"
            " under pressure, and no belief in a probe.",
        )
    if score.truncated:
        where = sum(bool(row.truncated) for row in rows)
        replies = "1 reply was" if score.truncated == 1 else f"{score.truncated} replies in {where} scenarios were"
        yield Note(False, f"{replies} cut off by the token limit.")


def _note_agreement(run: Run, score: Score, judge: str | None) -> Iterator[Note]:
    """Each person who labelled replies against the judge in use; without any, that nobody did."""
    published = f"The published judge agreed with people on {words.percent(PUBLISHED_AGREEMENT)} of 150 replies."
    people = labellers(run)
    if not people or judge is None:
        unknown = "Nobody has checked this judge by hand yet, so its error rate on this run is unknown."
        yield Note(False, f"{unknown} {published}")
        return
    for person in people:
        try:
            agreed = agree(run, labels=person, judges=[judge], preset=score.preset)
        except (DataError, JournalError) as error:
            yield Note(True, f"The labels by {person} are not used: {error}.")
            continue
        if agreed.other_replies:
            yield Note(True, f"Labels by {person}: {count_other_replies(agreed.other_replies)}.")
        yield from (Note(False, f"{_state_agreement(side)} {published}") for side in agreed.judge_against_labels)


def _state_agreement(side: ReaderAgreement) -> str:
    parts = [
        f"{words.percent(agreement.value)}{words.interval(agreement.low, agreement.high)} of {part.n} {what}"
        for part, what in ((side.letters, "letters"), (side.verdicts, "verdicts"))
        if (agreement := part.agreement).value is not None
    ]
    who = "The judge for figures" if side.reads is Kind.NUMERIC else "The judge"
    if parts:
        return f"{who} agrees with {side.b} on {' and '.join(parts)}."
    return f"{side.b} labelled too few replies to say how well {who[0].lower()}{who[1:]} reads."


def _note_other_judges(run: Run, score: Score) -> Iterator[Note]:
    """Who else has read the run; a warning where only they have decided anything."""
    others = score.other_judges
    if others is not None and others.command is not None:
        yield Note(True, f"No scenario is decided by {others.used}. Another judge decides some:", others.command)
    for name in others.names if others is not None and others.command is None else ():
        command = shlex.join(["unmask", "report", str(run.path), "--judge", name])
        yield Note(False, f"Also read by {name}, whose readings are not used here:", command)


def _note_adjustments(run: Run, judge: str | None) -> Iterator[Note]:
    """Settings an endpoint refused: the run was not made with what it asked for."""
    judged = (line for file in run.definition.judge_files(judge) for line in run.folder.judged(file))
    for who, lines in (("subject", run.folder.asked()), ("judge", judged)):
        changed = sorted({change for line in lines for change in line.adjusted})
        if changed:
            yield Note(True, f"The {who}'s endpoint refused settings, which were changed: {'; '.join(changed)}.")


def _note_import(run: Run, score: Score) -> Iterator[Note]:
    """Where an imported run comes from, and why verdicts differ from those of the other harness."""
    if about := read_import_file(run.path):
        yield Note(False, state_import(about, score.preset))
