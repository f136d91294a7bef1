"""Models as files: one safetensors file of arrays. Loading runs no code.

The header of such a file is limited, so everything that can grow is an array: the state as JSON, and names of features.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import math
import os
import shutil
import stat
import tempfile
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
from stream_pegasos.common.lazy_columns import SOME, Column, Columns, read
from stream_pegasos.common.packing import (
    NAME_OFFSETS,
    NAMES,
    look_up,
    pack,
    pack_names,
    unpack,
    unpack_names,
    unpack_parameters,
)
from stream_pegasos.features.base import Features, FeatureUnion
from stream_pegasos.features.vectors import VectorsError, VectorSource, unpacked, vector_source
from stream_pegasos.learners.earlier import FROZEN, RemovedError, check_kind, default_parameters, name_spaces

FORMAT = "stream_pegasos"
FORMAT_VERSION = 1
# Arrays of JSON in UTF-8.
STATE, PROGRESS = "state", "progress"
# The vectors of met words, by the hashes of the words, if the file has them.
VECTORS = "vector_hashes", "vector_codes", "vector_shifts"
SAFETENSORS_DTYPES = {"<i8": "I64", "<f8": "F64", "<f4": "F32", "|u1": "U8"}  # in their order in a file
ORDER = [*SAFETENSORS_DTYPES]
MOST_BYTES = 10**15
DTYPES = {name: np.dtype(dtype) for dtype, name in SAFETENSORS_DTYPES.items()}


Arrays = Mapping[str, NDArray[Any]]

KINDS: dict[str, Any] = {}  # the classes of models, by name


def find_model_class(name: str) -> Any:
    check_kind(name)
    look_up(name)
    return KINDS[name]


@dataclass(frozen=True)
class Snapshot:
    """The state of a model at one time."""

    kind: str
    arrays: Columns
    names: list[Any]
    values: dict[str, Any]
    progress: object
    field_names: Mapping[str, str] = field(default_factory=dict)
    vectors: VectorSource | None = None
    spool: Spool | None = None  # the file that already holds the arrays, if any

    @property
    def checksum(self) -> str:
        return checksum({**self.arrays, **self._kept(), **self._packed()}, self.kind)

    def write(self, path: str | os.PathLike[str], keep: str | os.PathLike[str] | None = None) -> None:
        """Write a model file, as `write_model` does."""
        write_model(path, self.spooled, keep)

    def spooled(self, file: IO[bytes]) -> Snapshot:
        """The same snapshot with its arrays in a new file. `finish` makes it a model file."""
        offsets = Column((len(self.names) + 1,), np.dtype(np.int64), lambda _: ())
        spool = Spool(file, self._metadata("0" * 8), {**self.arrays, **self._kept(), NAME_OFFSETS: offsets})
        spool.write(self.arrays)
        columns = spool.columns()
        arrays = {name: columns[name] for name in self.arrays}
        return dataclasses.replace(self, arrays=arrays, field_names={**self.field_names}, spool=spool)

    def finish(self) -> None:
        """Write the rest of the file; the header comes last."""
        assert self.spool is not None
        self.spool.write({**self._kept(), **self._packed()})
        self.spool.finish(self._metadata(checksum(self.spool.columns(), self.kind)))

    def _kept(self) -> dict[str, NDArray[Any]]:
        return {} if self.vectors is None else dict(zip(VECTORS, self.vectors.kept, strict=False))

    def _packed(self) -> dict[str, NDArray[Any]]:
        """The values, the names and the progress, packed as arrays."""
        packed = {STATE: np.frombuffer(orjson.dumps(self.values), np.uint8), **pack_names(self.names)}
        if self.progress is not None:
            packed[PROGRESS] = np.frombuffer(orjson.dumps(pack(self.progress)), np.uint8)
        return packed

    def _metadata(self, checked: str) -> dict[str, str]:
        header: dict[str, Any] = {"format_version": FORMAT_VERSION, "kind": self.kind, "checksum": checked}
        if self.field_names:
            header["field_names"] = {**self.field_names}
        return {FORMAT: orjson.dumps(header).decode()}


class Spool:
    """A safetensors file under construction, in the layout of `safetensors.numpy.save`, but with spaces after its
    header, which is written last. Byte arrays are at the end; their size need not be known in advance.
    """

    def __init__(self, file: IO[bytes], metadata: dict[str, str], arrays: Columns) -> None:
        self._file, self._places, self._end = file, dict[str, _SavePlace](), 0
        self._lay_out({name: array for name, array in arrays.items() if array.dtype != np.uint8})
        unknown = _SavePlace((MOST_BYTES,), np.dtype(np.uint8), MOST_BYTES)
        header = _header(metadata, dict.fromkeys((STATE, NAMES, PROGRESS, *arrays), unknown) | self._places)
        self._begin = 8 + len(header) + -len(header) % 8

    def _lay_out(self, arrays: Columns) -> None:
        for name in sorted(arrays, key=lambda name: (ORDER.index(arrays[name].dtype.str), name)):
            self._places[name] = place = _SavePlace(arrays[name].shape, arrays[name].dtype, self._end)
            self._end = place.end

    def write(self, arrays: Columns) -> None:
        self._lay_out({name: array for name, array in arrays.items() if name not in self._places})
        ends = {name: self._begin + self._places[name].begin for name in arrays}
        at = None
        for name, rows in read(arrays, SOME):
            if at != ends[name]:
                self._file.seek(ends[name])
            self._file.write(rows.data)
            ends[name] = at = ends[name] + rows.nbytes

    def columns(self) -> dict[str, Column]:
        """The written arrays, to be read back."""
        return {
            name: Column(place.shape, place.dtype, functools.partial(self._parts, name, place))
            for name, place in self._places.items()
        }

    def _parts(self, name: str, place: _SavePlace, n: int) -> Iterator[dict[str, NDArray[Any]]]:
        self._file.seek(self._begin + place.begin)
        left = place.end - place.begin
        while left:
            part = np.frombuffer(self._file.read(min(left, 8 * n)), np.uint8)
            if not len(part):
                raise OSError("the file was cut while it was written")
            left -= len(part)
            yield {name: part}

    def finish(self, metadata: dict[str, str]) -> None:
        """Write the header, padded with spaces."""
        text = _header(metadata, self._places).ljust(self._begin - 8)
        assert len(text) == self._begin - 8
        self._file.seek(0)
        self._file.write(len(text).to_bytes(8, "little") + text)


@dataclass(frozen=True)
class _SavePlace:
    """The place of an array after the header."""

    shape: tuple[int, ...]
    dtype: np.dtype[Any]
    begin: int

    @property
    def end(self) -> int:
        return self.begin + math.prod(self.shape) * self.dtype.itemsize


def _header(metadata: dict[str, str], places: Mapping[str, _SavePlace]) -> bytes:
    header: dict[str, Any] = {"__metadata__": metadata}
    for name, place in places.items():
        dtype = SAFETENSORS_DTYPES[place.dtype.str]
        header[name] = {"dtype": dtype, "shape": place.shape, "data_offsets": [place.begin, place.end]}
    return orjson.dumps(header)


def write_model(
    path: str | os.PathLike[str],
    snapshot: Callable[[IO[bytes]], Snapshot],
    keep: str | os.PathLike[str] | None = None,
) -> Snapshot:
    """Write a model file, as a whole or not at all, while holding its lock. The previous file moves to `keep`.
    `snapshot` writes the arrays into the file; its result is finished and returned.
    """
    path = Path(os.path.realpath(path))  # a symbolic link is kept
    is_device = path.exists() and not path.is_file()  # for example a pipe, which must not be replaced
    with _for_device(path) if is_device else replacing(path, keep) as file:
        found = snapshot(file)
        found.finish()
    return found


@contextlib.contextmanager
def _for_device(path: Path) -> Iterator[IO[bytes]]:
    """A temporary file that is copied at the end to a device, where seeking is impossible."""
    with open(path, "wb") as device, tempfile.TemporaryFile() as file:
        yield file
        file.seek(0)
        shutil.copyfileobj(file, device)


def read_model(path: str | os.PathLike[str], vectors: object = None) -> tuple[Any, Any]:
    """The model in a file, and the progress beside it."""
    own_vectors = None if vectors is None else vector_source(vectors)
    # Do not wait for a writer if it is a pipe.
    with open(path, "rb", opener=lambda name, flags: os.open(name, flags | getattr(os, "O_NONBLOCK", 0))) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise ValueError(f"{path} must be a regular file")
        try:
            entries = read_header(file)
            metadata = {**entries.pop("__metadata__", {})}
            is_frozen = FROZEN in metadata.get(FORMAT, "")
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
            kind = find_model_class(header["kind"])
            if header["checksum"] != checksum(arrays, header["kind"]):
                raise ValueError("its contents do not fit its checksum")
            state = orjson.loads(arrays.pop(STATE).tobytes())
            names = unpack_names(arrays)
            progress = orjson.loads(arrays.pop(PROGRESS).tobytes()) if PROGRESS in arrays else None
            vector_arrays = tuple(arrays.pop(name) for name in VECTORS) if VECTORS[0] in arrays else ()
            find_vectors = functools.partial(unpacked, own_vectors=own_vectors, arrays=vector_arrays)
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
        reason = " ".join(str(error).split())  # River shows its objects on several lines
        raise ValueError(f"{path} is damaged: {reason}") from None
    if version != FORMAT_VERSION:
        raise ValueError(f"{path} has format version {version!r}; this version of the package reads {FORMAT_VERSION}")
    if own_vectors is not None and model.vector_source is None:
        raise ValueError(f"{path} is a model without vectors")
    return model, progress


def begins_as_model(path: str | os.PathLike[str]) -> bool:
    """Whether a regular file begins like a file from `save`; the rest may be damaged."""
    with open(path, "rb") as file:
        try:
            return FORMAT in read_header(file)["__metadata__"]
        except (LookupError, TypeError, ValueError):
            return False


def check_replaceable(path: str | os.PathLike[str]) -> None:
    """Raise a ValueError if saving a model here would replace a file that is no model."""
    if os.path.isfile(path) and os.path.getsize(path) and not begins_as_model(path):
        raise ValueError(
            f"{path} must be a model to be replaced, got another file; give another name, or remove it first"
        )


def has_progress(path: str | os.PathLike[str]) -> bool:
    """Whether a file that begins like a model is a checkpoint, with progress beside the model."""
    with open(path, "rb") as file:
        return PROGRESS in read_header(file)


def read_progress(path: str | os.PathLike[str]) -> Any:
    """The progress beside the model in a file; the model is neither read nor checked."""
    with open(path, "rb") as file:
        begin, end = read_header(file)[PROGRESS]["data_offsets"]
        file.seek(begin, os.SEEK_CUR)
        return unpack(orjson.loads(file.read(end - begin)))


def read_header(file: BufferedReader) -> dict[str, Any]:
    """The header of a safetensors file: the descriptions of its arrays, and the metadata."""
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


def checksum(arrays: Columns, description: object) -> str:
    total = zlib.crc32(orjson.dumps(description))
    for name in sorted(arrays):
        total = zlib.crc32(name.encode(), total)
        for _, rows in read({name: arrays[name]}, SOME):
            total = zlib.crc32(rows.data, total)
    return f"{total:08x}"


def packed_features(features: Features) -> dict[str, Any]:
    if isinstance(features, FeatureUnion):
        record: dict[str, Any] = {"parts": [packed_features(part) for part in features.parts]}
        return record if all(part.space for part in features.parts[1:]) else record | {"empty_space": "apart"}
    described = {name: pack(value) for name, value in features.described().items()}
    return {"features": described, "features_kind": type(features).__name__}


def unpacked_features(values: Mapping[str, Any], find_vectors: Callable[[Any], VectorSource]) -> Features:
    if "parts" in values:
        parts = [unpacked_features(part, find_vectors) for part in values["parts"]]
        return FeatureUnion(parts if "empty_space" in values else name_spaces(parts))
    look_up(kind := values["features_kind"])
    parameters = default_parameters(kind) | unpack_parameters(values["features"])
    if parameters.get("vectors") is not None:
        parameters["vectors"] = find_vectors(parameters["vectors"])
    return Features.kinds[kind](**parameters)


@contextlib.contextmanager
def replacing(path: Path, keep: str | os.PathLike[str] | None = None) -> Iterator[IO[bytes]]:
    """A temporary file to write. When it is safely on the disk, it replaces `path`; the previous file moves to
    `keep`.
    """
    temporary = Companions(path).temporary()
    try:
        with open(temporary, "x+b") as file:
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
        with contextlib.suppress(OSError):  # some folders are writable, but not readable
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                os.fsync(folder)
            finally:
                os.close(folder)


def _keep(path: Path, other: Path) -> None:
    """Give the file the name `other`, as a second name if the file system allows it, so that `path` always exists."""
    with contextlib.suppress(FileNotFoundError):
        other.unlink()
    try:
        os.link(path, other)
    except OSError:
        os.replace(path, other)


def remove_leftovers(path: Path) -> None:
    """Remove the temporary files that killed processes left while writing `path`."""
    with contextlib.suppress(OSError):  # some folders are writable, but not readable
        for leftover in Companions(path).temporaries():
            leftover.unlink(missing_ok=True)
