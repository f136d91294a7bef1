"""A target of the fuzzer: mails, real ones that were changed, from their bytes to what a model predicts."""

import gzip
import json
import os
import time
from pathlib import Path

from fuzz_shared import below, mutated, one_byte

from stream_pegasos import MailFeatures, TextClassifier
from stream_pegasos.features.mail_parts import mail_parts

BY_HAND = [
    b"From: a@b.example\nSubject: =?utf-8?q?Fr=65e?=\n\nSee http://1.2.3.4/prize",
    b"Content-Type: multipart/mixed; boundary=a\n\n--a\n\ntext\n--a\nContent-Type: text/html\n\n<p>F<b>re</b>e\n--a--",
    b"Content-Type: message/rfc822\n\nSubject: inner\nContent-Transfer-Encoding: base64\n\naGVsbG8=\n",
    "Subject: V.I.A.G.R.A\n\nfr0m \u0441lick \uff46\uff52\uff45\uff45 p-r-i-z-e".encode(),
    b"Content-Type: text/html; charset=gb2312\n\n<a href=http://a.example>b.example</a><i style='display:none'>x</i>",
]
TOKENS = [b"\n", b"\n\n", b"\r\n", b"\0", b"\xff", b"=?", b"?=", b"--", b";", b'"', b"<", b">", b"&#", b"%", b"("]
TOKENS += [b"Content-Type: multipart/mixed; boundary=a\n\n--a\n", b"Content-Type: message/rfc822\n\n", b"\n--a\n\n"]
TOKENS += [b"Content-Type: text/html; charset=utf-7\n\n", b"Content-Transfer-Encoding: base64\n", b"name*0*=utf-8''%"]
TOKENS += ["\u0430".encode(), "\u200b".encode(), "\uff41".encode(), b" a ", b".a.", b"a1b", b"$a", b"X-Mailer: "]
TOKENS += [b"charset=", b"=?utf-8?b?", b"<div style='font-size:0'>", b"<!--", b"<a href='//x@", b"Received: from ["]
SECONDS, SECONDS_A_BYTE = 0.05, 20e-9  # that a mail may take
TRIES = 5  # until one that took longer is a failure, as others may hold up a machine


def real_mails():
    path = Path(os.environ.get("STREAM_PEGASOS_DATA", "../shared/data")) / "mail_raw.jsonl.gz"
    if not path.is_file():
        return []
    with gzip.open(path) as file:
        return [json.loads(line)["raw"].encode("latin-1") for line in file]


def parts_in_time(mail):
    """What is in a mail; the time is that of the processor, at best."""
    best, most = float("inf"), SECONDS + SECONDS_A_BYTE * len(mail)
    for _ in range(TRIES):
        start = time.thread_time()
        parts = mail_parts(mail)
        best = min(best, time.thread_time() - start)
        if best < most:
            return parts
    raise AssertionError(f"{best:.3f} s for {len(mail):,} bytes")


class MailTarget:
    """Mails into a model, which predicts and learns them."""

    share, size = 5, 100

    def __init__(self):
        self.mails = real_mails() or BY_HAND

    def block(self, random):
        return [self.mail(random) for _ in range(self.size)]

    def mail(self, random):
        mail = mutated(random, random.choice(self.mails), self.mails, TOKENS, one_byte)
        if random.random() < 0.02:
            i = below(random, len(mail) + 1)
            mail = mail[:i] + random.choice([*TOKENS, mail[i : i + 200]]) * below(random, 20_000)
        return mail[:2_000_000]

    def check(self, inputs, random, at):
        parts = []
        for i, mail in enumerate(inputs):
            at(i)
            parts.append(parts_in_time(mail))
        labels = [i % 2 for i in range(len(inputs))]
        said = TextClassifier(MailFeatures()).predict_learn_many(parts, labels).probabilities
        assert ((said >= 0.0) & (said <= 1.0)).all()
