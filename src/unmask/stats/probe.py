"""A linear probe, cross-validated by group: logistic regression on one layer, the layer chosen inside the folds.

Every score is given by a probe that has seen neither the sample nor another take of its scenario, and whose layer and
strength were chosen without them as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from unmask.stats.auroc import area

if TYPE_CHECKING:
    from numpy import bool_, float64, intp
    from numpy.random import Generator
    from numpy.typing import NDArray

    Floats = NDArray[float64]
    Bools = NDArray[bool_]
    Ints = NDArray[intp]

STRENGTHS = (0.001, 0.01, 0.1, 1.0)
"""Weight of the data against the penalty; the smallest that does best is taken."""
FOLDS = 5


class LinearProbe(NamedTuple):
    """A direction and where it crosses zero, for features as they are given."""

    weights: Floats
    offset: float

    def __call__(self, features: Floats) -> Floats:
        scores: Floats = features @ self.weights + self.offset
        return scores


class ProbeScores(NamedTuple):
    """One score per sample, and which layer each outer fold chose."""

    scores: Floats
    layers: tuple[int, ...]
    strengths: tuple[float, ...]


def fit_probe(features: Floats, labels: Bools, *, strength: float) -> LinearProbe:
    """Minimises w·w / 2 + strength · Σ log loss, by Newton's method. The offset is not penalised.

    The weights lie in the span of the samples, so the work is done there: as many unknowns as samples, however many
    features there are.
    """
    import numpy as np

    basis, spread = _orthonormal_basis(features)
    reduced = basis * spread
    solution = _minimise_loss(reduced, np.where(labels, 1.0, -1.0), strength, start=np.zeros(reduced.shape[1] + 1))
    inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    return LinearProbe(features.T @ (basis @ (inverse * solution[:-1])), float(solution[-1]))


def assign_folds(labels: Bools, groups: Sequence[str], *, count: int, rng: Generator) -> Ints:
    """A fold for each sample: groups stay whole, and each fold gets its share of groups with and without positives."""
    import numpy as np

    names, place = np.unique(np.asarray(groups), return_inverse=True)
    kinds = np.array([labels[place == group].mean() for group in range(len(names))])
    assigned = np.zeros(len(names), dtype=np.intp)
    order = rng.permutation(len(names))
    order = order[np.argsort(np.round(kinds[order], 6), kind="stable")]
    assigned[order] = np.arange(len(names)) % count
    fold_of_sample: Ints = assigned[place]
    return fold_of_sample


def cross_validate(
    features: Floats, labels: Sequence[bool], groups: Sequence[str], *, rng: Generator, outer: Ints | None = None
) -> ProbeScores:
    """`features` is `[sample, layer, size]`. `outer` has the fold of each sample, where the caller has folds already:
    those of another probe to be compared with, or one for each archetype."""
    import numpy as np

    truth = np.asarray(labels, dtype=bool)
    if outer is None:
        outer = assign_folds(truth, groups, count=FOLDS, rng=rng)
    names = np.asarray(groups)
    scores = np.zeros(len(truth))
    layers, strengths = [], []
    for fold in range(int(outer.max()) + 1):
        training = outer != fold
        inner = assign_folds(truth[training], list(names[training]), count=FOLDS - 1, rng=rng)
        layer, strength = _choose_layer(features[training], truth[training], inner, FOLDS - 1)
        scores[~training] = _score_held_out(features[:, layer], truth, training, ~training, (strength,))[0]
        layers.append(layer)
        strengths.append(strength)
    return ProbeScores(scores, tuple(layers), tuple(strengths))


def estimate_excess_scatter(
    features: Floats,
    scored: ProbeScores,
    labels: Sequence[bool],
    groups: Sequence[str],
    *,
    rng: Generator,
    times: int = 50,
) -> float:
    """How much further cross-validated areas scatter than a bootstrap of their scores says; at least 1.

    Probes of different folds share most of their samples, so held-out scores hang together, which resampling them
    cannot see. On labels shuffled over scenarios the layer chosen most often is fitted anew, and the scatter of its
    areas is held against that of fixed scores. Intervals widened by this hold a half, on labels that mean nothing, as
    often as they should.
    """
    import numpy as np

    truth, names = np.asarray(labels, dtype=bool), np.asarray(groups)
    layer = max(set(scored.layers), key=scored.layers.count)
    strength = max(set(scored.strengths), key=scored.strengths.count)
    anew, fixed = [], []
    for _ in range(times):
        shuffled = _shuffle_labels(truth, names, rng)
        fold = assign_folds(shuffled, list(names), count=FOLDS, rng=rng)
        scores = np.zeros(len(truth))
        for fold_number in range(FOLDS):
            scores[fold == fold_number] = _score_held_out(
                features[:, layer], shuffled, fold != fold_number, fold == fold_number, (strength,)
            )[0]
        anew.append(area(list(scores), list(shuffled)) or 0.0)
        fixed.append(area(list(scored.scores), list(shuffled)) or 0.0)
    return max(1.0, float(np.std(anew) / max(float(np.std(fixed)), 1e-12)))


def _shuffle_labels(labels: Bools, names: NDArray[Any], rng: Generator) -> Bools:
    """Labels moved between scenarios with as many takes, all takes of one together."""
    import numpy as np

    shuffled = labels.copy()
    places = [np.flatnonzero(names == name) for name in np.unique(names)]
    for size in {len(place) for place in places}:
        alike = [place for place in places if len(place) == size]
        for target, source in zip(alike, rng.permutation(len(alike)), strict=True):
            shuffled[target] = labels[alike[source]]
    return shuffled


def _choose_layer(features: Floats, labels: Bools, inner: Ints, count: int) -> tuple[int, float]:
    """The layer and strength whose held-out scores tell the inner folds apart best."""
    import numpy as np

    best = (-1.0, 0, STRENGTHS[0])
    for layer in range(features.shape[1]):
        held_out_scores = np.zeros((len(STRENGTHS), len(labels)))
        for fold in range(count):
            training = inner != fold
            held_out_scores[:, ~training] = _score_held_out(features[:, layer], labels, training, ~training, STRENGTHS)
        for strength, scores in zip(STRENGTHS, held_out_scores, strict=True):
            auroc = area(list(scores), list(labels)) or 0.0
            if auroc > best[0] + 1e-12:
                best = (auroc, layer, strength)
    return best[1], best[2]


def _score_held_out(
    features: Floats, labels: Bools, training: Bools, testing: Bools, strengths: Sequence[float]
) -> Floats:
    """Scores of the held-out samples, one row for each strength, by a probe fitted to the others.

    Each is put on the scale of its own training scores: probes of different folds would otherwise differ in offset
    and size, and pooling them would compare the folds instead of the samples.
    """
    import numpy as np

    middle, scale = features[training].mean(axis=0), features[training].std(axis=0)
    scaled = (features - middle) / np.where(scale > 1e-12, scale, 1.0)
    seen, new = scaled[training], scaled[testing]
    basis, spread = _orthonormal_basis(seen)
    inverse = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    into = seen.T @ (basis * inverse)
    reduced, held_out = basis * spread, new @ into
    signs = np.where(labels[training], 1.0, -1.0)
    rows = []
    solution = np.zeros(reduced.shape[1] + 1)
    for strength in strengths:
        # From one strength to the next is a short way; held-out ranks do not need more digits than this.
        solution = _minimise_loss(reduced, signs, strength, start=solution, close=1e-4)
        weights = solution[:-1]
        own = reduced @ weights
        rows.append((held_out @ weights - own.mean()) / max(float(own.std()), 1e-12))
    return np.stack(rows)


def _orthonormal_basis(features: Floats) -> tuple[Floats, Floats]:
    """Orthonormal directions among samples, and how far the samples reach along each."""
    import numpy as np

    # The smaller of the two products: samples are many and features few, or the other way round.
    few_features = features.shape[1] < len(features)
    values, vectors = np.linalg.eigh(features.T @ features if few_features else features @ features.T)
    keep = values > max(float(values.max()), 1e-300) * 1e-12
    spread = np.sqrt(values[keep])
    return (features @ vectors[:, keep] / spread if few_features else vectors[:, keep]), spread


def _minimise_loss(features: Floats, signs: Floats, strength: float, *, start: Floats, close: float = 1e-9) -> Floats:
    """Weights and offset in one row. `close` is how small the slope must become."""
    import numpy as np

    wide = np.hstack([features, np.ones((len(features), 1))])
    penalty = np.append(np.ones(features.shape[1]), 0.0)
    solution = start
    loss = _penalised_loss(wide, signs, solution, penalty, strength)
    for _ in range(50):
        miss = 1.0 / (1.0 + np.exp(np.clip(signs * (wide @ solution), -500, 500)))
        slope = penalty * solution - strength * (wide.T @ (signs * miss))
        if np.abs(slope).max() < close:
            break
        step = _newton_step(wide, slope, strength * miss * (1 - miss), penalty + 1e-12)
        shrink = 1.0
        while (
            reached := _penalised_loss(wide, signs, solution - shrink * step, penalty, strength)
        ) > loss and shrink > 1e-6:
            shrink /= 2
        if reached > loss:
            break
        solution, loss = solution - shrink * step, reached
    return solution


def _newton_step(wide: Floats, slope: Floats, load: Floats, penalty: Floats) -> Floats:
    """Solves (wide' · load · wide + penalty) step = slope, by conjugate gradients, to a thousandth.

    The matrix is never made: a step takes a few products with a vector, where a solver takes the cube of the unknowns.
    In the basis of the samples the diagonal is most of the matrix, so a division by it leaves few products to make.
    """
    import numpy as np

    diagonal = load @ (wide * wide) + penalty
    step, left = np.zeros_like(slope), slope.copy()
    scaled = left / diagonal
    direction, size = scaled, float(left @ scaled)
    enough = 1e-6 * size
    for _ in range(len(slope)):
        if size <= enough:
            break
        curved = wide.T @ (load * (wide @ direction)) + penalty * direction
        length = size / float(direction @ curved)
        step += length * direction
        left -= length * curved
        scaled = left / diagonal
        before, size = size, float(left @ scaled)
        direction = scaled + (size / before) * direction
    return step


def _penalised_loss(wide: Floats, signs: Floats, solution: Floats, penalty: Floats, strength: float) -> float:
    import numpy as np

    return float(
        (penalty * solution * solution).sum() / 2 + strength * np.logaddexp(0, -signs * (wide @ solution)).sum()
    )
