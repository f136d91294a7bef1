"""Accuracy of one model that was merged from several parts, beside one machine that learned all in turn.

The first thousand messages are learned by one model. The parts go on from it, each with every k-th message up to 80 %
of the stream. All predict the last 20 %.

    python tests/benchmarks/merging.py [--stream FILE]... [--parts K]...
"""

import copy

from corpora import chosen
from figures import share_right
from report import Table, arguments_of

from stream_pegasos import TextClassifier, merge

FIRST, LEARNED = 1_000, 0.8


def main() -> None:
    arguments = arguments_of(__doc__, stream=[str], parts=[int], ordered=False, limit=int)
    n_parts = arguments.parts or (4, 16)
    table = Table("stream", "one machine", *(f"{k} parts" for k in n_parts), *(f"one of {k}" for k in n_parts))
    for corpus in chosen(arguments):
        if corpus.kind in ("two classes", "classes"):
            n = int(LEARNED * len(corpus.texts))
            texts, truths = corpus.texts[n:], corpus.labels[n:]
            base = TextClassifier()
            base.learn_many(corpus.texts[:FIRST], corpus.labels[:FIRST])

            def learned(every: int, corpus=corpus, base=base, n=n) -> list[TextClassifier]:
                parts = [copy.deepcopy(base) for _ in range(every)]
                for i, part in enumerate(parts):
                    part.learn_many(corpus.texts[FIRST + i : n : every], corpus.labels[FIRST + i : n : every])
                return parts

            of_each = [learned(k) for k in n_parts]
            models = [*learned(1), *(merge(base, parts) for parts in of_each), *(parts[0] for parts in of_each)]
            table.row(corpus.name, *(f"{share_right(model.predict_many(texts), truths):.4f}" for model in models))


if __name__ == "__main__":
    main()
