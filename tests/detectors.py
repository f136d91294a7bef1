"""Drift detectors that fail."""

from river import drift


class Raises(drift.binary.DDM):
    """It fails at the n-th prediction that it is told of."""

    def __init__(self, n=5):
        super().__init__()
        self.n = n

    def update(self, x):
        self.n -= 1
        if not self.n:
            raise ValueError("enough")
        super().update(x)
