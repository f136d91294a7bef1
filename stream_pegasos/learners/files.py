"""Models as files: one safetensors file of arrays; loading runs no code.

The header of such a file may not be large, so all that can grow is an array: the state as JSON, and names of features.
"""

from __future__ import annotations

import contextlib
import functools
import math
import os
import stat
import zlib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import IO, Any

import numpy as np
import orjson
from numpy.typing import NDArray

from stream_pegasos.common.companions import Companions
from stream_pegasos.common.packing import look_up, pack, pack_names, unpack, unpack_names, unpack_parameters
from stream_pegasos.features.base import Features, FeatureUnion
from stream_pegasos.features.vectors import VectorsError, VectorSource, unpacked, vector_source

FORMAT = "stream_pegasos"
FORMAT_VERSION = 1
# Arrays of JSON as UTF-8.
STATE, PROGRESS = "state", "progress"
# The vectors of words that were met, where a file has these, by the hashes of the words.
VECTORS = "vector_hashes", "vector_codes", "vector_shifts"
SAFETENSORS_DTYPES = {"<i8": "I64", "<f8": "F64", "<f4": "F32", "|u1": "U8"}  # in the order of a file
DTYPES = {name: np.dtype(dtype) for dtype, name in SAFETENSORS_DTYPES.items()}


Arrays = Mapping[str, NDArray[Any]]


KINDS: dict[str, Any] = {}  # the classes of models, by name


class RemovedError(ValueError):
    """A file needs what an earlier version had."""


def kind_of(name: str) -> Any:
    if name == "OrdinalPairsClassifier":
        raise RemovedError(
            "it has the ordered pairs of version 0.2; learn an OrdinalClassifier() again, "
            "or see examples/papers/duros_katzman.py"
        )
    look_up(name)
    return KINDS[name]


@dataclass(frozen=True)
class Snapshot:
    """The state of a model at one moment."""

    kind: str
    arrays: Arrays
    names: list[Any]
    values: dict[str, Any]
    progress: Any
    field_names: Mapping[str, str] = field(default_factory=dict)
    vectors: VectorSource | None = None

    @property
    def checksum(self) -> str:
        return checksum(self._packed(), self.kind)

    def _packed(self) -> dict[str, NDArray[Any]]:
        """All of it as arrays."""
        arrays = {**self.arrays, STATE: np.frombuffer(orjson.dumps(self.values), np.uint8), **pack_names(self.names)}
        if self.vectors is not None:
            arrays.update(zip(VECTORS, self.vectors.kept, strict=False))
        if self.progress is not None:
            arrays[PROGRESS] = np.frombuffer(orjson.dumps(pack(self.progress)), np.uint8)
        return arrays

    def write(self, path: str | os.PathLike[str], keep: str | os.PathLike[str] | None = None) -> None:
        """Write a model file, which is there whole or not at all, holding its lock; the one before goes to `keep`."""
        arrays = self._packed()
        checked = checksum(arrays, self.kind)
        header: dict[str, Any] = {"format_version": FORMAT_VERSION, "kind": self.kind, "checksum": checked}
        if self.field_names:
            header["field_names"] = {**self.field_names}
        metadata = {FORMAT: orjson.dumps(header).decode()}
        path = Path(os.path.realpath(path))  # a symbolic link stays one
        is_device = path.exists() and not path.is_file()  # which, as a pipe, must not be replaced
        with open(path, "wb") if is_device else replacing(path, keep) as file:
            write_safetensors(file, arrays, metadata)


def write_safetensors(file: IO[bytes], arrays: Arrays, metadata: dict[str, str]) -> None:
    """What `safetensors.numpy.save` gives, without its copies of all arrays, in whose time no other thread learns."""
    arrays = {name: np.ascontiguousarray(arrays[name]) for name in arrays}
    order = [*SAFETENSORS_DTYPES]
    names = sorted(arrays, key=lambda name: (order.index(arrays[name].dtype.str), name))
    header: dict[str, Any] = {"__metadata__": metadata}
    begin = 0
    for name in names:
        array = arrays[name]
        dtype = SAFETENSORS_DTYPES[array.dtype.str]
        header[name] = {"dtype": dtype, "shape": array.shape, "data_offsets": [begin, begin + array.nbytes]}
        begin += array.nbytes
    text = orjson.dumps(header)
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for name in names:
        file.write(arrays[name].data)


def read_model(path: str | os.PathLike[str], vectors: Any = None) -> tuple[Any, Any]:
    """The model in a file, and what `snapshot` was given beside it."""
    given = None if vectors is None else vector_source(vectors)
    # A pipe is opened without a wait for somebody who writes to it.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path} must be a regular file")
        try:
            entries = read_header(file)
            metadata = {**entries.pop("__metadata__", {})}
            is_frozen = '"FrozenTextClassifier"' in metadata.get(FORMAT, "")
            arrays = {} if is_frozen else read_arrays(file, entries)
        except (ArithmeticError, AttributeError, LookupError, OSError, TypeError, ValueError) as error:
            raise ValueError(f"{path} must be a model, got another or a damaged file: {error}") from None
    if is_frozen:
        raise ValueError(f"{path} was made by freeze of 0.2; save the model itself")
    if FORMAT not in metadata:
        raise ValueError(f"{path} is a safetensors file, but no model of stream_pegasos")
    try:
        header = orjson.loads(metadata[FORMAT])
        version = header["format_version"]
        if version == FORMAT_VERSION:
            kind = kind_of(header["kind"])
            if header["checksum"] != checksum(arrays, header["kind"]):
                raise ValueError("its contents do not fit its checksum")
            state = orjson.loads(arrays.pop(STATE).tobytes())
            names = unpack_names(arrays)
            progress = orjson.loads(arrays.pop(PROGRESS).tobytes()) if PROGRESS in arrays else None
            kept = tuple(arrays.pop(name) for name in VECTORS) if VECTORS[0] in arrays else ()
            find_vectors = functools.partial(unpacked, own_vectors=given, arrays=kept)
            model = kind.from_state(arrays, names, {**state, "find_vectors": find_vectors})
            progress = unpack(progress)
            field_names = header.get("field_names", {})
            if not all(isinstance(name, str) for name in {**field_names}.values()):
                raise ValueError("names of fields must be texts")
            if field_names:
                model.field_names = field_names
    except (VectorsError, RemovedError) as error:
        raise type(error)(f"{path} cannot be used: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())  # River writes its objects on several lines
        raise ValueError(f"{path} is damaged: {reason}") from None
    if version != FORMAT_VERSION:
        raise ValueError(f"{path} has format version {version!r}; this version of the package reads {FORMAT_VERSION}")
    if given is not None and model.vector_source is None:
        raise ValueError(f"{path} is a model without vectors")
    return model, progress


def begins_as_model(path: str | os.PathLike[str]) -> bool:
    """Whether a regular file begins as one that `save` wrote; what comes behind may be damaged."""
    with open(path, "rb") as file:
        try:
            return FORMAT in read_header(file)["__metadata__"]
        except (LookupError, TypeError, ValueError):
            return False


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise a ValueError if a model in this place would take that of what is no model."""
    if os.path.isfile(path) and os.path.getsize(path) and not begins_as_model(path):
        raise ValueError(
            f"{path} must be a model to be replaced, got another file; give another name, or remove it first"
        )


def has_progress(path: str | os.PathLike[str]) -> bool:
    """Whether a file that begins as a model is a checkpoint, which has progress beside the model."""
    with open(path, "rb") as file:
        return PROGRESS in read_header(file)


def read_progress(path: str | os.PathLike[str]) -> Any:
    """What `snapshot` was given beside the model in a file, which is neither read nor checked."""
    with open(path, "rb") as file:
        begin, end = read_header(file)[PROGRESS]["data_offsets"]
        file.seek(begin, os.SEEK_CUR)
        return unpack(orjson.loads(file.read(end - begin)))


def read_header(file: BufferedReader) -> dict[str, Any]:
    """What a safetensors file says of its arrays, and its metadata."""
    size = int.from_bytes(file.read(8), "little")
    if size > os.fstat(file.fileno()).st_size:
        raise ValueError("it has no header")
    header: dict[str, Any] = orjson.loads(file.read(size))
    return header


def read_arrays(file: BufferedReader, entries: dict[str, Any]) -> dict[str, NDArray[Any]]:
    begin, arrays = 0, {}
    size = os.fstat(file.fileno()).st_size - file.tell()
    for name, entry in sorted(entries.items(), key=lambda item: item[1]["data_offsets"]):
        dtype, shape = DTYPES[entry["dtype"]], tuple(entry["shape"])
        end = begin + math.prod(shape) * dtype.itemsize
        if entry["data_offsets"] != [begin, end] or end > size:
            raise ValueError(f"{name} is not where it should be")
        arrays[name] = np.empty(shape, dtype)
        if file.readinto(arrays[name].data) != end - begin:
            raise ValueError(f"{name} is not as long as it should be")
        begin = end
    if begin != size:
        raise ValueError("there is more in it than its arrays")
    return arrays


def checksum(arrays: Arrays, rest: Any) -> str:
    total = zlib.crc32(orjson.dumps(rest))
    for name in sorted(arrays):
        total = zlib.crc32(name.encode(), total)
        total = zlib.crc32(np.ascontiguousarray(arrays[name]).data, total)
    return f"{total:08x}"


def packed_features(features: Features) -> dict[str, Any]:
    if isinstance(features, FeatureUnion):
        found: dict[str, Any] = {"parts": [packed_features(part) for part in features.parts]}
        return found if all(part.space for part in features.parts[1:]) else found | {"empty_space": "apart"}
    described = {name: pack(value) for name, value in features.described().items()}
    return {"features": described, "features_kind": type(features).__name__}


def unpacked_features(values: Any, find_vectors: Callable[[Any], VectorSource]) -> Features:
    if "parts" in values:
        first, *others = [unpacked_features(part, find_vectors) for part in values["parts"]]
        if "empty_space" not in values:  # of 0.2, where the namespace "" was that of the first field
            space = first.each[0].space
            others = [part if part.space else part.clone({"namespace": space}) for part in others]
        return FeatureUnion([first, *others])
    look_up(kind := values["features_kind"])
    of_earlier: dict[str, Any] = {"mask_digits": True} if kind in ("TextFeatures", "MailFeatures") else {}
    if kind == "TextFeatures":
        of_earlier |= {"letters": 0.0, "length": 0.0}
    parameters = of_earlier | unpack_parameters(values["features"])
    if parameters.get("vectors") is not None:
        parameters["vectors"] = find_vectors(parameters["vectors"])
    return Features.kinds[kind](**parameters)


@contextlib.contextmanager
def replacing(path: Path, keep: str | os.PathLike[str] | None = None) -> Iterator[IO[bytes]]:
    """A file to be written; safely on the disk it takes the place of `path`, and what stood there that of `keep`."""
    temporary = Companions(path).temporary()
    try:
        with open(temporary, "xb") as file:
            with contextlib.suppress(FileNotFoundError):
                os.chmod(temporary, path.stat().st_mode & 0o777)
            yield file
            file.flush()
            os.fsync(file.fileno())
        if keep is not None and path.exists():
            _keep(path, Path(keep))
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        raise
    if os.name == "posix":
        with contextlib.suppress(OSError):  # some folders may be written to, but not read
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _keep(path: Path, other: Path) -> None:
    """Give the file the name `other`; as a second one if the file system can, so that `path` is there at any time."""
    with contextlib.suppress(FileNotFoundError):
        other.unlink()
    try:
        os.link(path, other)
    except OSError:
        os.replace(path, other)


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files that killed processes left when they wrote `path`."""
    with contextlib.suppress(OSError):  # some folders may be written to, but not read
        for leftover in Companions(path).temporaries():
            leftover.unlink(missing_ok=True)
