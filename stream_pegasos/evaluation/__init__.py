"""Evaluation of models on a stream.

| what | file |
|---|---|
| prequential evaluation of one model or several, and its results | `prequential`, `results`, `report`, `plot` |
| labels that come late; wrong labels | `late`; `label_errors` |
| scores of one label or several, and of ordered labels | `scores`, `label_scores`; `tallies`, `ranking`, `curve` |
| the table of metrics | `metric_names` |
| the search for the best options on a stream | `tuning` |
"""
