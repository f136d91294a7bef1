"""Models of texts of each kind: of several classes, of ordered ones, of several labels a message."""

from stream_pegasos import MultiLabelClassifier, OrdinalClassifier, TextClassifier


def several_classes():
    return TextClassifier()


def ordered():
    return TextClassifier(classifier=OrdinalClassifier())


def several_labels():
    return TextClassifier(classifier=MultiLabelClassifier())
