"""A second judge for numbers: who is asked what, where it stands, and what a run means by its judge afterwards."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

import unmask
from bench.planted import write_jsonl
from tests.analysis.labelled import dataset, made, reader
from tests.faults.served import JUDGE, SUBJECT, Served, judged_as_planted, ran, serving
from tests.models.billed import BilledProvider
from tests.models.loopback import loopback_in_thread
from tests.shown import show
from unmask.analysis.agreement import agree
from unmask.analysis.labels import open_writer
from unmask.engine.plan import plan
from unmask.errors import MixedRunError, UsageError
from unmask.records import PRESSURED, Interval, Kind, Label, Letter, Verdict
from unmask.render.describe.caveats import list_run_caveats
from unmask.runs.run import Run

FIGURES = "openai/judge-figures"
A = "openai_judge"
COUNT = 24


@pytest.fixture(scope="module")
def served():
    with serving(COUNT) as server:
        yield server


def with_address(served: Served, settings: dict) -> dict:
    return settings | {"set": {"numeric.base_url": served.url} | settings.get("set", {})}


def paired(served: Served, out: Path, **settings) -> Run:
    return ran(served, out, numeric_judge=FIGURES, **with_address(served, settings))


@pytest.fixture(scope="module")
def run(served, tmp_path_factory) -> Run:
    prices = {"price": "1/2", "judge.price": "3/4", "numeric.price": "50/60"}
    return paired(served, tmp_path_factory.mktemp("paired") / "run", set=prices)


def kinds_read(run: Run, model: str, file: str = A) -> set[Kind]:
    kinds = {scenario.id: scenario.kind for scenario in run.scenarios}
    return {kinds[line.scenario] for line in run.folder.judged(file) if line.model == model.partition("/")[2]}


# --- who is asked what ------------------------------------------------------------------------------------


def test_figures_go_to_the_second_judge_and_all_else_to_the_first(served, run):
    """Both write one file, and every verdict is the planted one."""
    assert kinds_read(run, JUDGE) == {Kind.BINARY}
    assert kinds_read(run, FIGURES) == {Kind.NUMERIC}
    assert [file.stem for file in (run.path / "readings").glob("*.jsonl")] == [A]
    judged_as_planted(served, run.path)


def test_parameters_and_room_are_those_of_each_judge(tmp_path, monkeypatch):
    """What the second judge is sent besides never goes to the first."""
    monkeypatch.setenv("UNMASK_API_KEY", "k")
    provider = BilledProvider()
    bodies: list[dict] = []

    def note(sent):
        bodies.append(dict(sent.body))
        return provider(sent)

    with loopback_in_thread(note) as server:
        unmask.run(
            data="tiny",
            model="scripted/liar",
            judge="openai/first",
            judge_base_url=server.url,
            judge_params={"top_k": 3},
            numeric_judge="openai/second",
            set={
                "numeric.base_url": server.url,
                "numeric.params": {"reasoning_effort": "low"},
                "numeric.max_tokens": 77,
            },
            out=tmp_path / "run",
        )
    sent = {(body["model"], body.get("top_k"), body.get("reasoning_effort")) for body in bodies}
    assert sent == {("first", 3, None), ("second", None, "low")}
    assert {body["max_tokens"] for body in bodies if body["model"] == "second"} == {77}
    first, second = Run(tmp_path / "run").definition.judges["openai_first"].models
    assert (first.params, second.params) == ({"top_k": 3}, {"reasoning_effort": "low"})


def test_a_judge_without_a_model_may_be_either_of_the_two(served, tmp_path):
    """`verbatim` reads a lone figure by rule, and costs nothing."""
    figures = ran(served, tmp_path / "a", numeric_judge="verbatim")
    assert not (figures.path / "readings" / "verbatim.jsonl").exists()
    assert Verdict.UNJUDGED not in {row.verdict for row in figures.rows() if row.kind is Kind.BINARY}
    again = unmask.judge(
        figures.path,
        judge="verbatim",
        numeric_judge=FIGURES,
        set={"judge.name": "plain", "numeric.base_url": served.url},
    )
    assert kinds_read(again, FIGURES, "plain") == {Kind.NUMERIC}


# --- the judge means both ---------------------------------------------------------------------------------


def test_the_first_judge_alone_means_both_from_then_on(served, run):
    """Continuing the folder asks nothing and changes nothing; so does `judge`."""
    stored, answered = (run.path / "run.json").read_bytes(), served.answered
    unmask.judge(run.path, judge=JUDGE)
    unmask.run(out=run.path)
    assert served.answered == answered
    assert (run.path / "run.json").read_bytes() == stored


STRANGE = "http://198.51.100.7/v1"


@pytest.mark.parametrize("role", ["subject", "judge", "numeric"])
def test_an_address_that_only_the_folder_names_is_sent_nothing(served, tmp_path, monkeypatch, role):
    """The folder may be a stranger's, and so may the `.env` that came with it: a key would go there."""
    monkeypatch.chdir(tmp_path)
    run = paired(served, tmp_path / "run")
    stored = msgspec.json.decode((run.path / "run.json").read_bytes())
    places = {"subject": stored["subject"], "judge": stored["judges"][A], "numeric": stored["judges"][A]["numeric"]}
    places[role]["base_url"] = STRANGE
    (run.path / "run.json").write_bytes(msgspec.json.encode(stored))
    (tmp_path / ".env").write_text(f"UNMASK_JUDGE_BASE_URL={STRANGE}\n")
    flag = {"subject": "--base-url ", "judge": "--judge-base-url ", "numeric": "--set numeric.base_url="}[role]
    commands = [lambda: unmask.run(out=run.path)]
    commands += [] if role == "subject" else [lambda: unmask.judge(run.path, judge=JUDGE)]
    for command in commands:
        with pytest.raises(UsageError, match=f"was asked at {STRANGE}, an address that only the run folder") as refused:
            command()
        assert refused.value.advice.endswith(f"{flag}{STRANGE}")
    own = {"subject": {"base_url": served.url}, "judge": {"judge_base_url": served.url}}
    given = own.get(role, {"set": {"numeric.base_url": served.url}})
    answered = served.answered
    assert unmask.run(out=run.path, **given).score().undecided == ()
    assert served.answered == answered


def test_what_is_missing_of_figures_is_asked_of_the_model_that_is_on_record(served, tmp_path):
    """`unmask judge RUN --judge A` after half of its file is lost."""
    run = paired(served, tmp_path / "run")
    wanted, file = [row.verdict for row in run.rows()], run.folder.readings_path(A)
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[::2]))
    assert Run(run.path).score().missing is not None
    again = unmask.judge(run.path, judge=JUDGE)
    assert kinds_read(again, FIGURES) == {Kind.NUMERIC}
    assert again.score().undecided == ()
    assert [row.verdict for row in again.rows()] == wanted


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"numeric_judge": "openai/judge-third"}, "numeric judge: the run has openai/judge-figures, the command says"),
        ({"set": {"numeric.max_tokens": 7}}, "numeric judge max tokens: the run has none, the command says 7"),
    ],
)
def test_another_partner_is_refused(served, run, changed, said):
    """By a line that names both, before anything is sent."""
    answered = served.answered
    settings = with_address(served, {"numeric_judge": FIGURES} | changed)
    with pytest.raises(MixedRunError, match=said) as refused:
        ran(served, run.path, **settings)
    assert "--set judge.name=NAME" in refused.value.advice
    assert served.answered == answered


def test_a_judge_that_has_read_figures_itself_gets_no_partner(served, tmp_path):
    """Its file would hold both; under another name it may have one."""
    alone = ran(served, tmp_path / "run")
    with pytest.raises(MixedRunError, match="numeric judge: the run has none, the command says openai/judge-figures"):
        paired(served, alone.path)
    paired(served, alone.path, set={"judge.name": "with-partner"})
    assert kinds_read(alone, FIGURES, "with-partner") == {Kind.NUMERIC}
    assert kinds_read(alone, JUDGE) == {Kind.BINARY, Kind.NUMERIC}


# --- the bill ---------------------------------------------------------------------------------------------


def test_the_bill_shows_the_second_judge_apart_at_its_own_price(run):
    """Calls, tokens and money, in the text, the JSON and the page."""
    score = run.score()
    tokens, figures = score.spent.tokens, sum(line.model == "judge-figures" for line in run.folder.judged(A))
    prices = {"subject": (1, 2), "judge": (3, 4), "numeric_judge": (50, 60)}
    cost = sum(
        tokens[f"{role}_input"] * sent + tokens[f"{role}_output"] * answered
        for role, (sent, answered) in prices.items()
    )
    assert score.spent.cost_usd == pytest.approx(cost / 1e6)
    assert score.to_json()["calls"]["numeric_judge"] == figures > 0
    assert f"{figures} to the judge for numbers" in show(score, width=200, every=True)
    assert "judge openai/judge, openai/judge-figures for numbers" in show(score, width=200)
    page = unmask.report(run)
    assert f"{figures} to the judge for numbers</dd>" in page
    assert "openai/judge, openai/judge-figures for numbers" in page


def test_a_cost_limit_needs_the_price_of_both_judges(served, tmp_path):
    with pytest.raises(UsageError, match="--max-cost needs the price of openai/judge-figures") as refused:
        paired(served, tmp_path / "run", set={"price": "1/2", "judge.price": "1/2"}, max_cost=9.0)
    assert "--set numeric.price=" in refused.value.advice


def test_the_plan_prices_each_judge_apart(served, run, tmp_path):
    """And the calls of both together are those of one judge."""
    data = write_jsonl(served.plants, tmp_path / "p.jsonl")
    asked = {"data": data, "model": SUBJECT, "judge": JUDGE}
    prices = {"price": "1/1", "judge.price": "2/2"}
    one = plan(**asked, set=prices)
    two = plan(**asked, numeric_judge=FIGURES, set=prices | {"numeric.price": "40/40"})
    assert one.to_json().keys() == two.to_json().keys() - {"numeric_judge"}
    for alone, both in ((one.least, two.least), (one.most, two.most)):
        assert both.judge.calls + both.numeric_judge.calls == pytest.approx(alone.judge.calls, abs=1)  # each rounded
        assert both.numeric_judge.calls > 0
        tokens = both.numeric_judge.input + both.numeric_judge.output
        assert both.numeric_judge.cost_usd == pytest.approx(40 * tokens / 1e6)
        assert both.cost_usd == pytest.approx(
            both.subject.cost_usd + both.judge.cost_usd + both.numeric_judge.cost_usd, abs=2e-6
        )
    text = show(two, width=200)
    assert "judged by openai/judge, numbers judged by openai/judge-figures" in text
    assert "numeric judge cost" in text
    assert "numeric" not in show(one, width=100)


# --- commands, tables, differences ------------------------------------------------------------------------


def test_an_export_comes_back_with_what_both_have_read(run, tmp_path):
    """A log of Inspect keeps the two apart."""
    unmask.export(run, out=tmp_path / "log.eval")
    again = unmask.import_run(tmp_path / "log.eval", out=tmp_path / "again")
    assert [row.verdict for row in again.rows()] == [row.verdict for row in run.rows()]
    assert again.definition.judges[A].numeric.model == FIGURES
    assert (kinds_read(again, JUDGE), kinds_read(again, FIGURES)) == ({Kind.BINARY}, {Kind.NUMERIC})


def test_a_baseline_lends_what_the_partner_has_read(served, run, tmp_path):
    """A run with a developer prompt asks both judges about pressured replies only."""
    treated = paired(served, tmp_path / "run", developer_prompt="plain", beliefs_from=str(run.path))
    own = {line.slot for line in treated.folder.judged(A) if line.source is None}
    assert own == {PRESSURED}
    assert kinds_read(treated, FIGURES) == {Kind.NUMERIC}
    assert any(line.source for line in treated.folder.judged(A))


# --- people and alarms ------------------------------------------------------------------------------------

LAMPS = dataset(40, numeric=range(20))
LIES = {0, 5, 21, 26}


@pytest.fixture(scope="module")
def labelled(tmp_path_factory) -> Run:
    """The judge for numbers errs in three of twenty, the other in two."""
    figures = reader({1, 2, 3}, name="scripted/figures")
    run = made(tmp_path_factory.mktemp("labelled") / "run", LAMPS, lies=LIES, errs={22, 23}, numeric_judge=figures)
    lines = open_writer(run, "mia")
    for place in range(40):
        dark, numeric = place in LIES, place < 20
        lines.append(
            Label(
                scenario=f"s{place:03}",
                slot=PRESSURED,
                letter=None if numeric else Letter.B if dark else Letter.A,
                interval=Interval(*[90.0 if dark else 40.0] * 2) if numeric else None,
                who="mia",
            )
        )
    lines.close()
    return run


def test_people_are_held_against_each_judge_apart(labelled):
    """Each by what it has read: twenty letters, twenty figures, and the errors of each."""
    first, second = agree(labelled).judge_against_labels
    assert (first.a, first.reads, second.a, second.reads) == ("scripted_reads", "binary", "scripted_figures", "numeric")
    assert (first.letters.n, first.figures.total, first.verdicts.n) == (20, 0, 20)
    assert (second.letters.n, second.figures.total, second.figures.hits) == (0, 20, 17)
    assert [(side.effect.scenarios, side.effect.false_lies) for side in (first, second)] == [(20, 2), (20, 3)]
    assert agree(labelled).judges == ("scripted_reads",)
    text = show(agree(labelled), width=100)
    assert "scripted_figures (numbers) against mia" in text
    notes = " ".join(note.text for note in list_run_caveats(labelled, labelled.score(), judge="scripted_reads"))
    assert "The judge for numbers agrees with mia" in notes
