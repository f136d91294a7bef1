"""The picture in the README: accuracy over a stream, each message predicted before it is learned, and calibration.

python examples/prequential_curve.py [STREAM [PNG]]
"""

import sys

from stream_pegasos import TextClassifier
from stream_pegasos.evaluation.plot import save
from stream_pegasos.evaluation.prequential import evaluate
from stream_pegasos.streams import read, synthetic

stream = read(sys.argv[1]) if len(sys.argv) > 1 else synthetic()
evaluation = evaluate(TextClassifier(), stream)
png = sys.argv[2] if len(sys.argv) > 2 else "prequential_curve.png"
save(evaluation.curve, png, " ".join(sys.argv[1:2]), evaluation.score)
print(f"{evaluation.score.n:,} messages, accuracy {evaluation.score.accuracy:.4f}, AUC {evaluation.score.roc_auc:.4f}")
