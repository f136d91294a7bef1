"""The classifiers, with River's protocol, and their parts.

| what | file |
|---|---|
| the estimators | `adaptive`, `pegasos`, `multilabel`, `ordinal`, `kernel`; over texts `text` |
| the interface of all: River's protocol, inspection, files | `model` |
| what a model can | `capabilities` |
| classifiers over feature dicts | `classifier` |
| what a classifier is made of: learning in order, safe against interruptions | `trainer` |
| what a label is; typing errors; the numbers of labels | `label_policy`, `label_typos`; `labels` |
| how a label is decided; by thresholds, limits of false positives, F1 | `decision_policy`; `decisions`, \
`false_positives`, `f1_decisions` |
| a drift detector | `drift` |
| predictions and probabilities; sets of labels | `predictions`, `probabilities`; `coverage` |
| numeric features at one size | `feature_scaler` |
| explanations; names of features | `explanations`, `feature_names` |
| weights of classes; descriptions of labels | `class_weights`, `descriptions` |
| forgetting, merging | `forgetting`, `merging` |
| files, also of earlier versions | `files`, `loading`, `earlier` |
"""
