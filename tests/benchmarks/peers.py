"""Other tools: how they answer each message of a corpus before they learn it."""

import logging
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from corpora import Corpus, Floats
from figures import held
from river import feature_extraction, linear_model, multiclass, naive_bayes
from scipy.special import expit
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.linear_model import SGDClassifier
from sklearn.multioutput import MultiOutputClassifier
from sklearn.naive_bayes import ComplementNB, MultinomialNB

from stream_pegasos import TextClassifier

WORDLLAMA = "wordllama"  # the package whose word vectors are taken
HAN = "\u3400-\u4dbf\u4e00-\u9fff"


class Answers(NamedTuple):
    """What a model said of the first messages, or of all, before it learned each, and how long that took."""

    labels: list[Any]  # `None` where nothing was known yet
    seconds: float
    probabilities: Floats | None = None  # a column for each label that the corpus has
    margins: Floats | None = None  # of two classes: above 0 where the positive one is predicted


def by_margin(margins: Floats, seconds: float, probabilities: Floats | None = None) -> Answers:
    return Answers((margins > 0.0).tolist(), seconds, probabilities, margins)


def is_installed(module: str, name: str) -> bool:
    """By importing it, so that no timing has to."""
    try:
        import_module(module)
    except ImportError:
        print(f"{name}: left out, it is not installed")
        return False
    return True


def has_vowpal_wabbit() -> bool:
    return is_installed("vowpalwabbit", "Vowpal Wabbit")


def has_word_vectors() -> bool:
    """Whether the package with them is installed, without importing it."""
    return find_spec(WORDLLAMA) is not None


def is_chinese(texts: Sequence[str]) -> bool:
    """Whether most of the texts have a Chinese character."""
    has_one = re.compile(f"[{HAN}]").search
    return sum(has_one(text) is not None for text in texts) > len(texts) / 2


@cache
def jieba() -> Callable[[str], list[str]]:
    """What cuts a text, with its dictionary read."""
    module = import_module("jieba")
    module.setLogLevel(logging.WARNING)
    module.initialize()
    return module.lcut


def words_by_jieba(text: str) -> list[str]:
    """The words and marks of a text."""
    return [word for word in jieba()(text.lower()) if not word.isspace()]


# --- Vowpal Wabbit ----------------------------------------------------------------------------------------------------

WORDS = r"\w\w+"
WORDS_AND_MARKS = r"\w+|[^\w\s|:]"  # but for the two marks that mean something to it
CHARACTERS = rf"[{HAN}]|[^\W{HAN}]+"  # Chinese by its characters, and the words of other scripts between them


def options_of(loss: str, ngram: int = 1, bits: int = 22) -> list[str]:
    return ["--loss_function", loss, *(["--ngram", str(ngram)] if ngram > 1 else []), "-b", str(bits)]


VOWPAL_WABBIT = {
    "hinge": options_of("hinge", bits=18),
    "logistic": options_of("logistic", bits=18),
    "hinge, --ngram 2": options_of("hinge", 2),
    "logistic, --ngram 2": options_of("logistic", 2),
}
VOWPAL_WABBIT_OF_CHINESE = {
    f"characters, {loss}, --ngram {n}": options_of(loss, n) for n in (2, 3) for loss in ("hinge", "logistic")
}
LOSSES = ("squared", "hinge", "logistic")
VOWPAL_WABBIT_OF_CLASSES = {loss: options_of(loss) for loss in LOSSES} | {
    f"{loss}, --ngram 2": options_of(loss, 2) for loss in LOSSES
}


def write_vowpal_wabbit(path: Path, texts: Iterable[str], labels: Iterable[int | str], tokens: str = WORDS) -> None:
    """Texts lower-cased and tokenised, so that none of Vowpal Wabbit's special characters is left in them.

    A text whose label is "" is predicted and not learned.
    """
    find_tokens = re.compile(tokens).findall
    with path.open("w", encoding="utf-8", errors="replace") as file:
        for text, label in zip(texts, labels, strict=True):
            file.write(f"{label} | {' '.join(find_tokens(text.lower()))}\n")


def run_vowpal_wabbit(path: Path, options: Iterable[str]) -> None:
    """One pass over a file, on the two threads that Vowpal Wabbit takes."""
    from vowpalwabbit import Workspace

    Workspace(arg_list=[*options, "--quiet", "--no_stdin", "-d", str(path)]).finish()


def late_vowpal_wabbit(corpus: Corpus, delay: int = 0) -> Floats:
    """Its margins by log loss and word pairs; each label is learned once `delay` more messages have been predicted."""
    lines: list[tuple[str, int | str]] = []
    for i, text in enumerate(corpus.texts):
        lines.append((text, ""))
        if i >= delay:
            lines.append((corpus.texts[i - delay], 1 if corpus.labels[i - delay] else -1))
    with tempfile.TemporaryDirectory() as folder:
        messages, raw = Path(folder) / "messages.vw", Path(folder) / "raw.txt"
        write_vowpal_wabbit(messages, *zip(*lines, strict=True))
        run_vowpal_wabbit(messages, [*VOWPAL_WABBIT["logistic, --ngram 2"], "-r", str(raw)])
        margins = np.loadtxt(raw, ndmin=1)
    return margins[[label == "" for _, label in lines]]


def for_vowpal_wabbit(corpus: Corpus) -> tuple[list[str], list[str]]:
    """Options and labels: two classes by one margin, more by --oaa, several labels a message by --multilabel_oaa."""
    if corpus.kind == "two classes":
        return [], ["1" if label else "-1" for label in corpus.labels]
    together = corpus.kind == "labels"
    option, first = ("--multilabel_oaa", 0) if together else ("--oaa", 1)
    numbers = {label: str(number) for number, label in enumerate(corpus.met, start=first)}
    spelled = [",".join(map(numbers.get, label if together else [label])) for label in corpus.labels]
    return [option, str(len(numbers))], spelled


def vowpal_wabbit(corpus: Corpus) -> Iterator[tuple[str, Answers]]:
    if not has_vowpal_wabbit():
        return
    known, of_two, together = corpus.met, corpus.kind == "two classes", corpus.kind == "labels"
    reduction, spelled = for_vowpal_wabbit(corpus)
    given = [(WORDS, VOWPAL_WABBIT if of_two else VOWPAL_WABBIT_OF_CLASSES)]
    if of_two and is_chinese(corpus.texts):
        given.append((CHARACTERS, VOWPAL_WABBIT_OF_CHINESE))
    with tempfile.TemporaryDirectory() as folder:
        messages, path = Path(folder) / "messages.vw", Path(folder) / "answers.txt"
        for tokens, (name, options) in ((tokens, model) for tokens, models in given for model in models.items()):
            write_vowpal_wabbit(messages, corpus.texts, spelled, tokens)
            # -p would cut margins of the hinge loss at ±1
            options = [*options, *reduction, "-r" if of_two else "-p", str(path)]
            start = time.perf_counter()
            run_vowpal_wabbit(messages, options)
            seconds, lines = time.perf_counter() - start, path.read_text(encoding="utf-8").splitlines()
            probabilities = None
            if of_two:
                margins = np.array(lines, float)
                if "logistic" in options:
                    probabilities = np.stack([expit(-margins), expit(margins)], axis=1)
                yield f"Vowpal Wabbit: {name}", by_margin(margins, seconds, probabilities)
                continue
            labels = [
                tuple(known[int(number) - (not together)] for number in re.findall(r"\d+", line)) for line in lines
            ]
            if not together and "logistic" in options:
                run_vowpal_wabbit(messages, [*options, "--probabilities"])
                lines = path.read_text(encoding="utf-8").splitlines()
                probabilities = np.array([re.findall(r"\d+:(\S+)", line) for line in lines], float)
            said = labels if together else [label for (label,) in labels]
            yield f"Vowpal Wabbit: {reduction[0]}, {name}", Answers(said, seconds, probabilities)


# --- River ------------------------------------------------------------------------------------------------------------


def one_by_one(
    model: Any, ask: Callable[[str], Any], texts: Sequence[str], labels: Sequence[Any], delay: int = 0
) -> list[Any]:
    """What is answered to each message; its label is learned once `delay` more of them have been predicted."""
    answers: list[Any] = []
    waiting: deque[tuple[str, Any]] = deque()
    for text, label in zip(texts, labels, strict=True):
        answers.append(ask(text))
        waiting.append((text, label))
        if len(waiting) > delay:
            model.learn_one(*waiting.popleft())
    return answers


def margins_of(model: Any, corpus: Corpus, delay: int = 0) -> Floats:
    """The margins of a model by River's protocol."""
    return log_odds(of_both(one_by_one(model, model.predict_proba_one, corpus.texts, corpus.labels, delay)))


def of_both(answers: Iterable[dict[bool, float]]) -> Floats:
    """The probabilities of both classes, a row an answer."""
    return np.array([[known.get(label, 0.0) if known else 0.5 for label in (False, True)] for known in answers])


def log_odds(probabilities: Floats) -> Floats:
    """Margins that still differ where probabilities of the positive class have been rounded to 1."""
    negative, positive = np.log(np.maximum(probabilities, sys.float_info.min)).T
    return positive - negative


def bag(classifier: Any, **words: Any) -> Any:
    return feature_extraction.BagOfWords(**words) | classifier


def of_one_and_the_rest() -> Any:
    return bag(multiclass.OneVsRestClassifier(linear_model.LogisticRegression()))


def tokenizers(texts: list[str]) -> dict[str, Callable[[str], list[str]] | None]:
    """How River's and scikit-learn's models find words, by what their names say of it: as they do, or by jieba."""
    chinese = is_chinese(texts) and is_installed("jieba", "jieba")
    return {"": None, ", words by jieba": words_by_jieba} if chinese else {"": None}


def models_of_river(corpus: Corpus) -> dict[str, Any]:
    if corpus.kind == "labels":
        return {}
    if corpus.kind != "two classes":
        return {
            "OneVsRestClassifier(TextClassifier())": multiclass.OneVsRestClassifier(TextClassifier()),
            "OneVsRestClassifier(LogisticRegression())": of_one_and_the_rest(),
            "MultinomialNB": bag(naive_bayes.MultinomialNB()),
        }
    makes = linear_model.LogisticRegression, linear_model.PAClassifier, naive_bayes.MultinomialNB
    words = tokenizers(corpus.texts).items()
    return {f"{make.__name__}{by}": bag(make(), tokenizer=cut) for make, (by, cut) in product(makes, words)}


def river(corpus: Corpus) -> Iterator[tuple[str, Answers]]:
    for name, model in models_of_river(corpus).items():
        start = time.perf_counter()
        answers = one_by_one(model, model.predict_proba_one, corpus.texts, corpus.labels)
        seconds = time.perf_counter() - start
        if corpus.kind == "two classes":
            probabilities = of_both(answers)
            yield f"River: {name}", by_margin(log_odds(probabilities), seconds, probabilities)
        else:
            probabilities = np.array([[answer.get(label, 0.0) for label in corpus.met] for answer in answers])
            predicted = [max(answer, key=answer.get) if answer else None for answer in answers]
            yield f"River: {name}", Answers(predicted, seconds, probabilities)


# --- scikit-learn -----------------------------------------------------------------------------------------------------

BATCH = 100  # the messages that its models predict, and then learn, at a time
SGD: dict[str, Callable[[], Any]] = {
    "SGDClassifier, hinge": partial(SGDClassifier, random_state=0),
    "SGDClassifier, log_loss": partial(SGDClassifier, loss="log_loss", random_state=0),
}
SCIKIT_LEARN: dict[str, Callable[[], Any]] = SGD | {
    "SGDClassifier, passive-aggressive": partial(
        SGDClassifier, penalty=None, learning_rate="pa1", eta0=1.0, random_state=0
    ),
    "MultinomialNB": MultinomialNB,
    "ComplementNB": ComplementNB,
}


def scikit_learn(corpus: Corpus) -> Iterator[tuple[str, Answers]]:
    """Of several classes its models have a dense row each, so that they get fewer features."""
    known, of_two, together = corpus.met, corpus.kind == "two classes", corpus.kind == "labels"
    y = held(corpus.labels, known) if together else np.array([known.index(label) for label in corpus.labels])
    classes = [np.array([False, True])] * len(known) if together else np.arange(len(known))
    words = tokenizers(corpus.texts) if of_two else {"": None}
    for (name, make), (by, tokenizer) in product((SCIKIT_LEARN if of_two else SGD).items(), words.items()):
        model = MultiOutputClassifier(make()) if together else make()
        as_counts: dict[str, Any] = {"alternate_sign": False, "norm": None} if "NB" in name else {}
        n_features = 2**20 if of_two else 2**18
        vectorizer = HashingVectorizer(analyzer=tokenizer or "word", n_features=n_features, **as_counts)
        given = not together and hasattr(model, "predict_proba")
        ask = "predict_proba" if given else "decision_function" if of_two else "predict"
        first = np.full(len(known), 1.0 / len(known)) if given else np.zeros_like(y[0])
        start = time.perf_counter()
        answers = in_batches(model, vectorizer, corpus.texts, y, classes, ask, first)
        seconds = time.perf_counter() - start
        if of_two:
            found = by_margin(log_odds(answers), seconds, answers) if given else by_margin(answers, seconds)
        elif together:
            found = Answers([tuple(known[place] for place in np.flatnonzero(row)) for row in answers], seconds)
        elif given:
            found = Answers([known[place] for place in answers.argmax(axis=1)], seconds, answers)
        else:
            found = Answers([known[place] for place in answers], seconds)
        yield f"scikit-learn: {name}{by}", found


def in_batches(
    model: Any, vectorizer: Any, texts: list[str], y: np.ndarray, classes: Any, ask: str, first: Any
) -> np.ndarray:
    """What is answered to each message, which is `first` in the first batch."""
    answers = []
    for begin in range(0, len(texts), BATCH):
        X = vectorizer.transform(texts[begin : begin + BATCH])
        answers.append(getattr(model, ask)(X) if begin else np.array([first] * X.shape[0]))
        model.partial_fit(X, y[begin : begin + BATCH], classes=classes)
    return np.concatenate(answers)


# --- bogofilter -------------------------------------------------------------------------------------------------------

NO_WORD_KNOWN = 0.52  # its score of a message that gives it no evidence


def bogofilter(corpus: Corpus) -> Iterator[tuple[str, Answers]]:
    """Positive above a score of 0.5, but for messages in which it knows no word; a text is a body without headers."""
    if corpus.kind != "two classes":
        return
    if shutil.which("bogofilter") is None:
        print("bogofilter: left out, it is not installed")
        return
    scores = np.full(len(corpus.texts), NO_WORD_KNOWN)
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        for i, (text, label) in enumerate(zip(corpus.texts, corpus.labels, strict=True)):
            message = b"\n" + text.encode(errors="replace")
            if i > 0:  # without a list of words it refuses
                scores[i] = float(run_bogofilter(folder, "-TT", given=message))
            run_bogofilter(folder, "-s" if label else "-n", given=message)
    yield (
        "bogofilter",
        by_margin(margins_of_bogofilter(scores), time.perf_counter() - start, np.stack([1.0 - scores, scores], axis=1)),
    )


def run_bogofilter(folder: str, *options: str, given: bytes) -> bytes:
    """It exits with 0, 1 or 2 for spam, ham and unsure, and with 3 for an error."""
    done = subprocess.run(["bogofilter", "-C", "-d", folder, *options], input=given, capture_output=True)
    if done.returncode == 3:
        raise OSError(f"bogofilter: {done.stderr.decode().strip()}")
    return done.stdout


def margins_of_bogofilter(scores: Floats) -> Floats:
    return np.where(scores == NO_WORD_KNOWN, 0.0, scores - 0.5)
