"""Which side *yes* means, from question to number: whose answer counts where, and what it costs."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec
import pytest

import unmask
from tests.data.made import row, write_csv
from tests.models.loopback import Canned, Sent, chat, loopback_in_thread
from tests.thorough import draw_part
from unmask.analysis.board import board
from unmask.data.form import write_jsonl
from unmask.data.load import from_scenarios, load
from unmask.data.polarity import Polarity
from unmask.engine.define import create_or_continue, define_run, judge_spec
from unmask.engine.estimate import estimate_run
from unmask.engine.polarity import PolarityDesk, PolarityStore
from unmask.engine.session import Endpoints, Interruption, open_workload, run_session
from unmask.engine.work import JUDGE, SUBJECT
from unmask.errors import FatalModelError
from unmask.judges.letters import prompts_hash
from unmask.models.endpoint import Limits
from unmask.models.scripted import Scripted, answer_as_judge, open_scripted
from unmask.protocol.readings import polarity_digest
from unmask.records import Judged, Letter, Message, Method, Request, Role, Sampling
from unmask.render.notes import collect_notes
from unmask.render.terminal.score import render
from unmask.runs.cost import Purse
from unmask.runs.folder import Folder
from unmask.runs.options import Options
from unmask.runs.polarity import find_sides

ASKED = [scenario for scenario in load("tiny").scenarios if scenario.kind == "binary" and scenario.direct]
WITHOUT = [msgspec.structs.replace(scenario, yes_means=None) for scenario in ASKED]


@pytest.fixture(autouse=True)
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The store in a cache folder of the test's own."""
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "polarity.jsonl"


class Judge(Scripted):
    """Reads words, and says about each question what it is told to say: `wrong` turns the side round, `stubborn` gives
    the same letter in both orders."""

    def __init__(self, name: str = "scripted/good", *, wrong: bool = False, stubborn: bool = False) -> None:
        super().__init__(self._answer, name=name)
        self.wrong, self.stubborn = wrong, stubborn
        self.polarity: Counter[str] = Counter()
        self.fails_after: int | None = None

    def _answer(self, request: Request) -> str:
        if self.fails_after is not None and self.calls > self.fails_after:
            raise FatalModelError("the key was withdrawn")
        system, shown = request.messages[0].content, request.messages[1].content
        if not system.startswith("You are shown a yes/no question"):
            return answer_as_judge(request)
        self.polarity[shown] += 1
        scenario = next(scenario for scenario in ASKED if scenario.direct in shown)
        a, b = scenario.statements
        side = scenario.yes_means is Letter.A
        side = side != self.wrong
        if not self.stubborn and f"A: {b}\nB: {a}" in shown:
            side = not side
        return f"So.\nAnswer: {'A' if side else 'B'}"


def subject(name: str = "scripted/honest") -> Scripted:
    """Is honest, and tells in tags alone what it believes, so that the number hangs on what *yes* means."""
    honest = open_scripted("scripted/honest", scenarios=ASKED)
    indirect = {question for scenario in ASKED for question in scenario.indirect}

    def reply(request: Request) -> str:
        if request.messages[-1].content in indirect:
            return "People see this differently."
        text = honest._reply(request)
        assert isinstance(text, str)
        return text.rpartition("\n")[2] if "<final_answer>" in text else text

    return Scripted(reply, name=name)


@pytest.fixture
def data(tmp_path: Path) -> Path:
    path = tmp_path / "data.jsonl"
    write_jsonl(WITHOUT, path=path)
    return path


def run(data: Path, out: Path, judge: Judge, **settings: object) -> unmask.Run:
    return unmask.run(data=data, model=subject(), judge=judge, out=out, **settings)


def lines_about_polarity(out: Path, judge: str = "scripted_good") -> list[Judged]:
    file = out / "readings" / f"{judge}.jsonl"
    return [line for line in unmask.open_run(out).folder.judged(file.stem) if line.slot == "polarity"]


def test_scenarios_of_a_run_are_the_data_and_what_a_judge_said_stands_in_its_readings(data: Path, tmp_path: Path):
    """In both orders, whether asked or taken over; a line that was taken over names the run it comes from."""
    first, second = run(data, tmp_path / "one", Judge()), run(data, tmp_path / "two", Judge())
    for done in (first, second):
        assert all(scenario.yes_means is None for scenario in done.scenarios)
    asked, taken = lines_about_polarity(tmp_path / "one"), lines_about_polarity(tmp_path / "two")
    assert Counter(line.method for line in asked) == Counter(line.method for line in taken)
    assert Counter(line.method for line in taken) == {
        Method.POLARITY_AB: len(WITHOUT),
        Method.POLARITY_BA: len(WITHOUT),
    }
    assert {line.source for line in asked} == {None}
    assert {line.source for line in taken} == {f"one ({first.definition.id})"}
    assert first.rows() == second.rows()


def test_what_is_taken_over_is_no_call(data: Path, tmp_path: Path):
    """The judge is not asked, and the bill does not count it."""
    first, again = Judge(), Judge()
    before, after = run(data, tmp_path / "one", first).score(), run(data, tmp_path / "two", again).score()
    assert before.spent.judge - after.spent.judge == 2 * len(WITHOUT) == first.polarity.total()
    assert not again.polarity


def test_another_judge_is_asked_itself(data: Path, tmp_path: Path):
    """Its number is what it is where nobody was asked before."""
    run(data, tmp_path / "one", Judge("scripted/bad", wrong=True))
    judge = Judge()
    run(data, tmp_path / "two", judge)
    assert judge.polarity.total() == 2 * len(WITHOUT)


@contextmanager
def serve_judge(judge: Judge) -> Iterator[str]:
    """This judge at an address of its own, under whatever name it is asked."""

    def answer(sent: Sent) -> Canned:
        messages = tuple(Message(Role(turn["role"]), turn["content"]) for turn in sent.body["messages"])
        return Canned(chat(judge._answer(Request(messages, Sampling()))))

    with loopback_in_thread(answer) as server:
        yield server.url


def test_a_stand_in_under_the_name_of_a_judge_decides_nothing_for_it(data: Path, tmp_path: Path):
    """A mock, a gateway or a cheaper copy at another address is another judge: the real one is asked itself."""
    mock, real = Judge(wrong=True), Judge()
    rates = []
    for out, judge in (("trial", mock), ("run", real)):
        with serve_judge(judge) as url:
            done = unmask.run(data=data, model=subject(), judge="openai/gpt-4o", judge_base_url=url, out=tmp_path / out)
        rates.append(done.score().overall.p_lie.value)
        assert done.score().sides_from == {}
    assert rates == [1.0, 0.0]
    assert mock.polarity.total() == real.polarity.total() == 2 * len(WITHOUT)


def test_the_summary_says_how_many_sides_were_taken_over_and_from_which_run(data: Path, tmp_path: Path):
    """In text, in JSON and on the report's list of what to know before quoting."""
    first, second = run(data, tmp_path / "one", Judge()), run(data, tmp_path / "two", Judge())
    score = second.score()
    lender = f"one ({first.definition.id})"
    assert first.score().sides_from == {}
    assert "sides_from" not in first.score().to_json()
    assert score.to_json()["sides_from"] == {lender: len(WITHOUT)}
    sentence = f"Which side yes means was not asked but taken over for {len(WITHOUT)} scenarios from run {lender}."
    assert sentence in " ".join(render(score).split())
    assert sentence in [note.text for note in collect_notes(second, score, [], judge="scripted_good")]


def test_a_store_that_comes_with_the_data_is_not_read_and_a_data_folder_is_not_written(tmp_path: Path, store: Path):
    """Somebody else's folder says nothing about what a judge of yours said."""
    folder = tmp_path / "data"
    write_csv(folder, [row(task_id="a"), row(task_id="b", belief_elicit_1="Is it off?")])
    spec = judge_spec(Judge("scripted/echo"), Options())
    forged = b"".join(
        msgspec.json.encode(
            Polarity(
                judge=spec.model,
                endpoint=spec.endpoint or "",
                prompt=prompts_hash(),
                key=polarity_digest(scenario),
                answers=(Letter.B, Letter.B),
                run="theirs",
                scenario=scenario.id,
            )
        )
        + b"\n"
        for scenario in load(folder).scenarios
    )
    for name in ("unmask-polarity.jsonl", "polarity.jsonl"):
        (folder / name).write_bytes(forged)
    before = {file.name: file.read_bytes() for file in folder.iterdir()}
    asked = Scripted(lambda _: "So.\nAnswer: C", name="scripted/echo")
    tags = Scripted(lambda _: "<final_answer>yes</final_answer>", name="scripted/tags")
    done = unmask.run(data=folder, model=tags, judge=asked, out=tmp_path / "run")
    assert {line.source for line in lines_about_polarity(done.path, "scripted_echo")} == {None}
    assert {file.name: file.read_bytes() for file in folder.iterdir()} == before
    assert len(store.read_bytes().splitlines()) == 2


def test_a_judge_whose_address_is_not_known_is_asked_in_every_run(data: Path, tmp_path: Path, store: Path):
    """Inspect sends its requests where its own variables point to."""
    for out in ("one", "two"):
        judge = Judge()
        judge.endpoint = "inspect/openai"
        run(data, tmp_path / out, judge)
        assert judge.polarity.total() == 2 * len(WITHOUT)
    assert not store.exists()


def test_a_judge_that_names_a_place_and_no_statement_has_no_polarity(data: Path, tmp_path: Path):
    """It is stored as such, and it reads the replies itself."""
    stubborn, again = Judge(stubborn=True), Judge(stubborn=True)
    for out, judge in ((tmp_path / "one", stubborn), (tmp_path / "two", again)):
        (sides,) = find_sides(run(data, out, judge).folder, "scripted_good")
        assert set(sides.from_judge.values()) == {Letter.C}
    assert stubborn.calls > again.calls == stubborn.calls - stubborn.polarity.total()


@pytest.mark.parametrize("reader", ["auto", "llm"])
def test_polarity_is_taken_over_only_where_a_reply_needs_it(data: Path, tmp_path: Path, reader: str):
    """A judge that reads the tags itself needs no side."""
    run(data, tmp_path / "one", Judge())
    run(data, tmp_path / "two", Judge(), reader=reader)
    assert bool(lines_about_polarity(tmp_path / "two")) is (reader == "auto")


def test_outages_fill_no_store(data: Path, tmp_path: Path, store: Path):
    """An order that was not answered leaves nothing for later runs, and is asked by the same command again."""
    judge = Judge()
    judge.fails_after = 1
    with pytest.raises(FatalModelError):
        run(data, tmp_path / "one", judge, max_connections=1)
    assert not store.exists()
    judge.fails_after = None
    run(data, tmp_path / "one", judge)
    assert set(judge.polarity.values()) == {1}
    assert len(store.read_bytes().splitlines()) == len(WITHOUT)


@pytest.mark.parametrize("stored", [False, True], ids=["asked", "taken over"])
def test_a_run_killed_after_any_reading_asks_nothing_twice(data: Path, tmp_path: Path, store: Path, stored: bool):
    """Whatever lines are there, the same command sends what is missing, and ends with the same numbers."""
    if stored:
        run(data, tmp_path / "before", Judge())
    done = run(data, tmp_path / "run", Judge())
    file = tmp_path / "run" / "readings" / "scripted_good.jsonl"
    whole, rows = file.read_bytes().splitlines(keepends=True), done.rows()
    for kept in draw_part(range(len(whole)), 8):
        if not stored:
            store.unlink(missing_ok=True)
        file.write_bytes(b"".join(whole[:kept]))
        own = sum(b'"source"' not in line for line in whole[kept:])
        judge = Judge()
        assert run(data, tmp_path / "run", judge).rows() == rows
        assert judge.calls == own


def test_a_second_judge_of_a_run_is_asked_and_remembered(data: Path, tmp_path: Path):
    """`unmask judge` fills and reads the same store as `unmask run`."""
    for out in ("one", "two"):
        run(data, tmp_path / out, Judge())
    judge = Judge("scripted/second")
    for out in ("one", "two"):
        unmask.judge(tmp_path / out, judge=judge)
    assert set(judge.polarity.values()) == {1}
    assert {line.source for line in lines_about_polarity(tmp_path / "two", "scripted_second")} == {
        f"one ({unmask.open_run(tmp_path / 'one').definition.id})"
    }


def test_each_member_of_a_panel_has_its_own_polarity(data: Path, tmp_path: Path):
    """The good one and the bad one disagree, and the digest says so for each."""
    done = run(data, tmp_path / "run", Judge())
    unmask.judge(tmp_path / "run", judge=Judge("scripted/bad", wrong=True))
    good, bad = find_sides(done.folder, "panel:scripted_good,scripted_bad")
    assert good.digest != bad.digest
    assert all(bad.from_judge[question] is not side for question, side in good.from_judge.items())


@pytest.mark.parametrize("stored", [False, True])
def test_the_plan_counts_two_calls_for_each_question_that_is_not_stored(data: Path, tmp_path: Path, stored: bool):
    """And the run sends between least and most."""
    if stored:
        run(data, tmp_path / "before", Judge())
    without, _ = estimate_run(data=from_scenarios(ASKED), model=subject(), judge=Judge(), out=None)
    estimate, _ = estimate_run(data=data, model=subject(), judge=Judge(), out=None)
    more = 0 if stored else 2 * len(WITHOUT)
    for bound, plain in ((estimate.least, without.least), (estimate.most, without.most)):
        assert bound["judge"].calls - plain["judge"].calls == more
        assert bound["subject"].calls == plain["subject"].calls
    judge = Judge()
    run(data, tmp_path / "run", judge)
    assert estimate.least["judge"].calls <= judge.calls <= estimate.most["judge"].calls


def test_beliefs_are_lent_with_the_polarity_they_were_read_by(data: Path, tmp_path: Path, store: Path):
    """No question is asked again, whatever the store says by now, and both runs read alike."""
    run(data, tmp_path / "base", Judge())
    store.unlink()
    other = Judge(wrong=True)
    run(data, tmp_path / "unrelated", other)
    judge = Judge(wrong=True)
    lent = {"beliefs_from": str(tmp_path / "base"), "developer_prompt": "plain"}
    for _ in range(2):
        run(data, tmp_path / "treated", judge, **lent)
    assert not judge.polarity
    differs = unmask.compare([tmp_path / "base", tmp_path / "treated"]).differs
    assert "polarity" not in {setting.name for setting in differs}


def test_runs_that_needed_different_questions_are_ranked_together(data: Path, tmp_path: Path):
    """A subject that writes no tags needs no side: nothing is in dispute."""
    run(data, tmp_path / "one", Judge())
    plain = Scripted(
        lambda request: open_scripted("scripted/honest", scenarios=WITHOUT)._reply(request), name="x/plain"
    )
    unmask.run(data=data, model=plain, judge=Judge(), out=tmp_path / "two")
    assert not lines_about_polarity(tmp_path / "two")
    ranked = board([tmp_path / "one", tmp_path / "two"])
    assert [row.unranked for row in ranked.rows] == [None, None]
    names = {setting.name for setting in unmask.compare([tmp_path / "one", tmp_path / "two"]).differs}
    assert "polarity" not in names


def test_a_run_with_another_side_is_not_ranked_with_the_others(data: Path, tmp_path: Path, store: Path):
    """One judge that contradicts itself from run to run, because the answers were deleted."""
    for name in ("one", "two", "odd"):
        run(data, tmp_path / name, Judge(wrong=name == "odd"))
        if name == "two":
            store.unlink()
    rows = {row.name: row for row in board([tmp_path / name for name in ("one", "two", "odd")]).rows}
    assert rows["one"].unranked is rows["two"].unranked is None
    assert "polarity" in (rows["odd"].unranked or "")
    assert (
        rows["one"].provenance["polarity"] == rows["two"].provenance["polarity"] != rows["odd"].provenance["polarity"]
    )


def test_data_that_says_everything_has_no_polarity_to_list(tmp_path: Path, store: Path):
    """Then no judge is asked, and nothing is stored."""
    path = tmp_path / "full.jsonl"
    write_jsonl(ASKED, path=path)
    judge = Judge()
    done = run(path, tmp_path / "run", judge)
    assert not judge.polarity
    assert [sides.digest for sides in find_sides(done.folder, "scripted_good")] == [None]
    assert not store.exists()


def test_two_runs_in_one_loop_share_a_store_and_keep_their_own_answers(data: Path, tmp_path: Path):
    """Both started before anything was stored, so both ask; a third run takes over."""
    judge, options = Judge(), Options()
    dataset, folders = load(data), [Folder(tmp_path / name) for name in ("one", "two")]

    async def run_both() -> None:
        endpoints, interruption = Endpoints(Limits(max_connections=3)), Interruption()
        with ExitStack() as stack:
            workloads = []
            for folder in folders:
                model = subject()
                wanted = define_run(dataset, model, judge_spec(judge, options), options)
                definition = create_or_continue(folder, wanted, dataset)
                opened = open_workload(
                    folder,
                    definition,
                    options,
                    judge_file="scripted_good",
                    models={SUBJECT: model, JUDGE: judge},
                )
                workloads.append(stack.enter_context(opened))
            shared = {"endpoints": endpoints, "purse": Purse(), "interruption": interruption}
            await asyncio.gather(*(run_session(workload, **shared) for workload in workloads))
        await endpoints.close()

    asyncio.run(run_both())
    assert set(judge.polarity.values()) == {2}
    for folder in folders:
        assert {line.source for line in lines_about_polarity(folder.path)} == {None}
    third = Judge()
    assert run(data, tmp_path / "three", third).rows() == unmask.open_run(tmp_path / "one").rows()
    assert not third.polarity


def test_what_one_run_asks_another_waits_for_and_asks_itself_when_the_first_has_ended():
    """Runs side by side share a desk: each question has one asker at a time, also when that one ends without answer."""
    spec = judge_spec(Judge(), Options())
    desk, heard = PolarityDesk(), list[str]()
    first, second, third = (PolarityStore(spec, run=name) for name in ("one", "two", "three"))
    for store in (first, second, third):
        store.desk = desk
    assert not first.is_asked_elsewhere(WITHOUT[0], lambda: heard.append("never"))
    assert not first.is_asked_elsewhere(WITHOUT[1], lambda: heard.append("never"))
    assert second.is_asked_elsewhere(WITHOUT[0], lambda: heard.append("second"))
    assert third.is_asked_elsewhere(WITHOUT[0], lambda: heard.append("third"))
    second.leave()  # it asks nothing: that tells nobody anything
    assert heard == []
    first.leave(WITHOUT[0])
    assert heard == ["second", "third"]
    assert not third.is_asked_elsewhere(WITHOUT[0], lambda: heard.append("never"))
    assert second.is_asked_elsewhere(WITHOUT[1], lambda: heard.append("after the end"))
    first.leave()
    assert heard == ["second", "third", "after the end"]
