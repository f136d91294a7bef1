"""More than two classes: learned together, one against the rest, in pairs, and in order."""

import random

from river import evaluate, metrics, multiclass

from stream_pegasos import (
    OrdinalClassifier,
    PegasosClassifier,
    TextClassifier,
)

SUBJECTS = {
    "sport": ["match", "goal", "coach", "league", "injury", "final"],
    "money": ["shares", "profit", "bank", "rates", "market", "bonds"],
    "weather": ["rain", "storm", "sunny", "wind", "frost", "clouds"],
}
OPINIONS = ["awful", "poor", "fair", "good", "superb"]
COMMON = ["today", "report", "people", "says", "after", "week", "city", "more"]


def messages(words_of: dict, n: int, seed: int):
    """Messages of common words, two of their own label's and one of any label's."""
    rng = random.Random(seed)
    anything = [word for words in words_of.values() for word in words]
    for _ in range(n):
        label = rng.choice(list(words_of))
        words = rng.choices(COMMON, k=8) + rng.choices(words_of[label], k=2) + rng.choices(anything, k=1)
        rng.shuffle(words)
        yield " ".join(words), label


for name, model in {
    "Crammer and Singer": TextClassifier(classifier=PegasosClassifier(multi_class="crammer_singer")),
    "one against the rest": TextClassifier(classifier=PegasosClassifier(multi_class="ovr")),
    # River wraps any classifier; here all three pairs of subjects get a text model each.
    "one against one": multiclass.OneVsOneClassifier(TextClassifier()),
}.items():
    accuracy = evaluate.progressive_val_score(messages(SUBJECTS, 3_000, seed=1), model, metrics.Accuracy())
    print(f"{name:<22} {accuracy}")

# Stars from 0 to 4, each with the words of its neighbours, too. A machine for neighbours learns from these two alone,
# which costs examples: on a stream as short as this one, plain classes come closer. Try both on your own.
stars = {star: OPINIONS[max(0, star - 1) : star + 2] for star in range(5)}
for name, classifier in {
    "as classes": PegasosClassifier(multi_class="crammer_singer", l2=1e-3, t0=1e3),
    "in order": OrdinalClassifier(PegasosClassifier(l2=1e-3, t0=1e3)),
}.items():
    model, error = TextClassifier(classifier=classifier), metrics.MAE()
    for text, star in messages(stars, 3_000, seed=2):
        error.update(star, model.predict_one(text) or 0)
        model.learn_one(text, star)
    print(f"stars {name:<16} {error}")
