"""A target of the fuzzer: texts, by the scanner into a model."""

from random import Random

import numpy as np
from estimators import VECTORS
from fuzz_shared import NUMBERS, SECONDS, below, check_size, check_works, mutated, one_character, state_of
from river import drift

from stream_pegasos import (
    AdaptiveClassifier,
    HashedBagOfWords,
    KernelPegasosClassifier,
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
    TextFeatures,
)
from stream_pegasos.engine import pure as pure_engine

TEXTS = [
    "",
    "Win a FREE prize now!!! Call 0800-123456",
    "see you at lunch, 12:30?",
    "I'm here\tthere\r\nand everywhere\x0b\x0c\x1c\x85\u2028",
    "naïve café ﬁne Straße İstanbul ΣΊΣΥΦΟΣ ǅ ŉ",
    "漢字かな交じり文 한국어 ภาษาไทย हिन्दी",
    "3个iPhone手机,很好! ខ្មែរ\u200bល្អ မန္တလေး か\u3099 \u1112\u1161\u11ab e\u0301\u0323 ﾊﾟ",
    "👩\u200d👩\u200d👧 \U0001f1e9\U0001f1ea e\u0301\u0323 \u202eabc\u202c \ufeff\u00ad",
    "\ud800\udfff\udc00 lone \ud83d and low \ude00",
    "\x00a\x00b\x00 \x7f\x80\x9f",
    "<s> </s> <script>alert(1)</script> ' OR 1=1; -- ../../etc/passwd %s {0}",
    "_ __ a_b 3.14 ٣٤٥ \uff14\uff12 ² ½ Ⅷ",
    "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbccccccccccccccccdddddddddddddddd" * 4,
]
TEXT_TOKENS = ["\ud800", "\udfff", "\U0010ffff", "\x00", "\ufeff", "\u0130", "\u03a3", "\u1e9e", "\u0345", "\ufdfa"]
TEXT_TOKENS += ["0", "\u0660", "_", " ", "\n", "\x1c", "\u3000", "\u200d", "<s>", "</s>", *NUMBERS[:10]]


def text(random):
    made = mutated(random, random.choice(TEXTS), TEXTS, TEXT_TOKENS, one_character)
    if random.random() < 0.1:
        made = "".join([one_character(random) for _ in range(below(random, 40))])
    return made * below(random, 2000) if random.random() < 0.0002 else made


def bag_of(random):
    """`TextFeatures` or a `HashedBagOfWords` with random options."""
    analyzer = random.choice(["word", "word", "word", "char", "char_wb"])
    words = analyzer == "word"
    low = 1 + below(random, 3)
    any_language = words and random.random() < 0.5
    vectors = {"vectors": VECTORS} if any_language and random.random() < 0.5 else {}
    return (TextFeatures if any_language else HashedBagOfWords)(
        n_features=random.choice([1, 2, 10, 1000, 2**20, 2**30, 2**31 - 1 - 10 * len(vectors)]),
        ngram_range=(low, low + below(random, 3)),
        analyzer=analyzer,
        lowercase=random.random() < 0.7,
        strip_accents=random.choice([None, None, None, "unicode", "ascii"]),
        stop_words=["the", "a", "\ud800", "prize"] if words and random.random() < 0.2 else None,
        token_pattern=None
        if any_language
        else random.choice([r"\w+", r"\b\w\w+\b", r"\w+|[^\w\s]", r"\S+", r"\b\d+|\w"]),
        binary=random.random() < 0.5,
        norm=random.choice(["l2", "l2", "l1", None]),
        alternate_sign=random.random() < 0.5,
        mask_digits=random.random() < 0.5,
        prefix_length=random.choice([0, 1, 4, 1000]) if words else 0,
        boundaries=words and random.random() < 0.5,
        **vectors,
    )


CLASSIFIERS = [
    lambda random: AdaptiveClassifier(max_features=random.choice([None, 1, 2, 10, 1000])),
    lambda random: AdaptiveClassifier(
        loss="hinge", half_life=random.choice([1.0, 30.0, None]), max_features=random.choice([None, 2, 100])
    ),
    lambda random: AdaptiveClassifier(
        max_false_positive_rate=0.1, drift_detector=drift.binary.DDM(), class_weight="balanced"
    ),
    lambda random: PegasosClassifier(
        l2=random.choice([1e-30, 1e-4, 1.0, 1e30]),
        batch_size=1 + below(random, 5),
        project=random.random() < 0.5,
        fit_intercept=random.random() < 0.5,
        max_features=random.choice([None, 1, 2, 10, 1000]),
    ),
    lambda random: PegasosClassifier(average=random.choice([True, "weighted"])),
    lambda random: PegasosClassifier(
        multi_class=random.choice(["crammer_singer", "ovr"]),
        batch_size=1 + below(random, 3),
        average=random.choice([False, True]),
        max_features=random.choice([None, 2, 100]),
    ),
    lambda random: OrdinalClassifier(),
    lambda random: KernelPegasosClassifier(budget=10),
]


def classifier_for(bag, random):
    """What makes one; word vectors are for the adaptive ones."""
    return random.choice(CLASSIFIERS if bag.vector_source is None else CLASSIFIERS[:3])


def check_bag(bag, texts, n_pure):
    """The values of texts are finite and of length 1 or 0; those of the last few are what the pure engine finds."""
    matrix = bag.transform_many(texts)
    assert matrix.shape == (len(texts), bag.n_columns)
    assert np.isfinite(matrix.data).all()
    if bag.norm is not None:
        hashed = matrix[:, : bag.n_features]
        sizes = abs(hashed).sum(axis=1) if bag.norm == "l1" else hashed.multiply(hashed).sum(axis=1)
        assert np.allclose(sizes[sizes != 0], 1.0, rtol=1e-9, atol=0.0)
    scanner = pure_engine.Scanner(*bag.scanner.arguments)
    for i in range(len(texts) - n_pure, len(texts)):
        expected = scanner.transform_one(bag.prepare(texts[i]))
        row = slice(matrix.indptr[i], matrix.indptr[i + 1])
        found = dict(zip(matrix.indices[row].tolist(), matrix.data[row].tolist(), strict=True))
        assert found.keys() == expected.keys() and np.allclose([found[j] for j in expected], [*expected.values()])


def check_learning(model, twin, texts, labels, weights):
    """Learning leaves finite weights, no more than allowed, and the model predicts; `twin` learns the same one by one
    and is the same then.
    """
    model.learn_many(texts, labels, weights)
    check_works(model, texts[:20])
    if twin is not None:
        for example in zip(texts, labels, weights, strict=True):
            twin.learn_one(*example)
            check_size(twin)
        assert state_of(twin) == state_of(model)


class ScannerTarget:
    """Texts, by the scanner into a model."""

    share, size = 60, 500

    def block(self, random):
        return [text(random) for _ in range(self.size)]

    def check(self, texts, random, at):
        at(0, SECONDS * 3)  # the texts of a block go through together
        bag, seed = bag_of(random), random.random()
        make = classifier_for(bag, random)
        check_bag(bag, texts, len(texts) // 50)
        labels = [below(random, 2) for _ in texts]
        weights = [random.choice([1.0, 1.0, 0.0, 1e-300, 0.3, 1e30]) for _ in texts]
        twin = TextClassifier(bag, make(Random(seed))) if random.random() < 0.1 else None
        check_learning(TextClassifier(bag, make(Random(seed))), twin, texts, labels, weights)
