"""The build backend: setuptools, after the records of features were written in C. The warnings of setuptools about its
own parts fail no build, even with PYTHONWARNINGS=error.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[3]
WRITTEN = ROOT / "stream_pegasos" / "engine" / "cython"  # where Git ignores records.h and records.pxi


def load_schema() -> ModuleType:
    """`feature_schema` of this folder, without the packages around it, which need what is not installed yet."""
    packages = {name: ModuleType(name) for name in ("stream_pegasos", "stream_pegasos.common", "stream_pegasos.engine")}
    for name, package in packages.items():
        package.__path__ = [str(ROOT.joinpath(*name.split(".")))]
    loaded = {name: module for name, module in sys.modules.items() if name.split(".")[0] == "stream_pegasos"}
    for name in loaded:
        del sys.modules[name]
    sys.modules.update(packages)
    try:
        return importlib.import_module("stream_pegasos.engine.feature_schema")
    finally:
        for name in [name for name in sys.modules if name.split(".")[0] == "stream_pegasos"]:
            del sys.modules[name]
        sys.modules.update(loaded)


WIDTHS = {"room": " : 24", "size": " : 7", "dense": " : 1"}  # of bit fields
HEADER = """/* Written by building/engine_builder.py from feature_schema.py. */

#ifndef STREAM_PEGASOS_RECORDS_H
#define STREAM_PEGASOS_RECORDS_H

#include <stdint.h>

{structs}

#define SP_AGE_BITS {age_bits}
/* DO something with each number that is evidence, and with each that both records have. */
#define SP_AGEING_OF_PAIR(DO) {ageing_of_pair}
#define SP_AGEING_OF_SEVERAL(DO) {ageing_of_several}
#define SP_OF_EITHER(DO) {of_either}

#endif
"""
DECLARATIONS = """# Written by building/engine_builder.py from feature_schema.py.

cdef extern from "cython/records.h" nogil:
{structs}
    enum:
        SP_AGE_BITS

RECORDS_COMPILED = {layouts!r}
"""


def written_records() -> dict[str, str]:
    """The texts of two files: the records of a feature in C, and what Cython is told of them."""
    schema = load_schema()
    pair, by_class, either = (
        [field.record for field in fields] for fields in (schema.OF_PAIR, schema.OF_SEVERAL, schema.OF_EITHER)
    )
    own_of_pair, own_by_class = (names[: len(names) - len(either)] for names in (pair, by_class))

    def numbers(kind: str, *names: str) -> list[tuple[str, str]]:
        return [(kind, name) for name in names]

    records = {
        "sp_feature": [
            ("uint64_t", "hash"),
            *numbers("float", *own_of_pair),
            ("uint32_t", "age"),
            *numbers("float", *either),
        ],
        "sp_columns": [
            ("uint64_t", "hash"),
            ("uint32_t", "begin"),
            *numbers("float", *own_by_class),
            *numbers("uint32_t", "age", "n", "room", "size", "dense"),
            *numbers("float", *either),
        ],
    }
    structs = {
        name: "".join(f"    {kind} {number}{WIDTHS.get(number, '')};\n" for kind, number in record)
        for name, record in records.items()
    }
    declared_structs = {
        name: "\n".join(f"        {kind} {number}" for kind, number in record) for name, record in records.items()
    }

    def calls(fields: Iterable[Any]) -> str:
        return " ".join(f"DO({field.record})" for field in fields)

    header = HEADER.format(
        structs="\n\n".join(f"typedef struct {{\n{numbers}}} {name};" for name, numbers in structs.items()),
        age_bits=schema.AGE_BITS,
        ageing_of_pair=calls(field for field in schema.OF_PAIR if field.ages),
        ageing_of_several=calls(field for field in schema.OF_SEVERAL if field.ages),
        of_either=calls(schema.OF_EITHER),
    )
    declarations = DECLARATIONS.format(
        structs="\n".join(f"    ctypedef struct {name}:\n{numbers}" for name, numbers in declared_structs.items()),
        layouts=(tuple(pair), tuple(by_class)),
    )
    return {"records.h": header, "records.pxi": declarations}


def write_records() -> None:
    for name, text in written_records().items():
        path = WRITTEN / name
        if not path.exists() or path.read_text("utf-8") != text:
            path.write_text(text, "utf-8")


@contextmanager
def suppress_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


def __getattr__(name: str) -> Callable[..., Any]:
    """A hook of PEP 517, such as `build_wheel`."""
    with suppress_warnings():
        hook = getattr(importlib.import_module("setuptools.build_meta"), name)

    def call(*arguments: Any, **parameters: Any) -> Any:
        with suppress_warnings():
            write_records()
            return hook(*arguments, **parameters)

    return call


if __name__ == "__main__":  # for a build without a backend
    write_records()
