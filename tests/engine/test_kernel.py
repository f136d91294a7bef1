"""What merging two support vectors loses."""

import itertools

import numpy as np
import pytest

from stream_pegasos.engine.kernel import best_mixture, look_up_loss, value_of_mixture


def test_the_loss_of_a_merger():
    """The table and the mixture against a fine grid over h."""
    for share, similarity in itertools.product((0.01, 0.2, 0.45, 0.5), (1e-9, 0.05, 0.3, 0.9, 0.999)):
        h = np.linspace(0.0, 1.0, 200_001)
        values = share * similarity ** (1.0 - h) ** 2 + (1.0 - share) * similarity ** (h * h)
        best = best_mixture(share, similarity)
        assert value_of_mixture(best, share, similarity) == pytest.approx(values.max(), rel=1e-8)
        length = share**2 + (1.0 - share) ** 2 + 2.0 * share * (1.0 - share) * similarity
        (loss,) = look_up_loss(np.array([share]), np.array([similarity]))
        assert loss == pytest.approx(length - values.max() ** 2, abs=2e-3)
