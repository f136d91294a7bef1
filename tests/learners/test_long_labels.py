"""A label of any length takes its own room alone, and a stream brings none that is too long."""

import tracemalloc
import warnings

import pytest

from stream_pegasos import AdaptiveClassifier, KernelPegasosClassifier, MultiLabelClassifier, PegasosClassifier, load
from stream_pegasos.learners.label_policy import LONGEST_LABEL
from stream_pegasos.streams import read

LONG = "x" * 1_000_000


@pytest.mark.parametrize(
    ("make", "labels"),
    [
        (AdaptiveClassifier, ["a", LONG]),
        (AdaptiveClassifier, ["a", LONG, "b"]),
        (PegasosClassifier, ["a", LONG, 7]),
        (MultiLabelClassifier, [{"a"}, {LONG}]),
    ],
)
def test_memory(make, labels):
    model = make()
    x, y = [{str(i % len(labels)): 1.0} for i in range(2_000)], labels * (2_000 // len(labels) + 1)
    tracemalloc.start()
    try:
        model.learn_many(x, y[:2_000])
        said = model.predictions(x)
        assert said.labels.dtype == object
        assert len(said.labels.tolist()) == 2_000
        model.predict_many(x)
        model.predict_learn_many(x, y[:2_000]).labels.tolist()
        assert tracemalloc.get_traced_memory()[1] < 20_000_000  # 8 GB, if each label took as much as the longest
    finally:
        tracemalloc.stop()


LINES = {
    "tsv": "label\ttext\n{}\tcheap pills\n",
    "csv": "label,text\n{},cheap pills\n",
    "jsonl": '{{"label": "{}", "text": "cheap pills"}}\n',
    "jsonl of several": '{{"label": ["a", "{}"], "text": "cheap pills"}}\n',
    "fasttext": "__label__{} cheap pills\n",
    "mail": "From me Fri Jan  3 10:00:00 2020\nLabel: {}\n\nhello\n",
}


@pytest.mark.parametrize("name", LINES)
def test_readers(name, tmp_path):
    line = LINES[name]
    for n, is_taken in ((LONGEST_LABEL, True), (LONGEST_LABEL + 1, False), (100_000, False)):
        path = tmp_path / f"stream.{name.split()[0]}"
        path.write_text(line.format("y" * n), encoding="utf-8")
        faults = []
        examples = [*read(path, format=name.split()[0], on_bad_line=lambda *bad, faults=faults: faults.append(bad))]
        assert [bool(examples and examples[0].fault is None)] == [is_taken] == [not faults]
        if not is_taken:
            assert f"a label must have at most {LONGEST_LABEL:,} characters, got {n:,}" in str(faults)


@pytest.mark.filterwarnings("ignore:.*a label that has not come:UserWarning")
@pytest.mark.parametrize(
    "kind", [lambda: AdaptiveClassifier(threshold=0.4, pos_label="c"), PegasosClassifier, KernelPegasosClassifier]
)
def test_labels_longer_than_python_writes_bring_no_later_call_down(kind, tmp_path):
    model = kind()
    labels = [10**5_000, -(10**5_000)] + [10**5_000 + i for i in range(300) if kind is PegasosClassifier]
    for i, label in enumerate(labels):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.learn_one({"a": float(i)}, label)
    if kind is KernelPegasosClassifier:
        with pytest.raises(ValueError, match="is a third one beside 0x"):
            model.learn_one({"a": 1.0}, 10**5_000 + 1)
    model.save(tmp_path / "m")
    assert load(tmp_path / "m").classes == model.classes
