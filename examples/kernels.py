"""A kernel for classes that no plane separates, on an endless stream: a budget limits memory and time."""

import random
from time import perf_counter

from river import feature_extraction, metrics

from stream_pegasos import KernelPegasosClassifier, PegasosClassifier


def rings(n: int, seed: int):
    """Points of two rings, one inside the other."""
    rng = random.Random(seed)
    for _ in range(n):
        inside = rng.random() < 0.5
        x, y = rng.gauss(0, 1), rng.gauss(0, 1)
        radius = (1.0 if inside else 2.0) + rng.gauss(0, 0.25)
        length = (x * x + y * y) ** 0.5 or 1.0
        yield {"x": radius * x / length, "y": radius * y / length}, inside


N = 1_000
models = {
    "linear": PegasosClassifier(l2=1e-3),
    "River's RBFSampler | linear": feature_extraction.RBFSampler(gamma=1.0, n_components=100, seed=1)
    | PegasosClassifier(l2=1e-3),
    "RBF kernel, all kept": KernelPegasosClassifier(l2=1e-3),
    "RBF kernel, 50 kept": KernelPegasosClassifier(l2=1e-3, budget=50),
    # A kernel is any function of two dicts that is a Mercer kernel.
    "a kernel of one's own": KernelPegasosClassifier(
        l2=1e-3, budget=50, kernel=lambda a, b: (1.0 + a["x"] * b["x"] + a["y"] * b["y"]) ** 2
    ),
}
for name, model in models.items():
    accuracy, start = metrics.Accuracy(), perf_counter()
    for x, y in rings(N, seed=7):
        accuracy.update(y, model.predict_one(x))
        model.learn_one(x, y)
    seconds = perf_counter() - start
    kept = f"{len(model.support_vectors)} support vectors" if isinstance(model, KernelPegasosClassifier) else ""
    print(f"{name:<28} {accuracy}  {N / seconds:>9,.0f} examples/s  {kept}")
