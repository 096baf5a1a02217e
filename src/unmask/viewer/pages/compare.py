"""*Compare*: runs side by side, scenario by scenario."""

from __future__ import annotations

from collections import Counter, OrderedDict
from collections.abc import Callable, Mapping
from threading import RLock
from typing import NamedTuple
from urllib.parse import parse_qsl, urlencode

from markupsafe import Markup
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from unmask.analysis.compare import Comparison, call_difference
from unmask.errors import UnmaskError, UsageError
from unmask.records import PRESSURED, Choice, Outcome, Preset, Scenario, Slot, Verdict
from unmask.render.html.conversation import Finding, build_conversation, describe_finding, name_anchor, show_proposition
from unmask.render.html.report import axis_reach, join_scenarios, try_comparison
from unmask.runs.definition import Definition
from unmask.scoring.measures import find_measure
from unmask.text import replace_surrogates, visible_html_line
from unmask.viewer.app import find_entry, get_catalogue
from unmask.viewer.catalogue import RunEntry
from unmask.viewer.filters import Filter, read_filter, read_number
from unmask.viewer.opened import CACHE, OpenedRun, Stamp, use_entry
from unmask.viewer.pages.run import ROWS, count_choices, cut_page
from unmask.viewer.pages.scenario import make_page
from unmask.viewer.templating import page_response
from unmask.viewer.worddiff import WordDifference, compare_words

MOST_COMPARED = 6
"""Runs side by side: a scenario of more is not to be seen at once."""
MOST_KEPT = 2
"""Comparisons that are kept."""
ONLY = {
    "differences": "only differences",
    "flips": "only flips",
    "became": "became lies",
    "stopped": "stopped being lies",
}
"""What a list of compared scenarios can be narrowed to."""


class SharedRow(NamedTuple):
    """A scenario in several runs: its place in each, `None` where a run has none, and the verdicts there."""

    anchor: str
    scenario: Scenario
    places: tuple[int | None, ...]
    outcomes: tuple[Outcome | None, ...]
    became: bool
    """Whether it is a lie in a later run and none in the first."""
    stopped: bool

    @property
    def flips(self) -> bool:
        return self.became or self.stopped

    @property
    def differs(self) -> bool:
        return len({outcome.verdict for outcome in self.outcomes if outcome is not None}) > 1

    def is_one_of(self, only: str) -> bool:
        kinds = {"differences": self.differs, "flips": self.flips, "became": self.became, "stopped": self.stopped}
        return kinds.get(only, True)


class JoinedRuns(NamedTuple):
    """Several runs with all their scenarios, flips first."""

    runs: list[OpenedRun]
    comparison: Comparison | None
    apart: str | None
    """Why there is no comparison."""
    rows: list[SharedRow]


class Wanted(NamedTuple):
    """What an address of this page asks for."""

    entries: list[RunEntry]
    filter: Filter
    only: str
    against: int
    """The run, counted from 1, whose verdicts `before` and `after` are about together with the first."""
    before: Verdict | None
    after: Verdict | None

    def query(self, **changes: object) -> str:
        own = {
            "runs": ",".join(entry.key for entry in self.entries),
            "only": self.only,
            "against": self.against if self.before or self.after else None,
            "from": self.before,
            "to": self.after,
        }
        return urlencode(
            {name: str(value) for name, value in {**own, **self.filter._asdict(), **changes}.items() if value}
        )


class CompareRow(NamedTuple):
    """A row of the list, ready to be shown."""

    anchor: str
    id: Markup
    about: str
    findings: list[Finding | None]
    flips: bool
    differs: bool


class ReplyDifference(NamedTuple):
    """The words in which the replies of two runs differ: which runs and takes they are, and which there are."""

    runs: tuple[int, int]
    takes: tuple[int, int]
    choices: tuple[list[int], list[int]]
    words: WordDifference


_lock = RLock()
_joined: OrderedDict[tuple[object, ...], JoinedRuns] = OrderedDict()


def show_comparison(request: Request) -> Response:
    keys = read_keys(request)
    if len(keys) < 2:
        return _offer_runs(request, keys)
    wanted = read_wanted(request, keys)
    joined = join_runs(wanted)
    rows = select_rows(joined, wanted)
    page = cut_page(len(rows), read_number(request.query_params, "page"))
    return page_response(
        "compare.html",
        here="compare",
        many=True,
        wanted=wanted,
        joined=joined,
        names_of_runs=_short_names(joined),
        comparison=joined.comparison,
        rows=[_make_row(row) for row in rows[page.first - 1 : page.last]],
        page=page,
        selected=len(rows),
        flips=sum(row.flips for row in rows),
        tables=_count_changes(joined),
        choices={"judge": _common_judges(joined.runs), **count_choices(_first_outcomes(joined))},
        only=ONLY,
        presets=list(Preset),
        anchor=name_anchor,
        anchors={row.anchor for row in joined.rows},
        scenario_address=_address_scenario(wanted),
        reach=axis_reach,
        call_difference=call_difference,
        find_measure=find_measure,
    )


def show_compared_scenario(request: Request) -> Response:
    wanted = read_wanted(request, read_keys(request))
    joined = join_runs(wanted)
    row = next((row for row in joined.rows if row.anchor == request.path_params["anchor"]), None)
    if row is None:
        raise HTTPException(404, "None of these runs has such a scenario. A run may have been made anew.")
    shown: list[tuple[Outcome, dict[tuple[Slot, int], Choice]] | None] = [
        None
        if place is None
        else (run.outcome_at(place, wanted.filter.judge, _preset_of(joined, wanted)), run.replies_at(place))
        for run, place in zip(joined.runs, row.places, strict=True)
    ]
    page = make_page(full=bool(request.query_params.get("full")))
    rows = select_rows(joined, wanted)
    at = next((number for number, listed in enumerate(rows) if listed.anchor == row.anchor), None)
    return page_response(
        "compared.html",
        here="compare",
        many=True,
        wanted=wanted,
        joined=joined,
        names_of_runs=_short_names(joined),
        row=row,
        talk=build_conversation(row.scenario, shown, page),
        difference=_compare_replies(request, shown),
        number=None if at is None else at + 1,
        total=len(rows),
        steps=_find_steps(rows, at),
        scenario_address=_address_scenario(wanted),
        list_page=(at or 0) // ROWS + 1,
        wanted_fields=parse_qsl(wanted.query()),
        anchor=name_anchor,
    )


def read_keys(request: Request) -> list[str]:
    """The runs that an address names, each once: `runs=KEY,KEY`, or `runs=KEY&runs=KEY` from a form."""
    parts = ",".join(request.query_params.getlist("runs")).split(",")
    return list(dict.fromkeys(filter(None, parts)))


def read_wanted(request: Request, keys: list[str]) -> Wanted:
    params = request.query_params
    if len(keys) > MOST_COMPARED:
        raise UsageError(
            f"{len(keys)} runs do not fit side by side; {MOST_COMPARED} do",
            advice="Choose fewer, or look at all of them on the board.",
        )
    only = params.get("only", "")
    if only and only not in ONLY:
        raise UsageError(f"there is no choice {only[:80]!r}", advice=f"Choose one of: {', '.join(ONLY)}.")
    entries = [find_entry(request, key) for key in keys]
    if len(entries) < 2:
        raise UsageError("a comparison needs two runs", advice="Choose them on the page Compare.")
    against = min(read_number(params, "against", 2), len(entries))
    verdicts = [_read_verdict(params, name) for name in ("from", "to")]
    return Wanted(entries, read_filter(params), only, max(2, against), verdicts[0], verdicts[1])


def join_runs(wanted: Wanted) -> JoinedRuns:
    """The runs opened, compared and joined; kept until a file of one of them changes."""
    runs = [CACHE.open(entry) for entry in wanted.entries]
    judge, preset = wanted.filter.judge, wanted.filter.preset or runs[0].definition.preset
    stamps: list[tuple[str, Stamp]] = [(run.entry.key, run.stamp) for run in runs]
    key = (*stamps, judge, preset)
    with _lock:
        if key not in _joined:
            _joined[key] = _join_runs(runs, judge, preset)
        return use_entry(_joined, key, MOST_KEPT)


def _join_runs(runs: list[OpenedRun], judge: str | None, preset: Preset) -> JoinedRuns:
    comparison, apart = try_comparison(runs, preset, judge)
    pairs = comparison.against_first if comparison is not None else ()
    became = {flip.id for pair in pairs for flip in pair.became_lies}
    stopped = {flip.id for pair in pairs for flip in pair.stopped_lying}
    outcomes = [run.view(judge, preset).outcomes for run in runs]
    rows = []
    for scenario, places, variant in join_scenarios(
        [[(scenario, place) for place, scenario in enumerate(run.scenarios)] for run in runs]
    ):
        found_outcomes = tuple(
            None if place is None else of_run[place] for place, of_run in zip(places, outcomes, strict=True)
        )
        name, shared = scenario.id, variant == 1
        anchor = name_anchor(name, variant)
        rows.append(
            SharedRow(
                anchor, scenario, tuple(places), found_outcomes, shared and name in became, shared and name in stopped
            )
        )
    rows.sort(key=lambda row: (not row.became, not row.stopped, not row.differs))
    return JoinedRuns(runs, comparison, apart, rows)


def select_rows(joined: JoinedRuns, wanted: Wanted) -> list[SharedRow]:
    """The rows that an address asks for. A text counts where it stands in any of the runs."""
    rows = [
        row
        for row in joined.rows
        if row.is_one_of(wanted.only)
        and any(outcome is not None and wanted.filter.admits(outcome) for outcome in row.outcomes)
        and _matches_change(row, wanted)
    ]
    if not wanted.filter.q:
        return rows
    places = [[row.places[number] for row in rows] for number in range(len(joined.runs))]
    hits = [
        run.count_hits(wanted.filter.q, [place for place in of_run if place is not None])
        for run, of_run in zip(joined.runs, places, strict=True)
    ]
    return [
        row
        for row in rows
        if any(place is not None and of_run[place] for place, of_run in zip(row.places, hits, strict=True))
    ]


def _matches_change(row: SharedRow, wanted: Wanted) -> bool:
    """Whether a scenario went from one verdict to another, where the address asks for that."""
    first, later = row.outcomes[0], row.outcomes[wanted.against - 1]
    return (wanted.before is None or (first is not None and first.verdict is wanted.before)) and (
        wanted.after is None or (later is not None and later.verdict is wanted.after)
    )


def _count_changes(joined: JoinedRuns) -> list[Counter[tuple[Verdict, Verdict]]]:
    """For each later run how many scenarios went from which verdict of the first run to which of its own."""
    return [
        Counter(
            (first.verdict, later.verdict)
            for first, later in ((row.outcomes[0], row.outcomes[number]) for row in joined.rows)
            if first is not None and later is not None
        )
        for number in range(1, len(joined.runs))
    ]


def _make_row(row: SharedRow) -> CompareRow:
    return CompareRow(
        anchor=row.anchor,
        id=visible_html_line(row.scenario.id, limit=80),
        about=visible_html_line(show_proposition(row.scenario), limit=160),
        findings=[
            None if outcome is None else describe_finding(row.scenario, outcome, redact=False)
            for outcome in row.outcomes
        ],
        flips=row.flips,
        differs=row.differs,
    )


def _find_steps(rows: list[SharedRow], at: int | None) -> dict[str, str]:
    """Keys and the anchors they lead to: the next and previous scenario, the next and previous flip."""
    if at is None:
        return {"j": rows[0].anchor} if rows else {}
    flips = [number for number, row in enumerate(rows) if row.flips]
    targets = {
        "k": at - 1 if at > 0 else None,
        "j": at + 1 if at + 1 < len(rows) else None,
        "N": max((number for number in flips if number < at), default=None),
        "n": min((number for number in flips if number > at), default=None),
    }
    return {key: rows[number].anchor for key, number in targets.items() if number is not None}


def _compare_replies(
    request: Request, shown: list[tuple[Outcome, dict[tuple[Slot, int], Choice]] | None]
) -> ReplyDifference | None:
    """The word difference of two pressured replies: those that the address names, else the first of each run that
    shows why the scenario has its verdict."""
    having = [number for number, part in enumerate(shown) if part and any(slot == PRESSURED for slot, _ in part[1])]
    if len(having) < 2:
        return None
    params = request.query_params
    left, right = (read_number(params, name, having[place] + 1) - 1 for place, name in enumerate(("left", "right")))
    left, right = left if left in having else having[0], right if right in having else having[1]
    choices, takes, texts = [], [], []
    for number, name in ((left, "take_left"), (right, "take_right")):
        part = shown[number]
        assert part is not None
        outcome, replies = part
        answered = sorted(take for slot, take in replies if slot == PRESSURED)
        telling = [
            take for take in answered if take < len(outcome.verdicts) and outcome.verdicts[take] is outcome.verdict
        ]
        take = read_number(params, name, (telling or answered)[0] + 1) - 1
        takes.append(take if take in answered else answered[0])
        choices.append(answered)
        texts.append(replies[PRESSURED, takes[-1]].answer)
    return ReplyDifference((left, right), (takes[0], takes[1]), (choices[0], choices[1]), compare_words(*texts))


def _offer_runs(request: Request, keys: list[str]) -> Response:
    """A page to choose runs on, with what is written about each in its `run.json`."""
    offered: list[tuple[RunEntry, Definition | None, str | None]] = []
    for entry in get_catalogue(request).entries():
        try:
            offered.append((entry, entry.open().definition, None))
        except UnmaskError as error:
            offered.append((entry, None, str(error)))
    return page_response("choose_runs.html", here="compare", offered=offered, chosen=set(keys), most=MOST_COMPARED)


def _preset_of(joined: JoinedRuns, wanted: Wanted) -> Preset:
    return wanted.filter.preset or joined.runs[0].definition.preset


def _first_outcomes(joined: JoinedRuns) -> list[Outcome]:
    """One outcome of each scenario: archetype and pressure are the same in all runs."""
    return [next(outcome for outcome in row.outcomes if outcome is not None) for row in joined.rows]


def _short_names(joined: JoinedRuns) -> list[str]:
    return [replace_surrogates(run.entry.name) for run in joined.runs]


def _common_judges(runs: list[OpenedRun]) -> list[tuple[str, str, None]]:
    return [
        (file, runs[0].definition.typed_judge(file), None)
        for file in runs[0].judges
        if all(file in run.judges for run in runs)
    ]


def _address_scenario(wanted: Wanted) -> Callable[[str], str]:
    query = wanted.query()
    return lambda anchor: f"/compare/scenario/{anchor}?{query}"


def _read_verdict(params: Mapping[str, str], name: str) -> Verdict | None:
    return read_filter({"verdict": params.get(name, "")}).verdict


ROUTES = (Route("/compare", show_comparison), Route("/compare/scenario/{anchor}", show_compared_scenario))
