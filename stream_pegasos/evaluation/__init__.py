"""Evaluation of models on a stream.

| what | file |
|---|---|
| prequential evaluation of one model or several, and its results | `prequential`, `results`, `report`, `plot` |
| a model over chunks of a stream, used by all layers above; labels that come late | `blocks`, `predicted`; `late` |
| River's models behind the same interface | `river_models` |
| scores of one label or several, and of ordered labels | `scores`, `label_scores`; `tallies`, `ranking`, `curve` |
| the search for the best options on a stream | `tuning` |
"""
