"""What only some processors have changes no bit: the engine without it gives the same."""

import shutil
import subprocess
import sysconfig
import textwrap
from pathlib import Path

import pytest
from engines import needs_compiled
from interpreter import run

import stream_pegasos

DIGESTS = """
    import hashlib, itertools, json, pathlib, random, tempfile
    from estimators import CASES
    from stream_pegasos import AdaptiveClassifier, HashedBagOfWords, TextClassifier, TextFeatures, engine
    from stream_pegasos.streams import synthetic

    assert engine.NAME == "compiled"
    digests, path = {"engine": engine.chosen.__file__}, pathlib.Path(tempfile.mkdtemp(), "model")
    texts, labels = zip(*synthetic(n=600, seed=4))
    pieces = [*texts, "ÉÀ ß 漢字かなカ 한국어 İΣς मुझे \\u0301 👩‍👧 \\ud800", "x" * 5_000, " \\t\\x1c\\x85,.!" * 300]
    generator = random.Random(3)
    nasty = ["".join(generator.choices(pieces, k=3))[generator.randrange(70):] for _ in range(300)]
    models = [case.trained(60) for case in CASES if case.can_be_saved]
    for options in ({}, {"naive_bayes": False}, {"loss": "hinge", "half_life": 50.0}):
        for of in (list(labels), [len(text) % 7 for text in texts]):
            models.append(TextClassifier(TextFeatures(), AdaptiveClassifier(**options)))
            models[-1].learn_many(texts, of)
    for i, model in enumerate(models):
        model.save(path)
        digests[f"model {i}"] = hashlib.sha256(path.read_bytes()).hexdigest()
        if i > len(CASES):
            digests[f"said {i}"] = hashlib.sha256(model.predict_proba_many(nasty).tobytes()).hexdigest()
    some = {}, {"analyzer": "char_wb", "ngram_range": (2, 3)}, {"norm": "l1", "binary": False, "lowercase": False}
    for kind, options in itertools.product((HashedBagOfWords, TextFeatures), some):
        found = kind(**options).transform_many(nasty)
        digest = hashlib.sha256(found.indices.tobytes() + found.data.tobytes()).hexdigest()
        digests[f"{kind.__name__} {options}"] = digest
    print(json.dumps(digests))
"""


@needs_compiled
@pytest.mark.heavy
def test_the_portable_engine_gives_the_same_bits(tmp_path):
    package = Path(stream_pegasos.__file__).parent
    source = package / "engine" / "compiled.c"
    if not source.exists() or sysconfig.get_config_var("CC") is None:
        pytest.skip("the engine was built elsewhere")
    shutil.copytree(package, tmp_path / package.name, ignore=shutil.ignore_patterns("*.so", "*.c", "__pycache__"))
    target = tmp_path / package.name / "engine" / f"compiled{sysconfig.get_config_var('EXT_SUFFIX')}"
    compiler = sysconfig.get_config_var("CC").split()
    folders = [f"-I{sysconfig.get_path('include')}", f"-I{package / 'engine'}"]
    flags = ["-shared", "-fPIC", "-O1", "-ffp-contract=off", "-DSP_PORTABLE", *folders]
    subprocess.run([*compiler, *flags, str(source), "-o", str(target)], check=True)
    portable = run(f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n{textwrap.dedent(DIGESTS)}")
    usual = run(DIGESTS)
    assert portable.pop("engine") == str(target) != usual.pop("engine")
    assert portable == usual and len(usual) > 60
