"""The classifiers, with River's protocol, and what they consist of.

| what | file |
|---|---|
| the estimators | `adaptive`, `pegasos`, `multilabel`, `ordinal`, `kernel`; over texts `text` |
| the face of all of them: River's protocol, inspection, files | `model` |
| their base: labels, scores, state; learning in turn, and what an interruption leaves | `classifier`, `learning` |
| what a label is; numbers of labels, and which is the positive one | `label_meaning`, `labels` |
| thresholds; limits of false positives; decisions for F1 | `decisions`, `false_positives`, `f1_decisions` |
| what learns from each prediction; a drift detector | `watched`, `drift` |
| predictions and probabilities | `predictions`, `probabilities` |
| explanations; names of features | `explanations`, `feature_names` |
| weights of classes; descriptions of labels | `class_weights`, `descriptions` |
| forgetting, merging | `forgetting`, `merging` |
| files, also of earlier versions | `files`, `loading`, `earlier` |
"""
