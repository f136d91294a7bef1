"""Shared parts of the scripts in this folder: their options, the folder of the real streams, tables and figures."""

import argparse
import gzip
import json
import os
import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from PIL import Image
from rich.console import Console
from rich.table import Table
from scipy.sparse import csr_array, csr_matrix
from sklearn.datasets import load_svmlight_files

RCV1_COLUMNS = 47_236
STREAMS = Path(os.environ.get("STREAM_PEGASOS_DATA") or Path(__file__).parents[3] / "shared" / "data")


def parser(script: str, description: str | None) -> argparse.ArgumentParser:
    """The options that every script has; the figure is named after the script unless told otherwise."""
    options = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--small", action="store_true", help="a few seconds' worth of the work")
    options.add_argument("--data", type=Path, default=STREAMS, metavar="FOLDER", help="the folder of the real streams")
    options.add_argument("--figure", type=Path, default=Path(script).with_suffix(".png").name, metavar="PNG")
    return options


def find(folder: Path, name: str, options: str = "--data or STREAM_PEGASOS_DATA") -> Path:
    """The path of a data file; if it is absent, the script ends with an error."""
    if not (folder / name).is_file():
        print(f"{name} is not in {folder}: name its folder with {options}")
        sys.exit(0)
    return folder / name


def read_stream(folder: Path, name: str) -> list[dict]:
    """The records of a gzip-compressed file of JSON lines."""
    with gzip.open(find(folder, name), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_rcv1(folder: Path) -> tuple[csr_array, np.ndarray, csr_array, np.ndarray]:
    """The sample of RCV1, category CCAT: rows and labels of ±1 to train on, and others to test on."""
    names = "rcv1_ccat_train.svmlight.gz", "rcv1_ccat_test.svmlight.gz"
    X, y, X_test, y_test = load_svmlight_files([str(find(folder, name)) for name in names], zero_based=False)
    return int32_csr(X), y, int32_csr(X_test), y_test


def synthetic_rcv1(
    n_train: int, n_test: int, n_columns: int = RCV1_COLUMNS, n_words: int = 78, seed: int = 0
) -> tuple[csr_array, np.ndarray, csr_array, np.ndarray]:
    """Rows like those of RCV1, 47 % positive: words as frequent as Zipf's, tf-idf, cosine-normalised.

    A hidden vector says which tenth of the words speaks for either side. Words that speak against the side of their row
    are mostly replaced by others, which may again do so: of RCV1's shape, the SVM at λ = 1e-4 errs on some 5.6 %. A row
    has `n_words` words, and so about 76 different ones.
    """
    rng = np.random.default_rng(seed)
    n = n_train + n_test

    def words(n: int) -> np.ndarray:
        """Columns with a frequency like 1 / (rank + 20)."""
        ranks = 20.0 * (1.0 + n_columns / 20.0) ** rng.random(n, np.float32) - 20.0
        return np.minimum(ranks.astype(np.int32), n_columns - 1)

    y = np.where(rng.random(n) < 381_327 / 804_414, 1, -1)
    hidden = rng.choice([-1, 0, 1], n_columns, p=[0.1, 0.8, 0.1])
    columns = words(n * n_words)
    against = hidden[columns] == -np.repeat(y, n_words)
    against &= rng.random(len(columns), np.float32) < 0.74
    columns[against] = words(np.count_nonzero(against))
    X = csr_array((np.ones(len(columns)), columns, np.arange(n + 1, dtype=np.int32) * n_words), (n, n_columns))
    X.sum_duplicates()
    idf = np.log(n / np.maximum(1, np.bincount(X.indices, minlength=n_columns)))
    X.data = (1.0 + np.log(X.data)) * idf[X.indices]
    X.data /= np.repeat(np.sqrt(X.power(2).sum(axis=1)), np.diff(X.indptr))
    return X[:n_train], y[:n_train], X[n_train:], y[n_train:]


def int32_csr(X: csr_matrix) -> csr_array:
    """The matrix with indices of the size that scikit-learn's solvers take."""
    return csr_array((X.data, X.indices.astype(np.int32), X.indptr.astype(np.int32)), X.shape)


def print_table(title: str, header: list[str], rows: list[list[str]]) -> None:
    table = Table(*header, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    # The width fits every table, also in a pipe, so that no cell is cut.
    Console(width=120).print(table)


def save_figure(figure: Figure, path: Path) -> None:
    figure.savefig(path, dpi=80)
    # A palette has enough colours for curves, and makes the file a third as large.
    Image.open(path).convert("RGB").quantize(64).save(path, optimize=True)
    print(f"figure: {path}")
