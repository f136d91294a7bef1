"""Speed beside River, Vowpal Wabbit, scikit-learn and wc, as ratios taken in one run.

Each row times ours and the peer in turn, several times, and prints the medians of both and of the ratio pair by pair.
Streams come from the folder that STREAM_PEGASOS_DATA names, or from ../shared/data; rows whose stream or peer is
missing are left out and named. Beside the recipe stand two speeds: "memory allows" as much if each distinct feature of
a document costs a line of memory, "scanning alone" turns texts into examples and looks these up in an empty table.

    python tests/benchmarks/speed.py [--runs 7] [--stream FILE]
        [--only vw,recipe,recipe_classes,labels,chinese,one,vectors,wc,river,classes,sklearn,kernel,average,steps,
        threads,memory,profile,startup]
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import chain, product
from pathlib import Path

import numpy as np
from memory import bytes_a_feature
from numpy_kernel import NumpyKernelPegasos
from peers import (
    DATA,
    WORDLLAMA,
    WORDS_AND_MARKS,
    has_word_vectors,
    read_records,
    streams_of_several_classes,
)
from river import evaluate, feature_extraction, linear_model, metrics, multiclass, optim
from rows import compare, compare_with_vowpal_wabbit
from scipy import sparse
from shares import limits, microseconds, microseconds_of_words, seconds, time_shares

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
    engine,
)
from stream_pegasos.streams import read

STREAMS = {"sms_spam": 40, "enron_1to3": 2}  # how often each is read in one timing, so that none is too short


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--runs", type=int, default=7, help="pairs of timings for each row")
    parser.add_argument("--only", default="", help="parts to run, separated by commas")
    parser.add_argument("--stream", action="append", default=[], metavar="FILE", help="one more for the part recipe")
    arguments = parser.parse_args()
    parts = {
        "profile": profile,
        "vw": vowpal_wabbit,
        "recipe": partial(recipe, paths=arguments.stream),
        "recipe_classes": recipe_of_several_classes,
        "labels": recipe_of_several_labels,
        "chinese": chinese,
        "one": one_by_one,
        "vectors": word_vectors,
        "wc": word_count,
        "river": river,
        "classes": several_classes,
        "sklearn": scikit_learn,
        "kernel": kernel_step,
        "average": averaging,
        "steps": late_steps,
        "threads": two_threads,
        "memory": memory,
        "startup": startup,
    }
    chosen = arguments.only.split(",") if arguments.only else list(parts)
    print(f"engine {engine.NAME}, Python {sys.version.split()[0]}, {arguments.runs} runs, medians [least, most]\n")
    print(
        f"{'work':58} {'ours':>22} {'peer':>22} {'ratio':>22} {'to reach':>9}"
        f" {'memory allows':>14} {'scanning alone':>14}"
    )
    for part in chosen:
        parts[part](arguments.runs)


def streams() -> Iterator[tuple[str, list[str], list[bool]]]:
    for name in STREAMS:
        if records := read_records(name):
            yield name, [record["text"] for record in records], [record["label"] == "spam" for record in records]


def copies(texts: list[str], times: int) -> list[str]:
    """The texts again and again, as objects of their own: a stream does not come from the processor's cache."""
    return [text.encode().decode() for _ in range(times) for text in texts]


def plain() -> TextClassifier:
    """Pegasos as published, on words."""
    return TextClassifier(HashedBagOfWords(), PegasosClassifier())


def learn_texts(texts: list[str], labels: list[bool]) -> None:
    plain().predict_learn_many(texts, labels)


# Texts of all kinds one after the other: more than a million features.
ALL = (
    "enron_1to3", "sms_spam", "rt_polarity", "reuters21578", "banking77", "tweets_emotion", "waimai_zh", "hotels_zh",
    "rotten_tomatoes_phrases",
)  # fmt: skip


LOSSES = "hinge", "logistic"
# The ratios to reach, by stream: beside each loss on one thread, then on two.
TO_REACH = {
    "sms_spam": ((1.5, 1.5), ("", "")),
    "enron_1to3": ((1.4, 1.4), (2.2, 2.2)),
    "all streams": ((0.9, 1.0), (1.25, 1.4)),
}


def streams_for_the_recipe(paths: Sequence[str]) -> Iterator[tuple[str, list[str], list[bool]]]:
    """Of files the first label is one class, the rest the other."""
    for name, texts, labels in streams():
        yield name, copies(texts, STREAMS[name]), labels * STREAMS[name]
    texts, labels = [], []
    for name in ALL:
        records = read_records(name)
        texts += [record["text"] for record in records]
        labels += [record.get("label", "") == records[0].get("label", None) for record in records]
    if texts:
        yield "all streams", texts, labels
    for path in paths:
        examples = list(read(path))
        labels = [example.y == examples[0].y for example in examples]
        yield Path(path).name, [example.x for example in examples], labels


def recipe(runs: int, paths: Sequence[str] = ()) -> None:
    for name, texts, labels in streams_for_the_recipe(paths):
        to_reach = TO_REACH.get(name, (("", ""), ("", "")))
        limited = {threads: limits(texts, runs, threads) for threads in (1, 2)}
        for threads, loss in product(limited, LOSSES):
            compare_with_vowpal_wabbit(
                f"{name}: recipe, threads={threads} | Vowpal Wabbit, {loss}, --ngram 2",
                lambda texts, labels, threads=threads: TextClassifier().predict_learn_many(
                    texts, labels, threads=threads
                ),
                texts,
                labels,
                {True: 1, False: -1},
                ["--loss_function", loss, "--ngram", "2", "-b", "22"],
                runs,
                to_reach[threads - 1][LOSSES.index(loss)],
                WORDS_AND_MARKS,
                limited[threads],
            )


def recipe_of_several_classes(runs: int) -> None:
    """Each stream once, since one that comes again is learned already, and costs less.

    A table of 2^18 is small for so many classes, and fast for it; that of 2^22 is the one of accuracy.py.
    """
    for name, texts, labels in streams_of_several_classes():
        if name == "tweets_emotion":  # too short to be timed
            continue
        numbers = {label: number for number, label in enumerate(dict.fromkeys(labels), start=1)}
        limited = limits(texts, runs)
        for bits, loss in product(("22", "18"), ("hinge", "logistic", "squared")):
            compare_with_vowpal_wabbit(
                f"{name}: recipe | --oaa {len(numbers)}, {loss}, --ngram 2, -b {bits}",
                lambda texts, labels: TextClassifier().predict_learn_many(texts, labels).labels,
                copies(texts, 1),
                labels,
                numbers,
                ["--oaa", f"{len(numbers)}", "--loss_function", loss, "--ngram", "2", "-b", bits],
                runs,
                1.5 if (name, loss, bits) == ("reuters_10", "squared", "22") else 1,
                WORDS_AND_MARKS,
                limited,
            )


def recipe_of_several_labels(runs: int) -> None:
    """Reuters-21578 once, with all topics of a story."""
    records = read_records("reuters21578")
    labels = [tuple(record["topics"]) for record in records]
    numbers = {topic: str(number) for number, topic in enumerate(dict.fromkeys(chain(*labels)))}
    if records:
        compare_with_vowpal_wabbit(
            f"Reuters, topics: recipe | --multilabel_oaa {len(numbers)}, --ngram 2, -b 24",
            lambda texts, labels: (
                TextClassifier(classifier=MultiLabelClassifier()).predict_learn_many(texts, labels).labels
            ),
            [record["text"] for record in records],
            labels,
            {each: ",".join(numbers[topic] for topic in each) for each in labels},
            ["--multilabel_oaa", f"{len(numbers)}", "--ngram", "2", "-b", "24"],
            runs,
            1.5,
            WORDS_AND_MARKS,
            limits([record["text"] for record in records], runs),
        )


def chinese(runs: int) -> None:
    """Bytes of UTF-8 a second, each stream once."""

    def work(name: str) -> tuple[Callable[[], object], float]:
        records = read_records(name)
        texts, labels = [record["text"] for record in records], [record["label"] for record in records]
        size = sum(len(text.encode()) for text in texts) / 1e6
        return lambda: TextClassifier().predict_learn_many(texts, labels), size

    mail, size_of_mail = work("enron_1to3")
    for name in ("waimai_zh", "hotels_zh"):
        ours, size = work(name)
        if size and size_of_mail:
            title = f"{name}: recipe, bytes a second | enron_1to3"
            compare(title, ours, mail, runs, size, "MB/s", 0.25, peer_amount=size_of_mail)


def one_by_one(runs: int) -> None:
    """Each message of 100 words by itself, from Python, to a model that has learned others."""
    if not (records := read_records("enron_1to3")):
        return
    texts, labels = [record["text"] for record in records], [record["label"] for record in records]
    found = [microseconds_of_words(100, texts, labels) for _ in range(runs)]
    for work, to_reach in (("predict_one", "4, 10"), ("learn_one", "5.5, 20")):
        p50, p99 = np.median([each[work] for each in found], axis=0)
        told = f"{p50:.1f}, {p99:.1f} µs"
        print(f"{f'100 words: {work}, p50, p99':58} {told:>22} {'':22} {'':22} {to_reach:>9}", flush=True)


def word_vectors(runs: int) -> None:
    """The recipe with word vectors beside itself: each stream once, and each word looked up anew in each timing."""
    if not has_word_vectors():
        print(f"{WORDLLAMA}: left out, it is not installed")
        return

    def make(vectors: str | None) -> TextClassifier:
        return TextClassifier(TextFeatures(vectors=vectors))

    make(WORDLLAMA)  # which reads the table, once for all
    for name in ("sms_spam", "enron_1to3", "banking77"):
        if not (records := read_records(name)):
            continue
        texts, labels = copies([record["text"] for record in records], 1), [record["label"] for record in records]
        compare(
            f"{name}: recipe with word vectors | without",
            lambda texts=texts, labels=labels: make(WORDLLAMA).predict_learn_many(texts, labels),
            lambda texts=texts, labels=labels: make(None).predict_learn_many(texts, labels),
            runs,
            len(texts),
            "docs/s",
            "",
        )
        found = [microseconds(make(vectors), texts, labels) for vectors in (WORDLLAMA, None)]
        for work in found[0]:
            cells = " ".join(f"{f'{each[work][0]:.1f}, {each[work][1]:.1f} µs':>22}" for each in found)
            print(f"{f'{name}: {work} with word vectors | without, p50, p99':58} {cells}", flush=True)


def vowpal_wabbit(runs: int) -> None:
    for name, texts, labels in streams():
        compare_with_vowpal_wabbit(
            f"{name}: raw text, predict_learn_many | Vowpal Wabbit",
            learn_texts,
            copies(texts, STREAMS[name]),
            labels * STREAMS[name],
            {True: 1, False: -1},
            ["--loss_function", "hinge", "-b", "18"],
            runs,
            2,
        )


def word_count(runs: int) -> None:
    if shutil.which("wc") is None:
        print("wc: left out, it is not installed")
        return
    with tempfile.TemporaryDirectory() as folder:
        empty = Path(folder) / "empty.txt"
        empty.touch()
        for name, texts, labels in streams():
            times = STREAMS[name]
            path = Path(folder) / f"{name}.txt"
            path.write_text("\n".join(texts * times))
            many, many_labels = copies(texts, times), labels * times
            compare(
                f"{name}: raw text, predict_learn_many | wc -w",
                lambda many=many, many_labels=many_labels: learn_texts(many, many_labels),
                lambda path=path: subprocess.run(["wc", "-w", path], check=True, capture_output=True),
                runs,
                path.stat().st_size / 1e6,
                "MB/s",
                1.5,
                peer_overhead=lambda: subprocess.run(["wc", "-w", empty], check=True, capture_output=True),
            )


def river(runs: int) -> None:
    def peer() -> object:
        return feature_extraction.BagOfWords() | linear_model.LogisticRegression(optim.SGD(0.01))

    targets = {"sms_spam": (12, 6), "enron_1to3": (20, 10)}
    for name, texts, labels in streams():
        stream = list(zip(texts, labels, strict=True))

        def score(make: Callable[[], object], stream: list[tuple[str, bool]] = stream) -> None:
            evaluate.progressive_val_score(stream, make(), metrics.Accuracy())

        for title, ours, target in (
            ("TextClassifier in progressive_val_score", plain, targets[name][0]),
            ("HashedBagOfWords | PegasosClassifier in the same", pipeline, targets[name][1]),
        ):
            compare(
                f"{name}: {title}",
                lambda ours=ours, score=score: score(ours),
                lambda score=score: score(peer),
                max(3, runs // 2),
                len(stream),
                "docs/s",
                target,
            )
    for name, texts, labels in streams():
        if name == "sms_spam":
            dicts = [(HashedBagOfWords().transform_one(text), y) for text, y in zip(texts, labels, strict=True)]
            compare_on_dicts([(x, y) for x, y in dicts if 20 <= len(x) <= 30], runs)


def compare_on_dicts(dicts: list[tuple[dict[int, float], bool]], runs: int) -> None:
    def alternate(model: object) -> None:
        for x, y in dicts:
            model.predict_one(x)
            model.learn_one(x, y)

    compare(
        "dicts of 20 to 30 features: predict_one, learn_one | River",
        lambda: alternate(PegasosClassifier()),
        lambda: alternate(linear_model.LogisticRegression()),
        5 * runs,
        len(dicts),
        "dicts/s",
        8,
    )


def several_classes(runs: int) -> None:
    """Reuters-21578: the stories whose first topic is one of the ten largest."""
    records = read_records("reuters21578")
    if not records:
        return
    sizes = Counter(topic for record in records for topic in record["topics"])
    largest = [topic for topic, _ in sizes.most_common(10)]
    stories = [(record["text"], topic) for record in records for topic in record["topics"][:1] if topic in largest]
    texts, labels = [text for text, _ in stories], [topic for _, topic in stories]

    def one_versus_rest() -> object:
        return feature_extraction.BagOfWords() | multiclass.OneVsRestClassifier(linear_model.LogisticRegression())

    def learn(texts: list[str], labels: list[str], multi_class: str) -> None:
        model = TextClassifier(HashedBagOfWords(), PegasosClassifier(multi_class=multi_class))
        model.predict_learn_many(texts, labels)

    for multi_class in ("crammer_singer", "ovr"):
        compare(
            f"Reuters, 10 topics: {multi_class} | River OneVsRest",
            lambda multi_class=multi_class: learn(texts, labels, multi_class),
            lambda: evaluate.progressive_val_score(stories, one_versus_rest(), metrics.Accuracy()),
            max(3, runs // 3),
            len(stories),
            "docs/s",
            20,
        )
        compare_with_vowpal_wabbit(
            f"Reuters, 10 topics: {multi_class} | Vowpal Wabbit --oaa 10",
            lambda texts, labels, multi_class=multi_class: learn(texts, labels, multi_class),
            copies(texts, 3),
            labels * 3,
            {topic: number for number, topic in enumerate(largest, start=1)},
            ["--oaa", "10", "-b", "18"],
            runs,
            1,
        )


def kernel_step(runs: int) -> None:
    """Predict and learn an example with an RBF kernel and a budget of 500 that is used up already."""
    rng = np.random.default_rng(0)
    numbers = [(dict(enumerate(row)), row[0] * row[1] > 0.0) for row in rng.normal(size=(3_000, 20)).tolist()]
    work = {"20 numbers": numbers}
    for name, texts, labels in streams():
        if name == "sms_spam":
            work[name] = [(HashedBagOfWords().transform_one(text), y) for text, y in zip(texts, labels, strict=True)]
    for title, examples in work.items():
        begin, rest = examples[:2_000], examples[2_000:3_000]
        for maintenance in ("removal", "merging"):
            ours = KernelPegasosClassifier(l2=1e-3, budget=500, budget_maintenance=maintenance)
            peer = NumpyKernelPegasos(500, maintenance == "merging", l2=1e-3)
            ours.learn_many(*zip(*begin, strict=True))
            for x, y in begin:
                peer.step(x, y)
            compare(
                f"kernel step, budget 500, {title}, {maintenance} | NumPy",
                lambda ours=ours, rest=rest: ours.predict_learn_many(*zip(*rest, strict=True)),
                lambda peer=peer, rest=rest: [peer.step(x, y) for x, y in rest],
                runs,
                len(rest),
                "steps/s",
                1,
            )


def averaging(runs: int) -> None:
    for name, texts, labels in streams():
        many, many_labels = copies(texts, STREAMS[name]), labels * STREAMS[name]

        def learn(average: bool | str, many: list[str] = many, many_labels: list[bool] = many_labels) -> None:
            model = TextClassifier(HashedBagOfWords(), PegasosClassifier(average=average))
            model.learn_many(many, many_labels)

        for average in (True, "weighted"):
            compare(
                f"{name}: average={average} | plain Pegasos",
                lambda average=average, learn=learn: learn(average),
                lambda learn=learn: learn(False),
                runs,
                len(many),
                "docs/s",
                "0.67",
            )


def pipeline() -> object:
    return HashedBagOfWords() | PegasosClassifier()


def scikit_learn(runs: int) -> None:
    """A matrix of the shape of RCV1, 64 values a row, columns as unevenly used as words are."""
    try:
        from sklearn.linear_model import SGDClassifier
    except ImportError:
        print("scikit-learn: left out, it is not installed")
        return
    n_rows, n_columns, n_values = 758_116, 47_236, 64
    rng = np.random.default_rng(0)
    columns = (n_columns * rng.random(n_rows * n_values, np.float32) ** 3).astype(np.int32)
    data = rng.random(n_rows * n_values) / 4.0
    X = sparse.csr_matrix((data, columns, np.arange(0, n_rows * n_values + 1, n_values)), (n_rows, n_columns))
    X.sum_duplicates()
    y = np.where(X @ rng.normal(size=n_columns) > 0.0, 1, -1)
    compare(
        "758,116 x 47,236 CSR: learn_many | SGDClassifier.fit",
        lambda: PegasosClassifier().learn_many(X, y),
        lambda: SGDClassifier(loss="hinge", max_iter=1, tol=None, shuffle=False).fit(X, y),
        max(3, runs // 2),
        n_rows,
        "rows/s",
        1,
    )


def late_steps(runs: int) -> None:
    """The same dicts, to a model that has taken ten thousand steps and to one that has taken ten million.

    Some of their 25 features are frequent and most of them rare, as words are.
    """
    rng = np.random.default_rng(1)
    columns = (2**20 * rng.random((20_000, 25)) ** 4).astype(int) * 40503 % 2**20
    rows = zip(columns.tolist(), rng.random(columns.shape).tolist(), strict=True)
    labels = (rng.random(len(columns)) < 0.5).tolist()
    dicts = list(zip((dict(zip(*row, strict=True)) for row in rows), labels, strict=True))

    def after(n_steps: int, n_columns: int) -> PegasosClassifier:
        model, rng = PegasosClassifier(), np.random.default_rng(2)
        for begin in range(0, n_steps, 500_000):
            n = min(500_000, n_steps - begin)
            columns = rng.integers(0, n_columns, n * 8, dtype=np.int32)
            X = sparse.csr_matrix((rng.random(n * 8), columns, np.arange(0, n * 8 + 1, 8)), (n, n_columns))
            model.learn_many(X, rng.random(n) < 0.5)
        return model

    young, old = after(10_000, 10_000), after(10_000_000, 1_000_000)
    print(f"{'':58} young: {len(young.weights):,} features; old: {len(old.weights):,} features")

    def learn(model: PegasosClassifier) -> None:
        for x, y in dicts:
            model.learn_one(x, y)

    learn(young), learn(old)  # the features of the dicts are known to both from here on
    compare(
        "learn_one after 10,000,000 steps | after 10,000",
        lambda: learn(old),
        lambda: learn(young),
        runs,
        len(dicts),
        "steps/s",
        "1",
    )


def two_threads(runs: int) -> None:
    """The recipe with two threads beside itself with one; the machine should have nothing else to do."""
    for name, times in (("enron_1to3", 1), ("sms_spam", 40), ("banking77", 4)):
        if not (records := read_records(name)):
            continue
        texts = copies([record["text"] for record in records], times)
        labels = [record["label"] for record in records] * times
        learned = TextClassifier()
        learned.learn_many(texts, labels)

        def learn(threads: int, texts: list[str] = texts, labels: list[str] = labels) -> None:
            TextClassifier().learn_many(texts, labels, threads=threads)

        def predict(threads: int, texts: list[str] = texts, learned: TextClassifier = learned) -> None:
            learned.predict_many(texts, threads=threads)

        for work, target in ((predict, 1.8), (learn, 1.7)):
            compare(
                f"{name}: recipe, {work.__name__}_many, two threads | one",
                lambda work=work: work(2),
                lambda work=work: work(1),
                runs,
                len(texts),
                "docs/s",
                target,
            )


def memory(runs: int) -> None:
    """Bytes a distinct hashed feature, as a model grows to two million features."""
    for model, average, most in ((PegasosClassifier(), 36, 48), (AdaptiveClassifier(), 48, 96)):
        found = bytes_a_feature(model)
        for which, value, target in (("on average", statistics.mean(found), average), ("at most", max(found), most)):
            title = f"{type(model).__name__}: bytes a distinct feature, {which}"
            print(f"{title:58} {value:>22.1f} {'':22} {'':22} {f'<= {target}':>9}")


def startup(runs: int) -> None:
    """Seconds of the clock until a process of its own has ended, after one that warms the caches."""
    program = [sys.executable, "-m", "stream_pegasos"]
    work = {
        "import stream_pegasos": ([sys.executable, "-c", "import stream_pegasos"], 0.15),
        "from stream_pegasos import TextClassifier": (
            [sys.executable, "-c", "from stream_pegasos import TextClassifier"],
            "",
        ),
        "stream-pegasos --help": ([*program, "--help"], 0.2),
        "stream-pegasos evaluate, sms_spam": ([*program, "evaluate", str(DATA / "sms_spam.jsonl.gz")], 0.35),
    }
    for title, (command, target) in work.items():
        took = [seconds(lambda c=command: subprocess.run(c, check=True, capture_output=True)) for _ in range(runs + 1)]
        spread = f"{statistics.median(took[1:]):.3f} [{min(took[1:]):.3f}, {max(took[1:]):.3f}] s"
        print(f"{title:58} {spread:>22} {'':22} {'':22} {f'<= {target}' if target else '':>9}", flush=True)


def profile(runs: int) -> None:
    """Where predict_learn_many spends its time on raw text."""
    for name, texts, labels in streams():
        shares = time_shares(plain, copies(texts, STREAMS[name]), labels * STREAMS[name], runs)
        told = ", ".join(f"{part} {share:.0%}" for part, share in shares.items())
        print(f"{f'{name}: where the time goes':58} {told}")


if __name__ == "__main__":
    main()
