"""The rule with a kernel, in both engines."""

import itertools

import numpy as np
import pytest
from engines import compiled_engine, needs_compiled, pure_engine, random_stream

from stream_pegasos.engine.pure.kernel import best_mixture, look_up_loss, value_of_mixture

KERNELS = [
    (kernel, budget, merge)
    for kernel in ("linear", "polynomial", "rbf", "cosine")
    for budget, merge in ((0, False), (10, False), (10, True))
    if not merge or kernel == "rbf"
]


@needs_compiled
@pytest.mark.parametrize("kernel, budget, merge", KERNELS, ids=str)
def test_engines_agree_on_kernels_and_pass_their_state_on(kernel, budget, merge):
    X = random_stream(300, 9)
    y = np.array([1.0 if x.get(0, 0.0) + x.get(1, 0.0) * x.get(2, 0.0) > 0.0 else -1.0 for x in X])
    X, y = X + X[:50], np.concatenate([y, -y[:50]])  # some come again, with the other label
    arguments = (0.01, 1.0, kernel, 0.7, 1.0, 2, budget, merge)
    made = [(e.KernelLearner(*arguments), e.Vocabulary()) for e in (pure_engine, compiled_engine)]
    for i in range(100):
        for learner, vocabulary in made:
            learner.learn(vocabulary, X[i], float(y[i]), 1.0)
    margins, others = (learner.predict_learn_many(vocabulary, X[100:], y[100:])[0] for learner, vocabulary in made)
    assert margins == pytest.approx(others, rel=1e-8, abs=1e-8)
    states = [learner.get_state() for learner, _ in made]
    for name in ("coefficients", "indptr", "keys", "values"):
        assert states[0][name] == pytest.approx(states[1][name], rel=1e-8)
    for e, state in ((compiled_engine, states[1]), (pure_engine, states[0])):
        again = e.KernelLearner(*arguments)
        again.set_state(state)
        back = again.get_state()
        assert all(np.array_equal(back[name], state[name]) for name in state)


def test_the_loss_of_a_merger():
    """The table and the mixture against a fine grid over h."""
    for share, similarity in itertools.product((0.01, 0.2, 0.45, 0.5), (1e-9, 0.05, 0.3, 0.9, 0.999)):
        h = np.linspace(0.0, 1.0, 200_001)
        values = share * similarity ** (1.0 - h) ** 2 + (1.0 - share) * similarity ** (h * h)
        best = best_mixture(share, similarity)
        assert value_of_mixture(best, share, similarity) == pytest.approx(values.max(), rel=1e-8)
        length = share**2 + (1.0 - share) ** 2 + 2.0 * share * (1.0 - share) * similarity
        assert look_up_loss(share, similarity) == pytest.approx(length - values.max() ** 2, abs=2e-3)
