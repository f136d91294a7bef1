"""Send a labelled stream to a running service, which predicts each message, then learns it.

    stream-pegasos serve --checkpoint mail.safetensors
    python examples/send_stream.py mail.jsonl.gz

Each message has an id: the name of the stream and a number. The service lists the ids that it has learned, and the
script sends the messages after the highest number there. So each message is learned once, even if others teach the
service, too, or the service or this script starts again. The service remembers the newest 100,000 ids: the ids of the
stream must be among them.
"""

import argparse
import http.client
import json
import time
import urllib.error
import urllib.request
from itertools import islice
from pathlib import Path

from stream_pegasos.blocks.blockwise import chunks
from stream_pegasos.streams import read, synthetic


def call(url, value=None):
    data = None if value is None else json.dumps(value).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def messages(stream, label_field, name, start):
    """The messages of the stream after that number."""
    examples = synthetic() if stream is None else read(stream, label_field=label_field)
    for number, (text, label, *_) in enumerate(islice(examples, start, None), start + 1):
        yield text, label, f"{name}:{number}"


def newest_learned(url, name):
    """The highest number of the stream among the messages that the service has learned."""
    parts = [str(id).rpartition(":") for id in call(f"{url}/learned")["ids"]]
    return max((int(number) for of, _, number in parts if of == name and number.isdecimal()), default=0)


def is_right(said, label):
    """Whether the prediction is the label; with several labels, whether it is exactly these."""
    return set(said) == set(label) if isinstance(label, tuple) else said == label


def send(stream, label_field, name, url, batch, pause):
    """Send the messages not yet learned; yield the number of messages of each request, and of right predictions."""
    for chunk in chunks(messages(stream, label_field, name, newest_learned(url, name)), batch):
        answers = call(f"{url}/learn", [{"text": text, "label": label, "id": id} for text, label, id in chunk])
        right = sum(is_right(answer["label"], label) for answer, (_, label, _) in zip(answers, chunk, strict=True))
        yield len(chunk), right
        time.sleep(pause)


parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
parser.add_argument("stream", nargs="?", help="in any format; 20,000 synthetic messages without it")
parser.add_argument("--label-field", default="label", help="the field of the label, or of a list of labels")
parser.add_argument("--name", help="the name of the stream in ids; by default that of the file")
parser.add_argument("--url", default="http://127.0.0.1:8000")
parser.add_argument("--batch", type=int, default=100, help="messages in a request")
parser.add_argument("--pause", type=float, default=0.0, help="seconds between two requests")
options = parser.parse_args()
name = options.name or ("synthetic" if options.stream is None else Path(options.stream).name)
sent = []
while True:
    try:
        for counts in send(options.stream, options.label_field, name, options.url, options.batch, options.pause):
            sent.append(counts)
        break
    except (OSError, http.client.HTTPException) as error:
        if isinstance(error, urllib.error.HTTPError) and error.code < 500:
            raise SystemExit(f"the service refuses: {json.load(error)['detail']}") from None
        # The service cannot be reached, or has ended; it may have lost its newest lessons.
        print(f"waiting for {options.url} ({error})")
        time.sleep(1)
print(f"sent {sum(n for n, _ in sent):,} messages, of which {sum(right for _, right in sent):,} were predicted right")
