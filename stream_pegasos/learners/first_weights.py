"""First weights, drawn feature by feature."""

from __future__ import annotations

import hashlib
import secrets
from typing import TYPE_CHECKING, Any

from stream_pegasos.common.checks import check_integer, check_number
from stream_pegasos.common.packing import is_initializer
from stream_pegasos.engine.pure.weights import VALUE_LIMIT

if TYPE_CHECKING:
    from river.optim.initializers import Initializer


def check_seed(seed: Any) -> int:
    check_integer("seed", seed, -(1 << 64), 1 << 64)
    return int(seed)


class FirstWeights:
    """The first weight of each feature, which depends on the seed and the feature's name alone."""

    def __init__(self, initializer: Initializer) -> None:
        if not is_initializer(initializer):
            raise TypeError(f"initializer is {initializer!r}; it must be one of river.optim.initializers, or None")
        self.initializer = initializer.clone()
        seed = getattr(initializer, "seed", None)
        self.seed: int = secrets.randbits(32) if seed is None else check_seed(int(seed))
        check_number("a weight that the initializer gives", self._draw("any"), -VALUE_LIMIT, VALUE_LIMIT)

    def __call__(self, name: Any) -> float:
        return min(max(self._draw(name), -VALUE_LIMIT), VALUE_LIMIT)

    def _draw(self, name: Any) -> float:
        initializer = self.initializer
        if hasattr(initializer, "seed"):
            text = repr((self.seed, name)).encode("utf-8", "surrogatepass")
            seed = int.from_bytes(hashlib.blake2b(text, digest_size=4).digest())
            initializer = initializer.clone({"seed": seed})
        return float(initializer(shape=1))
