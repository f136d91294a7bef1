"""More than two classes: as many as the stream brings, in order, and labels that hold together."""

import random

from river import evaluate, metrics, multiclass

from stream_pegasos import MultiLabelClassifier, OrdinalClassifier, PegasosClassifier, TextClassifier

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


# The text model takes any number of classes. Beside it a published learner, and River's wrapper of any classifier.
for name, model in {
    "TextClassifier()": TextClassifier(),
    "Crammer and Singer": TextClassifier(classifier=PegasosClassifier(multi_class="crammer_singer")),
    "River, one against one": multiclass.OneVsOneClassifier(TextClassifier()),
}.items():
    accuracy = evaluate.progressive_val_score(messages(SUBJECTS, 3_000, seed=1), model, metrics.Accuracy())
    print(f"{name:<22} {accuracy}")

# Stars from 0 to 4, each with the words of its neighbours, too: it counts how far an answer is off. On real reviews
# the order pays, as the README's tables tell; on a stream as plain as this one, classes do as well.
stars = {star: OPINIONS[max(0, star - 1) : star + 2] for star in range(5)}
for name, model in {
    "as classes": TextClassifier(),
    "in order": TextClassifier(classifier=OrdinalClassifier()),
    "in order, as published": TextClassifier(classifier=OrdinalClassifier(PegasosClassifier(l2=1e-3, t0=1e3))),
}.items():
    error = metrics.MAE()
    for text, star in messages(stars, 3_000, seed=2):
        error.update(star, model.predict_one(text) or 0)
        model.learn_one(text, star)
    print(f"stars {name:<22} {error}")

# Labels that may hold together: two messages in one are about both of their subjects.
model, right = TextClassifier(classifier=MultiLabelClassifier()), 0
pairs = zip(messages(SUBJECTS, 3_000, seed=3), messages(SUBJECTS, 3_000, seed=4), strict=True)
for (text, subject), (other_text, other_subject) in pairs:
    labels = {label for label, holds in model.predict_one(f"{text} {other_text}").items() if holds}
    right += labels == {subject, other_subject}
    model.learn_one(f"{text} {other_text}", {subject, other_subject})
print(f"exactly the right subjects: {right / 3_000:.2%}")
