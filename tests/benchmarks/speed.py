"""Speed beside River, Vowpal Wabbit, scikit-learn and wc, as ratios taken in one run.

Each row times ours and the peer in turn, several times, and prints the medians of both and of the ratio pair by pair.
Streams come from the folder that STREAM_PEGASOS_DATA names, or from ../shared/data; rows whose stream or peer is
missing are left out and named. Beside the recipe stand two speeds: "memory allows" as much if each distinct feature of
a document costs a line of memory, "scanning alone" turns texts into examples and looks these up in an empty table.

    python tests/benchmarks/speed.py [--runs 7] [--only words,recipe,classes,labels,chinese,one,vectors,threads,wc,
        river,topics,matrix,average,steps,memory,startup]
"""

import random
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from corpora import DATA, Corpus, of_classes, of_several_classes, of_two_classes, read_records
from peers import (
    WORDLLAMA,
    WORDS,
    WORDS_AND_MARKS,
    bag,
    for_vowpal_wabbit,
    has_vowpal_wabbit,
    has_word_vectors,
    of_one_and_the_rest,
    options_of,
    run_vowpal_wabbit,
    write_vowpal_wabbit,
)
from report import arguments_of
from river import evaluate, linear_model, metrics, optim
from scipy import sparse
from sklearn.linear_model import SGDClassifier
from timing import Race, median_seconds, percentiles, seconds

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    MultiLabelClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
    engine,
    prequential,
)

TIMES = {"sms_spam": 40, "enron_1to3": 2}  # how often each is read in one timing, so that none is too short
# Texts of all kinds one after the other: more than a million features.
ALL = (
    "enron_1to3", "sms_spam", "rt_polarity", "reuters21578", "banking77", "tweets_emotion", "waimai_zh", "hotels_zh",
    "rotten_tomatoes_phrases",
)  # fmt: skip


def main() -> None:
    arguments = arguments_of(__doc__, runs=7, only=",".join(PARTS))
    print(f"engine {engine.NAME}, Python {sys.version.split()[0]}, {arguments.runs} runs, medians")
    race = Race(arguments.runs)
    for part in arguments.only.split(","):
        PARTS[part](race)


def copies(corpus: Corpus, times: int) -> Corpus:
    """Again and again, with texts as objects of their own: a stream does not come from the processor's cache."""
    texts = [text.encode().decode() for _ in range(times) for text in corpus.texts]
    return corpus._replace(texts=texts, labels=corpus.labels * times)


def repeated() -> Iterator[Corpus]:
    for corpus in of_two_classes(*TIMES):
        yield copies(corpus, TIMES[corpus.name])


def plain(**options: Any) -> TextClassifier:
    """Pegasos as published, on words."""
    return TextClassifier(HashedBagOfWords(), PegasosClassifier(**options))


def beside_vowpal_wabbit(
    race: Race,
    title: str,
    make: Callable[[], TextClassifier],
    corpus: Corpus,
    options: list[str],
    tokens: str = WORDS,
    limits: Sequence[float] = (),
    threads: int = 1,
) -> None:
    """Vowpal Wabbit gets its text lower-cased and tokenised beforehand, labels as numbers, and two threads."""
    if not has_vowpal_wabbit():
        return

    def learn() -> object:
        said = make().predict_learn_many(corpus.texts, corpus.labels, threads=threads)
        return said if corpus.kind == "two classes" else said.labels

    reduction, spelled = for_vowpal_wabbit(corpus)
    options = [*reduction, *options]
    with tempfile.TemporaryDirectory() as folder:
        empty, full = Path(folder) / "empty.vw", Path(folder) / "full.vw"
        empty.touch()
        write_vowpal_wabbit(full, corpus.texts, spelled, tokens)
        race.compare(
            f"{corpus.name}: {title}",
            learn,
            lambda: run_vowpal_wabbit(full, options),
            len(corpus.texts),
            overhead=lambda: run_vowpal_wabbit(empty, options),
            limits=limits,
        )


@cache
def seconds_a_line() -> float:
    """To read a random line of 64 bytes, of many that no cache holds: the least of several times."""
    memory = np.ones(8 * 2**23)
    places = 8 * np.random.default_rng(0).integers(2**23, size=2**22)
    read = np.empty(len(places))
    return min(seconds(lambda: memory.take(places, out=read, mode="clip")) for _ in range(7)) / len(places)


def limits_of(texts: list[str], runs: int, threads: int = 1) -> tuple[float, float]:
    """Texts a second that the memory allows, at a line for each distinct feature of a text, and that scanning allows.

    A model without weights does little but scan when it predicts: its table is empty.
    """
    features, untrained = TextFeatures(), TextClassifier()
    n_lines = sum(len(features.transform_one(text)) for text in texts)
    scan = median_seconds(lambda: untrained.predict_many(texts, threads=threads), runs)
    return len(texts) / (n_lines * seconds_a_line()), len(texts) / scan


# --- the recipe -------------------------------------------------------------------------------------------------------


def recipe(race: Race) -> None:
    for corpus in streams_for_the_recipe():
        limits = {threads: limits_of(corpus.texts, race.runs, threads) for threads in (1, 2)}
        for threads, loss in product(limits, ("hinge", "logistic")):
            title, tokens = f"recipe, threads={threads} beside Vowpal Wabbit, {loss}, --ngram 2", WORDS_AND_MARKS
            options = options_of(loss, 2)
            beside_vowpal_wabbit(race, title, TextClassifier, corpus, options, tokens, limits[threads], threads)


def streams_for_the_recipe() -> Iterator[Corpus]:
    yield from repeated()
    texts, labels = [], []
    for name in ALL:
        records = read_records(name)
        texts += [record["text"] for record in records]
        labels += [record.get("label", "") == records[0].get("label", None) for record in records]
    yield Corpus("all streams", texts, labels)


def classes(race: Race) -> None:
    """Each stream once, since one that comes again is learned already, and costs less.

    A table of 2^18 is small for so many classes, and fast for it; that of 2^22 is the one of accuracy.py.
    """
    for corpus in of_several_classes():
        if corpus.name == "tweets_emotion":  # too short to be timed
            continue
        corpus, limits = copies(corpus, 1), limits_of(corpus.texts, race.runs)
        for bits, loss in product((22, 18), ("hinge", "logistic", "squared")):
            title, options = f"recipe beside --oaa, {loss}, --ngram 2, -b {bits}", options_of(loss, 2, bits)
            beside_vowpal_wabbit(race, title, TextClassifier, corpus, options, WORDS_AND_MARKS, limits)


def labels(race: Race) -> None:
    """Reuters-21578 once, with all topics of a story."""
    stories = [(record["text"], tuple(record["topics"])) for record in read_records("reuters21578")]
    if stories:
        corpus = Corpus("Reuters, topics", *map(list, zip(*stories, strict=True)), "labels")
        title, limits = "recipe beside --multilabel_oaa, --ngram 2, -b 24", limits_of(corpus.texts, race.runs)
        make, options = partial(TextClassifier, classifier=MultiLabelClassifier()), ["--ngram", "2", "-b", "24"]
        beside_vowpal_wabbit(race, title, make, corpus, options, WORDS_AND_MARKS, limits)


def chinese(race: Race) -> None:
    """Bytes of UTF-8 a second, each stream once."""
    found = {corpus.name: corpus for corpus in of_two_classes("enron_1to3", "waimai_zh", "hotels_zh")}
    mail = found.pop("enron_1to3", None)

    def learn(corpus: Corpus) -> None:
        TextClassifier().predict_learn_many(corpus.texts, corpus.labels)

    def megabytes(corpus: Corpus) -> float:
        return sum(len(text.encode()) for text in corpus.texts) / 1e6

    for corpus in found.values() if mail else ():
        title = f"{corpus.name}: recipe, bytes a second beside enron_1to3"
        amounts = {"amount": megabytes(corpus), "peer_amount": megabytes(mail)}
        race.compare(title, partial(learn, corpus), partial(learn, mail), unit="MB/s", **amounts)


def microseconds(model: TextClassifier, corpus: Corpus) -> dict[str, str]:
    """The median and the 99th percentile of the time of a call; predicting looks up the new words of a message."""
    took: dict[str, list[float]] = {"predict_one": [], "learn_one": []}
    for text, label in zip(corpus.texts, corpus.labels, strict=True):
        took["predict_one"].append(seconds(partial(model.predict_one, text)))
        took["learn_one"].append(seconds(partial(model.learn_one, text, label)))
    return {work: "{:.1f}, {:.1f} µs".format(*percentiles(each, 1e6)) for work, each in took.items()}


def one(race: Race) -> None:
    """6,000 messages of 100 words with labels drawn at random, from Python, to a model that has learned 3,000 texts."""
    for corpus in of_classes("enron_1to3"):
        model, learned = TextClassifier(), corpus.first(3_000)
        model.learn_many(learned.texts, learned.labels)
        words = [word for text in corpus.texts[3_000:] for word in text.split()]
        texts = [" ".join(words[begin : begin + 100]) for begin in range(0, len(words) - 100, 100)][:6_000]
        labels = random.Random(1).choices(sorted(corpus.met), k=len(texts))
        for work, told in microseconds(model, Corpus("", texts, labels)).items():
            race.row(f"100 words: {work}, p50, p99", told)


def vectors(race: Race) -> None:
    """The recipe with word vectors beside itself: each stream once, and each word looked up anew in each timing."""
    if not has_word_vectors():
        print(f"{WORDLLAMA}: left out, it is not installed")
        return

    def make(vectors: str | None) -> TextClassifier:
        return TextClassifier(TextFeatures(vectors=vectors))

    def learn(vectors: str | None, corpus: Corpus) -> None:
        make(vectors).predict_learn_many(corpus.texts, corpus.labels)

    make(WORDLLAMA)  # which reads the table, once for all
    for corpus in of_classes("sms_spam", "enron_1to3", "banking77"):
        corpus = copies(corpus, 1)
        title = f"{corpus.name}: recipe with word vectors beside without"
        race.compare(title, partial(learn, WORDLLAMA, corpus), partial(learn, None, corpus), len(corpus.texts))
        found = [microseconds(make(vectors), corpus) for vectors in (WORDLLAMA, None)]
        for work in found[0]:
            title = f"{corpus.name}: {work} with word vectors beside without, p50, p99"
            race.row(title, *(each[work] for each in found))


def threads(race: Race) -> None:
    """The recipe with two threads beside itself with one; the machine should have nothing else to do."""
    for corpus in of_classes("enron_1to3", "sms_spam", "banking77"):
        corpus = copies(corpus, {"enron_1to3": 1, "sms_spam": 40, "banking77": 4}[corpus.name])
        learned = TextClassifier()
        learned.learn_many(corpus.texts, corpus.labels)
        for name, work in {
            "predict_many": partial(learned.predict_many, corpus.texts),
            "learn_many": lambda threads, corpus=corpus: TextClassifier().learn_many(
                corpus.texts, corpus.labels, threads=threads
            ),
        }.items():
            title = f"{corpus.name}: recipe, {name}, two threads beside one"
            race.compare(title, partial(work, threads=2), partial(work, threads=1), len(corpus.texts))


# --- Pegasos ----------------------------------------------------------------------------------------------------------


def words(race: Race) -> None:
    for corpus in repeated():
        title = "raw text, predict_learn_many beside Vowpal Wabbit"
        beside_vowpal_wabbit(race, title, plain, corpus, options_of("hinge", bits=18))


def wc(race: Race) -> None:
    if shutil.which("wc") is None:
        print("wc: left out, it is not installed")
        return

    def count(path: Path) -> None:
        subprocess.run(["wc", "-w", path], check=True, capture_output=True)

    with tempfile.TemporaryDirectory() as folder:
        path, empty = Path(folder) / "texts.txt", Path(folder) / "empty.txt"
        empty.touch()
        for corpus in repeated():
            path.write_text("\n".join(corpus.texts), encoding="utf-8")
            race.compare(
                f"{corpus.name}: raw text, predict_learn_many beside wc -w",
                lambda corpus=corpus: plain().predict_learn_many(corpus.texts, corpus.labels),
                partial(count, path),
                path.stat().st_size / 1e6,
                "MB/s",
                overhead=partial(count, empty),
            )


def progressive(stream: list[Any], make: Callable[[], Any]) -> Callable[[], object]:
    return lambda: evaluate.progressive_val_score(stream, make(), metrics.Accuracy())


def river(race: Race) -> None:
    def peer() -> Any:
        return bag(linear_model.LogisticRegression(optim.SGD(0.01)))

    def pipeline() -> Any:
        return HashedBagOfWords() | PegasosClassifier()

    ours = {
        "TextClassifier in progressive_val_score": plain,
        "HashedBagOfWords and PegasosClassifier in the same": pipeline,
    }
    for corpus in of_two_classes(*TIMES):
        stream = list(zip(corpus.texts, corpus.labels, strict=True))
        for title, make in ours.items():
            title = f"{corpus.name}: {title}"
            race.compare(title, progressive(stream, make), progressive(stream, peer), len(stream))
    for corpus in of_two_classes("sms_spam"):
        late(race, corpus)
        bags = [HashedBagOfWords().transform_one(text) for text in corpus.texts]
        dicts = [(x, y) for x, y in zip(bags, corpus.labels, strict=True) if 20 <= len(x) <= 30]

        def alternate(make: Callable[[], Any], dicts: list[Any] = dicts) -> None:
            model = make()
            for x, y in dicts:
                model.predict_one(x)
                model.learn_one(x, y)

        title = "dicts of 20 to 30 features: predict_one, learn_one beside River"
        of_river = partial(alternate, linear_model.LogisticRegression)
        race.compare(title, partial(alternate, PegasosClassifier), of_river, len(dicts), "dicts/s")


def late(race: Race, corpus: Corpus) -> None:
    """Labels that come late, of the same model, beside River's loop: with the accuracy alone, which `prequential` finds
    beside nine more metrics and their curves; and with those of these that River has.
    """
    stream = list(zip(corpus.texts, corpus.labels, strict=True))[:3_000]
    several = [metrics.BalancedAccuracy, metrics.MacroF1, metrics.MicroF1, metrics.ROCAUC, metrics.LogLoss]
    for name, more in (("the accuracy", []), ("six metrics", several)):
        for delay in (1, 100):

            def peer(more: list[Any] = more, delay: int = delay) -> None:
                accuracy = metrics.Accuracy()
                metric = metrics.base.Metrics([accuracy, *(each() for each in more)]) if more else accuracy
                evaluate.progressive_val_score(stream, TextClassifier(), metric, delay=delay + 1)

            def ours(delay: int = delay) -> None:
                prequential(stream, TextClassifier(), delay=delay)

            race.compare(f"{corpus.name}: prequential, delay {delay}, beside {name} in River", ours, peer, len(stream))


def topics(race: Race) -> None:
    """Reuters-21578: the stories whose first topic is one of the ten largest."""
    records = read_records("reuters21578")
    if not records:
        return
    sizes = Counter(topic for record in records for topic in record["topics"])
    largest = [topic for topic, _ in sizes.most_common(10)]
    stories = [(record["text"], topic) for record in records for topic in record["topics"][:1] if topic in largest]
    corpus = Corpus("Reuters, 10 topics", *map(list, zip(*stories, strict=True)), "classes")
    for multi_class in ("crammer_singer", "ovr"):
        make = partial(plain, multi_class=multi_class)
        race.compare(
            f"{corpus.name}: {multi_class} beside River OneVsRest",
            lambda make=make: make().predict_learn_many(corpus.texts, corpus.labels),
            progressive(stories, of_one_and_the_rest),
            len(stories),
        )
        title = f"{multi_class} beside Vowpal Wabbit --oaa 10"
        beside_vowpal_wabbit(race, title, make, copies(corpus, 3), ["-b", "18"])


def average(race: Race) -> None:
    def learn(corpus: Corpus, average: bool | str) -> None:
        plain(average=average).learn_many(corpus.texts, corpus.labels)

    for corpus, average in product(repeated(), (True, "weighted")):
        title = f"{corpus.name}: average={average} beside plain Pegasos"
        race.compare(title, partial(learn, corpus, average), partial(learn, corpus, False), len(corpus.texts))


def matrix(race: Race) -> None:
    """A matrix of the shape of RCV1, 64 values a row, columns as unevenly used as words are."""
    n_rows, n_columns, n_values = 758_116, 47_236, 64
    rng = np.random.default_rng(0)
    columns = (n_columns * rng.random(n_rows * n_values, np.float32) ** 3).astype(np.int32)
    data = rng.random(n_rows * n_values) / 4.0
    X = sparse.csr_matrix((data, columns, np.arange(0, n_rows * n_values + 1, n_values)), (n_rows, n_columns))
    X.sum_duplicates()
    y = np.where(X @ rng.normal(size=n_columns) > 0.0, 1, -1)
    race.compare(
        "758,116 x 47,236 CSR: learn_many beside SGDClassifier.fit",
        lambda: PegasosClassifier().learn_many(X, y),
        lambda: SGDClassifier(loss="hinge", max_iter=1, tol=None, shuffle=False).fit(X, y),
        n_rows,
        "rows/s",
    )


def steps(race: Race) -> None:
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

    def learn(model: PegasosClassifier) -> None:
        for x, y in dicts:
            model.learn_one(x, y)

    young, old = after(10_000, 10_000), after(10_000_000, 1_000_000)
    race.row("features before the steps", f"{len(old.weights):,}", f"{len(young.weights):,}")
    learn(young), learn(old)  # the features of the dicts are known to both from here on
    title = "learn_one after 10,000,000 steps beside after 10,000"
    race.compare(title, partial(learn, old), partial(learn, young), len(dicts), "steps/s")


# --- memory and start -------------------------------------------------------------------------------------------------


def bytes_a_feature(model: Any) -> list[float]:
    """Bytes a distinct hashed feature of a model that grows to two million features, at each of a hundred sizes."""
    found = []
    for n in range(20_000, 2_000_001, 20_000):
        columns = np.arange(n - 20_000, n, dtype=np.int64) * 2_654_435_761 % 2**31
        model.learn_many(sparse.csr_matrix((np.ones(20_000), columns, [0, 20_000]), (1, 2**31)), [n % 40_000 == 0])
        if model.n_features:
            found.append(
                sys.getsizeof(getattr(model.trainer.learner, "weights", model.trainer.learner)) / model.n_features
            )
    return found


def memory(race: Race) -> None:
    """Bytes a distinct hashed feature, as a model grows to two million features."""
    for model in (PegasosClassifier(), AdaptiveClassifier()):
        found = bytes_a_feature(model)
        title = f"{type(model).__name__}: bytes a feature, on average, at most"
        race.row(title, f"{statistics.mean(found):.1f}, {max(found):.1f}")


def startup(race: Race) -> None:
    """Seconds of the clock until a process of its own has ended, after one that warms the caches."""
    program = ["-m", "stream_pegasos"]
    for title, command in {
        "import stream_pegasos": ["-c", "import stream_pegasos"],
        "stream-pegasos --help": [*program, "--help"],
        "stream-pegasos evaluate, sms_spam": [*program, "evaluate", str(DATA / "sms_spam.jsonl.gz")],
    }.items():
        run = partial(subprocess.run, [sys.executable, *command], check=True, capture_output=True)
        run()
        race.row(title, f"{median_seconds(run, race.runs):.3f} s")


PARTS = {
    part.__name__: part
    for part in (
        words, recipe, classes, labels, chinese, one, vectors, threads, wc, river, topics, matrix, average,
        steps, memory, startup,
    )
}  # fmt: skip


if __name__ == "__main__":
    main()
