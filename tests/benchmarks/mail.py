"""Whole mails: how well spam is told from ham by each part of a mail, and how fast.

Every mail is predicted before it is learned, in the order in which the mails came, in the reverse order and shuffled.
A collection of mails gives much away that no other mailbox has: the lists that its owner read, his servers, the days
of its ham and of its spam. So the parts are also left out one by one, and what was learned from one half of the mailing
lists predicts the other half, beside spam that was not learned either.

    python tests/benchmarks/mail.py [--orders N]
"""

import re
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from corpora import Corpus, of_two_classes
from figures import expected_calibration_error, ranking_error, share_right
from peers import WORDLLAMA, has_word_vectors
from report import Table, arguments_of
from sklearn.metrics import log_loss
from timing import in_turn

from stream_pegasos import MailFeatures, TextClassifier, TextFeatures
from stream_pegasos.features.base import Features, FeatureUnion
from stream_pegasos.features.mail_parts import mail_parts

TEXTS = "raw", "subject", "text", "headers", "route"
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

Message = dict[str, str]


def main() -> None:
    arguments = arguments_of(__doc__, orders=3)
    for corpus in of_two_classes("mail_raw"):
        print_tables([text.encode("latin-1") for text in corpus.texts], corpus.labels, arguments.orders)


def print_tables(mails: list[bytes], is_spam: list[bool], n_orders: int) -> None:
    print_parts(mails, is_spam, n_orders)
    print_half_of_lists(mails, is_spam)
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


def model_of(parts: Sequence[str]) -> TextClassifier:
    features = [features_of(part) for part in parts]
    return TextClassifier(FeatureUnion(features) if len(features) > 1 else features[0])


def features_of(part: str) -> Features:
    if part == "tokens":
        as_they_are = {"lowercase": False, "mask_digits": False, "ngram_range": (1, 1), "prefix_length": 0}
        return TextFeatures(on=part, tokenizer=lines_of, boundaries=False, **as_they_are)
    if part == "route":  # the headers have its words, too, without names of hosts
        return TextFeatures(on=part, namespace="headers", ngram_range=(1, 3))
    return TextFeatures(on=part)


def without_kinds(messages: list[Message], kinds: tuple[str, ...]) -> list[Message]:
    return [
        {**message, "tokens": "\n".join(token for token in lines_of(message["tokens"]) if not token.startswith(kinds))}
        for message in messages
    ]


def figures(said: Any, is_spam: list[bool]) -> list[float]:
    """Of predictions; the probability of spam is 1/2 as long as only one label is known."""
    column = said.probabilities[:, [*said.classes].index(True)]
    probabilities = np.where(column > 0.0, column, 0.5)
    loss = 1000 * log_loss(is_spam, probabilities)
    error = expected_calibration_error(probabilities, is_spam)
    return [share_right(said.labels, is_spam), ranking_error(is_spam, probabilities), loss, error]


def print_parts(mails: list[bytes], is_spam: list[bool], n_orders: int) -> None:
    messages, bare, numbers = [*map(message_of, mails)], [*map(without_lists, mails)], np.arange(len(mails))
    orders = [numbers, numbers[::-1], *(np.random.default_rng(i).permutation(numbers) for i in range(n_orders))]
    head = ["accuracy", "100 (1 - AUC)", "1,000 · log loss", "calibration error"]
    table = Table("Mails in their order / reversed / shuffled", *head)
    vectors = [("MailFeatures(vectors=...)", MailFeatures(vectors=WORDLLAMA), mails)] if has_word_vectors() else []
    rows: list[tuple[str, Sequence[str] | MailFeatures, Sequence[Any]]] = [
        ("the raw mail as one text", ("raw",), messages),
        ("subject and text", ("subject", "text"), messages),
        ("subject, text, headers, tokens", DEFAULT, messages),
        ("MailFeatures(): ... and the route", MailFeatures(), mails),
        *vectors,
        ("... without headers", ("subject", "text", "tokens"), messages),
        ("... without tokens", ("subject", "text", "headers"), messages),
        ("... without text", ("subject", "headers", "tokens"), messages),
        ("... without names of hosts", DEFAULT, without_kinds(messages, SITES)),
        ("... without marks of lists", DEFAULT, without_kinds(messages, ("list:", "twice:"))),
        ("... without marks of the first hop", DEFAULT, without_kinds(messages, ("first:",))),
        ("mails without fields of lists and servers: subject and text", ("subject", "text"), bare),
        ("... and headers, tokens", DEFAULT, bare),
    ]
    for name, parts, given in rows:
        found = []
        for order in orders:
            corpus = Corpus(name, given, is_spam).rows(order)
            model = TextClassifier(parts) if isinstance(parts, MailFeatures) else model_of(parts)
            found.append(figures(model.predict_learn_many(corpus.texts, corpus.labels), corpus.labels))
        columns = np.array([*found[:2], np.mean(found[2:], axis=0)] if n_orders else found).T
        digits = zip(columns, (4, 3, 1, 4), strict=True)
        table.row(name, *(" / ".join(f"{value:.{places}f}" for value in column) for column, places in digits))


def print_half_of_lists(mails: list[bytes], is_spam: list[bool]) -> None:
    """Learn half of the lists, by turns in the order of their size, and half of the spam; predict the others."""
    names = [found[1].strip().lower() if (found := LIST_NAME.search(mail)) else b"" for mail in mails]
    sizes = Counter(name for name, spam in zip(names, is_spam, strict=True) if name and not spam)
    place = {name: i for i, (name, _) in enumerate(sizes.most_common())}
    turns = np.cumsum(is_spam)
    half = np.array([
        turns[i] % 2 if is_spam[i] else place[names[i]] % 4 in (1, 2) if names[i] in place else -1
        for i in range(len(mails))
    ])  # fmt: skip
    corpus = Corpus("", [*map(message_of, mails)], is_spam)
    table = Table("Half of the lists predicts the other", "accuracy", "100 (1 - AUC)", "1,000 · log loss")
    for name, parts in [
        ("the raw mail as one text", ("raw",)),
        ("subject and text", ("subject", "text")),
        ("subject, text, headers, tokens", DEFAULT),
        ("... and the route", (*DEFAULT, "route")),
        ("... without headers", ("subject", "text", "tokens")),
        ("... without tokens", ("subject", "text", "headers")),
        ("the route alone", ("route",)),
    ]:
        both = []
        for number in (0, 1):
            model, rest = model_of(parts), corpus.rows(np.flatnonzero(half == 1 - number))
            learned = corpus.rows(np.random.default_rng(0).permutation(np.flatnonzero(half == number)))
            model.learn_many(learned.texts, learned.labels)
            both.append(figures(model.predictions(rest.texts), rest.labels))
        accuracy, error, loss, _ = np.mean(both, axis=0)
        table.row(name, f"{accuracy:.4f}", f"{error:.3f}", f"{loss:.1f}")


def in_processes(mails: list[bytes], labels: list[bool]) -> None:
    with ProcessPoolExecutor(2) as pool:
        TextClassifier(MailFeatures()).learn_many(pool.map(mail_parts, mails, chunksize=50), labels)


if __name__ == "__main__":
    main()
