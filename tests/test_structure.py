"""The core is composed: see `structure.py`, which counts."""

import pytest
import structure

from stream_pegasos import engine


@pytest.mark.skipif(engine.NAME == "pure", reason="its functions would be counted, too")
def test_an_idea_has_few_places():
    assert {name: n for name, (n, most) in structure.figures().items() if n > most} == {}


def test_calls_are_counted_once_each_with_their_files():
    def numbers():
        yield from range(3)

    files = structure.calls(lambda: structure.AdaptiveClassifier().learn_many([{"a": 1.0}], ["x"]))
    assert len(files) > len({*files}) > 3 and all(file.startswith(str(structure.PACKAGE)) for file in files)
    assert structure.calls(lambda: list(numbers())) == []  # of no file of the package
