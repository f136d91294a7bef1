"""Inside River: a pipeline of the two parts, other features beside the text, late labels, and drift."""

from river import compose, drift, evaluate, metrics

from stream_pegasos import HashedBagOfWords, PegasosClassifier
from stream_pegasos.streams import synthetic

# Messages as dicts, the text in one field and a number in another.
messages = [({"body": text, "length": len(text)}, label) for text, label in synthetic(n=5_000, seed=7)]

words = HashedBagOfWords(on="body", ngram_range=(1, 2), binary=True)
length = compose.Select("length") | compose.FuncTransformer(lambda x: {"length": x["length"] / 100})
model = (words + length) | PegasosClassifier(l2=1e-3, t0=1e3)

print("labels at once: ", evaluate.progressive_val_score(messages, model.clone(), metrics.Accuracy()))
print("500 messages on:", evaluate.progressive_val_score(messages, model.clone(), metrics.Accuracy(), delay=500))

# A fresh model takes over when River's detector sees the accuracy fall.
retrained = drift.DriftRetrainingClassifier(
    HashedBagOfWords(on="body") | PegasosClassifier(), drift_detector=drift.binary.DDM()
)
print("with retraining:", evaluate.progressive_val_score(messages, retrained, metrics.Accuracy()))
