"""Saving and loading: nested containers of tensors and plain values, as a zip of NumPy arrays and one JSON text. No code is ever run."""

from __future__ import annotations

import io
import json
import os
import zipfile
import zlib
from collections import OrderedDict
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from tpc.dtype import BY_IR, dtype
from tpc.files import write_file
from tpc.ir.types import NUMPY_DTYPES
from tpc.nn.parameter import Parameter
from tpc.tensor import Tensor, from_array

FORMAT = "tpc data 1"
TREE = "tree.json"
_KINDS: dict[str, Callable[[Any], Any]] = {
    "tuple": tuple, "set": set, "frozenset": frozenset, "OrderedDict": OrderedDict, "complex": lambda v: complex(*v),
    "bytes": bytes.fromhex, "dtype": BY_IR.__getitem__,
}  # fmt: skip


def save(obj: Any, f: str | os.PathLike[str] | IO[bytes]) -> None:
    """Writes tensors, numbers, strings, None and containers of them to a path or a binary file.

    `TypeError` names the place of anything else. The file is written whole or not at all: an error leaves the one that was there.
    Tensors become leaves; two names of one tensor become one tensor again, views of one memory do not.
    """
    arrays: dict[str, np.ndarray] = {}
    numbers: dict[int, str] = {}
    tree = _packed(obj, "", arrays, numbers)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as archive:
        for name, array in arrays.items():
            part = io.BytesIO()
            np.lib.format.write_array(part, array, allow_pickle=False)
            archive.writestr(zipfile.ZipInfo(name + ".npy"), part.getvalue())
        # Last, so that a file that was cut off has none.
        archive.writestr(zipfile.ZipInfo(TREE), json.dumps({"format": FORMAT, "tree": tree}))
    if isinstance(f, (str, os.PathLike)):
        write_file(Path(f), stream.getvalue())
    else:
        f.write(stream.getvalue())


def _packed(x: Any, path: str, arrays: dict[str, np.ndarray], numbers: dict[int, str]) -> Any:
    """A JSON value for `x`: plain ones as they are, lists as lists, all else as {"kind": ..., "value": ...}."""
    if x is None or isinstance(x, (bool, str)) or type(x) is int:
        return x
    if isinstance(x, Tensor):
        if id(x) not in numbers:
            numbers[id(x)] = f"t{len(numbers)}"
            arrays[numbers[id(x)]] = np.asarray(x.detach().numpy())
        kind = "parameter" if isinstance(x, Parameter) else "tensor"
        return {"kind": kind, "value": numbers[id(x)], "grad": x.is_leaf and x.requires_grad}
    if isinstance(x, float):
        return {"kind": "float", "value": float(x).hex() if np.isfinite(x) else str(float(x))}
    if isinstance(x, complex):
        return {"kind": "complex", "value": [x.real, x.imag]}
    if isinstance(x, bytes):
        return {"kind": "bytes", "value": x.hex()}
    if isinstance(x, dtype):
        return {"kind": "dtype", "value": x.ir}
    if isinstance(x, Mapping):
        kind = "OrderedDict" if isinstance(x, OrderedDict) else "dict"
        pairs = [[_packed(k, path, arrays, numbers), _packed(v, f"{path}[{k!r}]", arrays, numbers)] for k, v in x.items()]
        return {"kind": kind, "value": pairs}
    if isinstance(x, (list, tuple, set, frozenset)):
        items = [_packed(v, f"{path}[{i}]", arrays, numbers) for i, v in enumerate(x)]
        kind = next(k for k in ("tuple", "set", "frozenset", "list") if isinstance(x, _TYPES[k]))
        return items if kind == "list" else {"kind": kind, "value": items}
    raise TypeError(
        f"tpc.save keeps tensors, numbers, strings and containers of them; obj{path} is a {type(x).__name__}. Save the state_dict() of "
        "modules, optimisers and schedules"
    )


_TYPES = {"tuple": tuple, "set": set, "frozenset": frozenset, "list": list}


def load(f: str | os.PathLike[str] | IO[bytes], map_location: Any = None, *, weights_only: bool = True, mmap: bool | None = None) -> Any:
    """Reads what `save` wrote, whole or not at all: `RuntimeError` where the file is damaged or another kind of file.

    Only data is read, whatever `weights_only` says; tensors live on the CPU, whatever `map_location` says.
    """
    data = Path(f).read_bytes() if isinstance(f, (str, os.PathLike)) else f.read()
    name = os.fspath(f) if isinstance(f, (str, os.PathLike)) else "the file"
    try:
        # The zip format checks each part against its sum.
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            head = json.loads(archive.read(TREE))
            if head["format"] != FORMAT:
                raise ValueError(f"its format is {head['format']!r}, not {FORMAT!r}")
            tensors: dict[str, Tensor] = {}
            return _unpacked(head["tree"], archive, tensors)
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, TypeError, EOFError, IndexError, NotImplementedError, OverflowError) as e:
        raise RuntimeError(f"cannot load {name}: it is damaged, or was not written by tpc.save ({e})") from e


def _unpacked(x: Any, archive: zipfile.ZipFile, tensors: dict[str, Tensor]) -> Any:
    if isinstance(x, list):
        return [_unpacked(v, archive, tensors) for v in x]
    if not isinstance(x, dict):
        return x
    kind, value = x["kind"], x["value"]
    if kind in ("tensor", "parameter"):
        if value not in tensors:
            tensors[value] = _tensor(archive.read(f"{value}.npy"), kind == "parameter", bool(x["grad"]))
        return tensors[value]
    if kind in ("dict", "OrderedDict"):
        pairs = [(_unpacked(k, archive, tensors), _unpacked(v, archive, tensors)) for k, v in value]
        return OrderedDict(pairs) if kind == "OrderedDict" else dict(pairs)
    if kind == "float":
        return float.fromhex(value)
    return _KINDS[kind](_unpacked(value, archive, tensors))


def _tensor(data: bytes, is_parameter: bool, requires_grad: bool) -> Tensor:
    array = np.lib.format.read_array(io.BytesIO(data), allow_pickle=False)
    if array.dtype not in NUMPY_DTYPES.values():
        raise ValueError(f"no tensor has dtype {array.dtype}")
    made = from_array(np.ascontiguousarray(array).reshape(array.shape))
    if is_parameter:
        return Parameter(made, requires_grad)
    made.requires_grad = requires_grad
    return made
