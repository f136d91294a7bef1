"""From messages and tables to features: what any text and any field needs.

| what | file |
|---|---|
| a message, its fields, and what features read of it | `message`, `base` |
| the recipe for texts; scikit-learn's hashing | `text`, `hashing` |
| categories, numbers, times | `fields` |
| vectors of words from tables | `vectors`, `tables` |
| encoders in the process, and behind a URL | `encoders`, `encoder_servers` |
| frames and matrices | `frames` |
"""
