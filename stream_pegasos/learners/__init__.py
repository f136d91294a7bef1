"""The classifiers, with River's protocol, and their parts.

| what | file |
|---|---|
| the estimators | `adaptive`, `pegasos`, `multilabel`, `ordinal`, `kernel`; over texts `text` |
| the interface of all: River's protocol, inspection, files; what it asks of a classifier | `model`; `core` |
| what a model can | `capabilities` |
| their base classes: labels, scores, state; learning in order, safe against interruptions | `classifier`, `learning` |
| what a label is; typing errors; the numbers of labels | `label_policy`, `label_typos`; `labels` |
| thresholds; limits of false positives; decisions for F1 | `decisions`, `false_positives`, `f1_decisions` |
| classifiers that also learn from their predictions; a drift detector | `watched`, `drift` |
| predictions and probabilities; sets of labels | `predictions`, `probabilities`; `coverage` |
| numeric features at one size | `feature_scaler` |
| explanations; names of features | `explanations`, `feature_names` |
| weights of classes; descriptions of labels | `class_weights`, `descriptions` |
| forgetting, merging | `forgetting`, `merging` |
| files, also of earlier versions | `files`, `loading`, `earlier` |
"""
