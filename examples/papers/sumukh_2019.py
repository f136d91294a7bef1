"""Ten classes of images by 45 Pegasos SVMs, one for each pair of classes, that vote.

Sumukh, 2019: one-against-one Pegasos SVMs on Fashion-MNIST (Xiao, Rasul and Vollgraf, 2017, arXiv:1708.07747).

    python examples/papers/sumukh_2019.py [--small] [--fashion FOLDER] [--figure PNG]

By default on the handwritten digits that come with scikit-learn; with --fashion on Fashion-MNIST, whose four idx .gz
files (https://github.com/zalandoresearch/fashion-mnist) are in FOLDER.
"""

import gzip
import math
from itertools import combinations, pairwise
from pathlib import Path
from typing import NamedTuple

import numpy as np
from common import find, parser, print_table, save_figure
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray
from river import multiclass
from scipy.sparse import csr_array
from sklearn.datasets import load_digits
from sklearn.metrics import accuracy_score, confusion_matrix
from sklearn.model_selection import train_test_split
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import LinearSVC

from stream_pegasos import PegasosClassifier

N_CLASSES = 10
FASHION = ["T-shirt", "trouser", "pullover", "dress", "coat", "sandal", "shirt", "sneaker", "bag", "boot"]
Pairs = dict[tuple[int, int], PegasosClassifier]


class Images(NamedTuple):
    X_train: csr_array
    y_train: NDArray[np.int64]
    X_test: csr_array
    y_test: NDArray[np.int64]
    names: list[str]


def read_idx(path: Path) -> NDArray[np.uint8]:
    """The array of unsigned bytes in a gzip-compressed idx file: 0, 0, 8, the number of axes, their lengths, the data.

    Raises
    ------
    ValueError
        If the file is no such array, or its data are not as many as it says.
    """
    content = gzip.decompress(path.read_bytes())
    if content[:3] != b"\0\0\x08":
        raise ValueError(f"{path} starts with {content[:3]!r}; an idx file of unsigned bytes starts with 0, 0, 8")
    n_axes = content[3]
    shape = np.frombuffer(content, ">u4", n_axes, offset=4).tolist()
    data = np.frombuffer(content, np.uint8, offset=4 + 4 * n_axes)
    if len(data) != math.prod(shape):
        raise ValueError(f"{path} has {len(data)} values, not the {math.prod(shape)} of its shape {shape}")
    return data.reshape(shape)


def read_fashion(folder: Path) -> Images:
    def read(name: str) -> NDArray[np.uint8]:
        return read_idx(find(folder, f"{name}-ubyte.gz", "--fashion"))

    images = [read(f"{part}-images-idx3") for part in ("train", "t10k")]
    labels = [read(f"{part}-labels-idx1").astype(np.int64) for part in ("train", "t10k")]
    X_train, X_test = (csr_array(X.reshape(len(X), -1) / 255.0) for X in images)
    return Images(X_train, labels[0], X_test, labels[1], FASHION)


def read_digits() -> Images:
    X, y = load_digits(return_X_y=True)
    X_train, X_test, y_train, y_test = train_test_split(X / 16.0, y, test_size=0.25, random_state=0, stratify=y)
    return Images(csr_array(X_train), y_train, csr_array(X_test), y_test, [str(digit) for digit in range(N_CLASSES)])


def train_pairs(X: csr_array, y: NDArray[np.int64], l2: float, n_passes: int) -> Pairs:
    """A model for each pair of classes, which learned the examples of both, in a new random order each pass."""
    rng = np.random.default_rng(0)
    pairs = {}
    for a, b in combinations(range(N_CLASSES), 2):
        rows = np.flatnonzero((y == a) | (y == b))
        pairs[a, b] = PegasosClassifier(l2, fit_intercept=True)
        for _ in range(n_passes):
            order = rng.permutation(rows)
            pairs[a, b].learn_many(X[order], y[order] == b)
    return pairs


def vote(pairs: Pairs, X: csr_array) -> NDArray[np.int64]:
    """The class that wins most of its pairs; of classes with as many votes, the one with the larger sum of margins."""
    votes, confidence = np.zeros((2, X.shape[0], N_CLASSES))
    for (a, b), model in pairs.items():
        margins = model.decision_function_many(X)
        votes[:, a] += margins <= 0.0
        votes[:, b] += margins > 0.0
        confidence[:, a] -= margins
        confidence[:, b] += margins
    # Less than half a vote, so that it decides between equal votes only.
    return np.argmax(votes + confidence / (4.0 * np.abs(confidence).max()), axis=1)


def pair_accuracies(pairs: Pairs, X: csr_array, y: NDArray[np.int64]) -> NDArray[np.float64]:
    """The accuracy of each pair's model on the examples of both classes, in both halves of a table."""
    table = np.full((N_CLASSES, N_CLASSES), np.nan)
    for (a, b), model in pairs.items():
        rows = (y == a) | (y == b)
        table[a, b] = table[b, a] = accuracy_score(y[rows] == b, model.predict_many(X[rows]))
    return table


def learn_with_river(X: csr_array, y: NDArray[np.int64], l2: float) -> multiclass.OneVsOneClassifier:
    model = multiclass.OneVsOneClassifier(PegasosClassifier(l2, fit_intercept=True))
    for x, label in zip(as_dicts(X), y.tolist(), strict=True):
        model.learn_one(x, label)
    return model


def as_dicts(X: csr_array) -> list[dict[int, float]]:
    rows = pairwise(X.indptr)
    return [dict(zip(X.indices[i:j].tolist(), X.data[i:j].tolist(), strict=True)) for i, j in rows]


def draw(axes: Axes, table: NDArray, names: list[str], form: str, title: str) -> None:
    """A table of classes as a picture; the diagonal is left without colour, so that the rest can be told apart."""
    axes.imshow(np.where(np.eye(len(table), dtype=bool), np.nan, table), cmap="Oranges" if form == "d" else "Oranges_r")
    for (row, column), value in np.ndenumerate(table):
        if not np.isnan(value):
            axes.text(column, row, format(value, form), ha="center", va="center", fontsize=7)
    axes.set_xticks(range(len(names)), names, rotation=60)
    axes.set_yticks(range(len(names)), names)
    axes.set_title(title)


def main() -> None:
    arguments = parser(__file__, __doc__)
    arguments.add_argument("--fashion", type=Path, metavar="FOLDER", help="the folder of Fashion-MNIST's four files")
    options = arguments.parse_args()
    X_train, y_train, X_test, y_test, names = read_fashion(options.fashion) if options.fashion else read_digits()
    n_passes = 5 if options.small else 50
    # scikit-learn's default, C = 1, is λ = 1/n in ours; a pair of classes has n = 2/10 of the examples.
    l2 = 1.0 / (2.0 / N_CLASSES * len(y_train))

    pairs = train_pairs(X_train, y_train, l2, n_passes)
    predicted = vote(pairs, X_test)
    liblinear = OneVsOneClassifier(LinearSVC(loss="hinge", max_iter=100_000, random_state=0)).fit(X_train, y_train)
    one_pass = train_pairs(X_train, y_train, l2, n_passes=1)
    river = learn_with_river(X_train, y_train, l2)
    river_predicted = [river.predict_one(x) for x in as_dicts(X_test)]

    rows = [
        [f"Pegasos, {len(pairs)} pairs, {n_passes} passes", "80.2 %", accuracy_score(y_test, predicted)],
        ["scikit-learn, one against one", "80.37 %", liblinear.score(X_test, y_test)],
        ["Pegasos, one pass", "", accuracy_score(y_test, vote(one_pass, X_test))],
        [f"River's OneVsOne, {len(river.classifiers)} pairs, one pass", "", accuracy_score(y_test, river_predicted)],
    ]
    measured = "measured" if options.fashion else "measured (digits: another, easier set)"
    print_table(
        f"Accuracy on {len(y_test):,} test images",
        ["", "published (Fashion-MNIST)", measured],
        [[what, published, f"{accuracy:.2%}"] for what, published, accuracy in rows],
    )

    accuracies = pair_accuracies(pairs, X_test, y_test)
    figure = Figure(figsize=(10, 5), layout="constrained")
    left, right = figure.subplots(1, 2)
    draw(left, accuracies, names, ".3f", "Test accuracy of each pair's SVM")
    draw(right, confusion_matrix(y_test, predicted), names, "d", "Test images of a class (row), by the vote (column)")
    save_figure(figure, options.figure)


if __name__ == "__main__":
    main()
