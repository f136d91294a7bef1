import pytest

from stream_pegasos.streams import label_of


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("1", 1),
        ("-1", -1),
        ("+1", 1),
        ("0", 0),
        (" 12\t", 12),
        ("01", "01"),
        ("1.0", "1.0"),
        ("\u0661", "\u0661"),
        ("1_0", "1_0"),
        ("spam", "spam"),
        (" spam ", "spam"),
        ("9" * 5000, "9" * 5000),
        ("", None),
        ("  ", None),
    ],
)
def test_label_of(text, label):
    assert label_of(text) == label
    assert type(label_of(text)) is type(label)
