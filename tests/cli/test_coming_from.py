"""Each row of the guide for those who come from another tool: what it names there and here is run."""

import importlib.util
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands import environment, stream, write_jsonl
from reading import bad_lines
from river import compose, drift, evaluate, feature_extraction, linear_model, metrics, multiclass, optim, preprocessing
from sklearn.feature_extraction.text import HashingVectorizer

import stream_pegasos
from stream_pegasos import TextClassifier

GUIDE = Path(__file__).parents[2] / "examples" / "guides" / "coming_from.md"
CELLS = re.compile(r"^\| (.+?) \| (.+) \|$", re.MULTILINE)
CODE = re.compile(r"`([^`]+)`")

VW = {  # by the beginning of the left cell, what is run there, and here
    "`vw mail.vw -f m.model`": ("-d mail.vw -f m.model", ["train mail.vw --save m.safetensors"]),
    "`vw -i m.model": ("-i m.model -t -d new.vw -p said.txt", ["predict m.safetensors new.vw --output said.csv"]),
    "progressive loss": ("-d mail.vw", ["evaluate mail.vw"]),
    "`-b 22`": ("-b 22 -d mail.vw", ["""train t.jsonl --features '{"n_features": 4194304}' --save a"""]),
    "`--ngram 2`": ("--ngram 2 -d mail.vw", ["train t.jsonl --save a"]),
    "`--loss_function": (
        "--loss_function hinge -d mail.vw",
        ['AdaptiveClassifier(loss="log").learn_one(x, 1)', 'AdaptiveClassifier(loss="hinge").learn_one(x, 1)'],
    ),
    "`--link logistic`": ("--link logistic -d mail.vw", ["predict m.safetensors mail.vw"]),
    "`--oaa 77`": ("--oaa 3 -d topics.vw --named_labels oil,tea,2", ["train mail.vw --save a"]),
    "`--multilabel_oaa 90`": ("--multilabel_oaa 90 -d several.vw", ["train several.vw --multi-label --save a"]),
    "`-l 0.5`": ("-l 0.5 --power_t 0.5 -d mail.vw", ["train mail.vw --learning-rate 0.3 --save a"]),
    "`--l2`": ("--l2 0.001 -d mail.vw", ["train mail.vw --classifier pegasos --l2 0.001 --save a"]),
    "`--save_resume`": ("--save_resume -d mail.vw -f m.model", ["train m.safetensors mail.vw --save a"]),
    "importance weights": (
        "-d weights.vw",
        ["train weights.vw --strict --save a", "TextClassifier().learn_one(text, 1, w=2.0)"],
    ),
    "initial predictions": ("-d weights.vw", ["train weights.vw --strict --save a"]),
    "`--holdout_off`": ("--holdout_off --passes 2 -c -k -d mail.vw", ["train mail.vw --save a"]),
    "`--daemon`": ("", ["serve --help"]),
    "`--audit`": ("--invert_hash words.txt -d mail.vw", ["explain m.safetensors"]),
    "`--active`": ("--active --simulation -d mail.vw", []),
    "namespaces": ("-d mail.vw", ["train mail.vw --text-field subject,body --fields n.amount:number --save a"]),
    "`-q`, regression": (
        "-q sn -d numbers.vw",
        [f"assert bad({line!r})" for line in ("3.5 | x", "1:0.5 | x", "shared | x")],
    ),
}
FASTTEXT = {
    "`__label__spam": ["train mail.txt --format fasttext --save a"],
    "`train_supervised": ["train mail.txt --format fasttext --save m.safetensors"],
    "`-wordNgrams 2`": ["assert TextFeatures().ngram_range == (1, 2)"],
    "`-minn 2 -maxn 5`": [
        """train t.jsonl --features '{"analyzer": "char_wb", "ngram_range": [2, 5]}' --save a""",
        "assert TextFeatures() != TextFeatures(letters=0)",
    ],
    "`-epoch 25`": ["train t.jsonl --save a"],
    "`-lr`": ["train t.jsonl --learning-rate 0.3 --save a"],
    "`-dim`": [],
    "`-pretrainedVectors": ["train t.jsonl --vectors cc.de.300.vec --save a"],
    "`-loss ova`": ["train t.jsonl --multi-label --save a"],
    "learns in batch": [],
}
RIVER = {
    "`BagOfWords() \\| Log": [
        "TextClassifier().learn_one(text, 1)",
        "(BagOfWords() | LogisticRegression()).learn_one(text, 1)",
    ],
    "`BagOfWords(ngram": [
        "HashedBagOfWords(ngram_range=(1, 2)).transform_one(text)",
        "BagOfWords(ngram_range=(1, 2)).transform_one(text)",
    ],
    '`compose.Select("subject") \\| B': [
        'features = TextFeatures(on="subject") + TextFeatures(on="body")',
        'TextClassifier(features).learn_one({"subject": "a", "body": "b"}, 1)',
        'compose.Select("subject") | BagOfWords()',
    ],
    '`compose.Select("sender")': [
        'TextClassifier(Category(on="sender") + Number(on="size")).learn_one({"sender": "a", "size": 2}, 1)',
        'compose.Select("sender") | preprocessing.OneHotEncoder()',
    ],
    "`linear_model.Log": ["AdaptiveClassifier().learn_one(x, 1)", "linear_model.LogisticRegression(optim.AdaGrad())"],
    "`linear_model.PA": [
        "PegasosClassifier().learn_one(x, 1)",
        "linear_model.PAClassifier()",
        "linear_model.Perceptron()",
    ],
    "`multiclass.One": [
        "multiclass.OneVsRestClassifier(linear_model.LogisticRegression())",
        "model.learn_one(text, 'third')",
    ],
    "`evaluate.progressive": [
        "evaluate.progressive_val_score(stream, TextClassifier(), metrics.Accuracy())",
        "stream_pegasos.prequential(stream, TextClassifier())",
    ],
    "`drift.Drift": [
        "drift.DriftRetrainingClassifier(TextClassifier())",
        "AdaptiveClassifier(drift_detector=drift.ADWIN())",
    ],
    "pickles": ["model.save('saved')", "assert load('saved').classes == model.classes"],
}
SKLEARN = {
    "`HashingVectorizer": [
        "row = HashingVectorizer(n_features=16).transform([text])",
        "ours = HashedBagOfWords(n_features=16).transform_one(text)",
        "assert ours == dict(zip(row.indices.tolist(), row.data.tolist()))",
    ],
    "`ColumnTransformer`": [
        'features = TextFeatures(on="body") + Category(on="sender") + Number(on="size")',
        'TextClassifier(features).learn_one({"body": "a"}, 1)',
    ],
    "`TfidfVectorizer()`": [],
    "`SGDClassifier": ["PegasosClassifier(l2=1e-4, project=False, t0=9.0).learn_one(x, 1)"],
    "`partial_fit": ["model.learn_many(X, y)"],
    "`predict_proba`": ["model.predict_proba_one(text)", "model.predict_proba_many(X)"],
    "`class_weight": ['AdaptiveClassifier(class_weight="balanced")', 'AdaptiveClassifier(class_weight="sqrt")'],
    "`TunedThreshold": ['AdaptiveClassifier(decide_for="macro_f1").learn_one(x, "third")'],
    "`CalibratedClassifierCV`": [],
    "embeddings": ['TextFeatures(vectors="cc.de.300.vec")', 'assert "wordllama" in TextFeatures.__doc__'],
    "`OneVsRest": ['MultiLabelClassifier().learn_one(x, {"a", "b"})'],
    "`joblib.dump`": ["path = 'saved'", "model.save(path)"],
    "`n_jobs=2`": ["model.learn_many(X, y, threads=2)"],
}
SECTIONS = {"Vowpal Wabbit": VW, "fastText": FASTTEXT, "River": RIVER, "scikit-learn": SKLEARN}
TABLES = dict(re.findall(r"^## (.+?)\n(.*?)(?=^## |\Z)", GUIDE.read_text("utf-8"), re.DOTALL | re.MULTILINE))


def rows_of(section):
    return CELLS.findall(TABLES[section])[1:]


@pytest.fixture
def files(here):
    """What the rows name."""
    write_jsonl("t.jsonl", stream[:40])
    lines = [
        f"{1 if y == 'spam' else -1} |subject {i} |body w{i % 7} |n amount:{i}\n"
        for i, (_, y) in enumerate(stream[:40])
    ]
    for name in ("mail.vw", "new.vw"):
        Path(name).write_text("".join(lines), encoding="utf-8")
    Path("topics.vw").write_text("oil | well\ntea | leaf\n2 | b\n", encoding="utf-8")
    Path("several.vw").write_text("1,2 | a b\n | c\n3 | b\n", encoding="utf-8")
    Path("weights.vw").write_text("1 2.0 | text\n-1 2.0 0.3 'tag| text\n", encoding="utf-8")
    Path("numbers.vw").write_text("3.5 | x\n", encoding="utf-8")
    Path("mail.txt").write_text("__label__spam win a prize\n__label__ham __label__dull lunch\n", encoding="utf-8")
    Path("cc.de.300.vec").write_text("".join(f"w{i} {i} 1 0\n" for i in range(9)), encoding="utf-8")


def test_the_tables_have_these_rows():
    for section, rows in SECTIONS.items():
        found = [next((key for key in rows if left.startswith(key)), left) for left, _ in rows_of(section)]
        assert found == [*rows]


CASES = [pytest.param(left, right, id=f"{section}: {left}") for section in SECTIONS for left, right in rows_of(section)]


@pytest.mark.parametrize(("left", "right"), CASES)
def test_what_a_row_names_here_works(left, right, files, ok):
    [found] = [given for rows in SECTIONS.values() for key, given in rows.items() if left.startswith(key)]
    snippets = found[1] if isinstance(found, tuple) else found
    for span in CODE.findall(right.replace("\\|", "|")):  # what stands there is what is run
        name = re.match(r"stream-pegasos (\S+)|([^(=]+\.)?[^(= ]+", span)
        assert any((name[1] or name[0]).strip(".") in snippet for snippet in snippets) or span in (
            ".vw",
            "__label__",
        ), span
    ok("train mail.vw --save m.safetensors")
    model = TextClassifier()
    model.learn_many(*map(list, zip(*stream[:40], strict=True)))
    tools = (compose, drift, evaluate, linear_model, metrics, multiclass, optim, preprocessing)
    names = {name: getattr(stream_pegasos, name) for name in stream_pegasos.__all__}
    names |= {tool.__name__.rpartition(".")[2]: tool for tool in tools}
    names |= {"model": model, "text": "win a prize", "x": {"a": 1.0}, "X": ["a", "b"], "y": ["ham", "spam"]}
    names |= {"stream": stream[:40], "stream_pegasos": stream_pegasos, "HashingVectorizer": HashingVectorizer}
    names |= {"BagOfWords": feature_extraction.BagOfWords, "LogisticRegression": linear_model.LogisticRegression}
    names["bad"] = lambda line: bad_lines(line.encode(), "vw")
    for snippet in snippets:
        if re.match(r"(train|predict|evaluate|serve|explain) ", snippet):
            ok(snippet)
        else:
            exec(snippet, names)


@pytest.mark.parametrize("options", [pytest.param(options, id=left) for left, (options, _) in VW.items() if options])
def test_what_a_row_names_there_works(options, files):
    """In Vowpal Wabbit itself."""
    if "-i" in options:
        run_vowpal_wabbit("-d mail.vw -f m.model")
    run_vowpal_wabbit(options)


RUN = "import sys, vowpalwabbit; vowpalwabbit.Workspace(arg_list=sys.argv[1:]).finish()"


def run_vowpal_wabbit(options):
    program = ["vw"] if shutil.which("vw") else [sys.executable, "-c", RUN]
    if program == ["vw"] or importlib.util.find_spec("vowpalwabbit"):
        words = [*program, *shlex.split(options), "--quiet", "--no_stdin"]
        subprocess.run(words, env=environment, check=True, timeout=120)
    else:
        pytest.skip("Vowpal Wabbit is not installed")
