"""The engine in plain Python: the readable specification of `compiled`, and the fallback where that is missing.

*Encoders* turn what comes in (feature dicts, sparse rows, texts) into rows of 64-bit keys and float values; *learners*
take steps on such rows, those of Pegasos on one weight vector, on several at once or on none with a kernel in its
place, or those of AdaGrad; a `WeightDict` holds the weights of Pegasos. `compiled` has the same names, the same
arguments and, to rounding, the same results.
"""

from stream_pegasos.engine.pure.adaptive import AdaptiveLearner
from stream_pegasos.engine.pure.encoders import Encoder, Rows, Vocabulary
from stream_pegasos.engine.pure.kernel import KernelLearner
from stream_pegasos.engine.pure.learner import Learner, signs_of
from stream_pegasos.engine.pure.multi import MultiLearner
from stream_pegasos.engine.pure.scanner import Scanner
from stream_pegasos.engine.pure.weights import Row, WeightDict

__all__ = [
    "AdaptiveLearner",
    "Encoder",
    "KernelLearner",
    "Learner",
    "MultiLearner",
    "Row",
    "Rows",
    "Scanner",
    "Vocabulary",
    "WeightDict",
    "signs_of",
]
