"""Send a labelled stream to a running service, which predicts each message, then learns it.

    stream-pegasos serve --checkpoint mail.safetensors
    python examples/send_stream.py mail.jsonl.gz

The service counts what it has learned. So the stream is sent from there on, whenever it is started again, and goes on
by itself when the service was away.
"""

import argparse
import json
import time
import urllib.error
import urllib.request
from itertools import islice

from stream_pegasos.prequential import chunks
from stream_pegasos.streams import read, synthetic


def call(url, value=None):
    data = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def messages(stream, start):
    """The messages of the stream from that number on."""
    examples = synthetic() if stream is None else read(stream)
    for text, label, *_ in islice(examples, start, None):
        yield text, label


def send(stream, url, batch, pause):
    right = n = 0
    for chunk in chunks(messages(stream, call(f"{url}/monitor")["n"]), batch):
        answers = call(f"{url}/learn", [{"text": text, "label": label} for text, label in chunk])
        n += len(chunk)
        right += sum(answer["label"] == label for answer, (_, label) in zip(answers, chunk, strict=True))
        time.sleep(pause)
    return n, right


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("stream", nargs="?", help="in any format; 20,000 synthetic messages without it")
parser.add_argument("--url", default="http://127.0.0.1:8000")
parser.add_argument("--batch", type=int, default=100, help="messages in a request")
parser.add_argument("--pause", type=float, default=0.0, help="seconds between two requests")
options = parser.parse_args()
while True:
    try:
        n, right = send(options.stream, options.url, options.batch, options.pause)
        break
    except urllib.error.HTTPError as error:
        raise SystemExit(f"the service refuses: {json.load(error)['detail']}") from None
    except OSError as error:  # it cannot be reached, or went away; so perhaps did what it had learned last
        print(f"waiting for {options.url} ({error})")
        time.sleep(1)
print(f"sent {n:,} messages, of which {right:,} were predicted right")
