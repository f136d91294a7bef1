"""A target of the fuzzer: streams in all formats, encodings and compressions, by the readers."""

import io
import math

import pyarrow
from compressions import COMPRESSIONS
from fuzz_shared import FLOATS, INTEGERS, NUMBERS, mutated, one_byte
from pyarrow import parquet

from stream_pegasos.streams import FORMATS, Example, StreamError, read

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
    "labelled-text": [b"spam\twin a prize\nham\tsee\tyou\n\nno label\n", b"-1\tx\r\n1\ty\r\n"],
    "fasttext": [b"__label__spam win a prize\n__label__1 see you\n  __label__ x\n"],
    "vw": [b"1 2.5 'tag|words:2 cheap:3 pills |n:0.5 len:7\n-1 tag| see you\n| x\n", b"spam |a b:1e3 b\n"],
    "svmlight": [b"1 1:0.5 7:1e3 # note\n-1 qid:3 2:1 10:-0\n+1 3:4\n", b"3.5 0:1\n"],
    "mail": [
        b"From a@x Thu Jan  2 10:00:00 2020\nLabel: spam\nMessage-ID: <1@x>\n\nwin\n>From b\n\n"
        b"From b@x Fri Jan  3 10:00:00 2020\nlabel:\n 1\n\n\xff\n",
        b"Label: ham\r\nSubject: a\r\n\r\nFrom b\r\n",
    ],
    "text": [b"win a prize\r\n\nsee you\tcaf\xe9\n", b"\xef\xbb\xbfone"],
}
STREAM_TOKENS = [
    b"\xff",
    b"\xc0\x80",
    b"\xed\xa0\x80",
    b"\xf4\x90\x80\x80",
    b"\xef\xbb\xbf",
    b"\x00",
    b"\x1f\x8b",
    b'"',
]
STREAM_TOKENS += [
    b"'",
    b",",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b":",
    b"|",
    b"__label__",
    b"{",
    b"}",
    b"[",
    b"\\ud800",
    b"\\",
]
STREAM_TOKENS += [b"[" * 2000, b'{"a":' * 300, b"\x1f", b"#", b"qid:", b"null", b"true", b"\xe2\x80\xa8", b"\x0b", b" "]
STREAM_TOKENS += [str(number).encode() for number in INTEGERS + FLOATS] + [number.encode() for number in NUMBERS]
STREAM_TOKENS += [
    b"[{",
    b"},{",
    b"]\n[",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\xff\xfe\x00\x00",
    b"PAR1\x15",
    b"\x28\xb5\x2f\xfd",
    b"BZh9",
]


def written(table, **options):
    file = io.BytesIO()
    parquet.write_table(table, file, **options)
    return file.getvalue()


TABLE = pyarrow.table(
    {
        "text": ["win a prize", None, "see you", ""] * 3,
        "label": ["spam", "ham", None, "1"] * 3,
        "id": range(12),
        "more": [{"text": "a", "x": [1.5]}, None, {"text": None, "x": []}, {"text": "b", "x": None}] * 3,
    }
)
LISTS = pyarrow.table({"text": ["a", "b"], "label": [["x", "y"], []], "a.b": ["one", "two"]})
STREAMS["parquet"] = [
    written(TABLE, row_group_size=5),
    written(TABLE, compression="none", use_dictionary=False, data_page_version="2.0"),
    written(LISTS, compression="zstd", write_page_index=True),
]
COMPRESSED_PIECES = [compress(data[0]) for data in STREAMS.values() for compress in COMPRESSIONS.values()]
ENCODINGS = ["utf-8"] * 3 + ["latin-1", "cp1252", "utf-16", "utf-16-be", "gb18030", "shift_jis", "utf-7", "cp500"]


def stream(random):
    format = random.choice(FORMATS)
    corpus = STREAMS[format]
    data = random.choice(corpus)
    encoding = random.choice(ENCODINGS)
    if format != "parquet" and random.random() < 0.3:
        # As it would be in this encoding, or, without a byte order mark to tell, in another one.
        data = data.decode(errors="replace").encode(encoding if random.random() < 0.8 else "utf-16", "replace")
    data = mutated(random, data, corpus, STREAM_TOKENS, one_byte)
    if random.random() < 0.1:
        data = random.choice([*COMPRESSIONS.values()])(data)
        if random.random() < 0.7:
            data = mutated(random, data, COMPRESSED_PIECES, STREAM_TOKENS, one_byte)
    options = {"encoding": encoding, "unlabelled": format == "text" or random.random() < 0.3}
    if random.random() < 0.2:
        options["encoding_errors"] = "strict"
    if format in ("csv", "tsv") and random.random() < 0.3:
        options["columns"] = random.choice([["text", "label"], ["id", "text", "label", "_", "_"]])
        options["delimiter"] = random.choice([",", ";", "\t", "|", " "])
    if format in ("jsonl", "parquet") and random.random() < 0.3:
        options["text_field"] = random.choice(["more.text", "a.b", "id"])
    return data, format, options


def check_stream(data, format, options):
    """Only examples come out of a stream, and only a `StreamError` is raised; without a callback, at the first bad
    line. What cannot be read may stand in its place.
    """
    bad, told = [], []
    examples, error = read_all(data, format, options, lambda line, reason: bad.append((line, reason)))
    for line, reason in bad:
        assert type(line) is int and line >= 1 and reason.isprintable()
    for example in examples:
        check_example(example, options["unlabelled"])
    lines = [example.line for example in examples]
    assert lines == sorted(lines if format == "jsonl" else set(lines))  # an array may stand on one line
    placed, same_error = read_all(data, format, {**options, "unreadable": True}, lambda *at: told.append(at))
    assert repr([example for example in placed if example.fault is None]) == repr(examples)
    assert [(example.line, example.fault) for example in placed if example.fault is not None] == bad == told
    assert same_error == error
    strict_examples, strict_error = read_all(data, format, options, None)
    assert repr(strict_examples) == repr(examples[: len(strict_examples)])
    if bad:
        record = "mail" if format == "mail" else "line"
        assert strict_error.endswith(f"{record} {bad[0][0]}: {bad[0][1]}")
    else:
        assert len(strict_examples) == len(examples) and strict_error == error
    assert error is None or error.isprintable()


def read_all(data, format, options, on_bad_line):
    examples = []
    try:
        examples.extend(read(io.BytesIO(data), format=format, on_bad_line=on_bad_line, **options))
    except StreamError as error:
        return examples, str(error)
    return examples, None


def check_example(example, unlabelled):
    assert type(example) is Example and example.fault is None
    if type(example.x) is dict:
        assert all(type(name) in (str, int) and type(value) is float for name, value in example.x.items())
        assert all(map(math.isfinite, example.x.values()))
    else:
        assert type(example.x) is str
    assert type(example.y) in (bool, int, str, tuple) or (unlabelled and example.y is None)
    assert type(example.w) is float and 0.0 <= example.w < math.inf


class ReadersTarget:
    """Files of all formats, as they are and compressed."""

    share, size = 35, 1000

    def block(self, random):
        return [stream(random) for _ in range(self.size)]

    def check(self, inputs, random, at):
        for i, one in enumerate(inputs):
            at(i)
            check_stream(*one)
