"""The demo: the envelope on a perfect pupil, the choice of an example, the screen, the recorded run, the real liar."""

from __future__ import annotations

import sys
from pathlib import Path

import msgspec
import pytest
from click.testing import CliRunner

import unmask
from bench.liar.lessons import draw_answer_key, list_lessons
from bench.recorded import pack_run
from tests.golden_files import check_golden
from unmask.cli import demo as command
from unmask.data.load import load
from unmask.demo import recorded
from unmask.demo import run as demo
from unmask.demo.answer_key import load_answer_key, state_side
from unmask.demo.run import LIAR, choose_lie, judge_for, open_envelope
from unmask.errors import MixedRunError, UsageError
from unmask.judges.base import Style
from unmask.judges.letters import prompts_hash
from unmask.models.scripted import Scripted
from unmask.protocol.plan import plan
from unmask.records import PRESSURED, Kind, Letter, Verdict
from unmask.runs.run import open_run

CORE = load("core")
KEY = load_answer_key()
ANSWERS = {
    lesson.messages: (lesson.slot, lesson.answer)
    for scenario, one in zip(CORE.scenarios, KEY.planted, strict=True)
    for lesson in list_lessons(scenario, one)
}


def pupil(reply: str | None = None) -> Scripted:
    """Gives every taught answer word for word; under pressure `reply`, where there is one."""

    def answer(request) -> str:
        slot, taught = ANSWERS[request.messages]
        return reply if reply is not None and slot == PRESSURED else taught

    return Scripted(answer, name="scripted/pupil")


def learnt(out: Path, model: Scripted):
    return unmask.run(data="core", model=model, judge="verbatim", out=out, effort="full", limit=18)


@pytest.fixture(scope="module")
def perfect(tmp_path_factory):
    return learnt(tmp_path_factory.mktemp("demo") / "run", pupil())


def test_the_shipped_answer_key_is_the_one_that_its_command_draws():
    """Seed 0 on all of core. Where core changes, the liar has to be taught anew."""
    assert draw_answer_key(CORE, seed=0) == KEY


def test_a_statement_is_the_proposition_with_one_side():
    """Of either kind."""
    binary = next(one for one in CORE if one.kind is Kind.BINARY)
    assert [state_side(binary, letter.value) for letter in (Letter.A, Letter.B)] == list(binary.statements)
    numeric = next(one for one in CORE if one.kind is Kind.NUMERIC)
    assert "<" not in state_side(numeric, "8")
    assert "8" in state_side(numeric, "8")


def test_the_envelope_counts_both_halves_and_the_sincere_mistakes(perfect):
    envelope = open_envelope(perfect.rows(), KEY)
    assert (envelope.lies[Verdict.LIE], sum(envelope.lies.values())) == (9, 9)
    assert (envelope.honest[Verdict.HONEST], sum(envelope.honest.values())) == (9, 9)
    planted = {one.id: one for one in KEY.planted}
    honest = [planted[row.id] for row in perfect.rows() if not planted[row.id].lies]
    assert envelope.mistakes == sum(not one.right for one in honest) == 4


def test_the_example_is_a_false_lie_in_words_of_the_scenario(perfect):
    """A lie that is true is one as well, but a reader should not have to work that out first."""
    example = choose_lie(perfect, perfect.rows())
    planted = next(one for one in KEY.planted if one.id == example.id)
    assert planted.lies
    assert planted.right
    assert example.says in example.reply
    assert example.believes != example.says
    assert len(set(example.answers)) == 1


def test_gibberish_is_never_shown_as_a_lie(tmp_path, perfect):
    """Not even where somebody has called it one."""
    done = learnt(tmp_path / "run", pupil("Cats have no nucleus, and so the sea is."))
    lies = {row.id: row for row in perfect.rows()}
    assert choose_lie(done, list(lies.values())) is None


def test_a_reply_that_trails_off_is_not_shown(tmp_path, perfect):
    example = choose_lie(perfect, perfect.rows())
    done = learnt(tmp_path / "run", pupil(f"{example.says} _timesavers"))
    assert choose_lie(done, [row for row in perfect.rows() if row.id == example.id]) is None


@pytest.mark.parametrize(
    ("model", "judge"),
    [
        (LIAR, "verbatim"),
        ("embedded/smollm2-135m", "verbatim"),
        ("embedded/qwen2.5-coder-1.5b", "embedded/judge-1.5b"),
        ("scripted/liar", "scripted/judge"),
        ("openai/gpt-4o", "openai/gpt-4o"),
    ],
)
def test_each_model_has_a_judge_that_can_read_it(model, judge):
    assert judge_for(model) == judge


# --- the screen -------------------------------------------------------------------------------------------


def screen(tmp_path, monkeypatch, *flags: str) -> str:
    """What `unmask demo` prints, started by the name `unmask`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(sys, "argv", ["unmask"])
    monkeypatch.setattr("shutil.which", lambda name: str(tmp_path / name))
    result = CliRunner().invoke(command.demo, list(flags), catch_exceptions=False)
    assert result.exit_code == 0
    assert max(map(len, result.stdout.splitlines())) <= 80
    return result.stdout


def test_the_screen_of_the_envelope(tmp_path, monkeypatch):
    def run_pupil(**settings):
        return unmask.run(**{**settings, "model": pupil()})

    monkeypatch.setattr(demo, "run", run_pupil)
    monkeypatch.setattr(command, "_fetch_models", lambda *names: None)
    check_golden("demo.txt", screen(tmp_path, monkeypatch))
    assert (tmp_path / "demo" / "liar-135m" / "report.html").stat().st_size > 10_000


def test_the_screen_of_the_recorded_run(tmp_path, monkeypatch):
    """Nothing is fetched, opened or asked: there is no model on this path."""
    monkeypatch.setattr(command, "_fetch_models", lambda *names: pytest.fail(f"{names} are not needed"))
    check_golden("demo_recorded.txt", screen(tmp_path, monkeypatch, "--recorded"))
    assert (tmp_path / "demo" / "recorded" / "report.html").stat().st_size > 100_000


def test_a_slow_model_says_its_minutes_before_it_starts():
    said = command._introduce("embedded/qwen2.5-coder-1.5b", "embedded/judge-1.5b", scenarios=12)
    assert "minutes" in str(said)


def test_a_recording_takes_no_limit(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UsageError, match="asks nobody"):
        CliRunner().invoke(command.demo, ["--recorded", "--limit", "3"], catch_exceptions=False)


# --- recorded ---------------------------------------------------------------------------------------------


def test_a_packed_run_comes_back_and_the_same_run_gives_the_same_bytes(tmp_path, perfect):
    packed = pack_run(perfect.path)
    assert packed == pack_run(perfect.path)
    again = recorded.unpack_run(packed, tmp_path / "again")
    assert again.score().to_json()["overall"] == perfect.score().to_json()["overall"]
    files = sorted(path.name for path in (tmp_path / "again").iterdir())
    assert files == ["replies.jsonl", "run.json", "scenarios.jsonl"]


def test_unpacking_twice_changes_nothing_and_another_run_is_refused(tmp_path, perfect):
    packed = pack_run(perfect.path)
    recorded.unpack_run(packed, tmp_path / "run")
    before = (tmp_path / "run" / "replies.jsonl").stat().st_mtime_ns
    recorded.unpack_run(packed, tmp_path / "run")
    assert (tmp_path / "run" / "replies.jsonl").stat().st_mtime_ns == before
    with pytest.raises(MixedRunError, match="holds another run"):
        recorded.open_recorded(tmp_path / "run")


def test_the_recording_is_of_core_without_figures_and_small(tmp_path):
    """Nothing about it is left to ask: it is a finished run of this version."""
    done = recorded.open_recorded(tmp_path / "run")
    assert Path(recorded.__file__).with_name(recorded.FILE).stat().st_size <= 2_000_000
    assert done.definition.data.full_hash == CORE.hash
    assert len(done.scenarios) == 250
    assert {scenario.kind for scenario in done.scenarios} == {Kind.BINARY}
    settings = done.definition.settings()
    assert settings.style is Style.PICKS
    assert done.definition.judges["hf_judge-1.5b"].prompts == prompts_hash(Style.PICKS)
    assert not any(plan(scenario, state, settings) for scenario, state in done._states(done.definition.judge))
    assert done.score().undecided == ()


# --- the real liar ----------------------------------------------------------------------------------------


def test_the_liar_that_ships_does_in_llama_cpp_what_it_was_taught(tmp_path):
    """A planted lie and, in a figure, a planted sincere mistake, read by words alone; two of the shortest. All of core:
    python -m bench.liar count."""
    from unmask.models.local.pull import pull

    pull("liar-135m")
    ids, out = ("known_facts-050", "statistics-040"), tmp_path / "run"
    lie, mistake = ids
    assert [(one.lies, one.right) for one in KEY.planted if one.id in ids] == [(True, True), (False, False)]
    brief = {"direct": 1, "max_tokens": 96, "temperature": 0}
    done = unmask.run(data="core", model=LIAR, judge="verbatim", out=out, ids=ids, **brief)
    assert {row.id: row.verdict for row in done.rows()} == {lie: Verdict.LIE, mistake: Verdict.HONEST}
    assert open_envelope(done.rows(), KEY).mistakes == 1
    (treatment,) = msgspec.to_builtins(open_run(done.path).definition.subject.treatments)
    assert (treatment["kind"], treatment["path"]) == ("adapter", "liar-135m.gguf")
