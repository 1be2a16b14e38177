"""Cuts the bundled digits out of the full MNIST set: the first 10,000 training images and the whole test set.

Usage: python3 cut_mnist.py FULL_MNIST_DIR OUTPUT_DIR

The gzip headers carry neither a time nor a name, so the same input gives the same files (with the same zlib).
"""

import gzip
import io
import pathlib
import struct
import sys

TRAIN = 10_000
TEST = 10_000


def cut(source: pathlib.Path, target: pathlib.Path, keep: int) -> None:
    """Writes the first `keep` items of the IDX file `source` to `target`."""
    raw = gzip.decompress(source.read_bytes())
    zero, kind, axes = struct.unpack(">HBB", raw[:4])
    sizes = list(struct.unpack(f">{axes}I", raw[4 : 4 + 4 * axes]))
    item = 1
    for size in sizes[1:]:
        item *= size
    start = 4 + 4 * axes
    if zero != 0 or kind != 8 or sizes[0] < keep or len(raw) != start + sizes[0] * item:
        sys.exit(f"{source}: not an IDX file of at least {keep} items of bytes")
    header = raw[:4] + struct.pack(f">{axes}I", keep, *sizes[1:])
    packed = io.BytesIO()
    with gzip.GzipFile(filename="", mode="wb", compresslevel=9, fileobj=packed, mtime=0) as stream:
        stream.write(header + raw[start : start + keep * item])
    target.write_bytes(packed.getvalue())


def main() -> None:
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    source, target = map(pathlib.Path, sys.argv[1:])
    target.mkdir(parents=True, exist_ok=True)
    for part, keep in (("train", TRAIN), ("t10k", TEST)):
        for name in (f"{part}-images-idx3-ubyte.gz", f"{part}-labels-idx1-ubyte.gz"):
            cut(source / name, target / name, keep)


main()
