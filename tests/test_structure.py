"""The core is composed: see `structure.py`, which counts."""

from functools import cache

import pytest
import structure

from stream_pegasos import engine

# What more uses there are above the engine of the two labels that share a score, by their public name `pair`.
USES_OF_PAIR = 24
FORWARDING = 16  # one more than wanted: scores give what their tally counts, by their own names


figures = cache(structure.figures)


@pytest.mark.skipif(engine.NAME == "pure", reason="its functions would be counted, too")
def test_an_idea_has_few_places():
    allowed = {name: most for name, (_, most) in figures().items()}
    allowed |= {"uses of a shared column above the engine": USES_OF_PAIR, "forwarding methods": FORWARDING}
    assert {name: n for name, (n, _) in figures().items() if n > allowed[name]} == {}


def test_calls_are_counted_once_each_with_their_files():
    def numbers():
        yield from range(3)

    files = structure.calls(lambda: structure.AdaptiveClassifier().learn_many([{"a": 1.0}], ["x"]))
    assert len(files) > len({*files}) > 3 and all(file.startswith(str(structure.PACKAGE)) for file in files)
    assert structure.calls(lambda: list(numbers())) == []  # of no file of the package
