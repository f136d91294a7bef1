"""An online learner for text: it predicts each message as it comes, learns from its label, and plugs into River."""

from typing import TYPE_CHECKING

__version__ = "0.3.0.dev0"

__all__ = [
    "AdaptiveClassifier",
    "Category",
    "HashedBagOfWords",
    "KernelPegasosClassifier",
    "MailFeatures",
    "MultiLabelClassifier",
    "Number",
    "OrdinalClassifier",
    "PegasosClassifier",
    "Teacher",
    "TextClassifier",
    "TextFeatures",
    "Time",
    "__version__",
    "iter_prequential",
    "load",
    "merge",
    "prequential",
]

if TYPE_CHECKING:
    from stream_pegasos.evaluation.prequential import iter_prequential, prequential
    from stream_pegasos.features.fields import Category, Number, Time
    from stream_pegasos.features.hashing import HashedBagOfWords
    from stream_pegasos.features.text import TextFeatures
    from stream_pegasos.learners.adaptive import AdaptiveClassifier
    from stream_pegasos.learners.kernel import KernelPegasosClassifier
    from stream_pegasos.learners.loading import load
    from stream_pegasos.learners.merging import merge
    from stream_pegasos.learners.multilabel import MultiLabelClassifier
    from stream_pegasos.learners.ordinal import OrdinalClassifier
    from stream_pegasos.learners.pegasos import PegasosClassifier
    from stream_pegasos.learners.text import TextClassifier
    from stream_pegasos.mail_text.features import MailFeatures
    from stream_pegasos.runtime.teacher import Teacher
else:
    # A name is imported when it is first asked for, so that the command and its --help start at once.
    _PLACES = {
        "AdaptiveClassifier": "learners.adaptive",
        "Category": "features.fields",
        "HashedBagOfWords": "features.hashing",
        "KernelPegasosClassifier": "learners.kernel",
        "MailFeatures": "mail_text.features",
        "MultiLabelClassifier": "learners.multilabel",
        "Number": "features.fields",
        "OrdinalClassifier": "learners.ordinal",
        "PegasosClassifier": "learners.pegasos",
        "Teacher": "runtime.teacher",
        "TextClassifier": "learners.text",
        "TextFeatures": "features.text",
        "Time": "features.fields",
        "iter_prequential": "evaluation.prequential",
        "load": "learners.loading",
        "merge": "learners.merging",
        "prequential": "evaluation.prequential",
    }

    def __getattr__(name):
        if name not in _PLACES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        from importlib import import_module

        found = globals()[name] = getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
        return found

    def __dir__():
        return sorted({*(name for name in globals() if name.startswith("__")), *__all__})
