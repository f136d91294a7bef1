"""Labels that look wrong: some labels of each stream are exchanged at random. How many of as many suspects were?

Suspects are sought over the whole stream, by the probability of the label before it was learned. Beside them stand
those by how much less probable it was than the best label, and those of the final model. The second table has the
estimate that `train` prints.

    python tests/benchmarks/suspects.py [--limit N] [--seed N]
"""

from collections.abc import Iterator

import numpy as np
from corpora import Bools, Corpus, of_classes, of_several_classes
from report import Table, arguments_of

from stream_pegasos import MailFeatures, TextClassifier, prequential
from stream_pegasos.blocks.predicted import PredictedBlock

RATES = (0.0, 0.02, 0.05, 0.2)
SHOWN = 0.05


def main() -> None:
    arguments = arguments_of(__doc__, limit=int, seed=0)
    table = Table(f"{SHOWN:.0%} exchanged", "suspects", "first quarter", "by difference", "final model")
    for corpus in streams():
        shares = found(corpus.first(arguments.limit), SHOWN, arguments.seed)
        table.row(corpus.name, *(f"{share:.3f}" for share in shares))
    table = Table("labels that look wrong", *(f"{rate:.0%} exchanged" for rate in RATES), width=14)
    for corpus in streams():
        corpus = corpus.first(arguments.limit)
        table.row(corpus.name, *(estimate(corpus, rate, arguments.seed) for rate in RATES))


def streams() -> Iterator[Corpus]:
    yield from of_classes("sms_spam", "enron_1to3", "mail_raw", "rt_polarity", "waimai_zh", "hotels_zh")
    yield from of_several_classes()


def exchanged(corpus: Corpus, rate: float, seed: int) -> tuple[Corpus, Bools]:
    """The stream with another label where one is exchanged."""
    chance = np.random.default_rng(seed)
    others = {label: [other for other in corpus.met if other != label] for label in corpus.met}
    is_exchanged = chance.random(len(corpus.labels)) < rate
    pairs = zip(corpus.labels, is_exchanged, strict=True)
    labels = [others[label][chance.integers(len(others[label]))] if swap else label for label, swap in pairs]
    return corpus._replace(labels=labels), is_exchanged


def model_and_texts(corpus: Corpus) -> tuple[TextClassifier, list[str | bytes]]:
    if corpus.name == "mail_raw":
        return TextClassifier(MailFeatures()), [text.encode("latin-1") for text in corpus.texts]
    return TextClassifier(), corpus.texts


def found(corpus: Corpus, rate: float, seed: int) -> list[float]:
    """Which share of as many suspects as labels were exchanged has one of these, by each way to choose suspects."""
    corpus, is_exchanged = exchanged(corpus, rate, seed)
    n = int(is_exchanged.sum())
    model, texts = model_and_texts(corpus)
    numbers = [suspect.number for suspect in prequential(zip(texts, corpus.labels, strict=True), model).suspects(n)]
    places = np.array(numbers) - 1
    shares = [is_exchanged[places].sum() / n, is_exchanged[places[: n // 4]].sum() / (n // 4)]
    final, (model, texts) = model, model_and_texts(corpus)
    for said in (model.predict_learn_many(texts, corpus.labels), final.predictions(texts)):
        probabilities = np.nan_to_num(said.probabilities)
        own = np.nan_to_num(PredictedBlock(said, said.classes, corpus.labels).label_probabilities())
        most = np.argsort(own - probabilities.max(axis=1), kind="stable")[:n]
        shares.append(is_exchanged[most].mean())
    return [float(share) for share in shares]


def estimate(corpus: Corpus, rate: float, seed: int) -> str:
    corpus, _ = exchanged(corpus, rate, seed)
    model, texts = model_and_texts(corpus)
    interval = prequential(zip(texts, corpus.labels, strict=True), model).label_errors.interval()
    if interval is None:
        return "-"
    low, high = interval
    return f"{low:.1%} to {high:.1%}" if low else f"at most {high:.1%}"


if __name__ == "__main__":
    main()
