import math

import numpy as np
import pytest

from stream_pegasos.common import checks


@pytest.mark.parametrize("value", [0.0, 1, 5.0, np.float32(2.5), np.int8(5), True])
def test_numbers_in_the_range(value):
    checks.check_number("x", value, 0.0, 5.0)


@pytest.mark.parametrize("value", [-1e-300, 5.000001, math.nan, math.inf, -math.inf, np.float64("nan")])
def test_numbers_out_of_the_range_are_named(value):
    with pytest.raises(ValueError, match=r"^x must be from 0 to 5, got ") as error:
        checks.check_number("x", value, 0.0, 5.0)
    assert repr(value) in str(error.value)


@pytest.mark.parametrize("value", ["1", b"1", None, [1.0], 1j, np.str_("1")])
def test_what_is_no_number_is_named(value):
    with pytest.raises(TypeError, match=r"^x must be a number, got ") as error:
        checks.check_number("x", value, 0.0, 5.0)
    assert repr(value) in str(error.value)


def test_integers():
    for value in (1, 7, np.int64(7), np.uint8(3)):
        checks.check_integer("k", value, 1, 7)
    for value in (0, 8, -(10**30)):
        with pytest.raises(ValueError, match=r"^k (is|must be)"):
            checks.check_integer("k", value, 1, 7)
    for value in (True, 1.0, "1", None, np.bool_(True), math.nan):
        with pytest.raises(TypeError, match=r"^k (is|must be)"):
            checks.check_integer("k", value, 1, 7)


def test_choices_and_lengths():
    checks.check_bool("b", np.bool_(False))
    checks.check_member("norm", None, ("l1", None))
    checks.check_lengths("labels", 3, 3)
    with pytest.raises(TypeError, match=r"^b must be True or False, got 1"):
        checks.check_bool("b", 1)
    with pytest.raises(ValueError, match=r"^norm must be one of 'l1', None, got 'l3'$"):
        checks.check_member("norm", "l3", ("l1", None))
    with pytest.raises(ValueError, match=r"^there are 2 labels for 3 examples$"):
        checks.check_lengths("labels", 2, 3)
