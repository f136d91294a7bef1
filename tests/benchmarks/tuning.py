"""Tune on the first half of each stream, and compare what was found with the defaults on the second.

What a prediction costs: 1 for a wrong label, how far it is off for ordered ones, the number of wrong ones of several
labels. Both models have learned the first half, and predict each message of the second before they learn it. The
streams come from the folder that STREAM_PEGASOS_DATA names, or from ../shared/data, or are yours.

    python tests/benchmarks/tuning.py [--stream FILE] [--label-field NAME] [--ordered] [--markdown]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator

import numpy as np
import several
from peers import DATA, print_head, print_row, read_records

from stream_pegasos.cli.options import ModelOptions, StreamOptions
from stream_pegasos.cli.stream import Stream
from stream_pegasos.cli.tune import models_to_try
from stream_pegasos.evaluation.tuning import Tuning, tune
from stream_pegasos.streams import read

RCV1 = "rcv1_ccat_train.svmlight.gz"
OPTIONS = {
    "classes": ModelOptions(),
    "ordered": ModelOptions(ordered=True),
    "labels": ModelOptions(multi_label=True),
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--stream", metavar="FILE", help="a stream of yours")
    parser.add_argument("--label-field", default="label", metavar="NAME", help="its field of the label")
    parser.add_argument("--ordered", action="store_true", help="its labels have an order")
    parser.add_argument("--markdown", action="store_true", help="print Markdown tables")
    arguments = parser.parse_args()
    streams = known_streams()
    if arguments.stream:
        examples = read(arguments.stream, label_field=arguments.label_field)
        texts, labels = zip(*((text, label) for text, label, *_ in examples), strict=True)
        kind = "ordered" if arguments.ordered else "labels" if isinstance(labels[0], tuple) else "classes"
        streams = iter([several.Stream(arguments.stream, list(texts), list(labels), kind)])
    print_head(["", "found", "defaults", "found", "gain ± error", "seconds"], arguments.markdown)
    for stream in streams:
        print_row([stream.name, *figures(stream)], arguments.markdown)


def known_streams() -> Iterator[several.Stream]:
    for name in ("sms_spam", "enron_1to3", "rt_polarity", "waimai_zh", "hotels_zh"):
        if records := read_records(name):
            labels = [record["label"] for record in records]
            yield several.Stream(name, [record["text"] for record in records], labels, "classes")
    if mails := read_records("mail_raw"):
        yield several.Stream("mail_raw", [mail["raw"] for mail in mails], [mail["label"] for mail in mails], "classes")
    yield from several.known_streams()
    if (path := DATA / RCV1).exists():
        rows, labels = zip(*((x, y) for x, y, *_ in read(path)), strict=True)
        yield several.Stream(RCV1, list(rows), list(labels), "classes")


def figures(stream: several.Stream) -> list[str]:
    examples = list(zip(stream.texts, stream.labels, strict=True))
    half = len(examples) // 2
    start = time.perf_counter()
    source = Stream(stream.name, StreamOptions()) if isinstance(stream.texts[0], dict) else None
    tuning = tune(models_to_try(OPTIONS[stream.kind], source), examples[:half])
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
