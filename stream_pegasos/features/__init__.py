"""Features of messages and tables, for any text and any field.

| what | file |
|---|---|
| a message, its fields, and the interface of features | `message`, `base` |
| the recipe for texts; scikit-learn's hashing | `text`, `hashing` |
| categories, numbers, times | `fields` |
| vectors of words from tables | `vectors`, `tables` |
| encoders in the process, and behind a URL | `encoders`, `encoder_servers` |
| frames and matrices | `frames` |
"""
