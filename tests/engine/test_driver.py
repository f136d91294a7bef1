"""What drives every rule: probabilities, locks, what a failing step leaves behind."""

from engines import both_engines
from hypothesis import given, settings
from hypothesis import strategies as st


@both_engines
@settings(max_examples=300, deadline=None, derandomize=True)
@given(
    margin=st.one_of(st.floats(allow_nan=False, allow_infinity=False), st.sampled_from([0.0, -0.0, 5e-324, 1e300])),
    slope=st.sampled_from([1e-200, 1e-9, 0.3, 1.0, 25.0, 1e200]),
)
def test_probabilities_agree_with_decisions(engine_in_test, margin, slope):
    learner = engine_in_test.PegasosLearner(1e-4, 1, 0.0, True, 0.0)
    learner.set_state({**learner.get_state(), "slope": slope})
    for m in (margin, -margin, margin * 1e-300):
        p = learner.probability(m)
        assert 0.0 < p < 1.0
        assert (p > 0.5) == (m > 0.0)
        assert p + (1.0 - p) == 1.0
        assert 0.0 < 1.0 - p < 1.0
