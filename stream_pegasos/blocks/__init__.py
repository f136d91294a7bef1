"""Models over the examples of a stream, block by block.

| what | file |
|---|---|
| chunks of a stream; predict and learn a block, and pass over the examples that a model refuses | `blockwise` |
| the predictions of a block, and its answers | `predicted` |
| River's models behind the same interface | `river_models` |
"""
