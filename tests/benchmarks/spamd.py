"""How many mails the service answers a second over SpamAssassin's protocol, on loopback, with 8 clients.

    python tests/benchmarks/spamd.py [--mails N] [--clients N]

The model learns half of the mails, and is asked about the other half: by clients that write to a socket, and by one
process of spamc a mail, as procmail calls it. Beside it bogofilter learns the same mails and is asked about the others,
by a process a mail, too. Prints mails/s, the latency of one mail, and the memory of the server.
"""

from __future__ import annotations

import argparse
import contextlib
import re
import shutil
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import perf_counter

import numpy as np
from peers import read_records

from stream_pegasos import MailFeatures, TextClassifier

Ask = Callable[[bytes], None]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mails", type=int, default=2_000, help="how many each measurement asks about")
    parser.add_argument("--clients", type=int, default=8, help="how many ask at a time")
    options = parser.parse_args()
    if not (records := read_records("mail_raw")):
        return
    mails = [(record["raw"].encode("latin-1"), record["label"]) for record in records]
    learned, others = mails[::2], [mail for mail, _ in mails[1::2]]
    asked = [others[i % len(others)] for i in range(options.mails)]
    print(f"{len(learned):,} mails learned, {options.clients} clients\n")
    print(f"{'':34} {'mails/s':>8} {'p50 ms':>8} {'p99 ms':>8}")
    with tempfile.TemporaryDirectory() as folder:
        model = TextClassifier(MailFeatures())
        model.learn_many(*zip(*learned, strict=True))
        path = Path(folder) / "mail.safetensors"
        model.save(path)
        with running(path) as (port, process):
            for command in ("CHECK", "PROCESS"):
                measure(f"{command}, by a socket", by_socket(port, command), asked, options.clients)
            if shutil.which("spamc") is not None:
                for command, flags in (("CHECK", ["-c"]), ("PROCESS", [])):
                    spamc = by_process(["spamc", "-d", "127.0.0.1", "-p", str(port), *flags])
                    measure(f"{command}, by a process of spamc", spamc, asked, options.clients)
            print(f"memory of the service: {megabytes(process.pid):.0f} MB")
        if shutil.which("bogofilter") is not None:
            for label, flag in (("spam", "-s"), ("ham", "-n")):
                mbox = b"".join(
                    b"From a Mon Jan  1 00:00:00 2024\n" + mail + b"\n\n" for mail, y in learned if y == label
                )
                subprocess.run(["bogofilter", "-d", folder, "-M", flag], input=mbox, check=True)
            measure("a process of bogofilter", by_process(["bogofilter", "-d", folder, "-p"]), asked, options.clients)


@contextlib.contextmanager
def running(model: Path) -> Iterator[tuple[int, subprocess.Popen[str]]]:
    """The port of spamd, and the service, which runs meanwhile."""
    command = [sys.executable, "-m", "stream_pegasos", "serve", str(model), "--port", "0", "--spamd", "127.0.0.1:0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        port = 0
        for line in process.stderr:
            if found := re.search(r"spamd's protocol .*:(\d+)$", line):
                port = int(found[1])
            if "listening on" in line:
                break
        else:
            raise RuntimeError("the service does not start")
        try:
            yield port, process
        finally:
            process.terminate()
            process.stderr.read()


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


def measure(name: str, ask: Ask, mails: list[bytes], n_clients: int) -> None:
    def timed(mail: bytes) -> float:
        start = perf_counter()
        ask(mail)
        return perf_counter() - start

    start = perf_counter()
    with ThreadPoolExecutor(n_clients) as clients:
        seconds = [*clients.map(timed, mails)]
    rate = len(mails) / (perf_counter() - start)
    p50, p99 = np.quantile(seconds, [0.5, 0.99]) * 1e3
    print(f"{name:34} {rate:8,.0f} {p50:8.1f} {p99:8.1f}", flush=True)


def megabytes(pid: int) -> float:
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{pid}/status").read_text())
    return int(found[1]) / 1024 if found else float("nan")


if __name__ == "__main__":
    main()
