"""An online learner for text: a linear SVM trained by Pegasos, one message at a time, that plugs into River."""

from stream_pegasos.adaptive import AdaptiveClassifier
from stream_pegasos.features import HashedBagOfWords
from stream_pegasos.kernel import KernelPegasosClassifier
from stream_pegasos.linear import PegasosClassifier
from stream_pegasos.multiclass import MulticlassPegasosClassifier
from stream_pegasos.ordinal import OrdinalPegasosClassifier
from stream_pegasos.persistence import load
from stream_pegasos.text import PegasosTextClassifier

__version__ = "0.1.0"

__all__ = [
    "AdaptiveClassifier",
    "HashedBagOfWords",
    "KernelPegasosClassifier",
    "MulticlassPegasosClassifier",
    "OrdinalPegasosClassifier",
    "PegasosClassifier",
    "PegasosTextClassifier",
    "__version__",
    "load",
]
