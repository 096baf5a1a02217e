"""The writer: whatever rows are written side by side, each says what it would say alone."""

from __future__ import annotations

import math
import random

import pytest

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("transformers", reason="needs the extra whitebox")

from tests.models.local import tiny_llama  # noqa: E402
from unmask.errors import FatalModelError  # noqa: E402
from unmask.whitebox.generate import AnswerRow, End, Manner, Room, Writer, choose_tokens  # noqa: E402

WIDE = Room(rows=16, tokens=16 * 256, reading=512)
LENGTHS = (1, 2, 3, 17, 40, 41, 90, 5)


def prompts(lengths=LENGTHS) -> list[list[int]]:
    rng = random.Random(3)
    return [[rng.randrange(256) for _ in range(length)] for length in lengths]


def finish(writer: Writer, *, steps: int = 10_000) -> list[AnswerRow]:
    done: list[AnswerRow] = []
    while writer.busy:
        steps -= 1
        assert steps, "the writer does not come to an end"
        done += writer.step()
    return done


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("llama", {}),
        ("llama", {"num_key_value_heads": 4}),
        ("mistral", {"sliding_window": 12}),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 12, "max_window_layers": 1}),
        ("llama", {"attn_implementation": "eager"}),
    ],
    ids=["shared-keys", "own-keys", "window", "mixed-windows", "eager"],
)
def test_rows_side_by_side_are_what_they_are_alone(kind, changes):
    """Prompts of 1 to 90 tokens in one batch, against a reference without cache, mask or batch."""
    model = tiny_llama.model(kind, **changes)
    rows = [AnswerRow(prompt, Manner(30, temperature=0)) for prompt in prompts()]
    writer = Writer(tiny_llama.model(kind, **changes), stops=(), room=WIDE)
    writer.add(rows)
    finish(writer)
    assert [row.written for row in rows] == [tiny_llama.likeliest(model, row.prompt, row.written) for row in rows]
    assert {len(row.written) for row in rows} == {30}


def test_rows_that_come_later_and_leave_earlier_change_nothing():
    """Limits from 3 to 24 tokens, a new row after every third step."""
    model = tiny_llama.model()
    rows = [AnswerRow(prompt, Manner(3 + 3 * place, temperature=0)) for place, prompt in enumerate(prompts())]
    writer = Writer(tiny_llama.model(), stops=(), room=WIDE)
    for row in rows:
        writer.add([row])
        for _ in range(3):
            writer.step()
    finish(writer)
    assert [row.written for row in rows] == [tiny_llama.likeliest(model, row.prompt, row.written) for row in rows]
    assert all(len(row.written) == row.manner.limit for row in rows)


def test_rows_sent_back_for_want_of_room_say_the_same():
    """Room for three rows at first and for fewer as they grow: the last ones wait and go on where they were."""
    model = tiny_llama.model()
    rows = [AnswerRow(prompt, Manner(200, temperature=0)) for prompt in prompts((20, 25, 30))]
    writer = Writer(tiny_llama.model(), stops=(), room=Room(rows=4, tokens=3 * 192, reading=64))
    writer.add(rows)
    sent_back = 0
    while writer.busy:
        before = len(writer.rows)
        ended = writer.step()
        sent_back += before - len(writer.rows) > len(ended)
    assert sent_back
    assert [row.written for row in rows] == [tiny_llama.likeliest(model, row.prompt, row.written) for row in rows]
    assert {len(row.written) for row in rows} == {200}


def test_a_dropped_row_is_neither_written_on_nor_returned():
    kept, gone = (AnswerRow(prompt, Manner(20, temperature=0)) for prompt in prompts((9, 9)))
    writer = Writer(tiny_llama.model(), stops=(), room=WIDE)
    writer.add([gone, kept])
    writer.step()
    gone.dropped = True
    assert finish(writer) == [kept]
    assert len(gone.written) == 1


def test_a_stop_token_ends_a_row_and_is_not_part_of_it():
    """The same row twice: once to the limit, once with one of its own tokens as the stop."""
    (prompt,) = prompts((12,))
    free, stopped = (AnswerRow(prompt, Manner(10, temperature=0)) for _ in range(2))
    writer = Writer(tiny_llama.model(), stops=(), room=WIDE)
    writer.add([free])
    finish(writer)
    place = next(place for place, token in enumerate(free.written) if place and token not in free.written[:place])
    writer.stops = frozenset({free.written[place]})
    writer.add([stopped])
    finish(writer)
    assert (free.end, stopped.end) == (End.LIMIT, End.STOPPED)
    assert stopped.written == free.written[:place]


def test_the_same_seed_gives_the_same_words_whoever_is_written_beside():
    alone, beside = (AnswerRow(prompts((14,))[0], Manner(40, seed="11")) for _ in range(2))
    for row, others in ((alone, []), (beside, prompts((3, 70, 20)))):
        writer = Writer(tiny_llama.model(), stops=(), room=WIDE)
        writer.add([*(AnswerRow(prompt, Manner(25, seed="x")) for prompt in others), row])
        finish(writer)
    assert alone.written == beside.written


def test_weights_that_are_not_numbers_are_an_error():
    model = tiny_llama.model()
    torch.nn.init.constant_(model.model.norm.weight, math.nan)
    writer = Writer(model, stops=(), room=WIDE)
    writer.add([AnswerRow([1, 2], Manner(3))])
    with pytest.raises(FatalModelError, match="not numbers"):
        writer.step()


# --- drawing ----------------------------------------------------------------------------------------------


def drawn(logits: list[float], manner: Manner, *, count: int = 4000) -> list[float]:
    """How often each token is drawn."""
    rows = [AnswerRow([0], Manner(1, manner.temperature, manner.top_p, str(seed))) for seed in range(count)]
    tokens = choose_tokens(torch.tensor([logits] * count), rows).tolist()
    return [tokens.count(token) / count for token in range(len(logits))]


def test_temperature_one_is_the_models_own_distribution():
    """Rare words included: nothing is cut off unless it is asked for."""
    shares = [0.6, 0.3, 0.08, 0.02, 0.0]
    found = drawn([math.log(share) if share else -math.inf for share in shares], Manner(1))
    assert found == pytest.approx(shares, abs=0.03)
    assert found[3] > 0
    assert found[4] == 0


def test_a_lower_temperature_sharpens():
    """At one half the shares are squared and scaled to one."""
    assert drawn([math.log(0.8), math.log(0.2)], Manner(1, temperature=0.5)) == pytest.approx([0.941, 0.059], abs=0.015)


def test_top_p_keeps_the_likeliest_that_reach_it():
    found = drawn([math.log(share) for share in (0.5, 0.3, 0.15, 0.05)], Manner(1, top_p=0.7))
    assert found == pytest.approx([0.625, 0.375, 0, 0], abs=0.03)


def test_rows_of_different_manners_are_drawn_together():
    rows = [AnswerRow([0], Manner(1, heat, 1.0, str(seed))) for heat in (0.0, 1.0) for seed in range(300)]
    tokens = choose_tokens(torch.tensor([[0.0, 0.5]] * 600), rows).tolist()
    assert set(tokens[:300]) == {1}
    assert set(tokens[300:]) == {0, 1}


def test_a_beginning_that_prompts_share_is_read_once_and_changes_nothing():
    """Three families of prompts with long common beginnings, in two rounds, one of them shared with nobody."""
    model = tiny_llama.model(max_position_embeddings=512)
    rng = random.Random(5)
    beginnings = [[rng.randrange(256) for _ in range(length)] for length in (100, 130, 200)]
    writer = Writer(model, stops=(), room=WIDE)
    sizes: list[int] = []
    real = type(model).forward

    def counting(self, *args, **kwargs):
        sizes.append(kwargs["input_ids"].shape[1])
        return real(self, *args, **kwargs)

    type(model).forward = counting
    try:
        rows = []
        for _ in range(2):
            fresh = [
                AnswerRow(beginning + tail, Manner(4, temperature=0))
                for beginning in beginnings
                for tail in prompts((3, 9))
            ]
            rows += [*fresh, AnswerRow(prompts((50,))[0], Manner(4, temperature=0))]
            writer.add(rows[-7:])
            finish(writer)
    finally:
        type(model).forward = real
    assert [row.written for row in rows] == [tiny_llama.likeliest(model, row.prompt, row.written) for row in rows]
    assert sorted(size for size in sizes if size > 60) == [100, 130, 200]


def test_many_short_rows_and_then_few_long_ones_stay_within_the_room():
    """What is allocated is never the most rows there were times the longest there was."""
    model = tiny_llama.model()
    writer = Writer(tiny_llama.model(), stops=(), room=Room(rows=16, tokens=16 * 64, reading=512))
    few, many = prompts((120, 120)), prompts((4,) * 16)
    rows = [AnswerRow(prompt, Manner(6, temperature=0)) for prompt in (*many, *few)]
    writer.add(rows)
    while writer.busy:
        writer.step()
        held, width = writer._cache.room
        assert held * width <= writer.room.tokens
    assert [row.written for row in rows] == [tiny_llama.likeliest(model, row.prompt, row.written) for row in rows]


# --- recorded steps ---------------------------------------------------------------------------------------


class Replayed:
    """A recorder without a GPU: what it recorded is computed again, into the place of the first result."""

    def __init__(self, *, wrong: bool = False) -> None:
        self.made, self.played, self.wrong = 0, 0, wrong

    def __call__(self, run):
        result = run()
        self.made += 1

        def replay():
            self.played += 1
            result.copy_(run() + (1.0 if self.wrong else 0.0))

        return replay, result


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("llama", {}),
        ("llama", {"num_key_value_heads": 4, "attention_bias": True}),
        ("llama", {"rope_parameters": {"rope_type": "linear", "factor": 2.0, "rope_theta": 500.0}}),
        ("mistral", {"sliding_window": 12}),
        ("qwen2", {"use_sliding_window": True, "sliding_window": 12, "max_window_layers": 1}),
        ("qwen3", {"head_dim": 16}),
        ("llama", {"hidden_act": "gelu"}),
        ("llama", {"rope_parameters": {"rope_type": "dynamic", "factor": 2}}),
    ],
    ids=["shared-keys", "own-keys-and-bias", "stretched", "window", "mixed-windows", "head-norms", "gelu", "dynamic"],
)
def test_recorded_steps_say_the_same(kind, changes):
    """Numbers of rows that are no recorded size, rows that come and go, memory that is taken anew."""
    model, recorder = tiny_llama.model(kind, **changes), Replayed()
    writer = Writer(tiny_llama.model(kind, **changes), stops=(), room=WIDE, recorder=recorder)
    rows = [
        AnswerRow(prompt, Manner(5 + 9 * place, temperature=0))
        for place, prompt in enumerate(prompts((30, 2, 7, 7, 170)))
    ]
    for row in rows:
        writer.add([row])
        writer.step()
    finish(writer)
    assert [row.written for row in rows] == [tiny_llama.likeliest(model, row.prompt, row.written) for row in rows]
    assert writer.recording
    assert recorder.played > recorder.made > 1


def test_hooks_in_a_model_are_not_passed_by():
    """A hook that turns the scores around must still turn them around."""
    hooked = tiny_llama.model()
    hooked.model.layers[1].register_forward_hook(lambda module, given, found: -found)
    writer = Writer(hooked, stops=(), room=WIDE, recorder=Replayed())
    row = AnswerRow([1, 2, 3], Manner(6, temperature=0))
    writer.add([row])
    finish(writer)
    assert writer.recording
    assert row.written == tiny_llama.likeliest(hooked, row.prompt, row.written)


def test_a_draw_that_rounding_pushes_past_the_end_is_the_last_token_with_a_share():
    """The largest draw below one, over blocks that end in tokens of no share."""

    class Highest:
        def random(self) -> float:
            return math.nextafter(1.0, 0.0)

    scores = torch.full((1, 1300), -math.inf)
    scores[0, [3, 600, 700]] = 0.0
    row = AnswerRow([0], Manner(1))
    row.draws = Highest()
    assert choose_tokens(scores, [row]).tolist() == [700]


@pytest.mark.parametrize("heat", [0.0, 1.0])
def test_steps_begun_ahead_change_nothing(heat):
    """Rows that end by a stop in the middle, that come late, that are dropped: with recordings as without."""
    said = []
    for recorder in (None, Replayed()):
        writer = Writer(tiny_llama.model(), stops=range(0, 256, 19), room=WIDE, recorder=recorder)
        rows = [
            AnswerRow(prompt, Manner(60, heat, seed=str(place))) for place, prompt in enumerate(prompts(LENGTHS * 3))
        ]
        writer.add(rows[:10])
        ahead = 0
        for step in range(400):
            if step == 9:
                writer.add(rows[10:])
            if step == 12:
                rows[11].dropped = True
            writer.step()
            ahead += writer._ahead is not None
        assert not writer.busy
        assert (ahead > 20) == (recorder is not None)
        said.append([(row.written, row.end) for row in rows if not row.dropped])
    assert said[0] == said[1]
    assert {end for _, end in said[0]} == {End.STOPPED, End.LIMIT}


def test_a_recording_that_differs_from_the_plain_pass_is_not_used():
    model, recorder = tiny_llama.model(), Replayed(wrong=True)
    writer = Writer(tiny_llama.model(), stops=(), room=WIDE, recorder=recorder)
    rows = [AnswerRow(prompt, Manner(6, temperature=0)) for prompt in prompts((8, 20))]
    writer.add(rows)
    finish(writer)
    assert [row.written for row in rows] == [tiny_llama.likeliest(model, row.prompt, row.written) for row in rows]
    assert not writer.recording
    assert recorder.played == 1


def test_a_model_that_cannot_be_recorded_is_run_plainly():
    def refusing(run):
        raise RuntimeError("operation not permitted when stream is capturing")

    writer = Writer(tiny_llama.model(), stops=(), room=WIDE, recorder=refusing)
    row = AnswerRow([1, 2, 3], Manner(6, temperature=0))
    writer.add([row])
    finish(writer)
    assert row.written == tiny_llama.likeliest(tiny_llama.model(), row.prompt, row.written)


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_graphs_on_a_gpu_say_the_same_as_plain_steps():
    from unmask.whitebox.forward import CudaRecorder

    said = []
    for recorder in (None, CudaRecorder()):
        writer = Writer(tiny_llama.model().cuda(), stops=(), room=WIDE, recorder=recorder)
        rows = [AnswerRow(prompt, Manner(20, temperature=0)) for prompt in prompts()]
        writer.add(rows)
        finish(writer)
        assert writer.recording == (recorder is not None)
        said.append([row.written for row in rows])
    assert said[0] == said[1]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_a_graph_in_bfloat16_differs_by_rounding_alone():
    from unmask.whitebox.forward import CudaRecorder

    model = tiny_llama.model("qwen3", hidden_size=256, head_dim=64, num_hidden_layers=6, initializer_range=0.05)
    writer = Writer(model.cuda().bfloat16(), stops=(), room=WIDE, recorder=CudaRecorder())
    writer.add([AnswerRow(prompt, Manner(20, temperature=0)) for prompt in prompts()])
    finish(writer)
    assert writer._stepper.refusal is None
    assert writer._stepper.difference < 0.05


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU")
def test_two_models_of_one_process_record_and_load_at_the_same_time():
    """A subject and a judge: neither thread breaks the recording of the other."""
    from concurrent.futures import ThreadPoolExecutor

    from unmask.whitebox.forward import CudaRecorder

    # Made one after the other: they draw their weights from the one generator of the process.
    models = [tiny_llama.model() for _ in range(8)]

    def write_answers(number: int) -> tuple[bool, list[list[int]]]:
        writer = Writer(models[number].cuda(), stops=(), room=WIDE, recorder=CudaRecorder())
        rows = [AnswerRow(prompt, Manner(20, temperature=0)) for prompt in prompts()]
        writer.add(rows)
        finish(writer)
        return writer.recording, [row.written for row in rows]

    with ThreadPoolExecutor(4) as threads:
        answers = list(threads.map(write_answers, range(8)))
    assert all(recording for recording, _ in answers)
    assert len({str(written) for _, written in answers}) == 1
