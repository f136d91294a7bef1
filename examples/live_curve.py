"""Draw the accuracy of two models along a stream; run it again after a change, or in a notebook.

python examples/live_curve.py [STREAM]
"""

import sys

from matplotlib import pyplot
from river import feature_extraction, naive_bayes

from stream_pegasos import TextClassifier, iter_prequential
from stream_pegasos.streams import read, synthetic

models = {
    "TextClassifier": TextClassifier(),
    "River's naive Bayes": feature_extraction.BagOfWords() | naive_bayes.MultinomialNB(),
}
stream = ((each.x, each.y) for each in read(sys.argv[1])) if len(sys.argv) > 1 else synthetic(4_000)
_, axes = pyplot.subplots()
for compared in iter_prequential(stream, models, every=500):
    axes.clear()
    compared.plot(axes)
    pyplot.pause(0.01)
print(compared)
