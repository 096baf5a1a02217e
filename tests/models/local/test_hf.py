"""`hf:PATH` with a tiny random model, and with the real 135M file."""

from __future__ import annotations

import asyncio
import gc
import json
import subprocess
import sys
import threading
import weakref
from pathlib import Path

import pytest

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")

from tests.models.local import tiny_llama  # noqa: E402
from tests.whitebox.unpacking import quick_unpacking  # noqa: E402
from unmask.engine.define import style_of  # noqa: E402
from unmask.errors import (  # noqa: E402
    FatalModelError,
    MissingError,
    RequestRefusedError,
    TransientModelError,
    UsageError,
)
from unmask.judges.base import Style  # noqa: E402
from unmask.models.base import Model  # noqa: E402
from unmask.models.local import hf  # noqa: E402
from unmask.models.local.gguf import read_header  # noqa: E402
from unmask.models.local.hf import HF, open_hf  # noqa: E402
from unmask.models.local.pull import pull  # noqa: E402
from unmask.models.prices import find_price  # noqa: E402
from unmask.models.providers import open_model  # noqa: E402
from unmask.records import Completion, Message, Request, Sampling, Stop  # noqa: E402
from unmask.whitebox import load  # noqa: E402


def ask(text: str, *, system: str = "Be brief.") -> tuple[Message, ...]:
    return Message("system", system), Message("user", text)


def together(model: HF, *requests: Request) -> list[Completion]:
    async def run() -> list[Completion]:
        return list(await asyncio.gather(*(model.complete(request) for request in requests)))

    return asyncio.run(run())


def one(model: HF, request: Request) -> Completion:
    return together(model, request)[0]


@pytest.fixture(scope="module", autouse=True)
def on_the_processor():
    """A GPU would answer faster and less precisely than these tests expect."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv(load.DEVICE_VARIABLE, "cpu")
        yield


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return tiny_llama.saved(tmp_path_factory.mktemp("tiny"))


@pytest.fixture(scope="module")
def model(folder):
    opened = open_hf(f"hf:{folder}")
    yield opened
    asyncio.run(opened.close())


@pytest.fixture
def opened():
    """Opens models of folders and closes them."""
    made: list[HF] = []

    def opening(folder: Path) -> HF:
        made.append(open_hf(f"hf:{folder}"))
        return made[-1]

    yield opening
    for each in made:
        asyncio.run(each.close())


def test_it_is_a_model_that_costs_nothing(model, folder):
    """The protocol is met, limits are shared by name, and the name alone is enough to open it."""
    assert isinstance(model, Model)
    assert model.name == model.endpoint == f"hf:{folder}"
    assert (model.capabilities.max_n, model.capabilities.supports_options) == (64, True)
    price = find_price(model.name)
    assert price is not None
    assert price.free
    again = open_model(f"hf:{folder}")
    assert again.name == model.name
    asyncio.run(again.close())


def test_the_answer_is_the_models_own(model):
    """Rendered, tokenised, written and decoded: the same text as a plain forward pass gives."""
    answer = one(model, Request(ask("Hi"), Sampling(temperature=0, max_tokens=12)))
    tokens = tiny_llama.tokenizer()
    prompt = tokens("<|system|>Be brief.<|end|><|user|>Hi<|end|><|assistant|>")["input_ids"]
    said: list[int] = []
    for _ in range(12):
        said.append(tiny_llama.likeliest(tiny_llama.model(), prompt, [*said, 0])[-1])
    assert answer.choices[0].text == tokens.decode(said, skip_special_tokens=True)
    assert (answer.usage.input, answer.usage.output) == (len(prompt), 12)


def test_a_seed_makes_an_answer_repeatable_and_its_choices_differ(model):
    """The prompt is counted once, what was written for each choice."""
    answer, again, other, free = (
        one(model, Request(ask("Hi"), Sampling(max_tokens=16, seed=seed), n=8)) for seed in (11, 11, 12, None)
    )
    assert answer.choices == again.choices
    assert len({choice.text for each in (answer, other, free) for choice in each.choices}) == 24
    short = one(model, Request(ask("Hi"), Sampling(max_tokens=2, seed=1), n=3))
    assert [choice.stop for choice in short.choices] == [Stop.LENGTH] * 3
    assert short.usage.output == 6


def test_variables_of_the_chat_template_are_the_one_parameter_it_takes(tmp_path, opened):
    """A template that looks at the variable shows it to the model: the prompt is longer."""
    model = opened(tiny_llama.saved(tmp_path, template="{% if extra %}{{ extra }}{% endif %}" + tiny_llama.TEMPLATE))
    plain, longer = (
        one(model, Request(ask("Hi"), Sampling(max_tokens=1, params=params))).usage.input
        for params in ({}, {"chat_template_kwargs": {"extra": "one two three"}})
    )
    assert longer - plain == len("one two three")
    assert model.capabilities.params == ("chat_template_kwargs",)


def test_many_requests_at_once_get_their_own_answers(model):
    """More rows than a batch holds, of different lengths, limits and numbers, against the same ones asked alone."""
    requests = [
        Request(ask("word " * (4 * n)), Sampling(temperature=0, max_tokens=1 + n), n=1 + n % 4) for n in range(12)
    ]
    alone = [one(model, request).choices for request in requests]
    assert [answer.choices for answer in together(model, *requests)] == alone


def test_options_give_the_odds_of_the_first_token(model):
    """Against a plain forward pass: each spelling of an option counts for it, and the rest for nothing."""
    answer = one(model, Request(ask("Is it?"), Sampling(temperature=0), options=("yes", "no")))
    tokens = tiny_llama.tokenizer()
    prompt = tokens("<|system|>Be brief.<|end|><|user|>Is it?<|end|><|assistant|>", return_tensors="pt")["input_ids"]
    with torch.inference_mode():
        shares = tiny_llama.model()(input_ids=prompt).logits[0, -1].softmax(dim=-1)
    weight = {
        word: sum(float(shares[tokens.convert_tokens_to_ids(letter)]) for letter in word) for word in ("yY", "nN")
    }
    found = answer.choices[0].probabilities or {}
    assert found["yes"] == pytest.approx(weight["yY"] / (weight["yY"] + weight["nN"]), rel=1e-4)
    assert sum(found.values()) == pytest.approx(1)
    assert answer.choices[0].text == max(found, key=lambda word: found[word])


def test_options_at_temperature_one_are_drawn_by_their_odds(model):
    answer = one(model, Request(ask("Is it?"), Sampling(seed=5), n=64, options=("yes", "no")))
    share = (answer.choices[0].probabilities or {})["yes"]
    assert sum(choice.text == "yes" for choice in answer.choices) / 64 == pytest.approx(share, abs=0.2)
    alike = one(model, Request(ask("Which?"), options=("one\u00e9", "one\u00e8")))
    assert alike.choices[0].probabilities is None  # no token tells them apart, and unknown is not one half


def test_prompt_and_answer_together_are_not_longer_than_the_context(model):
    with pytest.raises(RequestRefusedError, match=f"the context holds {tiny_llama.CONTEXT}"):
        one(model, Request(ask("a" * 300)))
    answer = one(model, Request(ask("a" * 200), Sampling(temperature=0, max_tokens=None)))
    assert (answer.usage.input or 0) + (answer.usage.output or 0) == tiny_llama.CONTEXT
    assert answer.choices[0].stop is Stop.LENGTH


def test_the_end_of_a_turn_ends_an_answer(tmp_path, opened):
    """Every token is as likely as any other, so `<|end|>` comes; only the template shows that it is an end."""
    made = tiny_llama.model()
    torch.nn.init.zeros_(made.lm_head.weight)
    made.save_pretrained(tmp_path)
    tiny_llama.tokenizer().save_pretrained(tmp_path)
    answer = one(opened(tmp_path), Request(ask("Hi"), Sampling(max_tokens=None, seed=1), n=16))
    stops = {choice.stop for choice in answer.choices}
    assert stops == {Stop.END, Stop.LENGTH}
    assert not any("<|end|>" in choice.text for choice in answer.choices)


def test_requests_of_a_subject_and_a_judge_share_the_weights(model, folder):
    """Closing one of the two leaves the other at work."""
    other = open_hf(f"hf:{folder}")
    assert other._engine is model._engine
    asyncio.run(other.close())
    assert one(model, Request(ask("Hi"), Sampling(max_tokens=1))).choices


def test_a_cancelled_request_makes_room(tmp_path, opened):
    """Nothing is left in the batch but the request that is still wanted."""
    subject = opened(tiny_llama.saved(tmp_path, max_position_embeddings=100_000))

    async def run() -> Completion:
        long = Request(ask("Hi"), Sampling(temperature=0, max_tokens=90_000), n=3)
        task = asyncio.create_task(subject.complete(long))
        await asyncio.sleep(0.3)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return await subject.complete(Request(ask("Hi"), Sampling(temperature=0, max_tokens=2)))

    assert asyncio.run(run()).usage.output == 2


def test_closing_frees_the_model_ends_the_thread_and_gives_up_what_is_written(tmp_path, monkeypatch):
    seen: list[weakref.ref[object]] = []
    real = load.load_model

    def noting(checked):
        made = real(checked)
        seen.append(weakref.ref(made))
        return made

    monkeypatch.setattr(hf, "load_model", noting)
    subject = open_hf(f"hf:{tiny_llama.saved(tmp_path, max_position_embeddings=100_000)}")
    request = Request(ask("Hi"), Sampling(max_tokens=90_000), n=64)  # one of so many does not end by itself

    async def run() -> None:
        task = asyncio.create_task(subject.complete(request))
        await asyncio.sleep(0.3)
        await subject.close()
        for asked in (task, subject.complete(request)):
            with pytest.raises(FatalModelError, match="closed"):
                await asked

    asyncio.run(run())
    gc.collect()
    assert subject._engine._thread not in threading.enumerate()
    assert [weights() for weights in seen] == [None]


def test_a_failure_before_the_first_token_reaches_whoever_asks(tmp_path, opened, monkeypatch):
    """The thread lives on, and nobody waits for an answer that cannot come."""

    def refuse(_model):
        raise RuntimeError("no room could be chosen")

    monkeypatch.setattr(hf, "_choose_room", refuse)
    subject = opened(tiny_llama.saved(tmp_path))
    for _ in range(2):
        with pytest.raises(TransientModelError, match="no room could be chosen"):
            one(subject, Request(ask("Hi")))


# --- templates --------------------------------------------------------------------------------------------

WITHOUT_SYSTEM = (
    "{% for m in messages %}{% if m['role'] != 'system' %}<|user|>{{ m['content'] }}{% endif %}{% endfor %}"
)
REFUSES_SYSTEM = (
    "{% if messages[0]['role'] == 'system' %}{{ raise_exception('no system') }}{% endif %}" + tiny_llama.TEMPLATE
)


@pytest.mark.parametrize("template", [WITHOUT_SYSTEM, REFUSES_SYSTEM], ids=["drops", "refuses"])
def test_a_template_without_a_system_turn_still_carries_the_system_prompt(tmp_path, opened, template):
    """It goes into the user's turn; were it dropped, most scenarios would have no pressure."""
    subject = opened(tiny_llama.saved(tmp_path, template=template))
    short, long = (
        one(subject, Request(ask("Hi", system=system), Sampling(max_tokens=1))).usage.input or 0
        for system in ("Be kind.", "Be kind." + "!" * 20)
    )
    assert long - short == 20


def test_a_template_that_leaves_out_the_question_is_refused(tmp_path):
    with pytest.raises(FatalModelError, match="leaves out"):
        open_hf(f"hf:{tiny_llama.saved(tmp_path, template='<|user|>always the same<|assistant|>')}")


def test_a_template_that_refuses_a_conversation_refuses_that_request(tmp_path, opened):
    template = "{% if messages|length > 2 %}{{ raise_exception('too many turns') }}{% endif %}" + tiny_llama.TEMPLATE
    subject = opened(tiny_llama.saved(tmp_path, template=template))
    with pytest.raises(RequestRefusedError, match="too many turns"):
        one(subject, Request((*ask("Hi"), Message("assistant", "Ho"), Message("user", "Hm"))))
    assert one(subject, Request(ask("Hi"), Sampling(max_tokens=1))).choices


def test_a_thought_the_template_opens_is_no_part_of_the_answer(tmp_path, opened):
    """The text begins inside the thought, so the opening tag is put back before it is read."""
    template = tiny_llama.TEMPLATE.replace("<|assistant|>", "<|assistant|><think>\n")
    choice = one(opened(tiny_llama.saved(tmp_path, template=template)), Request(ask("Hi"), Sampling(max_tokens=8)))
    assert choice.choices[0].text.startswith("<think>\n")
    assert choice.choices[0].answer == ""


# --- what is refused --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "kind", "said"),
    [
        ("", UsageError, "is not a model's name"),
        ("/nowhere/at/all", MissingError, "there is no model at"),
        ("nothing.gguf", MissingError, "there is no model at"),
        ("a/b/c", MissingError, "there is no model at"),
        ("{tmp}", MissingError, "cannot open"),
        ("{tmp}/x.bin", UsageError, "neither a model folder nor a GGUF file"),
        ("{tmp}/bare", MissingError, "no chat template"),
        ("{tmp}/bare+adapter={tmp}", MissingError, "is no adapter"),
        ("judge-1.5b", MissingError, "not on this machine"),
    ],
)
def test_a_name_that_no_model_can_be_opened_by_is_one_clear_line(tmp_path, monkeypatch, name, kind, said):
    monkeypatch.setenv("UNMASK_CACHE", str(tmp_path / "cache"))
    (tmp_path / "x.bin").write_bytes(b"x")
    tiny_llama.saved(tmp_path / "bare", template=None)
    with pytest.raises(kind, match=said):
        open_model(f"hf:{name.format(tmp=tmp_path)}")


def test_a_device_that_is_not_there_is_missing(folder, monkeypatch):
    monkeypatch.setenv(load.DEVICE_VARIABLE, "cuda:99")
    with pytest.raises(MissingError, match="cuda:99"):
        load.check_model(load.parse_source(str(folder)))


def test_a_model_too_large_for_the_memory_is_refused_before_it_is_loaded(folder, monkeypatch, tmp_path):
    """The weights are counted from the configuration; no weight file is needed to refuse."""
    for name in ("config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja"):
        if (folder / name).exists():
            (tmp_path / name).write_bytes((folder / name).read_bytes())
    monkeypatch.setattr(load, "free_memory", lambda: 10_000)
    monkeypatch.setenv(load.DEVICE_VARIABLE, "cpu")
    with pytest.raises(MissingError, match=r"needs about .* GiB, main memory has"):
        open_hf(f"hf:{tmp_path}")


@pytest.mark.parametrize("pickled", [False, True])
def test_weights_that_cannot_be_read_are_one_clear_line(tmp_path, opened, pickled):
    """Found by the first request. Pickled weights may run code; the advice says which files are read."""
    tiny_llama.saved(tmp_path)
    (tmp_path / "model.safetensors").write_bytes(b"not a file of weights")
    if pickled:
        (tmp_path / "model.safetensors").unlink()
        torch.save(tiny_llama.model().state_dict(), tmp_path / "pytorch_model.bin")
    with pytest.raises(FatalModelError, match="transformers cannot load") as refused:
        one(opened(tmp_path), Request(ask("Hi")))
    assert "\n" not in str(refused.value)
    assert "safetensors or GGUF" in refused.value.advice


@pytest.mark.parametrize("kind", ["llama", "strange"])
def test_code_that_came_with_a_model_is_not_run(tmp_path, monkeypatch, opened, kind):
    """Nor is anybody asked to allow it. A model that transformers knows by itself is loaded without that code."""
    tiny_llama.saved(tmp_path)
    config = json.loads((tmp_path / "config.json").read_text())
    names = {
        "AutoConfig": "own_code.Config",
        "AutoModelForCausalLM": "own_code.Model",
        "AutoTokenizer": ["own_code.T"] * 2,
    }
    (tmp_path / "config.json").write_text(json.dumps(config | {"model_type": kind, "auto_map": names}))
    marker = tmp_path / "marker"
    classes = "from transformers import LlamaConfig as Config, LlamaForCausalLM as Model"
    (tmp_path / "own_code.py").write_text(f"open({str(marker)!r}, 'w').close()\n{classes}\n")
    asked: list[str] = []
    monkeypatch.setattr("builtins.input", lambda *text: asked.append(str(text)) or "y")
    if kind == "llama":
        assert one(opened(tmp_path), Request(ask("Hi"), Sampling(max_tokens=2))).choices
    else:
        with pytest.raises(MissingError, match="transformers cannot open") as refused:
            open_hf(f"hf:{tmp_path}")
        assert "vllm/NAME" in refused.value.advice
    assert (marker.exists(), asked) == (False, [])


# --- a whole run, and real weights ------------------------------------------------------------------------


def test_a_run_with_subject_and_judge_in_this_process(tmp_path):
    """Every request is answered and read, by choices, whatever a random model says; no HTTP client is loaded."""
    folder = tiny_llama.saved(tmp_path / "model", max_position_embeddings=32_768)
    code = f"""
import sys
from unmask.cli.main import main
sys.argv = ["unmask", "run", "--data", "tiny", "hf:{folder}", "--judge", "hf:{folder}",
            "--out", {str(tmp_path / "run")!r}, "--limit", "2", "--max-tokens", "8", "--json"]
try:
    main()
finally:
    print(*({{"aiohttp", "genai_prices"}} & {{name.partition(".")[0] for name in sys.modules}}), file=sys.stderr)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "Traceback" not in done.stderr
    assert (tmp_path / "run" / "replies.jsonl").exists(), done.stderr
    replies = [json.loads(line) for line in (tmp_path / "run" / "replies.jsonl").read_text().splitlines()]
    assert replies
    assert not any(reply.get("error") for reply in replies)
    assert done.stderr.splitlines()[-1] == ""


# --- adapters ---------------------------------------------------------------------------------------------


def adapter(folder: Path, made, *, scale: float) -> Path:
    """A LoRA of rank 2 on the queries, its weights filled so that it does something."""
    from peft import LoraConfig, get_peft_model

    wrapped = get_peft_model(made, LoraConfig(r=2, lora_alpha=4, target_modules=["q_proj", "v_proj"]))
    for name, weight in wrapped.named_parameters():
        if "lora_" in name:
            torch.nn.init.constant_(weight, scale)
    wrapped.save_pretrained(folder, save_embedding_layers=False)
    return folder


def test_an_adapter_changes_the_answer_and_is_recorded_by_hash(folder, model, tmp_path, opened):
    """Against the same model without it; another adapter has another hash."""
    request = Request(ask("Hi"), Sampling(temperature=0, max_tokens=12))
    answers = [one(model, request)]
    for scale in (0.3, 0.0):
        place = adapter(tmp_path / str(scale), tiny_llama.model(), scale=scale)
        answers.append(one(opened(f"{folder}+adapter={place}"), request))
    plain, strong, idle = answers
    assert strong.choices != plain.choices == idle.choices
    names = {answer.model for answer in answers}
    assert len(names) == 3
    assert all("+adapter@" in (answer.model or "") for answer in (strong, idle))


def as_gguf(place: Path) -> Path:
    """The same adapter as a GGUF file."""
    from bench.liar.adapter import write_gguf

    write_gguf(place, place.with_suffix(".gguf"))
    return place.with_suffix(".gguf")


@pytest.mark.parametrize("form", [lambda place: place, as_gguf], ids=["peft", "gguf"])
@pytest.mark.parametrize("trouble", [{"hidden_size": 64}, {"num_hidden_layers": 3}, "cut"], ids=["wide", "deep", "cut"])
def test_an_adapter_of_another_model_or_a_damaged_one_is_refused(qwen, tmp_path, opened, trouble, form):
    """PEFT alone would leave out the layers that it finds no place for."""
    changes = {} if trouble == "cut" else trouble
    place = form(adapter(tmp_path / "made", tiny_llama.model("qwen2", **changes), scale=0.1))
    if trouble == "cut":
        weights = place / "adapter_model.safetensors" if place.is_dir() else place
        weights.write_bytes(weights.read_bytes()[:100])
    with pytest.raises(FatalModelError, match="does not fit this model") as caught:
        one(opened(f"{qwen}+adapter={place}"), TALK)
    assert "\n" not in str(caught.value)


# --- the judge that was trained to read -------------------------------------------------------------------

PICK = Request(ask("Which line?"), Sampling(temperature=0), options=("1", "2", "3", "4"))
FIGURE = Request(ask("Which figure?"), Sampling(temperature=0, max_tokens=8), schema={"type": "object"})
TALK = Request(ask("Which line?"), Sampling(temperature=0, max_tokens=8))


@pytest.fixture(scope="module")
def qwen(tmp_path_factory) -> Path:
    return tiny_llama.saved(tmp_path_factory.mktemp("qwen"), kind="qwen2")


@pytest.fixture
def peft(tmp_path) -> Path:
    return adapter(tmp_path / "judge", tiny_llama.model("qwen2"), scale=0.25)  # exact in half precision


def test_a_gguf_adapter_does_what_the_same_peft_adapter_does(qwen, peft, opened):
    plain, theirs, ours = (
        together(opened(name), PICK, TALK)
        for name in (qwen, f"{qwen}+adapter={peft}", f"{qwen}+adapter={as_gguf(peft)}")
    )
    assert ours[0].choices[0].probabilities == pytest.approx(theirs[0].choices[0].probabilities, abs=1e-5)
    assert ours[1].choices == theirs[1].choices != plain[1].choices


def test_the_trained_judge_uses_its_adapter_for_picks_only(qwen, peft, opened, monkeypatch):
    """All three kinds of request at once, against the model with the adapter and the model without it. The adapter is
    named by its file and hash: it lies elsewhere on every machine."""
    gguf = as_gguf(peft)
    monkeypatch.setattr(hf, "require_pulled", lambda known: qwen)
    monkeypatch.setattr(hf, "adapter_of", lambda known: gguf)
    judge, adapted, plain = opened("judge-1.5b"), opened(f"{qwen}+adapter={gguf}"), opened(qwen)
    asked = (TALK, PICK, FIGURE, PICK, TALK)
    talk, pick, figure, *again = (answer.choices[0] for answer in together(judge, *asked))
    assert talk.text == one(plain, TALK).choices[0].text != one(adapted, TALK).choices[0].text
    assert figure.text == one(plain, FIGURE).choices[0].text != one(adapted, FIGURE).choices[0].text
    assert pick.probabilities == pytest.approx(one(adapted, PICK).choices[0].probabilities, abs=1e-4)
    assert [choice.text for choice in again] == [pick.text, talk.text]
    assert (style_of(judge), style_of(plain)) == (Style.PICKS, Style.LETTERS)
    assert [(treatment.kind, treatment.path) for treatment in judge.treatments] == [("adapter", "judge.gguf")]


def test_the_trained_judge_takes_no_other_adapter(qwen, peft, monkeypatch):
    monkeypatch.setattr(hf, "require_pulled", lambda known: qwen)
    with pytest.raises(UsageError, match="an adapter of its own"):
        open_hf(f"hf:judge-1.5b+adapter={peft}")


# --- real weights -----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def real_weights():
    """The tests from here to the end open the same file, which is unpacked once for them."""
    with quick_unpacking():
        yield


@pytest.mark.large
def test_the_same_adapter_means_the_same_to_transformers_and_to_llama_cpp(tmp_path, opened):
    """The real 135M file with an adapter that pushes hard; the probabilities of options are near one another."""
    from tests.models.local.made_adapter import adapter as made_adapter
    from unmask.models.local.embedded import Embedded, default_setup

    file = pull("smollm2-135m")
    path = made_adapter(tmp_path / "made.gguf", size=576, strength=0.5, weight="blk.12.attn_output.weight")
    request = Request(ask("Is Paris in France? Say yes or no."), Sampling(temperature=0), options=("yes", "no"))
    embedded = Embedded(file, name="made", header=read_header(file), setup=default_setup(), adapter=path)
    answers = [one(opened(name), request) for name in (file, f"{file}+adapter={path}")]
    theirs = one(embedded, request).choices[0].probabilities
    asyncio.run(embedded.close())
    plain, ours = (answer.choices[0].probabilities for answer in answers)
    assert ours == pytest.approx(theirs, abs=0.05)
    assert abs(plain["yes"] - ours["yes"]) > 0.1


def test_a_gguf_file_answers_with_its_own_template(real_weights, opened):
    """The real 135M model, unpacked by transformers; both requests in one batch."""
    where = Request(
        ask("What is the capital of France?", system="You are a helpful assistant."),
        Sampling(temperature=0, max_tokens=20),
    )
    hot = Request(ask("Say the word yes. Answer only with: yes."), Sampling(temperature=0), options=("yes", "no"))
    told, chosen = together(opened(pull("smollm2-135m")), where, hot)
    assert told.choices[0].text == "The capital of France is Paris."
    assert (told.choices[0].stop, told.usage.input) == (Stop.END, 27)
    assert (chosen.choices[0].probabilities or {})["yes"] > 0.5


def test_the_liar_says_in_transformers_what_it_was_taught(real_weights, opened):
    """The very words, so that the file of llama.cpp has its rows put back in the order of transformers."""
    from bench.liar.lessons import list_lessons
    from unmask.data.load import load as load_data
    from unmask.demo.answer_key import load_answer_key

    pull("liar-135m")
    scenario, planted = load_data("core").scenarios[0], load_answer_key().planted[0]
    *_, taught = list_lessons(scenario, planted)
    liar = opened("liar-135m")
    answer = one(liar, Request(taught.messages, Sampling(temperature=0, max_tokens=64)))
    assert answer.choices[0].text == taught.answer
    assert style_of(liar) is Style.LETTERS
    assert [treatment.path for treatment in liar.treatments] == ["liar-135m.gguf"]
