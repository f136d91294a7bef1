"""How many mails the service answers a second over SpamAssassin's protocol, on loopback, with 8 clients.

The model learns half of the mails, and is asked about the other half: by clients that write to a socket, and by one
process of spamc a mail, as procmail calls it. Beside it bogofilter learns the same mails and is asked about the others,
by a process a mail, too. Prints mails/s, the latency of one mail, and the memory of the server.

    python tests/benchmarks/spamd.py [--mails N] [--clients N]
"""

import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from time import perf_counter

from corpora import of_classes
from report import Table, arguments_of
from service import running
from timing import megabytes, percentiles, seconds

from stream_pegasos import MailFeatures, TextClassifier

Ask = Callable[[bytes], None]


def main() -> None:
    arguments = arguments_of(__doc__, mails=2_000, clients=8)
    (corpus,) = of_classes("mail_raw")
    mails = [(text.encode("latin-1"), label) for text, label in zip(corpus.texts, corpus.labels, strict=True)]
    learned, others = mails[::2], [mail for mail, _ in mails[1::2]]
    asked = [others[i % len(others)] for i in range(arguments.mails)]
    print(f"{len(learned):,} mails learned, {arguments.clients} clients")
    table = Table("", "mails/s", "p50 ms", "p99 ms")

    def measure(name: str, ask: Ask) -> None:
        start = perf_counter()
        with ThreadPoolExecutor(arguments.clients) as clients:
            took = [*clients.map(lambda mail: seconds(partial(ask, mail)), asked)]
        rate = len(asked) / (perf_counter() - start)
        table.row(name, f"{rate:,.0f}", *(f"{each:.1f}" for each in percentiles(took, 1e3)))

    with tempfile.TemporaryDirectory() as folder:
        model = TextClassifier(MailFeatures())
        model.learn_many(*zip(*learned, strict=True))
        path = str(Path(folder) / "mail.safetensors")
        model.save(path)
        with running(path, "--spamd", "127.0.0.1:0", port_after="spamd's protocol .*") as (port, process):
            for command in ("CHECK", "PROCESS"):
                measure(f"{command}, by a socket", by_socket(port, command))
            if shutil.which("spamc") is not None:
                for command, flags in (("CHECK", ["-c"]), ("PROCESS", [])):
                    spamc = ["spamc", "-d", "127.0.0.1", "-p", str(port), *flags]
                    measure(f"{command}, by a process of spamc", by_process(spamc))
            memory = megabytes("VmRSS", process)
        if shutil.which("bogofilter") is not None:
            for label, flag in (("spam", "-s"), ("ham", "-n")):
                of_label = (b"From a Mon Jan  1 00:00:00 2024\n" + mail + b"\n\n" for mail, y in learned if y == label)
                subprocess.run(["bogofilter", "-d", folder, "-M", flag], input=b"".join(of_label), check=True)
            measure("a process of bogofilter", by_process(["bogofilter", "-d", folder, "-p"]))
    print(f"\nmemory of the service: {memory:.0f} MB")


def by_socket(port: int, command: str) -> Ask:
    def ask(mail: bytes) -> None:
        with socket.create_connection(("127.0.0.1", port)) as connection:
            connection.sendall(f"{command} SPAMC/1.5\r\nContent-length: {len(mail)}\r\n\r\n".encode() + mail)
            connection.shutdown(socket.SHUT_WR)
            answer = b""
            while part := connection.recv(1 << 16):
                answer += part
        assert answer.startswith(b"SPAMD/1.1 0 EX_OK\r\n"), answer[:100]

    return ask


def by_process(command: list[str]) -> Ask:
    def ask(mail: bytes) -> None:
        done = subprocess.run(command, input=mail, stdout=subprocess.PIPE)
        assert done.returncode in (0, 1, 2) and done.stdout, done

    return ask


if __name__ == "__main__":
    main()
