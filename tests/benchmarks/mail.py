"""Whole mails: how well spam is told from ham by each part of a mail, and how fast.

Every mail is predicted before it is learned, in the order in which the mails came, in the reverse order and shuffled.
A collection of mails gives much away that no other mailbox has: the lists that its owner read, his servers, the days
of its ham and of its spam. So the parts are also left out one by one, and what was learned from one half of the mailing
lists predicts the other half, beside spam that was not learned either.

    python tests/benchmarks/mail.py [--orders N] [--markdown]
"""

from __future__ import annotations

import argparse
import re
import statistics
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray
from peers import WORDLLAMA, expected_calibration_error, has_word_vectors, print_head, print_row, read_records
from sklearn.metrics import log_loss, roc_auc_score

from stream_pegasos import MailFeatures, TextClassifier, TextFeatures
from stream_pegasos.features.base import Features, FeatureUnion
from stream_pegasos.features.mail_parts import MailParts, mail_parts

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

ROUNDS = 5

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Message = dict[str, str]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--orders", type=int, default=3, help="how many shuffled orders")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    arguments = parser.parse_args()
    if not (records := read_records("mail_raw")):
        return
    mails = [record["raw"].encode("latin-1") for record in records]
    is_spam = np.array([record["label"] == "spam" for record in records])
    messages = [message_of(mail) for mail in mails]
    accuracy([*map(mail_parts, mails)], messages, [without_lists(mail) for mail in mails], is_spam, arguments)
    half_of_lists(mails, messages, is_spam, arguments.markdown)
    speed(mails, is_spam)


def message_of(mail: bytes) -> Message:
    parts = mail_parts(mail)
    return {
        "raw": mail.decode("latin-1"),
        **{name: getattr(parts, name) for name in TEXTS[1:]},
        "tokens": joined(parts),
    }


def joined(parts: MailParts) -> str:
    return "\n".join(parts.tokens)


def lines_of(text: str) -> list[str]:
    return text.split("\n")


def without_lists(mail: bytes) -> Message:
    """The same without the fields that lists and servers add, and without the list's tag in the subject."""
    head, blank, body = mail.partition(b"\n\n")
    message = message_of(ADDED.sub(b"", head + b"\n").rstrip(b"\n") + blank + body)
    return {**message, "subject": LIST_TAG.sub("", message["subject"])}


def model_of(names: Sequence[str]) -> TextClassifier:
    parts = [features_of(name) for name in names]
    return TextClassifier(FeatureUnion(parts) if len(parts) > 1 else parts[0])


def features_of(name: str) -> Features:
    if name == "tokens":
        return TextFeatures(
            on=name,
            tokenizer=lines_of,
            lowercase=False,
            mask_digits=False,
            ngram_range=(1, 1),
            prefix_length=0,
            boundaries=False,
        )
    if name == "route":  # the headers have its words, too, without names of hosts
        return TextFeatures(on=name, namespace="headers", ngram_range=(1, 3))
    return TextFeatures(on=name)


def without_kinds(messages: list[Message], kinds: tuple[str, ...]) -> list[Message]:
    return [
        {**message, "tokens": "\n".join(token for token in lines_of(message["tokens"]) if not token.startswith(kinds))}
        for message in messages
    ]


def of_spam(predictions: Any) -> Floats:
    """The probability of spam; 1/2 as long as only one label is known."""
    column = predictions.probabilities[:, predictions.classes.index("spam")]
    return np.where(column > 0.0, column, 0.5)


def labels_of(is_spam: Bools) -> list[str]:
    return ["spam" if each else "ham" for each in is_spam]


def figures(probabilities: Floats, predicted: Sequence[Any], is_spam: Bools) -> list[float]:
    right = np.mean([one == other for one, other in zip(predicted, labels_of(is_spam), strict=True)])
    return [
        float(right),
        100 * (1 - roc_auc_score(is_spam, probabilities)),
        1000 * log_loss(is_spam, probabilities),
        expected_calibration_error(probabilities, is_spam),
    ]


def prequential(model: TextClassifier, messages: Sequence[Any], is_spam: Bools) -> list[float]:
    found = model.predict_learn_many(messages, labels_of(is_spam))
    return figures(of_spam(found), found.labels, is_spam)


def accuracy(
    parts: list[MailParts],
    messages: list[Message],
    bare: list[Message],
    is_spam: Bools,
    arguments: argparse.Namespace,
) -> None:
    numbers = np.arange(len(messages))
    orders = [numbers, numbers[::-1], *(np.random.default_rng(i).permutation(numbers) for i in range(arguments.orders))]
    head = ["accuracy", "100(1-AUC)", "log loss · 1000", "calibration error"]
    print_head(["Mails in their order / reversed / shuffled", *head], arguments.markdown, 30)
    variants: list[tuple[str, Sequence[str] | MailFeatures, Sequence[Any]]] = [
        ("the raw mail as one text", ("raw",), messages),
        ("subject and text", ("subject", "text"), messages),
        ("subject, text, headers, tokens", DEFAULT, messages),
        ("MailFeatures(): ... and the route", MailFeatures(), parts),
        *([("MailFeatures(vectors=...)", MailFeatures(vectors=WORDLLAMA), parts)] if has_word_vectors() else []),
        ("... without headers", ("subject", "text", "tokens"), messages),
        ("... without tokens", ("subject", "text", "headers"), messages),
        ("... without text", ("subject", "headers", "tokens"), messages),
        ("... without names of hosts", DEFAULT, without_kinds(messages, SITES)),
        ("... without marks of lists", DEFAULT, without_kinds(messages, ("list:", "twice:"))),
        ("... without marks of the first hop", DEFAULT, without_kinds(messages, ("first:",))),
        ("mails without fields of lists and servers: subject and text", ("subject", "text"), bare),
        ("... and headers, tokens", DEFAULT, bare),
    ]
    for name, features, given in variants:
        rows = []
        for order in orders:
            model = TextClassifier(features) if isinstance(features, MailFeatures) else model_of(features)
            rows.append(prequential(model, [given[i] for i in order], is_spam[order]))
        columns = np.array([*rows[:2], np.mean(rows[2:], axis=0)] if arguments.orders else rows).T
        cells = [
            " / ".join(f"{value:.{digits}f}" for value in c) for c, digits in zip(columns, (4, 3, 1, 4), strict=True)
        ]
        print_row([name, *cells], arguments.markdown, 30)


def half_of_lists(mails: list[bytes], messages: list[Message], is_spam: Bools, markdown: bool) -> None:
    """Learn half of the lists, by turns in the order of their size, and half of the spam; predict the others."""
    names = [found[1].strip().lower() if (found := LIST_NAME.search(mail)) else b"" for mail in mails]
    sizes = Counter(name for name, spam in zip(names, is_spam, strict=True) if name and not spam)
    place = {name: i for i, (name, _) in enumerate(sizes.most_common())}
    turns = np.cumsum(is_spam)
    half = np.array([
        turns[i] % 2 if is_spam[i] else place[names[i]] % 4 in (1, 2) if names[i] in place else -1
        for i in range(len(mails))
    ])  # fmt: skip
    print_head(["Half of the lists predicts the other", "accuracy", "100(1-AUC)", "log loss · 1000"], markdown)
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
        for learned in (0, 1):
            model = model_of(parts)
            known, rest = np.flatnonzero(half == learned), np.flatnonzero(half == 1 - learned)
            known = np.random.default_rng(0).permutation(known)
            model.learn_many([messages[i] for i in known], labels_of(is_spam[known]))
            given = [messages[i] for i in rest]
            probabilities = np.asarray(model.predict_proba_many(given))[:, list(model.classes).index("spam")]
            both.append(figures(probabilities, model.predict_many(given), is_spam[rest]))
        row = np.mean(both, axis=0)
        print_row([name, f"{row[0]:.4f}", f"{row[1]:.3f}", f"{row[2]:.1f}"], markdown)


def speed(mails: list[bytes], is_spam: Bools) -> None:
    """The medians of rounds in alternation."""
    labels = labels_of(is_spam)
    seconds: dict[str, list[float]] = {}
    for _ in range(ROUNDS):
        for name, run in {
            "taken apart": lambda: [*map(mail_parts, mails)],
            "taken apart, predicted and learned": lambda: model_of_mails().predict_learn_many(mails, labels),
            "the same, taken apart by two processes": lambda: in_processes(mails, labels),
        }.items():
            start = time.perf_counter()
            run()
            seconds.setdefault(name, []).append(time.perf_counter() - start)
    for name, found in seconds.items():
        print(f"mails/s {name}: {len(mails) / statistics.median(found):,.0f}")


def model_of_mails() -> TextClassifier:
    return TextClassifier(MailFeatures())


def in_processes(mails: list[bytes], labels: list[str]) -> None:
    with ProcessPoolExecutor(2) as pool:
        model_of_mails().learn_many(pool.map(mail_parts, mails, chunksize=50), labels)


if __name__ == "__main__":
    main()
