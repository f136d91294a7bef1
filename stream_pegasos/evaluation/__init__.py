"""How good a model is.

| what | file |
|---|---|
| prequential evaluation of one model or several, and what it gives | `prequential`, `results`, `report`, `plot` |
| a model over chunks of a stream, which all above it uses; labels that come late | `blocks`, `predicted`; `late` |
| River's models behind the same interface | `river_models` |
| scores of one label, of ordered ones, of several | `scores`, `label_scores`, over `tallies`, `ranking` and `curve` |
| which options predict a stream best | `tuning` |
"""
