"""Filter a stream of messages: predict each one, then learn from its label; save the model and go on with it later."""

import tempfile
from pathlib import Path

from river import metrics

from stream_pegasos import TextClassifier
from stream_pegasos.streams import synthetic

stream = synthetic(n=10_000, seed=7)
model = TextClassifier()
accuracy = metrics.Accuracy()

for n, (text, label) in enumerate(stream, start=1):
    predicted = model.predict_one(text)
    accuracy.update(label, predicted)
    model.learn_one(text, label)
    if n % 2_000 == 0:
        print(f"{n:>6,} messages  {accuracy}")

with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "filter.safetensors"
    model.save(path)
    again = TextClassifier.load(path)

text = "Claim your free prize now"
probability = again.predict_proba_one(text)
print(f"{text!r}: " + ", ".join(f"{label} {p:.3f}" for label, p in probability.items()))
