"""Long runs: models that learn and answer for months.

| what | file |
|---|---|
| a live stream: answers, labels, positions | `stream_runner`, `run_teaching` |
| a model that is asked and taught at once | `live_learner`, `limits`, `label_checks`, `micro_batching` |
| messages learned once by id, and corrected | `durable_learning`, `learned_ids`, `recent` |
| state that survives a kill | `checkpoints`, `journal` |
| runs that share a stream | `shared_checkpoint`, `sharing` |
| the view of people, and their labels | `monitor`, `explaining`, `active_learning`, `wrong_answers` |
| a teacher | `teacher`, `teaching`, `questions` |
| refused and failed requests | `refusals`, `failures` |
| answers and parameters as JSON | `answers`, `parameters` |
"""
