"""The engine in Python, in double precision. It is the specification of `compiled`, and its fallback.

*Encoders* turn inputs (feature dicts, sparse rows, texts) into rows of 64-bit keys and float values. A *rule* defines
the record of a feature, and how an example is scored and learned: Pegasos or AdaGrad. The *driver* runs examples
through a rule; `Learner` is both. `compiled` has the same names, the same arguments and, up to the rounding of single
precision, the same results.
"""

from stream_pegasos.common.locks import Lock
from stream_pegasos.engine.pure.adaptive import AdaptiveLearner
from stream_pegasos.engine.pure.driver import Learner, target_array
from stream_pegasos.engine.pure.encoders import Encoder, Rows, Vocabulary
from stream_pegasos.engine.pure.moments import find_numeric, learn_moments, standardize
from stream_pegasos.engine.pure.one_by_one import OneByOne
from stream_pegasos.engine.pure.pegasos import PegasosLearner
from stream_pegasos.engine.pure.probabilities import probabilities_many, probabilities_one
from stream_pegasos.engine.pure.scanner import Scanner
from stream_pegasos.engine.pure.weights import Row as Row

__all__ = [
    "AdaptiveLearner",
    "Encoder",
    "Learner",
    "Lock",
    "OneByOne",
    "PegasosLearner",
    "Rows",
    "Scanner",
    "Vocabulary",
    "find_numeric",
    "learn_moments",
    "probabilities_many",
    "probabilities_one",
    "standardize",
    "target_array",
]
