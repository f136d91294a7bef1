"""How streams are compressed in tests."""

import bz2
import gzip
import lzma
import sys

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

COMPRESSIONS = {
    "gzip": lambda data: gzip.compress(data, 1, mtime=0),
    "bzip2": bz2.compress,
    "xz": lzma.compress,
    "Zstandard": zstd.compress,
}
