"""An online learner for text: a linear SVM trained by Pegasos, one message at a time, that plugs into River."""

from stream_pegasos.features.hashing import HashedBagOfWords
from stream_pegasos.features.text import TextFeatures
from stream_pegasos.learners.adaptive import AdaptiveClassifier
from stream_pegasos.learners.kernel import KernelPegasosClassifier
from stream_pegasos.learners.multilabel import MultiLabelClassifier
from stream_pegasos.learners.ordinal import OrdinalClassifier
from stream_pegasos.learners.pegasos import PegasosClassifier
from stream_pegasos.learners.persistence import load
from stream_pegasos.learners.text import TextClassifier

__version__ = "0.2.0"

__all__ = [
    "AdaptiveClassifier",
    "HashedBagOfWords",
    "KernelPegasosClassifier",
    "MultiLabelClassifier",
    "OrdinalClassifier",
    "PegasosClassifier",
    "TextClassifier",
    "TextFeatures",
    "__version__",
    "load",
]
