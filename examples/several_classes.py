"""More than two classes: one binary text model for each, behind River's one-against-the-rest."""

import random

from river import evaluate, metrics, multiclass

from stream_pegasos import PegasosTextClassifier

SUBJECTS = {
    "sport": ["match", "goal", "coach", "league", "injury", "final"],
    "money": ["shares", "profit", "bank", "rates", "market", "bonds"],
    "weather": ["rain", "storm", "sunny", "wind", "frost", "clouds"],
}
ANY = [word for words in SUBJECTS.values() for word in words]
COMMON = ["today", "report", "people", "says", "after", "week", "city", "more"]


def stream(n: int, seed: int):
    rng = random.Random(seed)
    for _ in range(n):
        subject = rng.choice(list(SUBJECTS))
        words = rng.choices(COMMON, k=8) + rng.choices(SUBJECTS[subject], k=2) + rng.choices(ANY, k=1)
        rng.shuffle(words)
        yield " ".join(words), subject


model = multiclass.OneVsRestClassifier(PegasosTextClassifier())
print(evaluate.progressive_val_score(stream(3_000, seed=1), model, metrics.Accuracy()))
