"""Agreement beyond chance, against other people's code and against formulas written out by hand."""

from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from unmask.stats.agree import Pair, RatedItem, krippendorff_alpha, measure_agreement
from unmask.stats.rate import Z95

LETTERS = ("A", "B", "C", "D")
letters = st.sampled_from(LETTERS)
readings = st.lists(st.tuples(letters, letters), min_size=2, max_size=40)


def pairs(found, weights=None):
    weights = weights or [1.0] * len(found)
    return [Pair(a, b, str(place), weight) for place, ((a, b), weight) in enumerate(zip(found, weights, strict=True))]


def varied(found):
    return len({a for a, _ in found}) > 1 and len({b for _, b in found}) > 1


@settings(deadline=None)
@given(readings)
def test_kappa_is_that_of_scikit_learn(found):
    """Where both readers use more than one class."""
    from sklearn.metrics import cohen_kappa_score

    assume(varied(found))
    expected = cohen_kappa_score([a for a, _ in found], [b for _, b in found], labels=list(LETTERS))
    assert measure_agreement(pairs(found), classes=LETTERS).kappa.value == pytest.approx(expected, abs=1e-12)


@settings(deadline=None)
@given(readings)
def test_ac1_by_hand(found):
    """Gwet's chance agreement: the mean over classes of p(1 - p), over all four classes, used or not."""
    assume(len({x for pair in found for x in pair}) > 1)
    shares = [sum((a == x) + (b == x) for a, b in found) / (2 * len(found)) for x in LETTERS]
    chance = sum(p * (1 - p) for p in shares) / 3
    observed = sum(a == b for a, b in found) / len(found)
    value = measure_agreement(pairs(found), classes=LETTERS).ac1.value
    assert value == pytest.approx((observed - chance) / (1 - chance), abs=1e-12)


def alpha_by_hand(units):
    """Krippendorff's formula, by counting pairs of values within and across units one by one."""
    kept = [unit for unit in units if len(unit) > 1]
    values = [value for unit in kept for value in unit]
    within = 0.0
    for unit in kept:
        unlike = sum(unit[i] != unit[j] for i in range(len(unit)) for j in range(len(unit)) if i != j)
        within += unlike / (len(unit) - 1)
    counts, n = Counter(values), len(values)
    across = sum(counts[x] * counts[y] for x in counts for y in counts if x != y) / (n - 1)
    return 1 - within / across


@settings(deadline=None)
@given(st.lists(st.lists(letters, min_size=1, max_size=4), min_size=2, max_size=25))
def test_alpha_of_many_readers_by_hand(units):
    """Any number of readers per reply; replies with one reading play no part."""
    kept = [unit for unit in units if len(unit) > 1]
    assume(len(kept) > 1 and len({value for unit in kept for value in unit}) > 1)
    found = krippendorff_alpha(
        [RatedItem(tuple(unit), str(place)) for place, unit in enumerate(units)], classes=LETTERS
    )
    assert found.value == pytest.approx(alpha_by_hand(units), abs=1e-12)


def test_alpha_of_a_published_example():
    """Krippendorff (2011), nominal data, four observers, twelve units with gaps: 0.743."""
    table = ("11.1", "2232", "3333", "3333", "2222", "1234", "4444", "1121", "2222", ".555", "..11", ".3..")
    units = [RatedItem(tuple(value for value in row if value != "."), str(place)) for place, row in enumerate(table)]
    found = krippendorff_alpha(units, classes=("1", "2", "3", "4", "5"))
    assert found.value == pytest.approx(0.743, abs=0.0005)


def test_a_weight_is_how_many_replies_it_stands_for():
    """Agreement and kappa of a weighted sample are those of the replies it stands for."""
    sample = [("A", "A"), ("A", "B"), ("B", "B"), ("C", "C"), ("B", "A")]
    weights = [5.0, 1.0, 3.0, 2.0, 1.0]
    whole = [pair for pair, weight in zip(sample, weights, strict=True) for _ in range(int(weight))]
    short, long = (measure_agreement(pairs(*given), classes=LETTERS) for given in ((sample, weights), (whole,)))
    assert short.agreement.value == pytest.approx(long.agreement.value)
    assert short.kappa.value == pytest.approx(long.kappa.value)
    assert short.confusion["A"]["A"] == 1


@settings(deadline=None)
@given(readings)
def test_intervals_hold_their_value(found):
    """Low ≤ value ≤ high wherever there is a value."""
    result = measure_agreement(pairs(found), classes=LETTERS)
    for one in (result.agreement, result.kappa, result.ac1, result.alpha):
        assert one.value is None or one.low - 1e-9 <= one.value <= one.high + 1e-9


@settings(deadline=None)
@given(st.lists(st.tuples(letters, st.sampled_from((1.0, 300 / 17, 283 / 15, 283 / 8))), min_size=2, max_size=40))
# A little below 1 and a little above it.
@example(list(zip("ABCD" * 4, [300 / 17] * 3 + [24.3] * 13, strict=True)))
@example(list(zip("ABCD" * 4, [300 / 17] * 5 + [24.3] * 11, strict=True)))
def test_where_everybody_agrees_the_agreement_is_one_whatever_the_weights(labels):
    """Sums of weights are rounded, so the share can come out as 0.9999999999999999. The lower bound is Wilson's where
    all weigh the same."""
    result = measure_agreement(
        pairs([(letter, letter) for letter, _ in labels], [weight for _, weight in labels]), classes=LETTERS
    )
    assert (result.agreement.value, result.agreement.high) == (1, 1)
    assert 0 < result.agreement.low < 1
    if len({weight for _, weight in labels}) == 1:
        assert result.agreement.low == pytest.approx(len(labels) / (len(labels) + Z95**2))
    if len({letter for letter, _ in labels}) > 1:
        assert [(one.value, one.high) for one in (result.kappa, result.ac1, result.alpha)] == [(1, 1)] * 3


def test_what_few_heavy_labels_could_hide_is_in_the_intervals():
    """Seven errors among 75 labels of the judge's lies, none among 75 that stand for nine times as many. One in fifty
    of these could be wrong all the same: agreement 97.2 %."""
    sample = [("B", "A")] * 7 + [("B", "B")] * 68 + [("A", "A")] * 60 + [("C", "C")] * 15
    result = measure_agreement(pairs(sample, [100 / 75] * 75 + [900 / 75] * 75), classes=LETTERS)
    assert result.agreement.value == pytest.approx(1 - 0.1 * 7 / 75)
    assert result.agreement.low < 0.972
    assert result.kappa.low < 0.95


def test_replies_of_one_scenario_do_not_count_as_independent():
    """The same item three times in one scenario leaves the interval as wide as once."""
    once = [Pair(a, b, str(place)) for place, (a, b) in enumerate([("A", "A"), ("A", "B"), ("B", "B")] * 10)]
    thrice = [pair for pair in once for _ in range(3)]
    one, three = (measure_agreement(given, classes=LETTERS) for given in (once, thrice))
    assert three.agreement.high - three.agreement.low == pytest.approx(one.agreement.high - one.agreement.low)
    assert three.kappa.high - three.kappa.low == pytest.approx(one.kappa.high - one.kappa.low, rel=1e-6)


@pytest.mark.parametrize(
    ("found", "agreement", "kappa", "why"),
    [
        ([], None, None, "no item was read by both"),
        ([("A", "A")], None, None, "one item only"),
        ([("A", "A")] * 9, 1.0, None, "every reading is A"),
        ([("A", "A"), ("A", "B"), ("A", "C")], 1 / 3, None, "always says A"),
    ],
)
def test_what_cannot_be_told_from_chance_has_no_coefficient(found, agreement, kappa, why):
    """Null with the reason: kappa would be 0 by construction, with an interval of no width."""
    result = measure_agreement(pairs(found), classes=LETTERS)
    assert (result.agreement.value, result.kappa.value) == (agreement and pytest.approx(agreement), kappa)
    assert why in result.kappa.why
