"""Models over the chunks of a stream: each predicts an example, then learns it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from stream_pegasos.blocks.predicted import Labelled, PredictedBlock, has_weight
from stream_pegasos.common.batch_then_single import batch_then_single
from stream_pegasos.features.message import grouped, message_size
from stream_pegasos.learners.capabilities import CLASSES, model_kind
from stream_pegasos.learners.label_policy import check_label
from stream_pegasos.learners.labels import PositiveLabelError
from stream_pegasos.learners.predictions import PartlyLearnedError
from stream_pegasos.learners.text import TextClassifier

if TYPE_CHECKING:
    from typing_extensions import TypeIs

    from stream_pegasos.blocks.river_models import AnyModel, RiverModel

__all__ = [
    "REFUSALS",
    "ExampleError",
    "OnRefused",
    "chunks",
    "encode_ahead",
    "encode_early",
    "encoded_ahead",
    "get_weight",
    "goes_in_turn",
    "learn_one",
    "n_teaching",
    "pass_over",
    "predict_block",
    "predict_labelled",
    "predict_learn",
    "predict_one",
    "refused",
    "unzip_examples",
]

OnRefused = Callable[[Labelled, str], None]  # gets an example that the model refuses, and the reason

# The exceptions by which a model refuses an example; any other exception is a failure of the model.
REFUSALS = (ValueError, TypeError)

# Long texts make a chunk shorter, so that memory stays constant.
_CHUNK_SIZE = 1 << 22  # characters, counted by `message_size`
AHEAD = 2  # chunks that a server encodes while one is learned


class ExampleError(ValueError):
    """The model refuses to learn an `example`, for instance one with a list instead of one label."""

    def __init__(self, message: str, example: Labelled) -> None:
        super().__init__(message, example)
        self.example = example

    def __str__(self) -> str:
        return str(self.args[0])


def chunks(examples: Iterable[Labelled], batch: int = 512) -> Iterator[list[Labelled]]:
    """Lists of at most `batch` examples, shorter if the messages are large."""
    return grouped(examples, lambda example: message_size(example[0]), _CHUNK_SIZE, batch)


def encoded_ahead(
    models: Sequence[Any], chunks: Iterable[list[Labelled]], threads: int = 1
) -> Iterator[list[Labelled]]:
    """The chunks, unchanged. While one is learned, remote encoders of these models encode the next ones."""
    if not any(map(_is_remote, models)):
        yield from chunks
        return

    def encode(chunk: list[Labelled]) -> None:
        for model in models:
            encode_early(model, [example[0] for example in chunk], threads)

    waiting = deque[tuple[list[Labelled] | BaseException, Future[None] | None]]()

    def first() -> list[Labelled]:
        chunk, encoding = waiting.popleft()
        if isinstance(chunk, BaseException):
            raise chunk
        if encoding is not None:
            encoding.result()
        return chunk

    pool = ThreadPoolExecutor(AHEAD)
    try:
        for chunk in _until_failure(chunks):
            waiting.append((chunk, None if isinstance(chunk, BaseException) else pool.submit(encode, chunk)))
            if len(waiting) > AHEAD:
                yield first()
        while waiting:
            yield first()
    finally:  # after an early end, do not wait for answers that are not needed
        pool.shutdown(wait=False, cancel_futures=True)


def _until_failure(chunks: Iterable[list[Labelled]]) -> Iterator[list[Labelled] | BaseException]:
    """The chunks and, if there is one, the exception that ended them, so that the chunks before it can be learned
    first.
    """
    try:
        yield from chunks
    except (Exception, KeyboardInterrupt) as error:
        yield error


def encode_early(model: AnyModel, X: Sequence[Any], threads: int = 1) -> None:
    """Make a remote encoder of a model encode messages that are learned later. If that fails, the encoder is asked
    again then.
    """
    if _is_remote(model):
        with suppress(Exception):
            encode_ahead(model, X, threads)


def predict_labelled(
    model: AnyModel, chunk: list[Labelled], on_refused: OnRefused | None, threads: int
) -> Iterator[PredictedBlock]:
    """Predict examples without learning them: in one block, or one by one if the model refuses any."""

    def predicted(chunk: list[Labelled]) -> PredictedBlock:
        X, y, _ = unzip_examples(chunk)
        if model_kind(model.capabilities) == CLASSES:
            y = [check_label(label) for label in y]  # any label may be scored, even a third label of a binary model
        else:
            model.check_labels(y)
        return predict_block(model, X, y, chunk, threads)

    for examples, block in batch_then_single(chunk, predicted, REFUSALS):
        if isinstance(block, Exception):
            pass_over(ExampleError(str(block), examples[0]), on_refused)
        else:
            yield block


def predict_block(
    model: AnyModel, X: list[Any], y: list[Any], examples: Sequence[Labelled] = (), threads: int = 1
) -> PredictedBlock:
    """The predictions for examples that are not learned now, with the known labels of the model."""
    encode_ahead(model, X, threads)
    with model.lock:
        return PredictedBlock(model.predictions(X, threads=threads), model.classes, y, examples)


def encode_ahead(model: AnyModel, X: Sequence[Any], threads: int = 1) -> None:
    """Make the encoder of a model, if any, encode examples together and without the model's lock, so that predicting
    and learning is fast afterwards.
    """
    if isinstance(model, TextClassifier) and model.features.encoder is not None:
        model.features.refusals(X, threads)


def _is_remote(model: AnyModel) -> bool:
    encoder = model.features.encoder if isinstance(model, TextClassifier) else None
    return encoder is not None and encoder.is_remote


def predict_learn(
    model: AnyModel, chunk: list[Labelled], on_refused: OnRefused | None = None, threads: int = 1
) -> Iterator[PredictedBlock]:
    """Predict each example, then learn it. Yield the predictions in blocks, as soon as a block is learned.

    With `on_refused`, an example that the model refuses is skipped. Otherwise it raises an ExampleError, after the
    examples before it are learned and their predictions are yielded.
    """

    def together(examples: list[Labelled]) -> PredictedBlock:
        X, y, w = unzip_examples(examples)
        return PredictedBlock(model.predict_learn_many(X, y, w, threads=threads), model.classes, y, examples)

    def alone(examples: list[Labelled]) -> PredictedBlock:
        if goes_in_turn(model):
            with refused(examples[0]):
                return together(examples)
        predicted = predict_one(model, examples[0])
        learn_one(model, examples[0])
        return predicted

    remaining = chunk
    while remaining:
        n = model.labels.count_alike([example[1] for example in remaining])
        batch, remaining = remaining[: n or 1], remaining[n or 1 :]
        try:
            for _, outcome in batch_then_single(batch, together if n else alone, REFUSALS, alone if n else None):
                if isinstance(outcome, ExampleError):
                    pass_over(outcome, on_refused)
                else:
                    yield outcome
        except PartlyLearnedError as error:
            assert error.predictions is not None
            n = error.n_learned
            yield PredictedBlock(error.predictions, model.classes, [y for _, y, *_ in batch[:n]], batch[:n])
            if not isinstance(error.__cause__, REFUSALS):
                raise
            pass_over(ExampleError(str(error.__cause__), batch[n]), on_refused)
            remaining = [*batch[n + 1 :], *remaining]


def goes_in_turn(model: AnyModel) -> TypeIs[RiverModel]:
    """Whether a model always takes one example after the other, like River's models."""
    return hasattr(model, "predict_or_learn_many")


def pass_over(error: ExampleError, on_refused: OnRefused | None) -> None:
    """Report a refused example. Raise the error if `pos_label` is missing, because then all other examples would be
    refused, too.
    """
    if on_refused is None or isinstance(error.__cause__, PositiveLabelError):
        raise error
    on_refused(error.example, str(error))


@contextmanager
def refused(example: Labelled) -> Iterator[None]:
    """Turn the refusal of an example into an ExampleError."""
    try:
        yield
    except REFUSALS as error:
        raise ExampleError(str(error), example) from error


def predict_one(model: AnyModel, example: Labelled) -> PredictedBlock:
    with refused(example):
        return predict_block(model, [example[0]], [example[1]], [example])


def n_teaching(examples: Iterable[Labelled]) -> int:
    """The number of examples with a weight above 0; the others are not learned."""
    return sum(map(has_weight, examples))


def learn_one(model: AnyModel, example: Labelled) -> None:
    with refused(example):
        model.learn_one(example[0], example[1], get_weight(example))


def unzip_examples(chunk: list[Labelled]) -> tuple[list[Any], list[Any], Any]:
    """The x, y and w of a chunk. w is the number 1 if all weights are 1, which is faster."""
    weights = [get_weight(example) for example in chunk]
    w = weights if any(weight != 1 for weight in weights) else 1.0
    return [example[0] for example in chunk], [example[1] for example in chunk], w


def get_weight(example: Labelled) -> Any:
    return example[2] if len(example) > 2 else 1.0
