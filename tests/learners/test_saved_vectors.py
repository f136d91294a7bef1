"""Files of models with word vectors: they name the table, or have the vectors of the words that were met."""

import copy
import os
import pickle
import socket

import numpy as np
import pytest
from forging import put_together, take_apart
from interpreter import run

import stream_pegasos
from stream_pegasos import (
    AdaptiveClassifier,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
    merge,
)
from stream_pegasos.features.vectors import VectorsError, word_vectors

ROWS = {"cheap": [1.0, -0.5, 0.003], "lunch": [0.25, 0.0, 0.125], "noon": [0.004, 0.002, -0.001]}
TEXTS, LABELS = ["cheap pills", "see you at Lunch", "é漢字"] * 9, ["spam", "ham", "ham"] * 9


@pytest.fixture
def table(tmp_path):
    file = tmp_path / "words.vec"
    file.write_text("".join(f"{word} {' '.join(map(str, row))}\n" for word, row in ROWS.items()), encoding="utf-8")
    return file


def learned(features):
    model = TextClassifier(features)
    model.learn_many([{"a": text, "b": text} if features.fields else text for text in TEXTS], LABELS)
    return model


def vector_of(model, text):
    return model.features.transform_many([text]).toarray()[0, model.features.specification.n_features :].tolist()


def few(**options):
    return TextFeatures(n_features=1 << 10, **options)


def test_a_file_names_the_vectors(table, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = learned(few(vectors="words.vec"))
    model.save(path)
    arrays, _ = take_apart(path)
    assert "vector_hashes" not in arrays
    loaded = stream_pegasos.load(path, "words.vec")
    assert loaded.vector_source == model.vector_source and loaded.vector_source.name == "words.vec"
    assert vector_of(loaded, "cheap lunch") == vector_of(model, "cheap lunch")
    table.rename(tmp_path / "other.vec")
    with pytest.raises(VectorsError, match=r"needs the word vectors 'words\.vec' .*load\(path, vectors=") as error:
        stream_pegasos.load(path)
    assert "damaged" not in str(error.value) and str(path) in str(error.value)
    for place in tmp_path / "other.vec", {word: np.float32(row) for word, row in ROWS.items()}:
        found = TextClassifier.load(path, vectors=place)
        assert found.vector_source.digest == model.vector_source.digest
    with pytest.raises(VectorsError, match="another table"):
        stream_pegasos.load(path, vectors={"cheap": [1.0, 2.0]})
    with pytest.raises(FileNotFoundError):
        stream_pegasos.load(path, vectors="nowhere")
    learned(few()).save(path)
    with pytest.raises(ValueError, match="a model without vectors"):
        stream_pegasos.load(path, vectors=ROWS)


def test_the_features_of_several_fields(table, path):
    learned(few(on="a") + few(on="b", vectors=table)).save(path)
    loaded = stream_pegasos.load(path, table)
    assert [part.vector_source is None for part in loaded.features.parts] == [True, False]


def test_a_file_with_the_vectors_of_words_that_were_met(table, path):
    """It needs no other, and so does what is saved or copied of the loaded model."""
    model = learned(few(vectors=table))
    wanted = vector_of(model, "cheap lunch noon cheap")
    model.save(path, vectors=True)
    table.unlink()
    for again in range(2):
        loaded = stream_pegasos.load(path)
        assert vector_of(loaded, "cheap lunch") == vector_of(model, "cheap lunch")
        assert vector_of(loaded, "cheap lunch noon cheap") == wanted, "a word that was met when it was predicted"
        assert not any(vector_of(loaded, "pills dinner"))
        assert pickle.loads(pickle.dumps(loaded)).vector_source == loaded.vector_source
        assert loaded.clone().vector_source is loaded.vector_source
        loaded.save(path, vectors=again == 1)
    with pytest.raises(VectorsError):
        model.save(path)
        stream_pegasos.load(path)
    with pytest.raises(ValueError, match="has met no word since it was made, copied"):
        copy.deepcopy(model).save(path, vectors=True)
    with pytest.raises(ValueError, match="no word vectors to be saved"):
        learned(few()).save(path, vectors=True)
    with pytest.raises(ValueError, match="no word vectors to be saved"):
        PegasosClassifier().save(path, vectors=True)


def test_forged_vectors_are_refused(table, path):
    learned(few(vectors=table)).save(path, vectors=True)
    arrays, header = take_apart(path)
    for name, wrong in (
        ("vector_shifts", arrays["vector_shifts"] | 8),
        ("vector_codes", arrays["vector_codes"][:, :2]),
        ("vector_codes", arrays["vector_codes"][1:]),
        ("vector_hashes", arrays["vector_hashes"].astype(float)),
        ("vector_hashes", arrays["vector_hashes"][:, np.newaxis]),
    ):
        put_together(path, {**arrays, name: wrong}, header)
        with pytest.raises(ValueError, match="damaged: the vectors of words must be as they were saved"):
            stream_pegasos.load(path)
    put_together(path, {name: array for name, array in arrays.items() if name != "vector_shifts"}, header)
    with pytest.raises(ValueError, match="damaged"):
        stream_pegasos.load(path)


def test_a_mapping_is_in_memory_once_where_models_are_merged():
    model = learned(few(vectors=ROWS))
    assert merge(model, [copy.deepcopy(model) for _ in range(2)]).vector_source is model.vector_source


def test_what_was_learned_of_vectors_of_another_size_is_refused():
    arrays, names, values = learned(few(vectors=ROWS)).to_state()
    assert len(arrays["vector_mean"]) == 3
    for rows in {"cheap": [1.0, 2.0]}, {"cheap": [1.0, 2.0, 3.0, 4.0]}:
        other = word_vectors(rows)
        with pytest.raises(ValueError, match=f"vectors of 3 numbers, but those of messages have {other.n_dimensions}"):
            TextClassifier.from_state(arrays, names, {**values, "find_vectors": lambda _, other=other: other})
    none = {**values["features"], "vectors": None}
    with pytest.raises(ValueError, match="vectors of 3 numbers, but those of messages have 0"):
        TextClassifier.from_state(arrays, names, {**values, "features": none, "find_vectors": lambda _: None})


def test_classifiers_that_have_no_use_for_vectors():
    features = few(vectors=ROWS)
    for classifier in AdaptiveClassifier(), OrdinalClassifier(), MultiLabelClassifier():
        assert "vectors" in TextClassifier(features, classifier).capabilities
    for classifier in PegasosClassifier(), KernelPegasosClassifier():
        assert "vectors" not in TextClassifier(classifier=classifier).capabilities
        with pytest.raises(ValueError, match="need an AdaptiveClassifier"):
            TextClassifier(features, classifier)


def test_names_are_kept_and_explained_beside_vectors():
    model = TextClassifier(few(vectors=ROWS))
    model.keep_names()
    model.learn_many(TEXTS, LABELS)
    assert {"cheap", "lunch"} <= dict(model.names.weights(model)).keys()


def test_the_vectors_of_features_are_made_once():
    features = few(vectors=ROWS)
    assert features.clone().vector_source is features.vector_source is features.vectors
    assert pickle.loads(pickle.dumps(features)).vector_source == word_vectors(ROWS)


LOADING = """
    import json, sys
    from pathlib import Path

    from stream_pegasos import TextClassifier, load
    from stream_pegasos.features.vectors import VectorsError
    from stream_pegasos.runtime.checkpoints import Checkpoints

    roads = load, TextClassifier.load, lambda path: Checkpoints(path, reads_only=True).resume()
    files, done = sorted(Path(FOLDER).glob("*.model")), []
    for road in roads:
        road(Path(FOLDER) / "plain")  # imports whatever loading imports
    WATCHED = "open", "os.listdir", "os.scandir", "socket", "import", "subprocess", "glob", "ctypes", "exec"
    sys.addaudithook(lambda name, values: done.append([name, str(values[0])]) if name.startswith(WATCHED) else None)
    for file in files:
        for road in roads:
            try:
                road(file)
            except VectorsError as error:
                pass
            else:
                print(json.dumps(f"{file} is loaded"))
    opened = {str(file) for file in files}
    print(json.dumps([each for each in done if not (each[0] == "open" and each[1] in opened)]))
"""


def test_loading_opens_nothing_that_the_file_names(table, tmp_path):
    """No connection, no folder, no other file, and no package that is not the learner's own."""
    folder = tmp_path / "folder"
    folder.mkdir()
    for name in "modules.json", "model.safetensors", "tokenizer.json":
        (folder / name).write_text('[{"type": "sentence_transformers.models.Transformer"}]', encoding="utf-8")
    learned(few()).save(tmp_path / "plain")
    learned(few(vectors=table)).save(tmp_path / "m")
    arrays, header = take_apart(tmp_path / "m")
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        names = [
            str(table),
            str(folder),
            f"{folder}/",
            "",
            ".",
            "a\0b",
            os.devnull,
            "/proc/self/mem",
            "//host/share/x.vec",
            r"\\host\share\x.vec",
            "sentence-transformers/all-MiniLM-L6-v2",
            f"http://127.0.0.1:{port}/v1/embeddings#m",
            f"https://127.0.0.1:{port}/v1/embeddings",
            f"HTTP://127.0.0.1:{port}/",
            "file:///etc/passwd",
            "mapping",
            "encoder",
        ]
        for number, name in enumerate(names):
            state = copy.deepcopy(header["state"])
            ((_, values),) = [(k, v) for k, v in state["features"].items() if k == "vectors"]
            for each in values["dict"]:
                if each[0] == "name":
                    each[1] = name
            put_together(tmp_path / f"{number}.model", arrays, header | {"state": state})
        assert run(LOADING.replace("FOLDER", repr(str(tmp_path)))) == []
        listener.settimeout(0.0)
        with pytest.raises(BlockingIOError):  # nobody came
            listener.accept()


def test_what_is_in_memory_is_not_named_by_a_file(table, path):
    """A table that this process has read is not more trusted than any other."""
    learned(few(vectors=table)).save(path)
    with pytest.raises(VectorsError, match="name it to allow it"):
        stream_pegasos.load(path)
    assert stream_pegasos.load(path, str(table)).vector_source.name == str(table)
