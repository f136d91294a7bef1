"""Estimators for scikit-learn's pipelines, searches and cross-validation.

| what | file |
|---|---|
| classifiers over texts and matrices | `classifiers`, over `protocol` and `texts` |
| features as a transformer | `vectorizer` |
"""

from stream_pegasos.common.extras import missing

try:
    import sklearn  # noqa: F401
except ImportError as error:
    raise missing("stream_pegasos.sklearn", "sklearn", error) from None

from stream_pegasos.sklearn.classifiers import OnlineClassifier, OnlineTextClassifier
from stream_pegasos.sklearn.vectorizer import TextVectorizer

__all__ = ["OnlineClassifier", "OnlineTextClassifier", "TextVectorizer"]
