"""The rules of both engines, each with some options: what is said of all of them is tried on each."""

import math

import numpy as np
import pytest
from engines import pure_engine


def pegasos(reduction="two", l2=0.1, batch_size=4, project=True, scaling=0.5, **others):
    def make(engine_in_test):
        return engine_in_test.PegasosLearner(l2, batch_size, 0.5, project, scaling, reduction=reduction, **others)

    return make


ORDER = np.array([3, 1, 4, 0, 2])  # of classes as they come
SETS = (np.array([0, 0, 1, 3, 5]), np.array([0, 1, 2, 0, 3]))  # several labels an example


def adaptive(*options, reduction="two"):
    def make(engine_in_test):
        learner = engine_in_test.AdaptiveLearner(*options, reduction=reduction)
        learner.order, learner.sets = ORDER, SETS
        return learner

    return make


AVERAGES = {"average_from": 1, "average_by_t": True}
# A rule with options, by name; all that is below is tried on each.
LEARNERS = {
    "two": pegasos(),
    "two, an example a step": pegasos(batch_size=1, scaling=0.0),
    "two, average": pegasos(**AVERAGES),
    "two, average from step 3": pegasos(average_from=3),
    "two, small l2": pegasos(l2=1e-30, project=False),
    "two, large l2": pegasos(l2=1e30),
    **{reduction: pegasos(reduction) for reduction in ("ovr", "crammer_singer")},
    **{f"{reduction}, average": pegasos(reduction, **AVERAGES) for reduction in ("ovr", "crammer_singer")},
    "ovr, small l2": pegasos("ovr", l2=1e-30, project=False),
    "crammer_singer, large l2": pegasos("crammer_singer", l2=1e30),
    "adaptive": adaptive(0.5, False, 5.0, 0.5, 30.0, 0.1),
    "adaptive, hinge": adaptive(0.5, True, math.inf, 0.5, 30.0, 0.0),
    "adaptive, no naive Bayes": adaptive(0.5, False, 5.0, 0.0, 0.0, 0.1),
    "adaptive, extreme": adaptive(1e30, False, 5.0, 1e-30, 1.0, 1e30),
    **{
        f"{reduction} columns": adaptive(0.5, False, 5.0, 0.5, 30.0, 0.1, reduction=reduction)
        for reduction in ("ovr", "multilabel", "ordinal")
    },
    "ovr columns, hinge": adaptive(0.5, True, math.inf, 0.0, 30.0, 0.0, reduction="ovr"),
    "multilabel columns, extreme": adaptive(1e30, False, 5.0, 1e-30, 1.0, 1e30, reduction="multilabel"),
    "ordinal columns, extreme": adaptive(1e30, False, 5.0, 1e-30, 1.0, 1e30, reduction="ordinal"),
}
OF_TWO_CLASSES = [which for which in LEARNERS if not LEARNERS[which](pure_engine).has_class_columns]
for_each_learner = pytest.mark.parametrize("which", LEARNERS)


def random_example(generator, largest):
    size = 10.0 ** generator.integers(-300, largest)
    return {name: size * generator.normal() for name in ("a", 5, -5, 2**70) if generator.random() < 0.7}


def targets_of(learner):
    """What an example may be to a learner: the number of a class, or of a set."""
    if not learner.has_class_columns:
        return [0.0, 1.0]
    most = len(SETS[0]) - 1 if learner.parameters["reduction"] == "multilabel" else min(5, learner.n_columns + 1)
    return [float(number) for number in range(most)]


def history(which, *engines, n=60, extreme=False):
    """The learners and vocabularies of these engines, after each of some steps."""
    generator = np.random.default_rng(0)
    made = [(LEARNERS[which](engine_in_test), engine_in_test.Vocabulary()) for engine_in_test in engines]
    largest = 45 if extreme else 1
    yield made
    for i in range(n):
        if extreme:
            x, weights = random_example(generator, largest), [0.0, 1.0, 1e30, 1e-300]
        else:
            names = [("a", "b", 5, -5)[place] for place in generator.permutation(4)[:3]]
            x, weights = {name: float(generator.normal()) for name in names}, [1.0, 2.0]
        y, weight = float(generator.choice(targets_of(made[0][0]))), float(generator.choice(weights))
        for learner, vocabulary in made:
            learner.learn(vocabulary, x, y, weight)
            if extreme and i % 7 == 3:
                learner.flush()
            if extreme and i % 20 == 13 and not learner.has_class_columns:
                learner.set_state(learner.declaration.mirrored(learner.get_state()))
            if extreme and i % 20 == 7 and hasattr(learner, "forget"):
                learner.forget([1.0, 0.5, 1e-6][i % 3])
        yield made


def learned(which, engine_in_test=pure_engine):
    """A learner after some steps, with examples that wait where it has any, and the names of its features."""
    *_, [(learner, vocabulary)] = history(which, engine_in_test, n=58)
    return learner, vocabulary.names
