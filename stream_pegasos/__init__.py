"""An online learner for text: a linear SVM trained by Pegasos, one message at a time, that plugs into River."""

from stream_pegasos.features import HashedBagOfWords
from stream_pegasos.linear import PegasosClassifier
from stream_pegasos.persistence import load
from stream_pegasos.text import PegasosTextClassifier

__all__ = ["HashedBagOfWords", "PegasosClassifier", "PegasosTextClassifier", "load"]
