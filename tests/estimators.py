"""The registry of estimators: what the contract tests run over. A new learner needs a line here."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from river import drift

from stream_pegasos import (
    AdaptiveClassifier,
    Category,
    HashedBagOfWords,
    KernelPegasosClassifier,
    MultiLabelClassifier,
    Number,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
    Time,
)

TWO, SEVERAL, GROWING, ORDERED, SETS = "two", "several", "growing", "ordered", "sets"
LABELS = {
    TWO: ("ham", "spam"),
    SEVERAL: ("red", 7, "blue", ""),
    GROWING: ("red", 7, "blue", ""),  # of a model of two classes, up to the third
    ORDERED: (2, 0, 3, 1),
    SETS: (("red",), (7, "red"), (), ("blue", "red", "")),
}
VECTORS = str(Path(__file__).with_name("words.vec"))
ENCODER = str(Path(__file__).with_name("sentences"))
NAMES = ["a", "b", 3, -1, ("c", 1), 1 << 60, "", "\ud800", 8]
COLUMNS = list(range(9))
WORDS = ["cheap", "pills", "see", "you", "at", "lunch", "é", "漢字", "x1", "İstanbul", "ΟΔΟΣ", "a!b"]


def dot(x, other):
    """A kernel as a function of two dicts."""
    return sum(value * other.get(name, 0.0) for name, value in x.items())


@dataclass(frozen=True)
class Case:
    """An estimator with options: what makes it, which labels it tells apart, and what its examples are."""

    name: str
    make: Callable[[], Any]
    classes: str = TWO
    of: str = "features"  # or "texts", or "fields": dicts that hold a text
    has_weights: bool = True  # or else support vectors
    can_be_saved: bool = True  # or else it holds a function
    pos_label: str | None = None  # if it is given

    @property
    def labels(self):
        return LABELS[self.classes]

    def stream(self, n, seed=0, names=NAMES):
        """Examples that tell their label, more or less. Labels come one after the other."""
        generator = random.Random(seed)
        for i in range(n):
            number = generator.randrange(min(len(self.labels), 1 + i // 3))
            parts = len(self.labels)
            if self.of == "features":
                chosen = [j for j in range(len(names)) if generator.random() < 0.6]
                x = {names[j]: generator.gauss(1.0 if j % parts == number else -0.3, 1.0) for j in chosen}
            else:
                own = [word for j, word in enumerate(WORDS) if j % parts == number]
                x = self.example([*generator.choices(own, k=3), *generator.choices(WORDS, k=generator.randrange(3))])
            yield x, self.labels[number]

    def predicted(self, model, x):
        """The label, or a tuple of several."""
        label = model.predict_one(x)
        return tuple(of for of, holds in label.items() if holds) if self.classes == SETS else label

    def probabilities(self, model, x):
        """That of each label."""
        found = model.predict_proba_one(x)
        return {of: p[True] for of, p in found.items()} if self.classes == SETS else found

    def columns(self, n, seed=0, names=NAMES):
        """The examples of a stream, and their labels, as two lists."""
        return [list(column) for column in zip(*self.stream(n, seed, names), strict=True)] or [[], []]

    def example(self, words):
        """An example of which there is nothing but these words."""
        if self.of == "features":
            return dict.fromkeys(words, 1.0)
        text = " ".join(words)
        return (
            {"text": text, "size": len(text), "date": f"2026-11-{len(text) % 30 + 1:02}"}
            if self.of == "fields"
            else text
        )

    def option(self, name):
        """An option of the estimator or, of a text model, of its classifier; None if there is no such option."""
        model = self.make()
        return getattr(getattr(model, "classifier", model), name, None)

    def trained(self, n=40, seed=0):
        model = self.make()
        for x, y in self.stream(n, seed):
            model.learn_one(x, y)
        return model


def seen(model):
    """All that can be seen of a model without an example."""
    learner = getattr(model, "classifier", model)
    if isinstance(learner, KernelPegasosClassifier):
        learned = learner.support_vectors, learner.dual_coef.tolist()
    else:
        learned = model.weights, model.intercept
    return model.classes, list(map(type, model.classes)), model.n_iterations, learned


def text(classifier=None, **features):
    return TextClassifier(HashedBagOfWords(**features) if features else None, classifier)


def sum_of(parts):
    first, *others = parts
    return sum(others, first)


CASES = [
    Case("pegasos", PegasosClassifier),
    Case("pegasos, batches", lambda: PegasosClassifier(batch_size=7, t0=0.5, project=False, l2=0.01)),
    Case(
        "pegasos, weights",
        lambda: PegasosClassifier(
            l2=0.1, class_weight={"spam": 3.0, "ham": 0.25}, pos_label="ham", batch_size=2, fit_intercept=True
        ),
        pos_label="ham",
    ),
    Case(
        "pegasos, average",
        lambda: PegasosClassifier(average=5, l2=0.01, batch_size=3, fit_intercept=True, intercept_scaling=2.5),
    ),
    Case("pegasos, weighted average", lambda: PegasosClassifier(average="weighted", batch_size=3, l2=0.1)),
    Case("pegasos, gentle", lambda: PegasosClassifier(t0=20.0, average=True)),
    Case(
        "pegasos, balanced and forgetful",
        lambda: PegasosClassifier(l2=1e-2, class_weight="balanced", max_features=6, batch_size=2),
    ),
    Case("adaptive", AdaptiveClassifier),
    Case(
        "adaptive, hinge",
        lambda: AdaptiveClassifier(loss="hinge", naive_bayes=False, half_life=None, fit_intercept=False),
    ),
    Case(
        "adaptive, careful",
        lambda: AdaptiveClassifier(
            pos_label="spam", threshold=0.2, max_false_positive_rate=0.3, class_weight="balanced"
        ),
        pos_label="spam",
    ),
    Case("adaptive, weights", lambda: AdaptiveClassifier(class_weight={"spam": 3.0}, half_life=30.0, margin=None)),
    Case("adaptive, with a detector", lambda: AdaptiveClassifier(drift_detector=drift.binary.DDM(warm_start=5))),
    Case("adaptive, forgetful", lambda: AdaptiveClassifier(max_features=6)),
    Case("kernel", lambda: KernelPegasosClassifier(l2=1e-2, budget=20), has_weights=False),
    Case(
        "kernel, polynomial",
        lambda: KernelPegasosClassifier(l2=0.1, kernel="polynomial", class_weight="sqrt", budget=9),
        has_weights=False,
    ),
    Case(
        "kernel, in Python",
        lambda: KernelPegasosClassifier(l2=1e-2, kernel=dot, budget=10),
        has_weights=False,
        can_be_saved=False,
    ),
    Case(
        "several, batches",
        lambda: PegasosClassifier(multi_class="crammer_singer", batch_size=7, t0=0.5, project=False, l2=0.01),
        SEVERAL,
    ),
    Case(
        "several, weights",
        lambda: PegasosClassifier(
            multi_class="crammer_singer", class_weight={"red": 3.0, 7: 0.0}, fit_intercept=True, l2=0.1
        ),
        SEVERAL,
    ),
    Case(
        "one against the rest, batches",
        lambda: PegasosClassifier(multi_class="ovr", batch_size=3, fit_intercept=True, intercept_scaling=2.0),
        SEVERAL,
    ),
    Case(
        "several, weighted average",
        lambda: PegasosClassifier(multi_class="crammer_singer", average="weighted", batch_size=3, l2=0.1),
        SEVERAL,
    ),
    Case(
        "several, forgetful",
        lambda: PegasosClassifier(multi_class="crammer_singer", max_features=6, l2=0.01, average=True),
        SEVERAL,
    ),
    Case(
        "one against the rest, forgetful",
        lambda: PegasosClassifier(multi_class="ovr", max_features=6, l2=0.01, batch_size=2, class_weight="sqrt"),
        SEVERAL,
    ),
    Case("adaptive, a third class", AdaptiveClassifier, GROWING),
    Case(
        "adaptive, several classes",
        lambda: AdaptiveClassifier(loss="hinge", naive_bayes=False, half_life=20.0, class_weight="balanced"),
        GROWING,
    ),
    Case(
        "adaptive, several and careful",
        lambda: AdaptiveClassifier(threshold={7: 0.3, "red": 0.6}, max_false_positive_rate={"blue": 0.2}),
        GROWING,
    ),
    Case(
        "adaptive, one of several careful",
        lambda: AdaptiveClassifier(pos_label="blue", max_false_positive_rate=0.2, class_weight={"red": 2.0}),
        GROWING,
        pos_label="blue",
    ),
    Case("adaptive, for F1", lambda: AdaptiveClassifier(decide_for="macro_f1", max_features=6)),
    Case(
        "adaptive, several for F1",
        lambda: AdaptiveClassifier(decide_for="macro_f1", class_weight="sqrt", half_life=30.0),
        GROWING,
    ),
    Case(
        "adaptive, several for F1 with a detector",
        lambda: AdaptiveClassifier(decide_for="macro_f1", drift_detector=drift.binary.DDM(warm_start=5)),
        GROWING,
    ),
    Case(
        "adaptive, several with a detector",
        lambda: AdaptiveClassifier(drift_detector=drift.binary.DDM(warm_start=5), max_features=6),
        GROWING,
    ),
    Case(
        "adaptive, sets",
        lambda: AdaptiveClassifier(coverage=0.8, class_weight="sqrt", pos_label="spam", threshold=0.6),
        pos_label="spam",
    ),
    Case("adaptive, sets of several", lambda: AdaptiveClassifier(coverage=0.9, max_features=6), GROWING),
    Case(
        "adaptive, sets with a detector",
        lambda: AdaptiveClassifier(coverage=0.7, drift_detector=drift.binary.DDM(warm_start=5)),
        GROWING,
    ),
    Case("thresholds, sets", lambda: OrdinalClassifier(AdaptiveClassifier(coverage=0.7)), ORDERED),
    Case("labels, sets", lambda: MultiLabelClassifier(AdaptiveClassifier(coverage=0.8, threshold=0.4)), SETS),
    Case(
        "pegasos, a third class",
        lambda: PegasosClassifier(l2=0.01, batch_size=3, average=2, fit_intercept=True, max_features=6),
        GROWING,
    ),
    Case("thresholds", OrdinalClassifier, ORDERED),
    Case(
        "thresholds, forgetful",
        lambda: OrdinalClassifier(
            AdaptiveClassifier(
                max_features=6,
                half_life=30.0,
                class_weight={2: 3.0},
                naive_bayes=False,
                drift_detector=drift.binary.DDM(warm_start=5),
            )
        ),
        ORDERED,
    ),
    Case("labels", MultiLabelClassifier, SETS),
    Case(
        "labels, careful and forgetful",
        lambda: MultiLabelClassifier(
            AdaptiveClassifier(
                threshold={"red": 0.7}, max_false_positive_rate={"red": 0.3}, max_features=6, half_life=30.0
            )
        ),
        SETS,
    ),
    *(
        Case(f"labels, for {name}", lambda name=name: MultiLabelClassifier(AdaptiveClassifier(decide_for=name)), SETS)
        for name in ("micro_f1", "macro_f1")
    ),
    Case("text", text, of="texts"),
    Case("text, forgetful", lambda: text(AdaptiveClassifier(max_features=30)), of="texts"),
    Case(
        "text, characters in batches",
        lambda: text(PegasosClassifier(batch_size=3), analyzer="char_wb", ngram_range=(2, 3), n_features=1000),
        of="texts",
    ),
    Case(
        "text in a field",
        lambda: text(
            PegasosClassifier(l2=0.1, class_weight={"spam": 2.0}, t0=1.0),
            on="text",
            stop_words=frozenset(["at", "you", "x1"]),
        ),
        of="fields",
    ),
    Case(
        "fields",
        lambda: TextClassifier(TextFeatures(on="text") + Category(on="text") + Number(on="size") + Time(on="date")),
        of="fields",
    ),
    *(
        Case(f"fields, {name} with vectors", lambda parts=parts: TextClassifier(sum_of(parts())), of="fields")
        for name, parts in (
            ("last", lambda: [TextFeatures(on="date"), TextFeatures(on="text", vectors=VECTORS), Number(on="size")]),
            ("first", lambda: [TextFeatures(on="text", vectors=VECTORS), Number(on="size"), TextFeatures(on="date")]),
        )
    ),
    Case(
        "fields, encoder",
        lambda: TextClassifier(TextFeatures(on="text", vectors=ENCODER) + TextFeatures(on="date", vectors=ENCODER)),
        of="fields",
    ),
    Case(
        "text, kernel",
        lambda: text(KernelPegasosClassifier(l2=1e-2, budget=10), ngram_range=(1, 2)),
        of="texts",
        has_weights=False,
    ),
    Case(
        "text, several and forgetful",
        lambda: text(PegasosClassifier(multi_class="ovr", l2=1e-2, max_features=30, average=True)),
        SEVERAL,
        of="texts",
    ),
    Case("text, a third class", text, GROWING, of="texts"),
    Case("text, thresholds", lambda: text(OrdinalClassifier()), ORDERED, of="texts"),
    Case("text, sets", lambda: text(AdaptiveClassifier(coverage=0.8)), GROWING, of="texts"),
    Case("text, labels", lambda: text(MultiLabelClassifier()), SETS, of="texts"),
    *(
        Case(
            f"text, {name}, {classes}",
            lambda kind=kind, vectors=vectors: TextClassifier(TextFeatures(vectors=vectors), kind()),
            classes,
            of="texts",
        )
        for name, vectors, classes, kind in (
            ("vectors", VECTORS, TWO, AdaptiveClassifier),
            ("vectors", VECTORS, GROWING, AdaptiveClassifier),
            ("vectors", VECTORS, ORDERED, OrdinalClassifier),
            ("vectors", VECTORS, SETS, MultiLabelClassifier),
            ("use", "use", TWO, AdaptiveClassifier),
            ("encoder", ENCODER, GROWING, AdaptiveClassifier),
            ("encoder", ENCODER, ORDERED, OrdinalClassifier),
            ("encoder", ENCODER, SETS, MultiLabelClassifier),
        )
    ),
]
