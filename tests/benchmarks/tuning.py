"""Tune on the first half of each stream, and compare what was found with the defaults on the second.

What a prediction costs: 1 for a wrong label, how far it is off for ordered ones, the number of wrong ones of several
labels. Both models have learned the first half, and predict each message of the second before they learn it.

    python tests/benchmarks/tuning.py [--stream FILE[:POSITIVE]] [--ordered] [--limit N]
"""

import time
from collections.abc import Iterator

import corpora
import numpy as np
from corpora import DATA, Corpus, Kind, of_two_classes
from report import Table, arguments_of

from stream_pegasos.cli.options import ModelOptions, StreamOptions
from stream_pegasos.cli.stream import Stream
from stream_pegasos.cli.tune import models_to_try
from stream_pegasos.evaluation.tuning import Tuning, tune
from stream_pegasos.streams import read

RCV1 = "rcv1_ccat_train.svmlight.gz"
OPTIONS: dict[Kind, ModelOptions] = {"ordered": ModelOptions(ordered=True), "labels": ModelOptions(multi_label=True)}


def main() -> None:
    arguments = arguments_of(__doc__, **corpora.OPTIONS)
    table = Table("", "found", "defaults", "found", "gain ± error", "seconds")
    for corpus in corpora.chosen(arguments) if arguments.stream else known():
        table.row(corpus.name, *cells(corpus.first(arguments.limit)))


def known() -> Iterator[Corpus]:
    for corpus in corpora.known():
        if corpus.name != "reuters_acq":
            yield corpus
        if corpus.name == "hotels_zh":
            yield from of_two_classes("mail_raw")
    if (path := DATA / RCV1).exists():
        rows, labels = zip(*((x, y) for x, y, *_ in read(path)), strict=True)
        yield Corpus(RCV1, list(rows), list(labels))


def cells(corpus: Corpus) -> list[str]:
    examples = list(zip(corpus.texts, corpus.labels, strict=True))
    half = len(examples) // 2
    start = time.perf_counter()
    source = Stream(corpus.name, StreamOptions()) if isinstance(corpus.texts[0], dict) else None
    tuning = tune(models_to_try(OPTIONS.get(corpus.kind, ModelOptions()), source), examples[:half])
    seconds = time.perf_counter() - start
    default, best = tuning.candidates[0], tuning.best
    for each in {default.name: default, best.name: best}.values():
        each.costs.clear()
    both = {each.name: each.model for each in (default, best)}
    later: Tuning = tune(both, examples[half:], first_rung=len(examples))
    costs = [np.concatenate(each.costs) for each in (later.candidates[0], later.candidates[-1])]
    saved = costs[0] - costs[1]
    gain = f"{saved.mean():+.4f} ± {saved.std() / np.sqrt(len(saved)):.4f}"
    return [best.name, *(f"{cost.mean():.4f}" for cost in costs), gain, f"{seconds:.1f}"]


if __name__ == "__main__":
    main()
