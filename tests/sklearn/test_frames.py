"""Data frames of fields."""

import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

from stream_pegasos import Category, Number, TextClassifier, TextFeatures
from stream_pegasos.sklearn import OnlineTextClassifier


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_a_frame_of_fields_is_read_as_everywhere(library):
    """Bools stay bools and large integers exact, whatever the other columns are."""
    frame = pytest.importorskip(library).DataFrame
    rows = [{"vip": i % 2 == 0, "user": 2**53 + i % 2, "n": 1.5} for i in range(40)]
    y = ["a" if row["vip"] else "b" for row in rows]
    for on in ("vip", "user"):
        own = TextClassifier(Category(on=on) + Number(on="n"))
        own.learn_many(rows, y)
        faces = [
            OnlineTextClassifier(Category(on=on) + Number(on="n"), shuffle=False).fit(X, y) for X in (rows, frame(rows))
        ]
        for face in faces:
            assert face.model_.weights == own.weights and face.score(rows, y) == face.score(frame(rows), y) == 1.0


def test_a_text_is_read_from_its_column():
    rows = [{"body": "cheap pills", "from": "x"}, {"body": "lunch at noon", "from": "x"}] * 5
    y = ["spam", "ham"] * 5
    frame = pytest.importorskip("pandas").DataFrame(rows)
    of_frame, of_dicts = (OnlineTextClassifier(TextFeatures(on="body"), shuffle=False).fit(X, y) for X in (frame, rows))
    assert of_frame.model_.weights == of_dicts.model_.weights
