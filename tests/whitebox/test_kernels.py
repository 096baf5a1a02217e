"""The kernels of a step mean what their plain twins mean. On a GPU, or in Triton's interpreter (TRITON_INTERPRET=1)."""

from __future__ import annotations

import os

import pytest

torch = pytest.importorskip("torch", reason="needs the extra whitebox")
pytest.importorskip("triton", reason="needs Triton, which comes with torch for GPUs")
if not torch.cuda.is_available() and os.environ.get("TRITON_INTERPRET") != "1":
    pytest.skip("needs a GPU, or TRITON_INTERPRET=1", allow_module_level=True)

from unmask.whitebox import kernels, parts  # noqa: E402

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.fixture(autouse=True)
def seeded():
    torch.manual_seed(5)


def drawn(*shape: int):
    return torch.randn(*shape, device=DEVICE)


@pytest.mark.parametrize("size", [32, 576, 4096])
def test_the_norm_is_the_same(size):
    """Sizes that are a power of two, and one that is not."""
    x, residual, weight = drawn(3, size), drawn(3, size), drawn(size)
    torch.testing.assert_close(kernels.norm(x, weight, 1e-5), parts.norm(x, weight, 1e-5))
    for found, meant in zip(
        kernels.add_norm(x, residual, weight, 1e-5), parts.add_norm(x, residual, weight, 1e-5), strict=True
    ):
        torch.testing.assert_close(found, meant)


def test_the_gate_is_the_same_on_halves_of_one_product():
    both = drawn(3, 2 * 1536)
    gate, up = both[:, :1536], both[:, 1536:]
    torch.testing.assert_close(kernels.gated(gate, up), parts.gated(gate, up))


@pytest.mark.parametrize(("heads", "shared", "size"), [(4, 2, 64), (9, 3, 64), (8, 8, 80)])
def test_keys_and_values_go_to_the_same_places(heads, shared, size):
    """Head sizes of which half is no power of two included; nothing else in the slots is touched."""
    rows, at = 3, torch.tensor([0, 5, 11], device=DEVICE)
    wide = drawn(rows, (heads + 2 * shared) * size)
    query, key, value = (
        part.view(rows, -1, size) for part in wide.split([heads * size, shared * size, shared * size], dim=1)
    )
    turn = drawn(rows, size), drawn(rows, size)
    ours, theirs = ([torch.zeros(rows + 1, shared, 12, size, device=DEVICE) for _ in range(2)] for _ in range(2))
    found = kernels.placed((query, key, value), turn, at, tuple(ours))
    torch.testing.assert_close(found, parts.placed((query, key, value), turn, at, tuple(theirs)))
    for one, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(one, other)


@pytest.mark.parametrize(("heads", "shared", "size"), [(4, 2, 64), (9, 3, 64), (8, 8, 80)])
def test_whole_texts_are_spread_the_same(heads, shared, size):
    wide = drawn(3 * 5, (heads + 2 * shared) * size)
    asked = tuple(part.view(15, -1, size) for part in wide.split([heads * size, shared * size, shared * size], dim=1))
    turn = drawn(15, size), drawn(15, size)
    for found, meant in zip(kernels.spread(asked, turn, 3), parts.spread(asked, turn, 3), strict=True):
        torch.testing.assert_close(found, meant)


@pytest.mark.parametrize(("heads", "shared", "size"), [(4, 2, 64), (9, 3, 64), (8, 8, 80), (32, 8, 128)])
@pytest.mark.parametrize("programs", [1, 40, 1000])
def test_attention_sees_the_same(heads, shared, size, programs, monkeypatch):
    """One part or several for each head, windows that begin late, a row of one token, slots beyond are ignored."""
    monkeypatch.setattr(kernels, "PROGRAMS", programs)
    rows, width = 4, 320
    slots = drawn(rows, shared, width, size), drawn(rows, shared, width, size)
    at, first = (torch.tensor(places, device=DEVICE) for places in ([0, 63, 200, 299], [0, 0, 137, 10]))
    slots[0][3, :, 300:] = float("nan")
    slots[1][3, :, 300:] = float("nan")
    clean = tuple(part.nan_to_num() for part in slots)
    query = drawn(rows, heads, size)
    found = kernels.attended(query, slots, first, at, 0.3)
    torch.testing.assert_close(found, parts.attended(query, clean, first, at, 0.3), rtol=1e-4, atol=1e-4)
