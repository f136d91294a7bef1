"""Disguised spam: how much of it is missed when its twenty heaviest words are spelled in another way.

A model learns half of a stream. Of each spam in the other half, the twenty words that say most for spam, by a model of
words alone, are respelled in its source, outside tags and addresses; then it is predicted. The table has the shares of
that spam that are called ham, and of ham, which is not disguised, that is called spam. Messages of sms_spam become
mails without headers, so all depends on words.

    python tests/benchmarks/disguise.py [--orders N]
"""

import random
import re
from collections.abc import Callable

import numpy as np
from corpora import Corpus, of_two_classes
from report import Table, arguments_of

from stream_pegasos import MailFeatures, TextClassifier
from stream_pegasos.features.base import Features
from stream_pegasos.mail_text.parts import mail_parts

N_WORDS = 20
OF_DIGITS = {"a": "4@", "e": "3", "i": "1!", "l": "1", "o": "0", "s": "5$", "t": "7"}
CYRILLIC = dict(zip("aceijopsxy", "\u0430\u0441\u0435\u0456\u0458\u043e\u0440\u0455\u0445\u0443", strict=True))
WORD = re.compile(r"[a-z]{2,}")
# A tag, an entity or an address, or else a word.
PLACES = re.compile(r"<[^>]*>|&\w+;|\bhttps?://\S+|\b\w+@\S+|(?<![A-Za-z])([A-Za-z]{2,})(?![A-Za-z])")
SUBJECT = re.compile(r"(?im)(?<=^subject:).*$")


def in_digits(word: str, rng: random.Random) -> str:
    """Seven of ten letters that a digit or a sign resembles, and at least one."""
    places = [i for i, letter in enumerate(word) if letter.lower() in OF_DIGITS]
    chosen = {i for i in places if rng.random() < 0.7} or set(rng.sample(places, min(1, len(places))))
    return "".join(rng.choice(OF_DIGITS[letter.lower()]) if i in chosen else letter for i, letter in enumerate(word))


def spaced(word: str, rng: random.Random) -> str:
    return rng.choice(" .-_*").join(word)


def in_two_scripts(word: str, rng: random.Random) -> str:
    """Every other letter that has a Cyrillic one of the same look."""
    places = [i for i, letter in enumerate(word) if letter in CYRILLIC]
    chosen = set(rng.sample(places, (len(places) + 1) // 2))
    return "".join(CYRILLIC[letter] if i in chosen else letter for i, letter in enumerate(word))


def with_invisible_marks(word: str, rng: random.Random) -> str:
    return rng.choice("\u00ad\u200b\u200c\u2060").join(word)


def wide(word: str, rng: random.Random) -> str:
    return "".join(chr(ord(letter) + 0xFEE0) for letter in word)


DISGUISES: dict[str, Callable[[str, random.Random], str]] = {
    "digits for letters": in_digits,
    "signs between letters": spaced,
    "Cyrillic letters": in_two_scripts,
    "invisible marks": with_invisible_marks,
    "wide letters": wide,
}


def main() -> None:
    arguments = arguments_of(__doc__, orders=4)
    table = Table("spam missed", "as it is", *DISGUISES, "ham wrong")
    for corpus in of_two_classes("sms_spam", "mail_raw"):
        mails = [as_mail(text) if corpus.name == "sms_spam" else text for text in corpus.texts]
        for name, features in {"MailFeatures()": MailFeatures(), "route=False": MailFeatures(route=False)}.items():
            if corpus.name == "mail_raw" or features.route:
                row = figures(corpus._replace(texts=mails), features, arguments.orders)
                table.row(f"{corpus.name}, {name}", *(f"{share:.4f}" for share in row))


def as_mail(text: str) -> str:
    mail = f"Content-Type: text/plain; charset=utf-8\n\n{text}"
    return mail.encode("utf-8", "replace").decode("latin-1")


def figures(mails: Corpus, features: Features, n_orders: int) -> list[float]:
    """The shares of spam that is missed, as it is and in each disguise, and of ham that is wrong, over all orders."""
    found = []
    for seed in range(n_orders):
        numbers = np.random.default_rng(seed).permutation(len(mails.texts))
        learned, rest = (mails.rows(half) for half in np.array_split(numbers, 2))
        model, words = TextClassifier(features), TextClassifier()
        model.learn_many(learned.texts, learned.labels)
        words.learn_many([*map(shown, learned.texts)], learned.labels)
        spam, ham = (
            [mail for mail, label in zip(*rest[1:3], strict=True) if label is which] for which in (True, False)
        )
        heaviest = [heaviest_words(words, shown(mail)) for mail in spam]
        rng = random.Random(seed)
        disguised = [
            [respelled(mail, each, disguise, rng) for mail, each in zip(spam, heaviest, strict=True)]
            for disguise in DISGUISES.values()
        ]
        shares = [np.mean([not label for label in model.predict_many(each)]) for each in (spam, *disguised)]
        found.append([*shares, np.mean([bool(label) for label in model.predict_many(ham)])])
    return np.mean(found, axis=0).tolist()


def shown(mail: str) -> str:
    parts = mail_parts(mail.encode("latin-1"))
    return f"{parts.subject}\n{parts.text}"


def heaviest_words(model: TextClassifier, text: str) -> set[str]:
    """The words of a text that say most for spam."""
    by_weight = sorted(model.explain_ngrams_one(text).items(), key=lambda item: -item[1])
    return {*[token for token, weight in by_weight if weight > 0.0 and WORD.fullmatch(token)][:N_WORDS]}


def respelled(mail: str, words: set[str], disguise: Callable[[str, random.Random], str], rng: random.Random) -> str:
    def one(found: re.Match[str]) -> str:
        word = found[1]
        if word is None or word.lower() not in words:
            return found[0]
        return disguise(word, rng).encode().decode("latin-1")

    head, blank, body = mail.partition("\n\n")
    head = SUBJECT.sub(lambda subject: PLACES.sub(one, subject[0]), head)
    return f"{head}{blank}{PLACES.sub(one, body)}"


if __name__ == "__main__":
    main()
