"""A target of the fuzzer: streams in all formats, by the readers."""

import gzip
import io
import math

from fuzz_shared import FLOATS, INTEGERS, NUMBERS, mutated, one_byte

from stream_pegasos.streams import FORMATS, Example, StreamError, read

STREAMS = {
    "jsonl": [
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
GZIP_PIECES = [gzip.compress(data[0], 1, mtime=0) for data in STREAMS.values()]


def stream(random):
    format = random.choice(FORMATS)
    corpus = STREAMS[format]
    data = mutated(random, random.choice(corpus), corpus, STREAM_TOKENS, one_byte)
    if random.random() < 0.1:
        data = gzip.compress(data, 1, mtime=0)
        if random.random() < 0.7:
            data = mutated(random, data, GZIP_PIECES, STREAM_TOKENS, one_byte)
    return data, format, random.random() < 0.3


def check_stream(data, format, unlabelled):
    """Only examples come out of a stream, and only a `StreamError` is raised; without a callback, at the first bad
    line.
    """
    bad = []
    examples, error = read_all(data, format, unlabelled, lambda line, reason: bad.append((line, reason)))
    for line, reason in bad:
        assert type(line) is int and line >= 1 and reason.isprintable()
    for example in examples:
        check_example(example, format, unlabelled)
    lines = [example.line for example in examples]
    assert lines == sorted(set(lines))
    strict_examples, strict_error = read_all(data, format, unlabelled, None)
    assert repr(strict_examples) == repr(examples[: len(strict_examples)])
    if bad:
        assert strict_error.endswith(f"line {bad[0][0]}: {bad[0][1]}")
    else:
        assert len(strict_examples) == len(examples) and strict_error == error
    assert error is None or error.isprintable()


def read_all(data, format, unlabelled, on_bad_line):
    examples = []
    try:
        examples.extend(read(io.BytesIO(data), format=format, unlabelled=unlabelled, on_bad_line=on_bad_line))
    except StreamError as error:
        return examples, str(error)
    return examples, None


def check_example(example, format, unlabelled):
    assert type(example) is Example
    if format in ("vw", "svmlight"):
        names = str if format == "vw" else int
        assert all(type(name) is names and type(value) is float for name, value in example.x.items())
        assert all(map(math.isfinite, example.x.values()))
    else:
        assert type(example.x) is str
    assert type(example.y) in (bool, int, str) or (unlabelled and example.y is None)
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
