"""What tests of streams read with."""

import io
import os
import threading
from contextlib import contextmanager

from stream_pegasos.streams import open_source, read

# An example in each format of lines, in which nothing else has this letter.
ONE = {
    "jsonl": b'{"text": "z", "label": 1}\n',
    "csv": b"text,label\nz,1\n",
    "tsv": b"text\tlabel\nz\t1\n",
    "labelled-text": b"1\tz\n",
    "fasttext": b"__label__1 z\n",
    "vw": b"1 | z\n",
    "svmlight": b"1 1:1 # z\n",
}


def rest(address, position=None, **options):
    """The batches that are there after the position, the bad records and the events."""
    bad, events = [], []
    source = open_source(
        address, position, follow=False, on_bad=lambda *at: bad.append(at), on_event=events.append, **options
    )
    return list(source.batches()), bad, events


def texts(batches):
    return [example.x for batch in batches for example in batch.examples]


def examples(data, format, **options):
    """The examples in some bytes, and the bad lines."""
    bad = []
    source = io.BytesIO(data)
    found = list(read(source, format=format, on_bad_line=lambda *at: bad.append(at), **options))
    assert not source.closed
    return found, bad


def pairs(data, format, **options):
    """What the good lines hold; there must be no bad one."""
    found, bad = examples(data, format, **options)
    assert bad == []
    return [(example.x, example.y) for example in found]


def bad_lines(data, format, **options):
    return examples(data, format, **options)[1]


@contextmanager
def byte_by_byte(data):
    """A pipe that delivers the data so; of a large one, its last 2,000 bytes."""
    out, into = os.pipe()

    def feed():
        with open(into, "wb", buffering=0) as pipe:
            pipe.write(data[:-2_000])
            for byte in data[-2_000:]:
                pipe.write(bytes([byte]))

    thread = threading.Thread(target=feed)
    thread.start()
    with open(out, "rb") as pipe:
        yield pipe
    thread.join()
