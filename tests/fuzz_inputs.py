"""How the fuzzer makes an input of each kind: one that is right, changed in some places."""

import copy
import functools
import gzip
import io
import json
import math
import os
import re
import tempfile
import zlib
from pathlib import Path

import numpy as np
import orjson
import pyarrow
from compressions import COMPRESSIONS
from estimators import CASES, VECTORS
from pyarrow import parquet
from safetensors.numpy import load, save

import stream_pegasos
from stream_pegasos import AdaptiveClassifier, HashedBagOfWords, TextClassifier, TextFeatures
from stream_pegasos.learners import files
from stream_pegasos.streams import FORMATS

INTEGERS = [0, 1, -1, 2, 7, 255, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53, 2**60, 2**63 - 1, -(2**63)]
FLOATS = [0.0, -0.0, 0.5, -1.0, 1e-320, 1e-300, 1e30, 1e46, 1e300, -1e308, math.inf, -math.inf, math.nan]
NUMBERS = ["1e400", "-1e-400", "nan", "-inf", "1_000", "0x10", "\u0663", "9" * 400, "1e", ".", "-", "9" * 5000]

# What is put in, into anything: what means something in a stream, a mail, a header, a saved model.
TOKENS = rb""" " ' , : ; | # ( % < > { } [ [{ },{ \ \ud800 "\ud800" null true NaN Infinity __label__ qid: =? ?= -- &#
    <!-- .a. a1b $a charset= X-Mailer: =?utf-8?b? name*0*=utf-8''% <a~href='//x@ <div~style='font-size:0'>
    Received:~from~[ BZh9 PAR1 SPAMC/1. TELL CHECK Content-length:~ "text": "label": "weight": "id": "label":["a"]
    "label":"c" [0,0] {"text":"x","label":"ham"} "__metadata__": {"stream_pegasos": "F64" "BF16" "shape":[ """.split()
TOKENS = [token.replace(b"~", b" ") for token in TOKENS]
TOKENS += b"\t|\n|\n\n|\r|\r\n|\r\n\r\n| | a |\0|\x0b|\x1f|]\n[|\n--a\n\n|\xff|\xff\xfe|\xfe\xff".split(b"|")
TOKENS += b"\xc0\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xef\xbb\xbf \xe2\x80\xa8 \xd0\xb0 \x1f\x8b \x28\xb5\x2f\xfd".split()
TOKENS += [b"Content-Type: text/html; charset=utf-7\n\n", b"Content-Type: multipart/mixed; boundary=a\n\n--a\n"]
TOKENS += [b"Content-Type: message/rfc822\n\n", b"Content-Transfer-Encoding: base64\n", "\u200b\uff41".encode()]
TOKENS += [b"9" * 30, b"[" * 2000, b"a" * 2000, b'{"a":' * 300, b'{\\"a\\":1},' * 100, b'{"text":"x"},' * 20]
TOKENS += [each * 1000 for each in (b"[],", b"{},", b"0,")] + [b"\xff" * 8, b"\0" * 8, b"\xff\xfe\0\0"]
TOKENS += [str(number).encode() for number in INTEGERS + FLOATS + NUMBERS]
TOKENS += [number.tobytes() for number in (*np.array(INTEGERS), *np.array(FLOATS))]
TEXT_TOKENS = [*"\ud800\udfff\U0010ffff\0\ufeff\u0130\u03a3\u1e9e\u0345\ufdfa0\u0660_ \n\x1c\u3000\u200dé?;/"]
TEXT_TOKENS += ["<s>", "</s>", "//", "..", "%00", *NUMBERS[:10]]


def below(random, n):
    """An int from 0 to n - 1; faster than `randrange`."""
    return int(random.random() * n)


def character(random):
    return chr(below(random, 0x110000 if random.random() < 0.5 else 0x800))


def mutated(random, data, others):
    """Bytes or a text, changed in some places."""
    of_bytes = isinstance(data, bytes)
    for _ in range(1 + below(random, 4)):
        i, size = below(random, len(data) + 1), 1 + below(random, 8)
        kind = below(random, 9)
        if kind < 2:
            data = data[:i] + (bytes((below(random, 256),)) if of_bytes else character(random)) + data[i + 1 :]
        elif kind < 5:
            token = random.choice(TOKENS if of_bytes else TEXT_TOKENS)
            data = data[:i] + token + data[i + (size if kind == 4 else 0) :]
        elif kind == 5:
            data = data[:i] + data[i + size :]
        elif kind == 6:
            other = random.choice(others)
            data = data[:i] + other[below(random, len(other) + 1) :]
        elif kind == 7:
            data = data[:i] + data[i : i + size] * (1 << below(random, 8)) + data[i:]
        elif random.random() < 0.5:
            data = data[:i]
    return data


TEXTS = [
    "",
    "Win a FREE prize now!!! Call 0800-123456",
    "see you at lunch, 12:30?",
    "I'm here\tthere\r\nand everywhere\x0b\x0c\x1c\x85\u2028",
    "naïve café ﬁne Straße İstanbul ΣΊΣΥΦΟΣ ǅ ŉ",
    "漢字かな交じり文 한국어 ภาษาไทย हिन्दी",
    "3个iPhone手机,很好! ខ្មែរ\u200bល្អ မန္တလေး か\u3099 \u1112\u1161\u11ab e\u0301\u0323 ﾊﾟ",
    "👩\u200d👩\u200d👧 \U0001f1e9\U0001f1ea e\u0301\u0323 \u202eabc\u202c \ufeff\u00ad",
    "\ud800\udfff\udc00 lone \ud83d and low \ude00",
    "\x00a\x00b\x00 \x7f\x80\x9f",
    "<s> </s> <script>alert(1)</script> ' OR 1=1; -- ../../etc/passwd %s {0}",
    "_ __ a_b 3.14 ٣٤٥ \uff14\uff12 ² ½ Ⅷ",
    "aaaaaaaaaaaaaaaabbbbbbbbbbbbbbbbccccccccccccccccdddddddddddddddd" * 4,
]


def text(random):
    made = mutated(random, random.choice(TEXTS), TEXTS)
    if random.random() < 0.1:
        made = "".join([character(random) for _ in range(below(random, 40))])
    return made * below(random, 2000) if random.random() < 0.0002 else made


SOMETIMES = [False, True]
FEATURES = {
    "n_features": [1, 2, 10, 1000, 2**20, 2**30, 2**31 - 11],
    "ngram_range": [(low, high) for low in (1, 2, 3) for high in range(low, low + 3)],
    "lowercase": [True, True, False],
    "strip_accents": [None, None, None, "unicode", "ascii"],
    "norm": ["l2", "l2", "l1", None],
}
FEATURES |= dict.fromkeys(("binary", "alternate_sign"), SOMETIMES) | {"mask_digits": [*SOMETIMES, "both"]}
OF_WORDS = {"stop_words": [None] * 4 + [["the", "a", "\ud800", "prize"]], "prefix_length": [0, 1, 4, 1000]}
OF_WORDS |= {"boundaries": SOMETIMES, **FEATURES}
PATTERNS = [r"\w+", r"\b\w\w+\b", r"\w+|[^\w\s]", r"\S+", r"\b\d+|\w"]
KINDS_OF_FEATURES = [
    (HashedBagOfWords, {"analyzer": ["char", "char_wb"], **FEATURES}),
    (HashedBagOfWords, {"token_pattern": PATTERNS, **OF_WORDS}),
    (TextFeatures, {"vectors": [None, VECTORS], "letters": [None, 0, 1], "length": [None, 0], **OF_WORDS}),
]
CLASSIFIERS = [
    case.make for case in CASES if case.of == "features" and case.can_be_saved and case.classes in ("two", "growing")
]


def features(random):
    """Some with random options."""
    kind, options = random.choice(KINDS_OF_FEATURES)
    return kind(**{name: random.choice(values) for name, values in options.items()})


def classifier_for(features, random):
    made = random.choice(CLASSIFIERS)()
    return made if features.vector_source is None or isinstance(made, AdaptiveClassifier) else AdaptiveClassifier()


def parquet_of(table, **options):
    file = io.BytesIO()
    parquet.write_table(pyarrow.table(table), file, **options)
    return file.getvalue()


TABLE = {
    "text": ["win a prize", None, "see you", ""] * 3,
    "label": ["spam", "ham", None, "1"] * 3,
    "id": range(12),
    "more": [{"text": "a", "x": [1.5]}, None, {"text": None, "x": []}, {"text": "b", "x": None}] * 3,
}
STREAMS = {
    "jsonl": [
        b'[{"text": "win", "label": 1},\n {"text": "a, ]}\\\\\\"", "label": "x", "a": {"b": "c"}}]\n{"text": "y"}',
        b'{"text": "win a prize", "label": "spam", "id": 7}\n{"text": "see you", "label": 0}\n',
        b'{"label": true, "text": "\\ud83d lone \\u0000"}\r\n\n{"text": "x", "label": 2.0, "more": [1, {"a": null}]}',
    ],
    "csv": [
        b'text,label,id\n"win, ""now""",spam,1\n"two\nlines",1,2\r\nplain,-1,\n',
        b"\xef\xbb\xbflabel,text\n1,caf\xc3\xa9\n0,\n",
    ],
    "tsv": [b'text\tlabel\n"a\tb"\tspam\nsee you\t1\n'],
    "labelled-text": [b"spam\view a prize\nham\tsee\tyou\n\nno label\n", b"-1\tx\r\n1\ty\r\n"],
    "fasttext": [b"__label__spam win a prize\n__label__1 see you\n  __label__ x\n"],
    "vw": [b"1 2.5 'tag|words:2 cheap:3 pills |n:0.5 len:7\n-1 tag| see you\n| x\n", b"spam |a b:1e3 b\n"],
    "svmlight": [b"1 1:0.5 7:1e3 # note\n-1 qid:3 2:1 10:-0\n+1 3:4\n", b"3.5 0:1\n"],
    "mail": [
        b"From a@x Thu Jan  2 10:00:00 2020\nLabel: spam\nMessage-ID: <1@x>\n\nwin\n>From b\n\n"
        b"From b@x Fri Jan  3 10:00:00 2020\nlabel:\n 1\n\n\xff\n",
        b"Label: ham\r\nSubject: a\r\n\r\nFrom b\r\n",
    ],
    "text": [b"win a prize\r\n\nsee you\tcaf\xe9\n", b"\xef\xbb\xbfone"],
    "parquet": [
        parquet_of(TABLE, row_group_size=5),
        parquet_of(TABLE, compression="none", use_dictionary=False, data_page_version="2.0"),
        parquet_of({"text": ["a", "b"], "label": [["x", "y"], []], "a.b": ["one", "two"]}, compression="zstd"),
    ],
}
COMPRESSED_PIECES = [compress(data[0]) for data in STREAMS.values() for compress in COMPRESSIONS.values()]
ENCODINGS = ["utf-8"] * 3 + ["latin-1", "cp1252", "utf-16", "utf-16-be", "gb18030", "shift_jis", "utf-7", "cp500"]


def stream(random):
    """The bytes of a file, its format, and options to read it with."""
    format, encoding = random.choice(FORMATS), random.choice(ENCODINGS)
    data = random.choice(STREAMS[format])
    if format != "parquet" and random.random() < 0.3:
        # As it would be in this encoding, or, without a byte order mark to tell, in another one.
        data = data.decode(errors="replace").encode(encoding if random.random() < 0.8 else "utf-16", "replace")
    data = mutated(random, data, STREAMS[format])
    if random.random() < 0.1:
        data = random.choice([*COMPRESSIONS.values()])(data)
        if random.random() < 0.7:
            data = mutated(random, data, COMPRESSED_PIECES)
    options = {"encoding": encoding, "unlabelled": format == "text" or random.random() < 0.3}
    if random.random() < 0.2:
        options["encoding_errors"] = "strict"
    if format in ("csv", "tsv") and random.random() < 0.3:
        options["columns"] = random.choice([["text", "label"], ["id", "text", "label", "_", "_"]])
        options["delimiter"] = random.choice([",", ";", "\t", "|", " "])
    if format in ("jsonl", "parquet") and random.random() < 0.3:
        options["text_field"] = random.choice(["more.text", "a.b", "id"])
    return data, format, options


MAILS = [
    b"From: a@b.example\nSubject: =?utf-8?q?Fr=65e?=\n\nSee http://1.2.3.4/prize",
    b"Content-Type: multipart/mixed; boundary=a\n\n--a\n\ntext\n--a\nContent-Type: text/html\n\n<p>F<b>re</b>e\n--a--",
    b"Content-Type: message/rfc822\n\nSubject: inner\nContent-Transfer-Encoding: base64\n\naGVsbG8=\n",
    "Subject: V.I.A.G.R.A\n\nfr0m \u0441lick \uff46\uff52\uff45\uff45 p-r-i-z-e".encode(),
    b"Content-Type: text/html; charset=gb2312\n\n<a href=http://a.example>b.example</a><i style='display:none'>x</i>",
    b"Content-Type: text/html\n\n<style>.a > b, #c{font:0/0 a;background:rgb(1,2,3) "
    b"url(x)}@media(min-width:1px){i{x:y}}"
    b"</style><b class='a d' id=c style='color:hsl(0,0%,100%);margin:-9em 0;clip:rect(0,0,0,0)'>x<table bgcolor=f>y",
    b"Content-Type: multipart/alternative; boundary=z\n\n--a\nContent-Type: text/html\n\n<meta "
    b"charset=big5>\xa4\xa4\n--a--",
    b"Subject: =?utf-8*en?b?a?= =?hz?q?~{?=\n\nbegin 644 a.txt\n#0V%T\n`\nend\n=ybegin line=1 "
    b"name=b\n=}J\n=yend size=1\n",
]
MAIL_TOKENS = rb"""<style> </style> .a{ } @media{ style=' font:0/0 rgb(0,0,0,0) -9999px !important url( calc( /* */
    <!--[if <table> <font~size=-7> --a-- --a boundary= begin~644~a =ybegin~name=a =yend~ charset=utf-7 +AAA-
    """.split()
MAIL_TOKENS = [token.replace(b"~", b" ") for token in MAIL_TOKENS]
MAIL_TOKENS += [b"\n--a\n", b"((((" * 200, b".a,b>" * 200, b"\x1b$B"]


@functools.cache
def real_mails():
    path = Path(os.environ.get("STREAM_PEGASOS_DATA", "../shared/data")) / "mail_raw.jsonl.gz"
    if not path.is_file():
        return MAILS
    with gzip.open(path) as file:
        return [json.loads(line)["raw"].encode("latin-1") for line in file]


def mail(random):
    made = mutated(random, random.choice(real_mails() if random.random() < 0.7 else MAILS), real_mails())
    for _ in range(below(random, 4)):
        i = below(random, len(made) + 1)
        made = made[:i] + random.choice(MAIL_TOKENS) + made[i:]
    if random.random() < 0.02:
        i = below(random, len(made) + 1)
        made = made[:i] + random.choice([*TOKENS, *MAIL_TOKENS, made[i : i + 200]]) * below(random, 20_000)
    return made[:2_000_000]


VALUES = [None, True, False, "", "x", "nan", "\ud800", "é" * 50, [], {}, [[]], *INTEGERS, *FLOATS, 2**64 - 1]
VALUES += [{kind: content} for kind in ("tuple", "list", "set") for content in ([], [1, "a"], [[]], None, "abc")]
VALUES += [{"int": "f" * n} for n in (1, 16, 4000, 20_000)] + [{"int": "x"}, {"str": "00d8"}, {"str": "0"}]
VALUES += [{"dict": [[]]}, {"dict": [["x", 1]]}, {"dict": [[{"list": []}, 1]]}, {"a": 1, "b": 2}]
VALUES += ["PegasosClassifier", "KernelPegasosClassifier", "Saveable", "object", "os.system", "(a+)+$", "(" * 300]
PARAMETERS = [("ADWIN", "clock"), ("ADWIN", "max_buckets"), ("ADWIN", "delta"), ("KSWIN", "window_size")]
PARAMETERS += [("KSWIN", "window"), ("KSWIN", "stat_size"), ("PageHinkley", "mode"), ("PageHinkley", "alpha")]
PARAMETERS += [("DDM", "warm_start"), ("FHDDM", "sliding_window_size"), ("os", "name"), ("NoDrift", "name")]
for kind, parameter in PARAMETERS:
    given = [[], *([[parameter, value]] for value in (-1, 0, 1, 10**9, 2**40, "x", None, 0.5))]
    VALUES += [{"drift_detector": [kind, {"dict": each}]} for each in given]


@functools.cache
def model_files():
    """Files of models of all kinds without vectors, fresh and after some examples, some with the progress of a run."""
    made = []
    with tempfile.TemporaryDirectory() as folder:
        for i, case in enumerate(CASES):
            if case.can_be_saved and not re.search("fields|vectors|use|encoder|polynomial", case.name):
                for model in (case.make(), case.trained(25)):
                    progress = {"monitor": [1, "é", {"a": None}], "position": 7} if i % 2 else None
                    model.snapshot(progress).write(Path(folder) / "model")
                    stream_pegasos.load(Path(folder) / "model")  # imports what loading imports
                    made.append((Path(folder) / "model").read_bytes())
    return made


def model_file(random):
    """A file that is changed as it is, or inside, with a checksum to fit."""
    content = random.choice(model_files())
    end = 8 + int.from_bytes(content[:8], "little")
    if random.random() < 0.6:
        header = orjson.loads(orjson.loads(content[8:end])["__metadata__"][files.FORMAT])
        return forged(random, load(content), header["kind"])
    content = mutated(random, content, model_files())
    if random.random() < 0.5:
        # A header of the right length lets the rest be looked at.
        content = max(0, content.rfind(b"}", 8, end + 100) - 7).to_bytes(8, "little") + content[8:]
    return content


def forged(random, arrays, kind):
    values, progress = orjson.loads(arrays.pop(files.STATE).tobytes()), arrays.pop(files.PROGRESS, None)
    for _ in range(1 + below(random, 2)):
        if arrays and random.random() < 0.4:
            change_array(random, arrays)
        else:
            values = changed_value(random, values)
    if progress is not None or random.random() < 0.1:
        content = b"null" if progress is None else progress.tobytes()
        if random.random() < 0.2:
            content = mutated(random, content, [content])
        arrays[files.PROGRESS] = np.frombuffer(content, np.uint8)
    if random.random() < 0.05:
        kind = random.choice([*VALUES, *stream_pegasos.__all__])
    arrays = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    arrays[files.STATE] = np.frombuffer(json.dumps(values).encode(), np.uint8)
    header = {"format_version": files.FORMAT_VERSION, "kind": kind, "checksum": ""}
    if kind != "\ud800":  # which has no checksum
        header["checksum"] = files.checksum(arrays, kind)
    return save(arrays, {files.FORMAT: json.dumps(header)})


def change_array(random, arrays):
    name = random.choice([*arrays])
    array = arrays[name].copy()
    kind = below(random, 8)
    with np.errstate(invalid="ignore", over="ignore"):
        if kind < 4 and array.size:
            number = random.choice(INTEGERS if array.dtype == np.int64 else FLOATS + INTEGERS)
            array.reshape(-1)[below(random, array.size)] = np.array(number).astype(array.dtype)
        elif kind == 4:
            array = array[: below(random, len(array) + 1)]
        elif kind == 5:
            array = np.concatenate([array, array])
        elif kind == 6:
            array = array.reshape(random.choice([(-1,), (1, -1), (-1, 1)]))
        else:
            array = array.astype(random.choice([np.float32, np.float64, np.int64, np.int32, np.uint8, np.bool_]))
    if random.random() < 0.1:
        del arrays[name]
    arrays[random.choice([*arrays, name]) if random.random() < 0.1 else name] = array


def changed_value(random, value):
    """JSON with one value changed, somewhere inside."""
    if isinstance(value, (dict, list)) and value and random.random() < 0.9:
        place = random.choice([*value] if isinstance(value, dict) else range(len(value)))
        kind = random.random()
        if kind < 0.05:
            del value[place]
        elif kind < 0.1 and isinstance(value, list):
            value.append(copy.deepcopy(value[place]))
        else:
            value[place] = changed_value(random, value[place])
        return value
    if random.random() < 0.05:
        for _ in range(below(random, 200)):
            value = {random.choice(["tuple", "list"]): [value]}
        return value
    return copy.deepcopy(random.choice(VALUES))


BODIES = [
    b"[]",
    b'{"text": "win a free prize", "label": "spam", "weight": 2.0, "id": "m1"}',
    b'[{"text": "lunch at noon?", "label": "ham"}, {"text": "cheap pills", "label": "spam", "id": 7}]',
    b'[{"text": "\\ud83d lone", "label": "\\udc00"}, {"text": "caf\xc3\xa9"}]',
    b'[{"text": "my card", "label": "lost"}, {"text": "a fee", "label": true}, {"text": "pin", "label": 3}]',
    b'{"text": "wheat", "label": ["grain", "wheat"]}',
]


@functools.cache
def paths():
    """Those of operations with a body, and all."""
    from stream_pegasos.runtime.live_learner import LiveLearner
    from stream_pegasos.service.operations import make_operations

    operations = make_operations(LiveLearner(TextClassifier()), metrics=None)
    with_body = [each.path for each in operations if each.takes is not None]
    return with_body, [*(each.path for each in operations), "/openapi.json", "/", "/page.js"]


QUERIES = [b"a=b", b"label=ham", b'label="ham"', b"search=a&limit=5", b"limit=" + b"9" * 22, b"label=%ff%00"]
JSON = (b"content-type", b"application/json")
HEADERS = [JSON, (b"content-type", b"text/plain"), (b"transfer-encoding", b"chunked"), (b"cookie", b"a=b" * 100)]
HEADERS += [(b"content-length", value) for value in (b"5", b"-1", b"9" * 30, b"9" * 5000, b"\xb2")]
HEADERS += [(b"authorization", value) for value in (b"Bearer wrong", b"\xff\x00")]
HEADERS += [(b"host", b"evil.example:99999"), (b"host", b"\xff[:"), (b"host", b"")]
HEADERS += [(b"accept-encoding", b"gzip;q=nan"), (b"range", b"bytes=0-1,5-")]
METHODS = ["POST"] * 12 + ["GET"] * 4 + ["HEAD", "OPTIONS", "PUT", "DELETE", "TRACE", "post", "X\x00"]
TOKEN = "let me in"


def http_request(random):
    """Method, path, query, headers, the parts of the body, and how it ends."""
    body = random.choice(BODIES)
    if random.random() < 0.8:
        body = mutated(random, body, BODIES)
    path = random.choice(paths()[random.random() > 0.8])
    if random.random() < 0.05:
        path = "/" + mutated(random, path, paths()[1])
    headers = [] if random.random() < 0.05 else [JSON]
    if random.random() < 0.9:
        headers.append((b"authorization", b"Bearer " + TOKEN.encode()))
    if random.random() < 0.5:
        headers.append((b"host", b"localhost"))
    for _ in range(below(random, 3) if random.random() < 0.3 else 0):
        name, value = random.choice(HEADERS)
        if random.random() < 0.3:
            value = mutated(random, value, [value])
        headers.insert(below(random, len(headers) + 1), (name, value))
    parts = [body]
    while len(parts) < 5 and random.random() < 0.3:
        i = below(random, len(parts[-1]) + 1)
        parts[-1:] = [parts[-1][:i], parts[-1][i:]]
    query = mutated(random, random.choice(QUERIES), QUERIES) if random.random() < 0.2 else b""
    end = random.choices(["whole", "disconnect", "stall"], [0.95, 0.045, 0.005])[0]
    return random.choice(METHODS), path, query, headers, parts, end


SPAMD_COMMANDS = b"CHECK SYMBOLS REPORT REPORT_IFSPAM PROCESS HEADERS TELL PING SKIP".split()
SPAMD_HEADERS = [b"User: ann", b"User: ../../etc/passwd", b"User: \xff\xfe\n", b"user:", b"X-Other: y"]
SPAMD_HEADERS += [b"Message-class: spam", b"Message-class: ham", b"Set: local, remote", b"Remove: local"]
SPAMD_HEADERS += [b"Compress: zlib"] + [b"Content-length: " + value for value in (b"5", b"-1", b"\xb2", b"9" * 5000)]
LARGEST = 20_000  # bytes of a mail to spamd
BOMB = zlib.compress(bytes(100 * LARGEST))


def spamd_request(random):
    """The parts of what is sent, and how it ends."""
    mail = random.choice(MAILS)
    if random.random() < 0.7:
        mail = mutated(random, mail, MAILS)
    headers = [random.choice(SPAMD_HEADERS) for _ in range(below(random, 4))]
    if b"Compress: zlib" in headers and random.random() < 0.9:
        mail = BOMB if random.random() < 0.1 else zlib.compress(mail)
    if random.random() < 0.7:
        headers.insert(below(random, len(headers) + 1), b"Content-length: %d" % len(mail))
    head = random.choice(SPAMD_COMMANDS) + b" SPAMC/" + random.choice(b"1.0 1.2 1.3 1.5 1.5 1.5 9.9".split())
    if random.random() < 0.3:
        head = mutated(random, head, [head])
    sent = b"\r\n".join([head, *headers, b"", b""]) + mail
    if random.random() < 0.3:
        sent = mutated(random, sent, [sent])
    i = below(random, len(sent) + 1)
    parts = [sent[:i], sent[i:]] if random.random() < 0.3 else [sent]
    return parts, random.choices(["half-closed", "open", "gone"], [0.8, 0.15, 0.05])[0]
