"""The safetensors format: eight bytes with the length of a JSON header, the header, the bytes of the tensors.

Written by hand, as it is that small: a dependency would bring nothing but its own errors.
"""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from tpc.files import write_file
from tpc.ir.types import NUMPY_DTYPES
from tpc.tensor import Tensor, from_array

NAMES = {
    "bool": "BOOL", "u8": "U8", "i8": "I8", "i16": "I16", "u16": "U16", "i32": "I32", "u32": "U32", "i64": "I64", "u64": "U64",
    "f16": "F16", "f32": "F32", "f64": "F64", "c64": "C64",
}  # fmt: skip
DTYPES = {name: ir for ir, name in NAMES.items()}
MAX_HEADER = 100_000_000
"""The format's own limit."""


def save(tensors: Mapping[str, Tensor], metadata: Mapping[str, str] | None = None) -> bytes:
    """The bytes of a file with these tensors; `TypeError` for other values, `ValueError` for a dtype that the format does not have."""
    header: dict[str, Any] = {"__metadata__": dict(metadata)} if metadata else {}
    parts, at = [], 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-_itemsize(*item), item[0])):
        data = np.ascontiguousarray(tensor.detach().numpy()).tobytes()
        header[name] = {"dtype": NAMES[tensor._type.dtype], "shape": list(tensor.shape), "data_offsets": [at, at + len(data)]}
        parts.append(data)
        at += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return b"".join([len(text).to_bytes(8, "little"), text, *parts])


def _itemsize(name: str, tensor: Any) -> int:
    """Wider dtypes come first, so that every tensor is aligned."""
    if not isinstance(tensor, Tensor):
        raise TypeError(f"safetensors holds tensors only; {name!r} is a {type(tensor).__name__}")
    if tensor._type.dtype not in NAMES:
        raise ValueError(f"safetensors has no dtype for {name!r}, {tensor.dtype}")
    return NUMPY_DTYPES[tensor._type.dtype].itemsize


def load(data: bytes) -> dict[str, Tensor]:
    """All tensors in the bytes of a file; `RuntimeError` where these are damaged."""
    return _read(data, "the data")[0]


def save_file(tensors: Mapping[str, Tensor], filename: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
    """Writes a file, whole or not at all."""
    write_file(Path(filename), save(tensors, metadata))


def load_file(filename: str | os.PathLike[str], device: Any = "cpu") -> dict[str, Tensor]:
    """All tensors of a file; `RuntimeError` where it is damaged."""
    return _read(Path(filename).read_bytes(), os.fspath(filename))[0]


def read_metadata(filename: str | os.PathLike[str]) -> dict[str, str]:
    """The texts that were saved with the tensors."""
    return _read(Path(filename).read_bytes(), os.fspath(filename))[1]


def _read(data: bytes, name: str) -> tuple[dict[str, Tensor], dict[str, str]]:
    try:
        length = int.from_bytes(data[:8], "little")
        if len(data) < 8 or length > min(len(data) - 8, MAX_HEADER):
            raise ValueError("the header is cut off")
        header = json.loads(data[8 : 8 + length])
        body = memoryview(data)[8 + length :]
        metadata = header.pop("__metadata__", {})
        end, found = 0, {}
        for key, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            begin, stop = entry["data_offsets"]
            if begin != end:
                raise ValueError(f"{key!r} does not begin where the tensor before it ends")
            found[key], end = _tensor(key, entry, body[begin:stop]), stop
        if end != len(body):
            raise ValueError(f"{len(body)} bytes of tensors, not {end}")
    except (ValueError, KeyError, TypeError, AttributeError) as e:
        raise RuntimeError(f"cannot load {name}: no safetensors file, or a damaged one ({e})") from e
    return {key: found[key] for key in header}, metadata


def _tensor(key: str, entry: Mapping[str, Any], part: memoryview) -> Tensor:
    if entry["dtype"] not in DTYPES:
        raise ValueError(f"there is no dtype for {key!r}, {entry['dtype']}")
    kind, shape = NUMPY_DTYPES[DTYPES[entry["dtype"]]], tuple(entry["shape"])
    if any(not isinstance(n, int) or n < 0 for n in shape) or len(part) != math.prod(shape) * kind.itemsize:
        raise ValueError(f"{key!r} has {len(part)} bytes, which is not its shape {list(shape)}")
    return from_array(np.frombuffer(part, kind).reshape(shape).copy())
