import doctest
import importlib
import pkgutil

import pytest

pytestmark = pytest.mark.spark


def test_examples_run(spark):
    from stream_pegasos import spark as package

    names = [name for _, name, _ in pkgutil.iter_modules(package.__path__, f"{package.__name__}.")]
    results = [doctest.testmod(importlib.import_module(name), extraglobs={"spark": spark}) for name in names]
    assert not sum(result.failed for result in results)
    assert sum(result.attempted for result in results)
