"""Whole mails: how well spam is told from ham by each part of a mail, how soon, and how fast.

Every mail is predicted before it is learned, in the order in which the mails came, in the reverse order and shuffled.
A collection of mails gives much away that no other mailbox has: the lists that its owner read, his servers, the days
of its ham and of its spam. So the parts are also left out one by one, and what was learned from one half of the mailing
lists predicts the other half, beside spam that was not learned either.

How soon a new model is of use, beside bogofilter: some mails are learned, all others predicted.

    python tests/benchmarks/mail.py [--orders N]
"""

import re
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from corpora import Corpus, Floats, of_two_classes
from figures import figures_of, share_right
from peers import NO_WORD_KNOWN, WORDLLAMA, has_word_vectors, margins_of_bogofilter, run_bogofilter
from report import Table, arguments_of
from sklearn.metrics import roc_curve
from timing import in_turn

from stream_pegasos import MailFeatures, TextClassifier, TextFeatures
from stream_pegasos.features.base import Features, FeatureUnion
from stream_pegasos.mail_text.parts import mail_parts

TEXTS = "raw", "subject", "text", "headers", "route", "source"
DEFAULT = "subject", "text", "headers", "tokens"
SITES = "from:", "link:", "href:", "img:"  # kinds of tokens that may name somebody's host
# Fields that servers and lists add on the way.
ADDED = re.compile(
    rb"^(?:received|delivered-to|return-path|sender|errors-to|precedence|list-[\w-]+|resent-[\w-]+|x-beenthere|x-loop|"
    rb"x-mailman-version|x-mailing-list|mailing-list|x-original-date|in-reply-to|references)[ \t]*:.*\n(?:[ \t].*\n)*",
    re.IGNORECASE | re.MULTILINE,
)
LIST_NAME = re.compile(rb"^(?:list-id|x-mailing-list|mailing-list):\s*(.*(?:\n[ \t].*)*)", re.IGNORECASE | re.MULTILINE)
LIST_TAG = re.compile(r"\[[^\]]{1,25}\]\s*")
FIRST = 50, 100, 200  # mails that are learned before others are predicted
MOST_FALSE_POSITIVES = 0.01

Message = dict[str, str]


def main() -> None:
    arguments = arguments_of(__doc__, orders=5)
    for corpus in of_two_classes("mail_raw"):
        print_tables([text.encode("latin-1") for text in corpus.texts], corpus.labels, arguments.orders)


def print_tables(mails: list[bytes], is_spam: list[bool], n_orders: int) -> None:
    messages = [*map(message_of, mails)]
    print_parts(mails, messages, is_spam, n_orders)
    print_half_of_lists(mails, messages, is_spam)
    print_cold_start(mails, is_spam, n_orders)
    works: dict[str, Callable[[], object]] = {
        "taken apart": lambda: [*map(mail_parts, mails)],
        "taken apart, predicted and learned": lambda: TextClassifier(MailFeatures()).predict_learn_many(mails, is_spam),
        "the same, taken apart by two processes": lambda: in_processes(mails, is_spam),
    }
    print()
    for name, seconds in in_turn(works, 5).items():
        print(f"mails/s {name}: {len(mails) / seconds:,.0f}")


def message_of(mail: bytes) -> Message:
    parts = mail_parts(mail)
    return {
        "raw": mail.decode("latin-1"),
        **{name: getattr(parts, name) for name in TEXTS[1:]},
        "tokens": "\n".join(parts.tokens),
    }


def lines_of(text: str) -> list[str]:
    return text.split("\n")


def without_lists(mail: bytes) -> Message:
    """The same without the fields that lists and servers add, and without the list's tag in the subject."""
    head, blank, body = mail.partition(b"\n\n")
    message = message_of(ADDED.sub(b"", head + b"\n").rstrip(b"\n") + blank + body)
    return {**message, "subject": LIST_TAG.sub("", message["subject"])}


def features_of(*parts: str) -> Features:
    """Those of `MailFeatures` that read these parts, which are fields of a message."""
    features = [features_of_part(part) for part in parts]
    return FeatureUnion(features) if len(features) > 1 else features[0]


def features_of_part(part: str) -> Features:
    if part == "tokens":
        as_they_are = {"lowercase": False, "mask_digits": False, "ngram_range": (1, 1), "prefix_length": 0}
        return TextFeatures(on=part, tokenizer=lines_of, boundaries=False, **as_they_are)
    if part == "route":  # the headers have its words, too, without names of hosts
        return TextFeatures(on=part, namespace="headers", ngram_range=(1, 3))
    if part == "source":
        return TextFeatures(on=part, analyzer="char", ngram_range=(5, 5))
    return TextFeatures(on=part)


def without_kinds(messages: list[Message], kinds: tuple[str, ...]) -> list[Message]:
    return [
        {
            **message,
            "tokens": "\n".join(token for token in lines_of(message["tokens"]) if not token.startswith(kinds)),
        }
        for message in messages
    ]


def figures(said: Any, is_spam: list[bool]) -> list[float]:
    """Of predictions: those of two classes, with 1,000 times the log loss."""
    column = said.probabilities[:, [*said.classes].index(True)]
    spam = np.where(column > 0.0, column, 0.5)  # where only one label was known
    given = np.stack([1.0 - spam, spam], axis=1)
    accuracy, error, loss, calibration = figures_of(Corpus("", [], is_spam), said.labels, given, said.scores)
    return [accuracy, error, 1000 * loss, calibration]  # type: ignore[list-item, operator]


Row = tuple[str, Features, Sequence[Any]]


def in_steps(mails: list[bytes], messages: list[Message]) -> list[Row]:
    """From the raw mail as one text to all that is read of it."""
    return [
        ("the raw mail as one text", features_of("raw"), messages),
        ("subject and text", features_of("subject", "text"), messages),
        ("MailFeatures(route=False)", MailFeatures(route=False), mails),
        ("... and the route", features_of(*DEFAULT, "route"), messages),
        ("MailFeatures(): ... and the source", MailFeatures(), mails),
    ]


def without(part: str, messages: list[Message]) -> Row:
    return f"route=False, without {part}", features_of(*(name for name in DEFAULT if name != part)), messages


def print_parts(mails: list[bytes], messages: list[Message], is_spam: list[bool], n_orders: int) -> None:
    bare, numbers = [*map(without_lists, mails)], np.arange(len(mails))
    orders = [numbers, numbers[::-1], *(np.random.default_rng(i).permutation(numbers) for i in range(n_orders))]
    head = ["accuracy", "100 (1 - AUC)", "1,000 · log loss", "calibration error"]
    table = Table("Mails in their order / reversed / shuffled", *head)
    vectors = [("MailFeatures(vectors=...)", MailFeatures(vectors=WORDLLAMA), mails)] if has_word_vectors() else []
    rows: list[Row] = [
        *in_steps(mails, messages),
        *vectors,
        *(without(part, messages) for part in ("headers", "tokens", "text")),
        ("route=False, without names of hosts", features_of(*DEFAULT), without_kinds(messages, SITES)),
        ("route=False, without marks of lists", features_of(*DEFAULT), without_kinds(messages, ("list:", "twice:"))),
        ("route=False, without marks of the first hop", features_of(*DEFAULT), without_kinds(messages, ("first:",))),
        ("mails without fields of lists and servers: subject and text", features_of("subject", "text"), bare),
        ("... and headers, tokens", features_of(*DEFAULT), bare),
    ]
    for name, features, given in rows:
        found = []
        for order in orders:
            corpus = Corpus(name, given, is_spam).rows(order)
            found.append(
                figures(TextClassifier(features).predict_learn_many(corpus.texts, corpus.labels), corpus.labels)
            )
        columns = np.array([*found[:2], np.mean(found[2:], axis=0)] if n_orders else found).T
        digits = zip(columns, (4, 3, 1, 4), strict=True)
        table.row(name, *(" / ".join(f"{value:.{places}f}" for value in column) for column, places in digits))


def print_half_of_lists(mails: list[bytes], messages: list[Message], is_spam: list[bool]) -> None:
    """Learn half of the lists, by turns in the order of their size, and half of the spam; predict the others."""
    names = [found[1].strip().lower() if (found := LIST_NAME.search(mail)) else b"" for mail in mails]
    sizes = Counter(name for name, spam in zip(names, is_spam, strict=True) if name and not spam)
    place = {name: i for i, (name, _) in enumerate(sizes.most_common())}
    turns = np.cumsum(is_spam)
    half = np.array([
        turns[i] % 2 if is_spam[i] else place[names[i]] % 4 in (1, 2) if names[i] in place else -1
        for i in range(len(mails))
    ])  # fmt: skip
    table = Table("Half of the lists predicts the other", "accuracy", "100 (1 - AUC)", "1,000 · log loss")
    rows: list[Row] = [
        *in_steps(mails, messages),
        *(without(part, messages) for part in ("headers", "tokens")),
        ("the route alone", features_of("route"), messages),
        ("the source alone", features_of("source"), messages),
    ]
    for name, features, given in rows:
        both = []
        for number in (0, 1):
            corpus, model = Corpus("", given, is_spam), TextClassifier(features)
            rest = corpus.rows(np.flatnonzero(half == 1 - number))
            learned = corpus.rows(np.random.default_rng(0).permutation(np.flatnonzero(half == number)))
            model.learn_many(learned.texts, learned.labels)
            both.append(figures(model.predictions(rest.texts), rest.labels))
        accuracy, error, loss, _ = np.mean(both, axis=0)
        table.row(name, f"{accuracy:.4f}", f"{error:.3f}", f"{loss:.1f}")


def print_cold_start(mails: list[bytes], is_spam: list[bool], n_orders: int) -> None:
    """In shuffled orders: what is right of the first mails, each before it is learned; and of all others, once those
    are learned, what is right and how much spam is caught where one ham in a hundred is called spam.
    """
    corpus = Corpus("", mails, is_spam)
    orders = [np.random.default_rng(i).permutation(len(mails)) for i in range(n_orders)]
    models = {"MailFeatures()": ours, **({"bogofilter": bogofilter} if shutil.which("bogofilter") else {})}
    for n in FIRST:
        table = Table(f"The first {n} mails", "right of these", "right of the others", "spam caught of the others")
        for name, model in models.items():
            found = []
            for order in orders:
                first, rest = corpus.rows(order[:n]), corpus.rows(order[n:])
                of_first, of_rest = model(first, rest)
                false, caught, _ = roc_curve(rest.labels, of_rest)
                right = (
                    share_right(margins > 0.0, each.labels) for margins, each in ((of_first, first), (of_rest, rest))
                )
                found.append([*right, caught[false <= MOST_FALSE_POSITIVES].max()])
            table.row(name, *(f"{value:.4f}" for value in np.mean(found, axis=0)))


def ours(first: Corpus, rest: Corpus) -> tuple[Floats, Floats]:
    """The margins of the first mails, each before it is learned, and then those of the rest."""
    model = TextClassifier(MailFeatures())
    of_first = model.predict_learn_many(first.texts, first.labels)
    return of_first.scores, model.predictions(rest.texts).scores


def bogofilter(first: Corpus, rest: Corpus) -> tuple[Floats, Floats]:
    """The same of bogofilter, which is asked about files whose names it reads."""
    with tempfile.TemporaryDirectory() as folder:
        names = [f"{folder}/{i}" for i in range(len(first.texts) + len(rest.texts))]
        for name, mail in zip(names, [*first.texts, *rest.texts], strict=True):
            Path(name).write_bytes(mail)

        def scores(asked: list[str]) -> list[float]:
            lines = run_bogofilter(folder, "-TT", "-b", given="\n".join(asked).encode()).splitlines()
            return [float(line.split()[1]) for line in lines]

        found = [NO_WORD_KNOWN]
        for i, (name, is_spam) in enumerate(zip(names, first.labels, strict=False)):
            if i:  # without a list of words it refuses
                found += scores([name])
            run_bogofilter(folder, "-s" if is_spam else "-n", "-b", given=name.encode())
        margins = margins_of_bogofilter(np.array([*found, *scores(names[len(found) :])]))
    return margins[: len(first.texts)], margins[len(first.texts) :]


def in_processes(mails: list[bytes], labels: list[bool]) -> None:
    with ProcessPoolExecutor(2) as pool:
        TextClassifier(MailFeatures()).learn_many(pool.map(mail_parts, mails, chunksize=50), labels)


if __name__ == "__main__":
    main()
