"""Embedded models with the real 135M file: every known trap of the engine, met or avoided."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import sys
import threading
from mmap import mmap
from pathlib import Path

import pytest

from bench.planted import plant, write_jsonl
from tests.faults.watched import watched
from tests.models.local.made_adapter import adapter
from tests.patience import PATIENCE
from tests.thorough import draw_part
from unmask.engine.define import style_of
from unmask.errors import FatalModelError, RequestRefusedError
from unmask.judges.base import Style
from unmask.models.base import Model
from unmask.models.local import embedded
from unmask.models.local.embedded import Embedded, Setup, _RunningEngine, open_embedded
from unmask.models.local.gguf import read_header
from unmask.models.local.llamacpp import body_of
from unmask.models.local.pull import pull
from unmask.records import Completion, Message, Request, Sampling, Stop
from unmask.runs.run import Run

SMALL = Setup(threads=1, slots=3, context=512)


@pytest.fixture(scope="session")
def weights() -> Path:
    """The real file, pulled as a user would pull it."""
    return pull("smollm2-135m")


def ask(text: str, *, system: str = "You are a helpful assistant.") -> tuple[Message, ...]:
    return Message("system", system), Message("user", text)


def together(model: Embedded, *requests: Request) -> list[Completion]:
    async def run() -> list[Completion]:
        return list(await asyncio.gather(*(model.complete(request) for request in requests)))

    return asyncio.run(run())


def one(model: Embedded, request: Request) -> Completion:
    return together(model, request)[0]


@pytest.fixture(scope="module")
def model(weights):
    opened = open_embedded("embedded/smollm2-135m", setup=SMALL)
    yield opened
    asyncio.run(opened.close())


def test_it_is_a_model_with_the_limits_of_its_engine(model):
    """More choices than slots are refused there, so the planner is told how many there are."""
    assert isinstance(model, Model)
    assert model.name == model.endpoint == "embedded/smollm2-135m"
    assert model.capabilities.max_n == 3
    with pytest.raises(RequestRefusedError, match="n"):
        one(model, Request(ask("Hi"), Sampling(max_tokens=2), n=4))


def test_a_seed_makes_an_answer_repeatable_and_its_choices_differ(model):
    """The prompt is counted once, and the tokens of every choice, though the engine's own summary counts one alone."""
    answer, again, other = (
        one(model, Request(ask("Tell me something."), Sampling(max_tokens=8, seed=seed), n=3)) for seed in (3, 3, 9)
    )
    alone = one(model, Request(ask("Tell me something."), Sampling(max_tokens=1)))
    assert answer.choices == again.choices
    assert len({choice.text for each in (answer, other) for choice in each.choices}) == 6
    assert [choice.stop for choice in answer.choices] == [Stop.LENGTH] * 3
    assert (answer.usage.input, answer.usage.output) == (alone.usage.input, 24)
    assert answer.model == "SmolLM2-135M-Instruct.Q4_1.gguf"


def test_a_parameter_of_the_user_reaches_the_engine(model):
    """With one candidate a token, temperature 2 writes what temperature 0 does. What the engine refuses ends a run."""
    settings = {"max_tokens": 6, "seed": 1}
    greedy = one(model, Request(ask("Name a colour."), Sampling(temperature=0.0, **settings)))
    hot = one(model, Request(ask("Name a colour."), Sampling(temperature=2.0, params={"top_k": 1}, **settings)))
    assert hot.choices[0].text == greedy.choices[0].text
    with pytest.raises(FatalModelError, match="top_k") as caught:
        one(model, Request(ask("Name a colour."), Sampling(max_tokens=4, params={"top_k": "many"})))
    assert "--param" in (caught.value.advice or "")


def test_temperature_one_is_the_models_own_distribution(model):
    """Of sixty first tokens some lie outside the forty likeliest, where this prompt has 30 % of the mass.

    With the engine's own filters (top-k 40, top-p 0.95, min-p 0.05) none could.
    """
    prompt = ask("Write one random English word, any word at all.", system="Be surprising.")
    body = body_of(Request(prompt, Sampling(max_tokens=1))) | {"stream": False, "logprobs": True, "top_logprobs": 40}
    first = model._load().handle_chat_completions(body)["choices"][0]["logprobs"]["content"][0]
    likely = {token["token"] for token in first["top_logprobs"]}
    requests = [Request(prompt, Sampling(max_tokens=1, seed=seed), n=3) for seed in range(0, 60, 3)]
    drawn = [choice.text for answer in together(model, *requests) for choice in answer.choices]
    assert 5 <= sum(token not in likely for token in drawn) <= 40


def test_the_system_prompt_reaches_the_model(model):
    """A longer system prompt makes a longer request, token by token."""
    short, long = (
        one(model, Request(ask("Hi", system=system), Sampling(max_tokens=1))).usage.input
        for system in ("Be kind.", "Be kind." + " very" * 20)
    )
    assert short is not None
    assert long is not None
    assert long - short == 20


def test_a_prompt_longer_than_a_slot_is_refused_and_the_rest_answered(model):
    """The error belongs to that request alone, says both lengths, and is not retried."""

    async def run() -> list[Completion | BaseException]:
        requests = (Request(ask("word " * 2000)), Request(ask("Hi"), Sampling(max_tokens=3)))
        return list(await asyncio.gather(*(model.complete(request) for request in requests), return_exceptions=True))

    refused, answered = asyncio.run(run())
    assert isinstance(refused, RequestRefusedError)
    assert "the context of a slot holds 512" in str(refused)
    assert isinstance(answered, Completion)


def test_an_answer_that_fills_the_slot_ends_as_cut_off(weights):
    """No shifting of the context: what was asked stays in view until the end."""
    small = open_embedded("embedded/smollm2-135m", setup=Setup(threads=1, slots=1, context=256))
    endless = Sampling(max_tokens=1000, temperature=0, params={"ignore_eos": True})
    try:
        answer = one(small, Request(ask("word " * 210), endless))
    finally:
        asyncio.run(small.close())
    assert answer.choices[0].stop is Stop.LENGTH
    assert 255 <= (answer.usage.input or 0) + (answer.usage.output or 0) <= 256 + 1


def test_what_two_orders_of_a_question_share_is_worked_through_once(model):
    """Also where many questions come at once: the second order finds the slot of the first, and nobody in between."""
    topics = [" ".join([word] * 24) for word in ("rain", "bread", "stone")]
    orders = [f"{topic}\nWhich is it, {order}?" for topic in topics for order in ("yes or no", "no or yes")]
    found = together(model, *(Request(ask(text), options=("yes", "no")) for text in orders))
    assert [answer.choices[0].text in {"yes", "no"} for answer in found] == [True] * len(orders)
    shares = [(answer.usage.cached or 0) / (answer.usage.input or 1) for answer in found[1::2]]
    assert min(shares) > 0.7


def test_options_follow_what_was_asked(model):
    """Told which word to say, the model says it: the probabilities are of this prompt, and of the options alone."""
    said = []
    for word in ("yes", "no"):
        prompt = ask(f"Say the word {word}. Answer only with: {word}.", system=f"You always answer {word}.")
        answer = one(model, Request(prompt, Sampling(temperature=0), options=("yes", "no")))
        (choice,) = answer.choices
        assert sum(choice.probabilities.values()) == pytest.approx(1)
        assert choice.text == max(choice.probabilities, key=choice.probabilities.__getitem__)
        said.append(choice.probabilities["yes"])
    assert said[0] > said[1]


def test_a_schema_gives_json_of_that_shape(model):
    schema = {
        "type": "object",
        "properties": {"lower": {"type": ["number", "null"]}, "upper": {"type": ["number", "null"]}},
        "required": ["lower", "upper"],
        "additionalProperties": False,
    }
    answer = one(model, Request(ask("Give two bounds."), Sampling(temperature=0, max_tokens=80), schema=schema))
    assert set(json.loads(answer.choices[0].text)) == {"lower", "upper"}
    with pytest.raises(RequestRefusedError):
        one(model, Request(ask("Hi"), schema={"type": "nonsense"}))


def test_many_requests_at_once_are_all_answered(model):
    """More than the slots hold, with different n: none starves, none is mixed up."""
    requests = [Request(ask(f"Tell me about {n}."), Sampling(max_tokens=2), n=1 + n % 3) for n in range(6)]
    assert [len(answer.choices) for answer in together(model, *requests)] == [1 + n % 3 for n in range(6)]


def test_a_cancelled_request_frees_its_slots(model):
    """Three long answers fill the slots; cancelled, they make room at once for a short one."""

    async def run() -> Completion:
        long = Request(ask("Write a very long story."), Sampling(max_tokens=400), n=3)
        task = asyncio.create_task(model.complete(long))
        await asyncio.sleep(0.5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await model.complete(Request(ask("Hi"), Sampling(max_tokens=2)))

    answer = asyncio.run(run())
    assert answer.choices[0].text


def test_the_engine_answers_nobody_else(model):
    """It listens on a loopback port; without the secret key that port gives nothing away."""
    from urllib.error import HTTPError
    from urllib.request import urlopen

    address = model._load().listening_address
    with pytest.raises(HTTPError, match="401"):
        urlopen(f"{address}/props", timeout=PATIENCE)


_QUIET = """
import asyncio
from unmask.models.local.embedded import Setup, open_embedded
from unmask.records import Message, Request, Sampling

def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096

async def main():
    model = open_embedded("smollm2-135m", setup=Setup(threads=2, slots=2, context=2048))
    before = resident()
    await model.complete(Request((Message("user", "Hi"),), Sampling(max_tokens=2)))
    loaded = resident()
    await model.close()
    print("freed", (loaded - resident()) > 0.7 * (loaded - before))

asyncio.run(main())
"""


def test_it_is_silent_and_closing_frees_the_memory(weights):
    """In a process of its own: no line of llama.cpp on either stream, and most of what was taken comes back."""
    done = subprocess.run([sys.executable, "-c", _QUIET], capture_output=True, text=True, check=True)
    assert done.stderr == ""
    assert done.stdout.split() == ["freed", "True"]


def test_two_models_of_one_file_share_its_weights(model):
    """Subject and judge may be the same file; closing one leaves the other at work."""
    other = open_embedded("smollm2-135m", setup=SMALL)
    assert other._load() is model._load()
    asyncio.run(other.close())
    assert one(model, Request(ask("Hi"), Sampling(max_tokens=1))).choices


def test_a_closed_model_says_so(weights):
    async def run() -> None:
        model = open_embedded("smollm2-135m", setup=SMALL)
        await model.close()
        await model.complete(Request(ask("Hi")))

    with pytest.raises(FatalModelError, match="closed"):
        asyncio.run(run())


class Stuck:
    """An engine that works through a prompt for as long as it is let: nothing reaches it meanwhile."""

    def __init__(self) -> None:
        self.begun, self.let, self.ended = threading.Event(), threading.Event(), threading.Event()

    def handle_chat_completions(self, body: object, take: object) -> None:
        self.begun.set()
        self.let.wait(600)
        self.ended.set()


@pytest.mark.parametrize("waits", [True, False], ids=["closing", "closing given up"])
def test_an_engine_that_hears_nothing_is_left_to_itself(weights, monkeypatch, waits):
    """After Ctrl-C nobody needs the answer; after a second one nobody waits for the closing. The process then ends as
    an interrupted one, and not in a crash."""
    engine, ended = Stuck(), []
    if waits:
        monkeypatch.setattr(embedded, "PATIENCE", 0.2)
    monkeypatch.setattr(embedded.atexit, "register", ended.append)

    async def run() -> None:
        model = open_embedded("smollm2-135m", setup=SMALL)
        model._running = _RunningEngine(engine)
        answer = asyncio.create_task(model.complete(Request(ask("Hi"))))
        await asyncio.to_thread(engine.begun.wait, 60)
        answer.cancel()
        if waits:
            await model.close()
        else:
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(model.close(), 0.2)
        assert not engine.ended.is_set()
        engine.let.set()
        assert await asyncio.to_thread(engine.ended.wait, 60)

    asyncio.run(asyncio.wait_for(run(), 120))
    assert ended == [embedded._end_by_signal]


def worked(pid: int) -> float:
    """Seconds of processor time that this process has used."""
    stat = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(stat[11]) + int(stat[12])) / os.sysconf("SC_CLK_TCK")


@pytest.mark.parametrize("signals", draw_part([1, 2], 1))
def test_ctrl_c_ends_a_run_before_its_replies_are_written(weights, tmp_path, signals: int):
    """A reply may have 3,000 tokens here. The process ends as an interrupted one, and the folder can be continued."""
    data = write_jsonl(plant(4), tmp_path / "p.jsonl")
    flags = ("--data", str(data), "--max-tokens", "3000", "--judge", "verbatim", "--out", str(tmp_path / "run"))
    with watched("run", "embedded/smollm2-135m", *flags, fresh=True) as child:
        child.when(lambda: worked(child.process.pid) > 1.5)  # so long it neither imports nor loads
        child.send(signal.SIGINT)
        if signals == 2:
            child.until("Ctrl-C again")
            child.send(signal.SIGINT)
        assert child.end() in (130, -signal.SIGINT)
    assert "unmask: interrupted" in child.errors
    rows = Run(tmp_path / "run").rows()
    assert sum(row.undecided for row in rows) > len(rows) / 2


LEFT_BEHIND = """
import asyncio
from unmask.models.local import embedded
from unmask.records import Message, Request, Sampling

embedded.PATIENCE = 0.0
question = Request((Message("user", "Tell me a very long story. " * 200),), sampling=Sampling(max_tokens=500))

async def run():
    model = embedded.open_embedded("smollm2-135m")
    await model.complete(Request((Message("user", "Hi"),), sampling=Sampling(max_tokens=2)))
    answers = [asyncio.create_task(model.complete(question)) for _ in range(2)]
    await asyncio.sleep(0.5)
    for answer in answers:
        answer.cancel()
    await model.close()

asyncio.run(run())
print("over", flush=True)
"""


def test_a_process_that_leaves_an_engine_at_work_ends_as_an_interrupted_one_and_does_not_crash(weights):
    done = subprocess.run([sys.executable, "-c", LEFT_BEHIND], capture_output=True, text=True, check=False)
    assert done.stdout == "over\n", done.stderr
    assert done.returncode == -signal.SIGINT, done.stderr


# --- files that are almost right --------------------------------------------------------------------------


def altered(weights: Path, folder: Path, template: str) -> Path:
    """The real model with another chat template of the same length, so that nothing else in the file moves."""
    old = (read_header(weights).chat_template or "").encode()
    new = template.encode()
    new += b"{#" + b" " * (len(old) - len(new) - 4) + b"#}"
    return copy_with(weights, folder / "altered.gguf", old, new)


def copy_with(weights: Path, path: Path, old: bytes, new: bytes) -> Path:
    """The real model with some of its bytes replaced, where they stand first."""
    assert len(old) == len(new)
    shutil.copyfile(weights, path)
    with path.open("r+b") as file, mmap(file.fileno(), 0) as data:
        place = data.find(old)
        data[place : place + len(old)] = new
    return path


TURN = "{{'<|im_start|>'+m['role']+'\n'+m['content']+'<|im_end|>\n'}}"
END = "{% if add_generation_prompt %}{{'<|im_start|>assistant\n'}}{% endif %}"
WITHOUT_SYSTEM = "{% for m in messages %}{% if m['role']!='system' %}" + TURN + "{% endif %}{% endfor %}" + END
REFUSES_SYSTEM = (
    "{% for m in messages %}{% if m['role']=='system' %}{{raise_exception('no')}}{% endif %}"
    + TURN
    + "{% endfor %}"
    + END
)


@pytest.mark.parametrize("template", [WITHOUT_SYSTEM, REFUSES_SYSTEM], ids=["without", "refuses"])
def test_a_template_without_a_system_turn_still_carries_the_system_prompt(weights, tmp_path, template):
    """The engine puts it into the user's turn; were it dropped, most scenarios would have no pressure."""
    model = open_embedded(f"gguf:{altered(weights, tmp_path, template)}", setup=SMALL)
    try:
        short, long = (
            one(model, Request(ask("Hi", system=system), Sampling(max_tokens=1))).usage.input or 0
            for system in ("Be kind.", "Be kind." + " very" * 20)
        )
    finally:
        asyncio.run(model.close())
    assert long - short == 20


def test_a_file_llama_cpp_cannot_load_is_one_clear_line(weights, tmp_path):
    """The header is right and the architecture unknown."""
    path = copy_with(weights, tmp_path / "odd.gguf", b"llama", b"alpac")
    model = open_embedded(f"gguf:{path}", setup=SMALL)
    try:
        with pytest.raises(FatalModelError, match=r"cannot load .*odd\.gguf") as caught:
            one(model, Request(ask("Hi")))
    finally:
        asyncio.run(model.close())
    assert caught.value.exit_code == 4


@pytest.mark.large
def test_the_large_model_answers_and_chooses():
    """The 1.5B file, pulled if need be: it knows where Paris is."""
    pull("qwen2.5-coder-1.5b")
    model = open_embedded("embedded/qwen2.5-coder-1.5b", setup=Setup(threads=os.cpu_count() or 1, slots=2, context=512))
    question = Request(ask("Is Paris the capital of France? yes or no"), Sampling(temperature=0), options=("yes", "no"))
    try:
        answer = one(model, question)
    finally:
        asyncio.run(model.close())
    assert (answer.choices[0].probabilities or {})["yes"] > 0.9


# --- with an adapter --------------------------------------------------------------------------------------

PICK = Request(ask("Which is larger, a cat or an ant? Answer 1 for the cat, 2 for the ant."), options=("1", "2"))
FREE = Request(ask("Say something about the sea."), Sampling(temperature=0.0, max_tokens=6))
ROUNDING = 0.02
"""How far a probability moves when the engine splits a prompt into other batches, as it does on a busy machine."""


@pytest.fixture(scope="module")
def pushed(tmp_path_factory) -> Path:
    return adapter(tmp_path_factory.mktemp("adapter") / "pushed.gguf", size=576, strength=100.0)


@pytest.fixture
def adapted(weights):
    """Opens the model with an adapter, and closes it."""
    made: list[Embedded] = []

    def opening(path: Path, *, trained_to_read: bool = True) -> Embedded:
        header = read_header(weights)
        options = {"adapter": path, "trained_to_read": trained_to_read}
        made.append(Embedded(weights, name="x", header=header, setup=SMALL, **options))
        return made[-1]

    yield opening
    for each in made:
        asyncio.run(each.close())


def test_the_adapter_of_a_judge_changes_its_picks_and_nothing_else(model, adapted, pushed):
    """Free answers are those of the bare model, in the same engine. It is named by its content, so that a run is not
    continued with another one."""
    judge = adapted(pushed)
    shares = [(one(opened, PICK).choices[0].probabilities or {})["1"] for opened in (judge, model)]
    assert abs(shares[0] - shares[1]) > 2 * ROUNDING
    assert one(judge, FREE).choices[0].text == one(model, FREE).choices[0].text
    (found,) = judge.treatments
    assert (found.kind, found.path, len(found.hash)) == ("adapter", "pushed.gguf", 16)
    assert (style_of(judge), style_of(model)) == (Style.PICKS, Style.LETTERS)


def test_another_adapter_changes_every_answer(model, adapted, pushed):
    """The liar of the demo lies in its own words."""
    opened = adapted(pushed, trained_to_read=False)
    assert one(opened, FREE).choices[0].text != one(model, FREE).choices[0].text
    assert style_of(opened) is Style.LETTERS


def test_an_adapter_of_another_model_is_refused(adapted, tmp_path):
    strange = adapter(tmp_path / "strange.gguf", size=64, strength=1.0)
    with pytest.raises(FatalModelError, match="cannot load"):
        one(adapted(strange), PICK)
